//! Writes: several in one request form a group; each has its own outcome.

use std::sync::Arc;

use hyper::body::Bytes;

use super::{answered, malformed};
use crate::answer::{Answer, Refusal};
use crate::clock::now_ms;
use crate::data::{committed, has_room_for};
use crate::database::Database;
use openkv_core::model::{
    AtomicWrite, Decision, Error, FRAMES_APART_BYTES_MIN, FRAMES_RECORDS_MAX, FRAMES_WRITES_MAX,
    Kind, Limits, Result,
};
use openkv_store::call::validate_untrusted;
use openkv_wire::protocol::extension::split_count;
use openkv_wire::protocol::frame::{
    frame_of, parse_writes_apart, push_outcomes, push_plain_outcomes,
};

/// The form of the answers, by the headers of a request.
#[derive(Clone, Copy)]
pub(super) struct Form {
    /// The answer may have every status of an outcome.
    pub(super) results: bool,
    /// An earlier attempt of the request may still arrive.
    pub(super) repeated: bool,
    /// The highest number of a kind of errors that the client knows.
    pub(super) kinds: u8,
}

/// Answers `write`.
pub(super) async fn write(
    database: &Arc<Database>,
    body: Bytes,
    limits: Limits,
    Form { results, repeated, kinds }: Form,
) -> Result<Answer, Refusal> {
    let now_ms = now_ms();
    let parsed = if body.len() < FRAMES_APART_BYTES_MIN {
        parsed(&body, &limits, repeated, now_ms)?
    } else {
        let apart = tokio::task::spawn_blocking(move || parsed(&body, &limits, repeated, now_ms));
        apart.await.map_err(|_| Error::internal("taking a request apart ended by a panic"))??
    };
    let has_id = |write: &Result<AtomicWrite>| write.as_ref().is_ok_and(|w| w.id().is_some());
    if !database.remembers_writes() && parsed.iter().any(has_id) {
        let why = "This database does not remember the ids of writes: send the write without one.";
        return Err(Refusal::bad_request(why));
    }
    // The request itself is counted already.
    database.owe_operations(parsed.len().saturating_sub(1) as u64);
    let mut writes = Vec::with_capacity(parsed.len());
    let mut over = None;
    for mut write in parsed {
        if let Ok(valid) = &write
            && let Err(refusal) = has_room_for(database, valid).await
        {
            write = Err(Error::unavailable(refusal.text()));
            over = Some(refusal);
        }
        writes.push(write);
    }
    // All writes are refused: the client repeats the request later. Otherwise each write gets its
    // own refusal.
    if let Some(refusal) = over
        && writes.iter().all(Result::is_err)
    {
        return Err(refusal);
    }
    let decisions: Vec<_> = committed(database, writes)
        .await?
        .into_iter()
        .map(|decision| known_to(kinds, decision))
        .collect();
    let unavailable = |decision: &Decision| matches!(decision, Decision::Rejected(error) if error.kind() == Kind::Unavailable);
    if let Some(Decision::Rejected(error)) = decisions.first()
        && decisions.iter().all(unavailable)
    {
        return Err(error.clone().into());
    }
    let push = if results { push_outcomes } else { push_plain_outcomes };
    let outcomes = frame_of(|out| push(out, &decisions));
    answered(Ok(outcomes))
}

/// A decision in the kinds that the client knows.
fn known_to(kinds: u8, decision: Decision) -> Decision {
    match decision {
        Decision::Rejected(error) => Decision::Rejected(error.known_to(kinds)),
        decision => decision,
    }
}

/// The writes of a request, each validated.
fn parsed(
    body: &[u8],
    limits: &Limits,
    repeated: bool,
    now_ms: i64,
) -> Result<Vec<Result<AtomicWrite>>, Refusal> {
    let (count, frame) = split_count(body).map_err(malformed)?;
    if count > FRAMES_WRITES_MAX {
        return Err(Refusal::bad_request(format!(
            "A request has too many writes (max {FRAMES_WRITES_MAX}): {count} given"
        )));
    }
    let parsed = parse_writes_apart(frame, count, limits, FRAMES_RECORDS_MAX).map_err(malformed)?;
    let validated = |write: Result<AtomicWrite>| {
        let write = validate_untrusted(write?, limits, now_ms)?;
        Ok(if repeated { write.repeated() } else { write })
    };
    Ok(parsed.into_iter().map(|(write, _)| validated(write)).collect())
}
