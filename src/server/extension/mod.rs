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
use std::time::Duration;

use hyper::StatusCode;
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::HeaderMap;
use hyper::http::request::Parts;
use tokio::sync::SemaphorePermit;
use tokio::time::timeout;

use super::Serving;
use super::answer::{Answer, Refusal, answer, whole};
use super::auth::Rights;
use super::catalog::now_ms;
use super::data::{authorize, still};
use super::route;
use crate::codec::frame::Verb;
use crate::connect::extension::{
    CALL, CONSUME, FEED, FRAMES_TYPE, LIMITS_HEADER, READ, RECEIVE, WATCH, WRITE, read_limits,
    write_bad, write_good,
};
use crate::model::{
    Error, FRAMES_LARGE_MAX, FRAMES_READ_BYTES_MAX, FRAMES_WRITE_BYTES_MAX, Kind, Limits,
    REQUEST_BODY_MS_MAX, REQUEST_BYTES_MAX, Result,
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

/// Answers a request.
pub(super) async fn route(
    serving: &Arc<Serving>,
    head: &Parts,
    body: Incoming,
    asked: Asked,
) -> Result<Answer, Refusal> {
    let (database, grant) = authorize(serving, &head.headers)?;
    database.allows(grant.rights, asked.rights())?;
    database.take_operation(now_ms())?;
    let limits = limits(&head.headers)?;
    // Held to the end: the body is.
    let (body, _place) = whole_body(serving, body, asked).await?;
    still(&database, &grant)?;
    match asked {
        Asked::Read => read::read(&database, &body).await,
        Asked::Write => write::write(&database, body, limits).await,
        Asked::Call(verb) => call::call(&database, verb, &body, limits).await,
        Asked::Feed => feed::feed(serving, &database, &grant, &body).await,
        Asked::Watch => watch::watch(serving, &database, &grant, &body).await,
        Asked::Consume => consume::consume(serving, &database, &grant, &body).await,
        Asked::Receive => receive::receive(serving, &database, &grant, &body).await,
    }
}

/// Takes in the body. Few long ones are held at one time, so that their bound is one of memory too.
async fn whole_body(
    serving: &Arc<Serving>,
    body: Incoming,
    asked: Asked,
) -> Result<(Bytes, Option<SemaphorePermit<'_>>), Refusal> {
    if asked.rights() == Rights::Read {
        return Ok((route::read(body, FRAMES_READ_BYTES_MAX).await?, None));
    }
    let is_short = body.size_hint().upper().is_some_and(|bytes| bytes <= REQUEST_BYTES_MAX as u64);
    if is_short {
        return Ok((route::read(body, REQUEST_BYTES_MAX).await?, None));
    }
    let wait = Duration::from_millis(REQUEST_BODY_MS_MAX);
    let Ok(Ok(place)) = timeout(wait, serving.large_bodies.acquire()).await else {
        let text = format!("{FRAMES_LARGE_MAX} long requests are under way already; try later.");
        return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, text).retry(1));
    };
    Ok((route::read(body, FRAMES_WRITE_BYTES_MAX).await?, Some(place)))
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
    match outcome {
        Ok(bytes) => Ok(answer(StatusCode::OK, FRAMES_TYPE, whole(write_good(&bytes)))),
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
