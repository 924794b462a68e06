//! The newest state of keys: as events, and by polling.

use std::time::Duration;

use axum::Extension;
use axum::extract::Request;
use hyper::body::Bytes;
use serde::Serialize;
use tokio::time::{Instant, sleep_until};
use utoipa::ToSchema;

use super::admit::Admitted;
use super::body::wanted;
use super::document_writer::{DocumentWriter, Lossy, StampDigits, Stored};
use super::envelope::{as_document, hex};
use super::events::{event, events, form_of, last_id, silent_ping, stamp_of, wait_of};
use super::media::Form;
use super::problem::{Answered, Problem};
use super::schema::{EntryBody, Stamp, TypedEntryBody, Wait};
use super::target::Query;
use crate::answer::whole;
use crate::data::{Client, still};
use crate::stream::{Leave, Source};
use crate::watch::{self, Watching};
use openkv_core::model::{
    Entry as StoredEntry, Error, Key, Limits, Result, Versionstamp, WATCH_FRAME_BYTES_MAX,
};

/// What a client has seen of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KnownState {
    Nothing,
    /// The entry of this commit, or that there is none.
    State(Option<Versionstamp>),
    /// An entry that is not newer than this commit.
    UpTo(Versionstamp),
}

impl KnownState {
    fn is(self, stamp: Option<Versionstamp>) -> bool {
        match self {
            Self::Nothing => false,
            Self::State(seen) => seen == stamp,
            Self::UpTo(newest) => stamp.is_some_and(|stamp| stamp <= newest),
        }
    }
}

/// The states of keys that a client has seen, as the `id` of an event: the newest versionstamp, a
/// point, and which keys have an entry, four for each hexadecimal digit.
struct Id;

impl Id {
    fn text(newest: Versionstamp, states: &[Option<Versionstamp>]) -> String {
        let digits = states.chunks(4).map(|four| {
            let bits = four.iter().enumerate().map(|(at, state)| u32::from(state.is_some()) << at);
            char::from_digit(bits.sum(), 16).unwrap_or('0')
        });
        format!("{}.{}", hex(newest), digits.collect::<String>())
    }

    /// Of a versionstamp alone, it is not known which keys had no entry: they are reported again.
    fn parse(text: &str, keys: usize) -> Result<(Versionstamp, Vec<KnownState>), Problem> {
        let (stamp, digits) = text.split_once('.').unwrap_or((text, ""));
        let newest = stamp_of("since", stamp)?;
        let digit = |at: usize| digits.chars().nth(at / 4).and_then(|digit| digit.to_digit(16));
        let seen = |at: usize| match digit(at).map(|bits| bits >> (at % 4) & 1) {
            Some(0) => KnownState::State(None),
            Some(_) | None => KnownState::UpTo(newest),
        };
        Ok((newest, (0..keys).map(seen).collect()))
    }
}

/// A key and its entry.
type State<'s> = (&'s Key, Option<&'s StoredEntry>);

/// The states that a client has not seen.
fn changed_states<'s>(
    keys: &'s [Key],
    entries: &'s [Option<StoredEntry>],
    seen: &[KnownState],
) -> Vec<State<'s>> {
    let states = keys.iter().zip(entries.iter().map(Option::as_ref));
    let is_changed =
        |(_, entry): &State<'_>, seen: &KnownState| !seen.is(entry.map(|entry| entry.stamp));
    states
        .zip(seen)
        .filter(|(state, seen)| is_changed(state, seen))
        .map(|(state, _)| state)
        .collect()
}

fn bodies<'s>(states: &[State<'s>]) -> Vec<EntryBody<'s>> {
    let body = |(key, entry): &State<'s>| match entry {
        None => EntryBody::absent(key.as_bytes()),
        Some(StoredEntry { stamp, value, .. }) => {
            let value = Some(Stored(value.encoding, &value.bytes));
            EntryBody::new(key.as_bytes(), *stamp, value, None)
        }
    };
    states.iter().map(body).collect()
}

fn states(entries: &[Option<StoredEntry>]) -> Vec<Option<Versionstamp>> {
    entries.iter().map(|entry| entry.as_ref().map(|entry| entry.stamp)).collect()
}

/// States as events.
struct Events {
    form: Form,
    seen: Vec<KnownState>,
    newest: Versionstamp,
    /// Whether the next state is reported.
    tells: bool,
}

impl watch::Form for Events {
    const BYTES_MAX: usize = WATCH_FRAME_BYTES_MAX;

