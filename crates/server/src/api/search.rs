//! Full-text search: a page of hits, with filter and highlights.

use std::sync::Arc;
use std::time::Instant;

use axum::Extension;
use axum::extract::Request;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hyper::http::request::Parts;
use serde::{Deserialize, Serialize, Serializer};
use utoipa::ToSchema;

use super::admit::Admitted;
use super::body::{Raw, filter_in, json_body, key_in, wanted};
use super::document_writer::DocumentWriter;
use super::entries::Entry;
use super::envelope::answered;
use super::media::Form;
use super::problem::{Answered, Problem, shown};
use super::schema::{EntryBody, SearchMode, TypedEntryBody};
use super::target::Query;
use crate::answer::Refusal;
use crate::data::{Client, store_of};
use crate::memory::{Claim, attempt};
use crate::pending::{Completion, Wanted, pending};
use openkv_core::filter::Filter;
use openkv_core::model::{
    FRAMES_ANSWER_BYTES_MAX, HTTP_SEARCH_ENTRIES_DEFAULT, HTTP_SNIPPET_TERMS_DEFAULT, Highlight,
    Hit, HitChoice, HitVisitor, IndexInfo, Key, Result, Search,
};
use openkv_core::search::words;
use openkv_store::call::Paging;
use openkv_store::metrics::{Operation, Subject};
use openkv_store::{Caller, Patience, Room, Store};

/// A search.
#[derive(Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = Search)]
pub(super) struct SearchBody {
    /// A key: only entries whose keys extend it.
    #[schema(value_type = Option<Vec<serde_json::Value>>)]
    prefix: Raw,
    query: String,
    /// `words`, by default: the query is any text, of which every word must be found. `query`: it has the syntax of
    /// the JavaScript API.
    #[schema(value_type = Option<SearchMode>, inline)]
    mode: Option<String>,
    /// Most entries: 1 to 1000, by default 20.
    limit: Option<u64>,
    /// Entries to skip.
    offset: Option<u64>,
    /// Where the page before this one ended.
    cursor: Option<String>,
    /// Only entries whose values match.
    #[serde(rename = "where")]
    #[schema(value_type = Option<Object>)]
    filter: Raw,
    /// Whether entries have snippets of the fields with a match.
    highlight: Option<HighlightBody>,
}

/// Whether there are snippets, or their marks.
#[derive(Deserialize, ToSchema)]
#[serde(untagged)]
#[schema(as = Highlight)]
pub(super) enum HighlightBody {
    Is(bool),
    Marks(MarksBody),
}

/// The marks of snippets.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Marks)]
pub(super) struct MarksBody {
    /// The text before a match, by default `<b>`.
    before: Option<String>,
    /// The text behind a match, by default `</b>`.
    after: Option<String>,
    /// The text in place of omitted text, by default `…`.
    ellipsis: Option<String>,
    /// Most terms of a snippet: 1 to 64, by default 32.
    terms: Option<u8>,
}

/// An entry that a search has found.
#[derive(Serialize, ToSchema)]
#[schema(as = FoundEntry)]
pub(super) struct FoundBody<E> {
    #[schema(inline)]
    #[serde(flatten)]
    entry: E,
    /// BM25: larger is better. Comparable within one answer only.
    score: f64,
    /// With `highlight`: a snippet of each field with a match, by field.
    #[schema(value_type = Object, required = false)]
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_object")]
    highlights: Option<Vec<(String, String)>>,
}

fn as_object<S: Serializer>(
    members: &Option<Vec<(String, String)>>,
    to: S,
) -> std::result::Result<S::Ok, S::Error> {
    to.collect_map(members.iter().flatten().map(|(name, text)| (name, text)))
}

/// A page of a search.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SearchPage)]
pub(super) struct SearchPage<E> {
    /// Best first.
    entries: Vec<FoundBody<E>>,
    /// Where the next page begins; `null` at the end.
    cursor: Option<String>,
    /// Whether there is a next page.
    has_more: bool,
    /// False while the index is being built: older entries may be missing.
    complete: bool,
}

/// Searches an index.
#[utoipa::path(post, path = "/search", tag = "search", operation_id = "search",
    request_body = SearchBody,
    responses((status = 200, description = "A page of entries.", content(
            (SearchPage<EntryBody<'static>> = "application/json"),
            (SearchPage<TypedEntryBody> = "application/vnd.openkv+json")))))]
pub(super) async fn search(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, body) = request.into_parts();
    Query::of(&head.uri, &[])?;
    let (_, body) = json_body::<SearchBody>(&client, &head, body).await?;
    let prefix = body.prefix.as_ref().map(|raw| key_in("prefix", raw)).transpose()?;
    page(&client, &head, prefix, body).await
}

