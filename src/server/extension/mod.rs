//! openkv's own requests (`connect::extension`): who may ask for what, and the way of each to the
//! store. The order in which a request is looked at is that of the data path.
//!
//! A frame comes from a stranger here: what JavaScript holds to its bounds before it crosses into
//! this process is held to them again by whoever carries it out.

mod call;
mod consume;
mod feed;
mod read;
mod receive;
mod watch;
mod write;

use std::sync::Arc;

use hyper::StatusCode;
use hyper::body::Incoming;
use hyper::header::HeaderMap;
use hyper::http::request::Parts;

use super::Serving;
use super::answer::{Answer, Refusal, answer, whole};
use super::auth::Rights;
use super::data::{authorize, still};
use super::memory::{Claim, Place};
use super::route::body_of;
use crate::codec::frame::Verb;
use crate::connect::extension::{
    CALL, CONSUME, FEED, FRAMES_TYPE, LIMITS_HEADER, READ, RECEIVE, RESULTS_HEADER, WATCH, WRITE,
    read_limits, write_bad, write_good,
};
use crate::model::{
    Error, FRAMES_READ_BYTES_MAX, FRAMES_WRITE_BYTES_MAX, Kind, Limits, REQUEST_BYTES_MAX, Result,
    SHORT_BYTES_MAX,
};

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Read,
    Write,
    Call(Verb),
    Feed,
    Watch,
    Consume,
    Receive,
}

/// What a path asks for, without the version in front; `None`: there is no such path.
pub(super) fn asked(path: &str) -> Option<Asked> {
    match path {
        READ => return Some(Asked::Read),
        WRITE => return Some(Asked::Write),
        FEED => return Some(Asked::Feed),
        WATCH => return Some(Asked::Watch),
        CONSUME => return Some(Asked::Consume),
        RECEIVE => return Some(Asked::Receive),
        _ => {}
    }
    let verb = path.strip_prefix(CALL)?.strip_prefix('/')?;
    let verb = verb.parse().ok().and_then(Verb::from_number)?;
    call::rights(verb).map(|_| Asked::Call(verb))
}

impl Asked {
    fn rights(self) -> Rights {
        match self {
            Self::Read => Rights::Read,
            Self::Write => Rights::Write,
            // Without any it has no path.
            Self::Call(verb) => call::rights(verb).unwrap_or(Rights::Admin),
            Self::Feed | Self::Watch => Rights::Read,
            Self::Consume | Self::Receive => Rights::Write,
        }
    }
}

impl Asked {
    /// How long a body may be. Only what brings values for many keys may be long.
    fn body_bytes_max(self) -> usize {
        match self {
            Self::Write | Self::Call(Verb::DeleteMany) => FRAMES_WRITE_BYTES_MAX,
            Self::Feed | Self::Consume | Self::Receive => SHORT_BYTES_MAX,
            asked if asked.rights() == Rights::Read => FRAMES_READ_BYTES_MAX,
            _ => REQUEST_BYTES_MAX,
        }
    }

    /// Whether its answer, or the wait for it, may go on and on.
    fn goes_on(self) -> bool {
        matches!(self, Self::Feed | Self::Watch | Self::Consume | Self::Receive)
    }
}

/// Answers a request.
pub(super) async fn route(
    serving: &Arc<Serving>,
    head: &Parts,
    body: Incoming,
    asked: Asked,
    place: &mut Option<Place>,
) -> Result<Answer, Refusal> {
    let (database, grant) = authorize(serving, head)?;
    database.allows(grant.rights, asked.rights())?;
    database.take_operation()?;
    let limits = limits(&head.headers)?;
    *place = Some(database.memory.place().await?);
    let (body, claim) = body_of(&database, body, asked.body_bytes_max()).await?;
    still(&database, &grant)?;
    if asked.goes_on() {
        // From here on it counts among the watches.
        *place = None;
    }
    match asked {
        Asked::Read => read::read(&database, &body).await,
        Asked::Write => {
            let results = head.headers.contains_key(RESULTS_HEADER);
            write::write(&database, body, limits, results).await
        }
        Asked::Call(verb) => call::call(&database, verb, &body, limits).await,
        Asked::Feed => feed::feed(serving, &database, &grant, &body).await,
        Asked::Watch => watch::watch(serving, &database, &grant, (&body, claim)).await,
        Asked::Consume => consume::consume(serving, &database, &grant, &body).await,
        Asked::Receive => receive::receive(serving, &database, &grant, &body).await,
    }
}

/// What the client's writes are held to: its own limits, but not beyond the server's.
fn limits(headers: &HeaderMap) -> Result<Limits, Refusal> {
    let Some(header) = headers.get(LIMITS_HEADER) else { return Ok(Limits::wide()) };
    let text = header
        .to_str()
        .map_err(|_| Refusal::bad_request(format!("{LIMITS_HEADER} is not text")))?;
    Ok(read_limits(text)?)
}

/// The store's answer. What may come right by itself has a status, by which clients ask again.
fn answered(outcome: Result<Vec<u8>>) -> Result<Answer, Refusal> {
    answered_within(None, outcome)
}

/// As [`answered`], with the memory that the answer has taken.
fn answered_within(claim: Option<&Claim>, outcome: Result<Vec<u8>>) -> Result<Answer, Refusal> {
    match outcome {
        Ok(bytes) => {
            let body = write_good(&bytes);
            let body = match claim {
                Some(claim) => claim.bytes(body),
                None => body.into(),
            };
            Ok(answer(StatusCode::OK, FRAMES_TYPE, whole(body)))
        }
        Err(error) if matches!(error.kind(), Kind::Unavailable | Kind::Closed) => Err(error.into()),
        Err(error) => Ok(told(&error)),
    }
}

/// An error as an answer, behind which nobody asks again.
fn told(error: &Error) -> Answer {
    if matches!(error.kind(), Kind::Internal | Kind::Corrupt) {
        tracing::error!(%error, "failed");
    }
    answer(StatusCode::OK, FRAMES_TYPE, whole(write_bad(error)))
}

/// A frame that is not what the contract says.
fn malformed(malformed: impl std::fmt::Display) -> Refusal {
    Refusal::bad_request(format!("The frame cannot be read: {malformed}"))
}

fn unanswered<T>(_: T) -> Error {
    Error::internal("the database did not answer; please report this")
}