    fn frame(&mut self, keys: &[Key], entries: &[Option<StoredEntry>]) -> Result<Vec<u8>> {
        let states = states(entries);
        let changed =
            if self.tells { changed_states(keys, entries, &self.seen) } else { Vec::new() };
        self.tells = true;
        self.newest =
            states.iter().flatten().copied().max().unwrap_or(self.newest).max(self.newest);
        self.seen = states.iter().copied().map(KnownState::State).collect();
        let id = Id::text(self.newest, &states);
        if changed.is_empty() {
            return Ok(event("ping", "{}", Some(&id)).into_bytes());
        }
        let written = DocumentWriter::of(self.form, 0, &bodies(&changed))?;
        Ok(event("change", &written.into_text(), Some(&id)).into_bytes())
    }

    /// The client connects again and gets the error by status.
    fn end(&self, _error: &Error) -> Option<Bytes> {
        None
    }

    fn alive(&self) -> Bytes {
        silent_ping()
    }
}

fn keys_of(query: &Query) -> Result<Vec<Key>, Problem> {
    let keys = query.keys("keys")?.ok_or_else(|| Problem::bad_request("keys: is missing"))?;
    checked(keys)
}

/// Keys within the bounds of a watch.
pub(crate) fn checked(keys: Vec<Key>) -> Result<Vec<Key>, Problem> {
    let limits = Limits::wide();
    let (count, max) = (keys.len(), limits.watched_keys_max);
    if count == 0 || count > max {
        return Err(Problem::bad_request(format!("keys: from 1 to {max}: {count} given")));
    }
    for (at, key) in keys.iter().enumerate() {
        let (max, given) = (limits.key_bytes_max, key.len());
        if given == 0 {
            return Err(Problem::bad_request(format!("keys: key {at} (from 0) has no parts")));
        }
        if given > max {
            return Err(Problem::too_large(format!(
                "keys: key {at} (from 0) is too large (max {max} bytes): {given} bytes given"
            )));
        }
    }
    Ok(keys)
}

/// Follows the newest state of keys.
#[utoipa::path(get, path = "/watch", tag = "watches", operation_id = "watch",
    params(
        ("keys" = String, Query, description = "Keys as literals: `[[\"users\",1],[\"config\"]]`, or one key."),
        ("initial" = Option<bool>, Query, description = "Begin with the present entries; by default true."),
        ("since" = Option<String>, Query, description = "The id of the last event that was received."),
    ),
    responses((status = 200, description = "Events: change, ping.",
        content_type = "text/event-stream", body = String)))]
pub(super) async fn watch(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, _) = request.into_parts();
    let query = Query::of(&head.uri, &["keys", "initial", "since"])?;
    let (keys, initial) = (keys_of(&query)?, query.flag("initial")?.unwrap_or(true));
    let last = last_id(&head, &query)?.map(|id| Id::parse(&id, keys.len())).transpose()?;
    follow(&client, keys, initial, last, form_of(&head)).await
}

/// The states that a client has seen, from the `id` of an event; `None` for a text that is none.
pub(crate) fn seen_until(id: &str, keys: &[Key]) -> Option<LastSeen> {
    Id::parse(id, keys.len()).ok()
}

/// The newest commit that a client has seen, and what it has seen of each key.
pub(crate) type LastSeen = (Versionstamp, Vec<KnownState>);

/// Follows the newest state of keys, as events.
pub(crate) async fn follow(
    client: &Client,
    keys: Vec<Key>,
    initial: bool,
    last: Option<LastSeen>,
    form: Form,
) -> Answered {
    let tells = initial || last.is_some();
    let unseen = || (Versionstamp::new(0), vec![KnownState::Nothing; keys.len()]);
    let (newest, seen) = last.unwrap_or_else(unseen);
    let form = Events { form, seen, newest, tells };
    let watching = Watching::open(client, (keys, None), false, form).await?;
    Ok(events(client, watching))
}

/// The states of keys.
#[derive(Serialize, ToSchema)]
#[schema(as = States)]
pub(super) struct StatesBody<E> {
    /// Those that differ from `versionstamps`; without an entry, value and versionstamp are `null`.
    entries: Vec<E>,
    /// Of all keys, in their order: the `versionstamps` of the next request.
    #[schema(value_type = Vec<Option<Stamp>>)]
    versionstamps: Vec<Option<StampDigits>>,
}

/// The state as the answer of one request: empty while nothing differs.
struct Polled {
    form: Form,
    seen: Vec<KnownState>,
    lossy: Lossy,
}

