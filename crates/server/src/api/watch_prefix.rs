//! Changes below a prefix: as events, and by polling.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::Request;
use hyper::body::Bytes;
use hyper::http::request::Parts;
use serde::Serialize;
use tokio::time::{Instant, timeout};
use utoipa::ToSchema;

use super::admit::Admitted;
use super::document_writer::{DocumentWriter, Lossy, StampDigits, Stored};
use super::entries::{Selection, page};
use super::envelope::{as_document, hex};
use super::events::{event, events, form_of, gap, last_id, ping, silent_ping, stamp_of, wait_of};
use super::list::limit_of;
use super::media::Form;
use super::problem::{Answered, Problem};
use super::range::Bounds;
use super::schema::{EntryBody, PageLimit, Stamp, TypedEntryBody, Wait};
use super::target::Query;
use super::watch_keys::ended;
use crate::answer::whole;
use crate::data::{still, store_of};
use crate::database::WatchPlace;
use crate::feed::{self, BATCH_BYTES_MAX, Following};
use crate::stream::{Leave, Source};
use openkv_core::model::{
    Change, ChangeKind, Error, HTTP_POLL_LOOK_MS, Key, KeyRange, Result, Versionstamp,
};
use openkv_store::Store;

/// What a stream reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reports {
    /// Every change, with expiries.
    Changes,
    /// Values alone. Behind a gap the client begins again, with the present entries.
    Values,
}

/// The entry that a change has left, or that there is none any more.
fn changed(change: &Change, reports: Reports) -> EntryBody<'_> {
    let key = change.key.as_bytes();
    match &change.kind {
        ChangeKind::Set { value, .. } if reports == Reports::Values => {
            let stored = Some(Stored(value.encoding, &value.bytes));
            EntryBody::new(key, Versionstamp::new(change.version), stored, None)
        }
        ChangeKind::Deleted | ChangeKind::Expired => EntryBody::absent(key),
        ChangeKind::ExpirySet { expire_at_ms } => EntryBody::expiry_set(key, *expire_at_ms),
        ChangeKind::Set { value, expire_at_ms } => {
            let stored = Some(Stored(value.encoding, &value.bytes));
            EntryBody::new(key, Versionstamp::new(change.version), stored, *expire_at_ms)
        }
    }
}

/// The event of these entries of a list, or changes of a batch.
fn change_event<'e>(
    form: Form,
    entries: impl Iterator<Item = EntryBody<'e>>,
    id: Option<&str>,
) -> Result<String> {
    let written = DocumentWriter::of(form, 0, &entries.collect::<Vec<_>>())?;
    Ok(event("change", &written.into_text(), id))
}

/// Changes as events.
struct Events {
    form: Form,
    reports: Reports,
    /// The ranges that are watched, if the feed has more keys than these.
    ranges: Vec<Bounds>,
    /// An event ends after so many changes, at the end of a commit.
    limit: usize,
    /// The listed entries that are newer than the position of the feed. Their changes are not
    /// reported again.
    shown: HashMap<Vec<u8>, u64>,
    /// The newest commit among them.
    newest: u64,
}

impl Events {
    fn is_unreported(&self, change: &Change) -> bool {
        let key = change.key.as_bytes();
        let is_value = !matches!(change.kind, ChangeKind::ExpirySet { .. });
        let is_within = |range: &Bounds| *range.start <= *key && *key < *range.end;
        (is_value || self.reports == Reports::Changes)
            && (self.ranges.is_empty() || self.ranges.iter().any(is_within))
            && self.shown.get(key).is_none_or(|shown| change.version > *shown)
    }
}

/// The number of changes of the next event: whole commits.
fn first_part(changes: &[Change], limit: usize) -> usize {
    let ends = changes.windows(2).enumerate().position(|(at, two)| {
        let [change, next] = two else { return false };
        at + 1 >= limit && next.version != change.version
    });
    ends.map_or(changes.len(), |at| at + 1)
}

impl feed::Form for Events {
    const TELLS_GAPS: bool = true;

