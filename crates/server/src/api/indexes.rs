//! Indexes of both types: create, list, drop. `value_indexes` has the documents of value indexes.

use axum::Extension;
use axum::extract::Request;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::admit::Admitted;
use super::body::{Raw, json, json_body, key_in, shown_key};
use super::problem::{Answered, Problem, shown};
use super::target::Query;
use super::value_indexes::{self, Paths, ValueIndex};
use crate::data::{Client, has_room, store_of};
use crate::pending::{Pending, Wanted};
use openkv_core::codec::key;
use openkv_core::interchange::key_json;
use openkv_core::model::{
    Error, IndexChoice, IndexInfo, IndexRequest, IndexSpec, Key, KeyPart, Limits, Result,
    Tokenizer, ValueIndexRequest, ValueIndexSpec,
};

/// The description of an index.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = NewIndex)]
pub(super) struct IndexBody {
    /// `fulltext`, by default, or `value`.
    #[serde(default, rename = "type")]
    kind: IndexType,
    /// A key: the index covers the keys that extend it.
    #[schema(value_type = Option<Vec<serde_json::Value>>)]
    prefix: Raw,
    /// Of a full-text index: paths into the values, steps separated by dots.
    fields: Option<Vec<String>>,
    /// Of a value index: its paths, the most significant first.
    on: Option<Paths>,
    /// Of a value index: no two entries have the same values under all paths.
    unique: Option<bool>,
    /// Of a value index: each element of an array under the first path has an entry.
    multi: Option<bool>,
    /// Of a value index: an entry without a value under the first path is not in it.
    sparse: Option<bool>,
    /// Of a full-text index: `auto`, by default; `unicode61`, `porter`, `ascii` or `trigram`.
    tokenize: Option<String>,
    /// Of a full-text index: lengths in characters of the beginnings of words that are indexed too.
    prefix_lengths: Option<Vec<u8>>,
    /// By default a literal of the prefix, and of a value index its paths.
    name: Option<String>,
    /// Whether it replaces another index of its prefix or name, by default true.
    replace: Option<bool>,
}

/// The types of indexes.
#[derive(Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum IndexType {
    /// Of the words in values.
    #[default]
    Fulltext,
    /// Of values in their order.
    Value,
}

/// An index.
#[derive(Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
#[schema(as = Index)]
pub(super) enum IndexAnswer {
    Fulltext(TextIndex),
    Value(ValueIndex),
}

impl IndexAnswer {
    fn name(&self) -> &str {
        match self {
            Self::Fulltext(TextIndex { name, .. }) => name,
            Self::Value(index) => index.name(),
        }
    }
}

/// A full-text index.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TextIndex {
    name: String,
    #[schema(value_type = Vec<serde_json::Value>)]
    prefix: Box<RawValue>,
    fields: Vec<String>,
    tokenize: String,
    prefix_lengths: Vec<u8>,
    /// `building` while entries older than the index are being added, then `ready`.
    state: &'static str,
    /// The number of such entries that were added.
    indexed: u64,
    /// Entries with text in any field.
    documents: u64,
}

impl TextIndex {
    fn of(info: IndexInfo) -> Result<Self> {
        let IndexInfo { spec, building, scanned, documents } = info;
        Ok(Self {
            prefix: shown_key(&spec.prefix)?,
            name: spec.name,
            fields: spec.fields,
            tokenize: spec.tokenizer.name().to_owned(),
            prefix_lengths: spec.prefix_lengths,
            state: if building { "building" } else { "ready" },
            indexed: scanned,
            documents,
        })
    }
}

/// The indexes of the database.
#[derive(Serialize, ToSchema)]
#[schema(as = Indexes)]
pub(super) struct IndexesAnswer {
    /// By name.
    indexes: Vec<IndexAnswer>,
}

/// The outcome of a drop.
#[derive(Serialize, ToSchema)]
pub(super) struct Dropped {
    /// Whether the index existed.
    ok: bool,
}