impl watch::Form for Polled {
    const BYTES_MAX: usize = WATCH_FRAME_BYTES_MAX;

    fn frame(&mut self, keys: &[Key], entries: &[Option<StoredEntry>]) -> Result<Vec<u8>> {
        let changed = changed_states(keys, entries, &self.seen);
        if changed.is_empty() {
            return Ok(Vec::new());
        }
        Ok(polled(self.form, &changed, &states(entries))?.finish_for(&self.lossy))
    }

    fn end(&self, _error: &Error) -> Option<Bytes> {
        None
    }

    fn alive(&self) -> Bytes {
        Bytes::new()
    }
}

/// The document of a poll.
fn polled(
    form: Form,
    changed: &[State<'_>],
    states: &[Option<Versionstamp>],
) -> Result<DocumentWriter> {
    let versionstamps = states.iter().map(|stamp| stamp.map(StampDigits)).collect();
    DocumentWriter::of(form, 0, &StatesBody { entries: bodies(changed), versionstamps })
}

/// `versionstamps`: those of the last answer, with commas; `null` for no entry.
fn seen_of(query: &Query, keys: usize) -> Result<Vec<KnownState>, Problem> {
    let Some(text) = query.get("versionstamps") else { return Ok(vec![KnownState::Nothing; keys]) };
    let seen = text.split(',').map(|stamp| match stamp.trim() {
        "null" | "" => Ok(KnownState::State(None)),
        stamp => stamp_of("versionstamps", stamp).map(|stamp| KnownState::State(Some(stamp))),
    });
    let seen = seen.collect::<Result<Vec<_>, _>>()?;
    match seen.len() {
        given if given == keys => Ok(seen),
        given => Err(Problem::bad_request(format!(
            "versionstamps: one for each of the {keys} keys: {given} given"
        ))),
    }
}

/// Reads the states of keys that differ from those of the client, or waits for one.
#[utoipa::path(get, path = "/watch/poll", tag = "watches", operation_id = "poll",
    params(
        ("keys" = String, Query, description = "Keys as literals: `[[\"users\",1],[\"config\"]]`, or one key."),
        ("versionstamps" = Option<String>, Query, description = "Those of the last answer, with commas; `null` for no entry."),
        ("wait" = inline(Option<Wait>), Query, description = "Wait so many ms for a difference."),
    ),
    responses((status = 200, description = "The states.", content(
            (StatesBody<EntryBody<'static>> = "application/json"),
            (StatesBody<TypedEntryBody> = "application/vnd.openkv+json")))))]
pub(super) async fn poll(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, _) = request.into_parts();
    let query = Query::of(&head.uri, &["keys", "versionstamps", "wait"])?;
    let (keys, wait, form) =
        (keys_of(&query)?, wait_of(&query)?, wanted(&head, Form::OF_DOCUMENTS)?);
    let seen = seen_of(&query, keys.len())?;
    let lossy = Lossy::default();
    let polling = Polled { form, seen: seen.clone(), lossy: lossy.clone() };
    let body = match difference(&client, keys, polling, wait).await? {
        Some(body) => body,
        // Nothing differs.
        None => {
            let states: Vec<_> = seen
                .iter()
                .map(|seen| if let KnownState::State(stamp) = seen { *stamp } else { None })
                .collect();
            polled(form, &[], &states)?.finish().0.into()
        }
    };
    Ok(as_document(form, whole(body), lossy.is_set()))
}

/// The first state that differs, which is a piece with bytes, within the time; the present one in any case.
pub(super) async fn difference(
    client: &Client,
    keys: Vec<Key>,
    polling: impl watch::Form,
    wait: Duration,
) -> Result<Option<Bytes>, Problem> {
    let mut watching = Watching::open(client, (keys, None), false, polling).await?;
    let deadline = Instant::now() + wait;
    let mut leave = Leave::new(client);
    let mut piece = watching.next().await.ok_or_else(|| ended(client))?;
    while piece.is_empty() {
        piece = tokio::select! {
            next = watching.next() => next.ok_or_else(|| ended(client))?,
            () = sleep_until(deadline) => return Ok(None),
            () = leave.over() => return Err(ended(client)),
        };
    }
    still(client)?;
    Ok(Some(piece))
}

/// The answer of a poll whose watch has ended.
pub(super) fn ended(client: &Client) -> Problem {
    let ended = || Error::unavailable("the watch ended: try again").into();
    still(client).err().map_or_else(ended, Problem::from)
}