    fn batch(&mut self, version: u64, changes: &[Change]) -> Result<Vec<u8>> {
        let unreported: Vec<_> =
            changes.iter().filter(|change| self.is_unreported(change)).cloned().collect();
        if version >= self.newest {
            self.shown.clear();
        }
        let reported = |change| changed(change, self.reports);
        let (mut text, mut rest) = (String::new(), unreported.as_slice());
        while !rest.is_empty() {
            let (part, behind) = rest.split_at(first_part(rest, self.limit));
            let last = part.last().filter(|_| !behind.is_empty());
            let id = hex(Versionstamp::new(last.map_or(version, |last| last.version)));
            text.push_str(&change_event(self.form, part.iter().map(reported), Some(&id))?);
            rest = behind;
        }
        if text.is_empty() {
            text = ping(Versionstamp::new(version));
        }
        Ok(text.into_bytes())
    }

    /// The client reads the present entries and connects again, from this commit on.
    fn gap(&mut self, version: u64) -> Result<Vec<u8>> {
        if self.reports == Reports::Values {
            // Without an id the client does not go on where changes are missing.
            return Ok(event("gap", "{}", Some("")).into_bytes());
        }
        Ok(gap(Versionstamp::new(version)).into_bytes())
    }

    /// The client connects again and gets the error by status.
    fn end(&mut self, _error: &Error) -> Option<Bytes> {
        None
    }

    fn alive(&self) -> Bytes {
        silent_ping()
    }
}

/// The entries as they are, before the changes.
struct Listing {
    client: Admitted,
    store: Arc<Store>,
    place: Option<WatchPlace>,
    /// The range that is listed, and those behind it.
    whole: Bounds,
    further: VecDeque<Bounds>,
    selection: Selection,
    /// The range of the feed.
    followed: KeyRange,
    /// The commit after which the feed goes on; `None` before the first read.
    position: Option<u64>,
    events: Option<Events>,
    limit: usize,
    form: Form,
}

enum Stream {
    Listing(Box<Listing>),
    Following(Following<Events>),
    Ended,
}

pub(super) fn range_of(bounds: &Bounds) -> KeyRange {
    let key = |bytes: &[u8]| Key::from_encoded(bytes.to_vec());
    KeyRange { start: key(&bounds.start), end: key(&bounds.end) }
}

impl Listing {
    /// The next page, and whether it is the last one.
    async fn page(&mut self) -> Result<(Bytes, bool), Problem> {
        let position = match self.position {
            Some(position) => position,
            None => feed::position(&self.store).await?,
        };
        self.position = Some(position);
        let found = page(&self.client, &self.selection, self.limit).await?;
        let entries = found.entries.entries;
        let is_end = !found.entries.has_more || entries.is_empty();
        let mut is_last = false;
        match entries.last().filter(|_| !is_end) {
            Some(last) => self.selection.bounds.resume(&self.whole.cursor(&last.key), false)?,
            None => match self.further.pop_front() {
                Some(next) => {
                    self.whole = next.clone();
                    self.selection = Selection::all(next);
                }
                None => is_last = true,
            },
        }
        if let Some(events) = &mut self.events {
            for entry in entries.iter().filter(|entry| entry.stamp.version() > position) {
                events.shown.insert(entry.key.clone(), entry.stamp.version());
                events.newest = events.newest.max(entry.stamp.version());
            }
        }
        // Before the last page there is no commit from which a client could go on.
        let id = hex(Versionstamp::new(position));
        let id = is_last.then_some(id.as_str());
        let reports = self.events.as_ref().map_or(Reports::Changes, |events| events.reports);
        let bodies = entries.iter().map(|entry| match reports {
            Reports::Changes => entry.body(false),
            Reports::Values => EntryBody::new(
                &entry.key,
                entry.stamp,
                Some(Stored(entry.encoding, &entry.value)),
                None,
            ),
        });
        let piece = change_event(self.form, bodies, id)?;
        Ok((found.claim.bytes(piece.into_bytes()), is_last))
    }

    fn follow(&mut self) -> Option<Following<Events>> {
        let (place, events) = (self.place.take()?, self.events.take()?);
        let claim = self.client.database.memory.claim(BATCH_BYTES_MAX);
        let since = (self.followed.clone(), self.position);
        Some(Following::open((self.store.clone(), place), claim, since, events))
    }
}