/// Creates an index. It is built in the background.
#[utoipa::path(post, path = "/indexes", tag = "search", operation_id = "createIndex",
    request_body = IndexBody,
    responses((status = 200, description = "The index; the same one, if it existed.", body = IndexAnswer)))]
pub(super) async fn create(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, body) = request.into_parts();
    Query::of(&head.uri, &[])?;
    let (_, body) = json_body::<IndexBody>(&client, &head, body).await?;
    let answer = match body.kind {
        IndexType::Fulltext => {
            let request = body.text_request()?;
            IndexAnswer::Fulltext(TextIndex::of(made(&client, request).await?)?)
        }
        IndexType::Value => {
            let request = body.value_request()?;
            IndexAnswer::Value(value_indexes::made(&client, request).await?)
        }
    };
    json(&answer)
}

impl IndexBody {
    fn prefix(&self) -> Result<Key, Problem> {
        let prefix = self.prefix.as_ref().map(|raw| key_in("prefix", raw)).transpose()?;
        checked(prefix.unwrap_or_else(|| Key::from_encoded(Vec::new())))
    }

    fn text_request(self) -> Result<IndexRequest, Problem> {
        let Self { on, unique, multi, sparse, .. } = &self;
        let of_values = [unique.is_some(), multi.is_some(), sparse.is_some(), on.is_some()];
        if of_values.contains(&true) {
            let text = "on, unique, multi and sparse are of a value index: give type value";
            return Err(Problem::bad_request(text));
        }
        let prefix = self.prefix()?;
        let Self { fields, tokenize, prefix_lengths, name, replace, .. } = self;
        let fields = fields.ok_or_else(|| Problem::bad_request("missing field `fields`"))?;
        let tokenizer = tokenize.as_deref().map_or(Ok(Tokenizer::Auto), tokenizer_of)?;
        let name = name.map_or_else(|| name_of(&prefix), Ok)?;
        let prefix_lengths = prefix_lengths.unwrap_or_default();
        let spec = IndexSpec { name, prefix, fields, tokenizer, prefix_lengths };
        let is_default = tokenize.is_none();
        Ok(IndexRequest { spec, is_default, replace: replace.unwrap_or(true) })
    }

    fn value_request(self) -> Result<ValueIndexRequest, Problem> {
        let Self { fields, tokenize, prefix_lengths, .. } = &self;
        if fields.is_some() || tokenize.is_some() || prefix_lengths.is_some() {
            let text = "fields, tokenize and prefixLengths are of a full-text index: give on";
            return Err(Problem::bad_request(text));
        }
        let prefix = self.prefix()?;
        let Self { on, unique, multi, sparse, name, replace, .. } = self;
        let on = on.ok_or_else(|| Problem::bad_request("missing field `on`"))?.into_paths();
        let name = match name {
            Some(name) => name,
            None => value_indexes::name_of(&name_of(&prefix)?, &on),
        };
        let is = |flag: Option<bool>| flag.unwrap_or(false);
        let (unique, multi, sparse) = (is(unique), is(multi), is(sparse));
        let spec = ValueIndexSpec { name, prefix, on, unique, multi, sparse };
        Ok(ValueIndexRequest { spec, replace: replace.unwrap_or(true) })
    }
}

/// The tokenizer of a name.
pub(crate) fn tokenizer_of(given: &str) -> Result<Tokenizer, Problem> {
    let found = Tokenizer::ALL.iter().copied().find(|known| known.name() == given);
    found.ok_or_else(|| {
        let known: Vec<_> = Tokenizer::ALL.iter().map(|known| known.name()).collect();
        let (known, given) = (known.join(", "), shown(given));
        Problem::bad_request(format!("tokenize must be one of {known}: received {given}"))
    })
}

/// Creates an index.
pub(crate) async fn made(client: &Client, request: IndexRequest) -> Result<IndexInfo, Problem> {
    request.spec.check()?;
    has_room(&client.database).await?;
    let store = store_of(&client.database).await?;
    Ok(Pending::of(|reply| store.create_index(request, reply)).await?)
}