/// Searches an index, without conditions.
#[utoipa::path(get, path = "/search", tag = "search", operation_id = "searchByQuery",
    params(
        ("prefix" = Option<String>, Query, description = "A key, as a literal."),
        ("query" = String, Query, description = "Words; with `mode=query` a query as in the JavaScript API."),
        ("mode" = inline(Option<SearchMode>), Query, description = "`words`, by default: any text, of which every word must be found. `query`: the syntax of the JavaScript API."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 1000, description = "Most entries: 1 to 1000, by default 20."),
        ("offset" = Option<u64>, Query, description = "Entries to skip."),
        ("cursor" = Option<String>, Query, description = "Where the page before this one ended."),
        ("highlight" = Option<bool>, Query, description = "With snippets of the fields with a match."),
    ),
    responses((status = 200, description = "A page of entries.", content(
            (SearchPage<EntryBody<'static>> = "application/json"),
            (SearchPage<TypedEntryBody> = "application/vnd.openkv+json")))))]
pub(super) async fn by_query(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, _) = request.into_parts();
    let names = &["prefix", "query", "mode", "limit", "offset", "cursor", "highlight"];
    let query = Query::of(&head.uri, names)?;
    let text = query.get("query").ok_or_else(|| Problem::bad_request("query is missing"))?;
    let body = SearchBody {
        query: text.to_owned(),
        mode: query.get("mode").map(str::to_owned),
        limit: query.number("limit")?,
        offset: query.number("offset")?,
        cursor: query.get("cursor").map(str::to_owned),
        highlight: query.flag("highlight")?.map(HighlightBody::Is),
        ..SearchBody::default()
    };
    page(&client, &head, query.key("prefix")?, body).await
}

impl HighlightBody {
    fn marks(self) -> Option<Highlight> {
        let marks = match self {
            Self::Is(false) => return None,
            Self::Is(true) => MarksBody::default(),
            Self::Marks(marks) => marks,
        };
        let mark = |given: Option<String>, usual: &str| given.unwrap_or_else(|| usual.to_owned());
        Some(Highlight {
            before: mark(marks.before, "<b>"),
            after: mark(marks.after, "</b>"),
            ellipsis: mark(marks.ellipsis, "…"),
            terms: marks.terms.unwrap_or(HTTP_SNIPPET_TERMS_DEFAULT),
        })
    }
}

/// The score and the number of a hit: 16 bytes, as in the cursors of `kv.search`.
fn place_of(cursor: &str) -> Result<(f64, i64), Problem> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(cursor).ok();
    let bytes: Option<[u8; 16]> = bytes.and_then(|bytes| bytes.try_into().ok());
    let parts = bytes.and_then(|bytes| {
        let (score, number) = bytes.split_first_chunk::<8>()?;
        Some((f64::from_le_bytes(*score), i64::from_le_bytes(number.try_into().ok()?)))
    });
    parts.ok_or_else(|| Problem::wrong_cursor(cursor))
}

/// The query of a request. A text of words has each of them in quotes.
fn query_of(body: &SearchBody) -> Result<String, Problem> {
    match body.mode.as_deref() {
        None | Some("words") => Ok(words(&body.query)?),
        Some("query") => Ok(body.query.clone()),
        Some(given) => {
            let given = shown(given);
            Err(Problem::bad_request(format!("mode must be words or query: received {given}")))
        }
    }
}

/// The request of a search.
pub(crate) struct SearchRequest {
    pub(crate) search: Search,
    pub(crate) limit: usize,
    pub(crate) offset: usize,
    /// In CBOR.
    pub(crate) filter: Option<Vec<u8>>,
    /// The answer is an array of entries, and no page.
    pub(crate) bare: bool,
}

async fn page(client: &Client, head: &Parts, prefix: Option<Key>, body: SearchBody) -> Answered {
    let form = wanted(head, Form::OF_DOCUMENTS)?;
    let after = body.cursor.as_deref().filter(|cursor| !cursor.is_empty());
    if after.is_some() && body.offset.is_some() {
        return Err(Problem::bad_request("offset and cursor exclude each other: give one of them"));
    }
    let number = |given: u64| usize::try_from(given).unwrap_or(usize::MAX);
    let (limit, offset) = (body.limit.map_or(HTTP_SEARCH_ENTRIES_DEFAULT, number), body.offset);
    let offset = offset.map_or(0, number);
    let search = Search {
        prefix: prefix.unwrap_or_else(|| Key::from_encoded(Vec::new())),
        query: query_of(&body)?,
        after: after.map(place_of).transpose()?,
        highlight: body.highlight.and_then(HighlightBody::marks),
    };
    let filter = filter_in(&body.filter)?;
    answer(client, SearchRequest { search, limit, offset, filter, bare: false }, form).await
}

/// Searches, and answers the hits.
pub(crate) async fn answer(client: &Client, request: SearchRequest, form: Form) -> Answered {
    request.search.check(request.limit, request.offset)?;
    let store = store_of(&client.database).await?;
    let filter = request.filter.as_deref();
    let filter = filter.map(|bytes| Filter::parse(bytes, store.now_ms())).transpose()?;
    let found = found(client, &store, (&request, filter), form).await?;
    answered(form, found.body, &found.claim)
}