impl Source for Stream {
    async fn next(&mut self) -> Option<Bytes> {
        match self {
            Self::Ended => None,
            Self::Following(following) => following.next().await,
            Self::Listing(listing) => {
                let (piece, is_last) = listing.page().await.ok()?;
                if is_last {
                    *self = listing.follow().map_or(Self::Ended, Self::Following);
                }
                Some(piece)
            }
        }
    }

    fn alive(&mut self) -> Bytes {
        match self {
            Self::Following(following) => following.alive(),
            Self::Listing(_) | Self::Ended => silent_ping(),
        }
    }
}

/// The range and the position that a request names.
fn range_and_since(head: &Parts, query: &Query) -> Result<(Bounds, Option<u64>), Problem> {
    let bounds = Bounds::new(query.key("prefix")?, None, None)?;
    let since = last_id(head, query)?;
    let since = since.map(|text| stamp_of("since", &text)).transpose()?;
    Ok((bounds, since.map(Versionstamp::version)))
}

/// Follows the changes below a prefix.
#[utoipa::path(get, path = "/watch/prefix", tag = "watches", operation_id = "watchPrefix",
    params(
        ("prefix" = Option<String>, Query, description = "A key, as a literal."),
        ("initial" = Option<bool>, Query, description = "Begin with the present entries."),
        ("limit" = inline(Option<PageLimit>), Query, description = "An event ends after so many changes, at the end of a commit."),
        ("since" = inline(Option<Stamp>), Query, description = "The id of the last event that was received."),
    ),
    responses((status = 200, description = "Events: change, ping, gap.",
        content_type = "text/event-stream", body = String)))]
pub(super) async fn watch(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, _) = request.into_parts();
    let query = Query::of(&head.uri, &["prefix", "initial", "limit", "since"])?;
    let (bounds, since) = range_and_since(&head, &query)?;
    let (limit, form) = (limit_of(query.number("limit")?)?, form_of(&head));
    let initial = query.flag("initial")?.unwrap_or(false);
    let reports = Reports::Changes;
    let request = Follow { ranges: vec![bounds], since, initial, limit, form, reports };
    follow(&client, request).await
}

/// The changes that a client wants to follow.
pub(crate) struct Follow {
    /// Ranges of keys that do not overlap, at least one.
    pub(crate) ranges: Vec<Bounds>,
    /// The commit up to which the client has every change.
    pub(crate) since: Option<u64>,
    /// Whether the stream begins with the present entries. A client that has a position has had them.
    pub(crate) initial: bool,
    /// An event ends after so many changes, at the end of a commit.
    pub(crate) limit: usize,
    pub(crate) form: Form,
    pub(crate) reports: Reports,
}

/// Follows changes, as events.
pub(crate) async fn follow(client: &Admitted, request: Follow) -> Answered {
    let Follow { ranges, since, initial, limit, form, reports } = request;
    let database = &client.database;
    let place = client.take_watch().await?;
    let store = store_of(database).await?;
    let followed = range_around(&ranges);
    let (shown, newest) = (HashMap::new(), 0);
    let mut further: VecDeque<_> = ranges.iter().cloned().collect();
    let ranges = if ranges.len() > 1 { ranges } else { Vec::new() };
    let shown = Events { form, reports, ranges, limit, shown, newest };
    let stream = match further.pop_front() {
        Some(first) if initial && since.is_none() => Stream::Listing(Box::new(Listing {
            client: client.clone(),
            store,
            place: Some(place),
            whole: first.clone(),
            further,
            selection: Selection::all(first),
            followed,
            position: None,
            events: Some(shown),
            limit,
            form,
        })),
        _ => {
            let claim = database.memory.claim(BATCH_BYTES_MAX);
            Stream::Following(Following::open((store, place), claim, (followed, since), shown))
        }
    };
    Ok(events(client, stream))
}

/// The range from the first key of all to the last one.
fn range_around(ranges: &[Bounds]) -> KeyRange {
    let start = ranges.iter().map(|range| &range.start).min();
    let end = ranges.iter().map(|range| &range.end).max();
    let key = |bytes: Option<&Vec<u8>>| Key::from_encoded(bytes.cloned().unwrap_or_default());
    KeyRange { start: key(start), end: key(end) }
}