/// The default name: a unique text of the prefix, as `kv.createIndex` makes it.
pub(crate) fn name_of(prefix: &Key) -> Result<String> {
    let parts = key::decode(prefix.as_bytes()).map_err(|why| Error::invalid(why.to_string()))?;
    let texts = parts.into_iter().map(|part| match part {
        KeyPart::String(text) => Ok(serde_json::Value::from(text).to_string()),
        KeyPart::BigInt(n) => Ok(format!("{n}n")),
        KeyPart::Bytes(bytes) => {
            Ok(bytes.iter().fold("0x".to_owned(), |hex, byte| format!("{hex}{byte:02x}")))
        }
        KeyPart::Bool(b) => Ok(b.to_string()),
        KeyPart::Number(n) if n == 0.0 && n.is_sign_negative() => Ok("-0".to_owned()),
        KeyPart::Number(n) if n.is_nan() => Ok("NaN".to_owned()),
        KeyPart::Number(n) if n.is_infinite() => {
            Ok(if n > 0.0 { "Infinity" } else { "-Infinity" }.to_owned())
        }
        number @ KeyPart::Number(_) => {
            let mut text = String::new();
            key_json::push(&mut text, key::encode(&[number])?.as_bytes())?;
            Ok(text.trim_matches(['[', ']']).to_owned())
        }
    });
    Ok(format!("[{}]", texts.collect::<Result<Vec<_>>>()?.join(",")))
}

fn checked(prefix: Key) -> Result<Key, Problem> {
    let (max, given) = (Limits::wide().key_bytes_max, prefix.len());
    match given <= max {
        true => Ok(prefix),
        false => {
            let text = format!("prefix too large (max {max} bytes): {given} bytes given");
            Err(Problem::too_large(text))
        }
    }
}

/// Lists the indexes of both types; full-text indexes with the number of their documents.
#[utoipa::path(get, path = "/indexes", tag = "search", operation_id = "listIndexes",
    responses((status = 200, description = "All indexes.", body = IndexesAnswer)))]
pub(super) async fn list(client: Extension<Admitted>, request: Request) -> Answered {
    Query::of(request.uri(), &[])?;
    let texts = all(&client).await?.into_iter();
    let texts = texts.map(|info| TextIndex::of(info).map(IndexAnswer::Fulltext));
    let mut indexes = texts.collect::<Result<Vec<_>>>()?;
    indexes.extend(value_indexes::all(&client).await?.into_iter().map(IndexAnswer::Value));
    indexes.sort_by(|a, b| a.name().cmp(b.name()));
    json(&IndexesAnswer { indexes })
}

/// The indexes of the database.
pub(crate) async fn all(client: &Client) -> Result<Vec<IndexInfo>, Problem> {
    let store = store_of(&client.database).await?;
    let wanted = Wanted::new();
    let patience = wanted.patience(&store, "kv.listIndexes");
    Ok(Pending::of(|reply| store.indexes(Some(patience), reply)).await?)
}

/// Drops an index: a full-text index by its prefix, or an index of either type by its name.
#[utoipa::path(delete, path = "/indexes", tag = "search", operation_id = "dropIndex",
    params(
        ("prefix" = Option<String>, Query, description = "A key, as a literal."),
        ("name" = Option<String>, Query, description = "The name of the index."),
    ),
    responses((status = 200, description = "Whether it existed.", body = Dropped)))]
pub(super) async fn remove(client: Extension<Admitted>, request: Request) -> Answered {
    let query = Query::of(request.uri(), &["prefix", "name"])?;
    let choice = match (query.key("prefix")?, query.get("name")) {
        (Some(prefix), None) => IndexChoice::Prefix(prefix),
        (None, Some(name)) => IndexChoice::Name(name.to_owned()),
        _ => {
            return Err(Problem::bad_request(
                "An index is named by prefix or by name: give one of them.",
            ));
        }
    };
    let store = store_of(&client.database).await?;
    json(&Dropped { ok: Pending::of(|reply| store.drop_index(choice, reply)).await? })
}