/// The body of an answer, whether a value is simplified there, and its memory.
struct Found {
    body: (Vec<u8>, bool),
    claim: Arc<Claim>,
}

async fn found(
    client: &Client,
    store: &Store,
    (request, filter): (&SearchRequest, Option<Filter>),
    form: Form,
) -> Result<Found, Refusal> {
    let claim = client.database.memory.claim(FRAMES_ANSWER_BYTES_MAX);
    let since = Instant::now();
    let done = attempt!(claim, once(store, &claim, (request, filter.clone()), form).await)?;
    let about = || Subject::prefix(request.search.prefix.as_bytes());
    store.metrics().answered(Operation::Search, (1, done.is_ok()), since, about);
    Ok(Found { body: done?, claim })
}

async fn once(
    store: &Store,
    claim: &Arc<Claim>,
    (request, filter): (&SearchRequest, Option<Filter>),
    form: Form,
) -> Result<(Vec<u8>, bool)> {
    let wanted = Wanted::new();
    let patience = wanted.patience(store, "kv.search");
    let (completion, answer) = pending();
    let (limit, offset) = (request.limit, request.offset);
    let paging = Paging {
        filter,
        limit,
        offset,
        more: false,
        taken: 0,
        failure: None,
        patience: patience.clone(),
    };
    let (entries, bytes) = (Vec::new(), 0);
    let finding = Finding {
        paging,
        entries,
        last: None,
        bytes,
        claim: claim.clone(),
        patience: patience.clone(),
        form,
        has_snippets: request.search.highlight.is_some(),
        bare: request.bare,
        completion,
    };
    store.search(request.search.clone(), patience, finding);
    answer.await
}

/// A hit of the page.
struct FoundHit {
    entry: Entry,
    score: f64,
    snippets: Vec<(usize, String)>,
}

/// The caller of a search, with the page so far.
struct Finding {
    paging: Paging,
    entries: Vec<FoundHit>,
    /// The score and the number of the last hit.
    last: Option<(f64, i64)>,
    bytes: usize,
    claim: Arc<Claim>,
    patience: Arc<Patience>,
    form: Form,
    has_snippets: bool,
    bare: bool,
    completion: Completion<(Vec<u8>, bool)>,
}

impl HitVisitor for Finding {
    fn hit(&mut self, hit: &Hit<'_>) -> HitChoice {
        let choice = self.paging.choose(hit);
        if choice != HitChoice::Take {
            return choice;
        }
        let Hit { row, score, number } = hit;
        self.bytes += row.key.len() + row.value.len();
        if let Err(error) = self.claim.holds(self.bytes) {
            return self.paging.fails(error);
        }
        self.last = Some((*score, *number));
        let entry = Entry {
            key: row.key.to_vec(),
            stamp: row.stamp,
            encoding: row.encoding,
            value: row.value.to_vec(),
            expire_at_ms: None,
        };
        self.entries.push(FoundHit { entry, score: *score, snippets: Vec::new() });
        HitChoice::Take
    }

    fn snippets(&mut self, snippets: Vec<(usize, String)>) {
        self.bytes += snippets.iter().map(|(_, text)| text.len()).sum::<usize>();
        if let Some(last) = self.entries.last_mut() {
            last.snippets = snippets;
        }
    }
}

impl Caller<IndexInfo> for Finding {
    fn check(&self) -> Result<()> {
        self.completion.check().and_then(|()| self.patience.check())
    }

    fn end(mut self, used: Result<IndexInfo>) {
        let failure = self.paging.failure.take();
        let used = failure.map_or(used, Err);
        let document = used.and_then(|index| self.document(&index));
        self.completion.complete(document);
    }
}

impl Finding {
    /// The body, and whether it is not the same as what is stored.
    fn document(&self, index: &IndexInfo) -> Result<(Vec<u8>, bool)> {
        if self.bare {
            let entries: Vec<_> = self.entries.iter().map(|hit| hit.entry.body(false)).collect();
            return Ok(DocumentWriter::of(self.form, 0, &entries)?.finish());
        }
        let last = self.last.filter(|_| self.paging.more);
        let cursor = last.map(|(score, number)| {
            let bytes = [score.to_le_bytes(), number.to_le_bytes()].concat();
            BASE64_URL_SAFE_NO_PAD.encode(bytes)
        });
        let document = SearchPage {
            entries: self.entries.iter().map(|hit| self.body(hit, index)).collect(),
            has_more: cursor.is_some(),
            cursor,
            complete: !index.building,
        };
        Ok(DocumentWriter::of(self.form, 0, &document)?.finish())
    }

    fn body<'h>(&self, hit: &'h FoundHit, index: &IndexInfo) -> FoundBody<EntryBody<'h>> {
        let field = |at: usize| index.spec.fields.get(at).cloned().unwrap_or_default();
        let snippets = hit.snippets.iter().map(|(at, text)| (field(*at), text.clone()));
        FoundBody {
            entry: hit.entry.body(false),
            score: hit.score,
            highlights: self.has_snippets.then(|| snippets.collect()),
        }
    }
}