/// Changes as the answer of one request.
#[derive(Clone)]
struct Polled {
    form: Form,
    limit: usize,
    lossy: Lossy,
}

impl Polled {
    fn document(&self, changes: &[Change], version: u64, gap: bool) -> Result<Vec<u8>> {
        let entries = changes.iter().map(|change| changed(change, Reports::Changes)).collect();
        let versionstamp = StampDigits(Versionstamp::new(version));
        let document = ChangesBody { entries, versionstamp, gap };
        Ok(DocumentWriter::of(self.form, 0, &document)?.finish_for(&self.lossy))
    }
}

impl feed::Form for Polled {
    const TELLS_GAPS: bool = true;

    fn batch(&mut self, version: u64, changes: &[Change]) -> Result<Vec<u8>> {
        let (part, behind) = changes.split_at(first_part(changes, self.limit));
        let last = part.last().filter(|_| !behind.is_empty());
        let version = last.map_or(version, |last| last.version);
        self.document(part, version, false)
    }

    fn gap(&mut self, version: u64) -> Result<Vec<u8>> {
        self.document(&[], version, true)
    }

    fn end(&mut self, error: &Error) -> Option<Bytes> {
        tracing::debug!(%error, "a poll ended");
        None
    }
}

/// The changes since a commit.
#[derive(Serialize, ToSchema)]
#[schema(as = Changes)]
pub(super) struct ChangesBody<E> {
    /// In the order of commits; without an entry any more, value and versionstamp are `null`.
    entries: Vec<E>,
    /// The `since` of the next request.
    #[schema(value_type = Stamp)]
    versionstamp: StampDigits,
    /// Changes after `since` are no longer logged: read the entries, then go on.
    gap: bool,
}

/// Reads the changes below a prefix after a commit, or waits for them.
#[utoipa::path(get, path = "/watch/prefix/poll", tag = "watches", operation_id = "pollPrefix",
    params(
        ("prefix" = Option<String>, Query, description = "A key, as a literal."),
        ("since" = inline(Option<Stamp>), Query, description = "The versionstamp of the last answer; without it, the answer has the present one."),
        ("limit" = inline(Option<PageLimit>), Query, description = "The answer ends after so many changes, at the end of a commit."),
        ("wait" = inline(Option<Wait>), Query, description = "Wait so many ms for a change."),
    ),
    responses((status = 200, description = "The changes.", content(
            (ChangesBody<EntryBody<'static>> = "application/json"),
            (ChangesBody<TypedEntryBody> = "application/vnd.openkv+json")))))]
pub(super) async fn poll(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, _) = request.into_parts();
    let query = Query::of(&head.uri, &["prefix", "since", "limit", "wait"])?;
    let (bounds, since) = range_and_since(&head, &query)?;
    let form = super::body::wanted(&head, Form::OF_DOCUMENTS)?;
    let (limit, wait) = (limit_of(query.number("limit")?)?, wait_of(&query)?);
    let database = &client.database;
    let place = client.take_watch().await?;
    let store = store_of(database).await?;
    let claim = database.memory.claim(BATCH_BYTES_MAX);
    let opened = (store, place);
    let range = range_of(&bounds);
    let polling = Polled { form, limit, lossy: Lossy::default() };
    let mut following = Following::open(opened, claim, (range, since), polling.clone());
    let mut leave = Leave::new(&client);
    let mut body = following.next().await.ok_or_else(|| ended(&client))?;
    if let Some(since) = since {
        let deadline = Instant::now() + wait;
        let look = Duration::from_millis(HTTP_POLL_LOOK_MS);
        loop {
            let left = deadline.saturating_duration_since(Instant::now()).max(look);
            let next = tokio::select! {
                next = timeout(left, following.next()) => next,
                () = leave.over() => return Err(ended(&client)),
            };
            match next {
                Ok(piece) => {
                    body = piece.ok_or_else(|| ended(&client))?;
                    break;
                }
                // The feed has nothing to report, or it is still reading.
                Err(_) => {
                    if let Some(version) = following.idle_at() {
                        body = polling.document(&[], version.max(since), false)?.into();
                        break;
                    }
                }
            }
        }
    }
    still(&client)?;
    Ok(as_document(form, whole(body), polling.lossy.is_set()))
}
