//! openkv's own requests (`protocol::extension`): the rights of each and its handler. The checks of
//! a request follow the order of the data path.
//!
//! A frame here is untrusted. JavaScript checks the bounds of a frame before it crosses into this
//! process; each handler checks them again.

mod call;
mod consume;
mod feed;
mod follow;
mod read;
mod receive;
mod watch;
mod write;

use std::sync::Arc;

use hyper::StatusCode;
use hyper::header::HeaderMap;
use hyper::http::request::Parts;

use super::Serving;
use super::answer::{Answer, Refusal, answer, whole};
use super::auth::Rights;
use super::data::{Client, authorize, still};
use super::memory::{Claim, RequestPermit};
use super::request::{RequestBody, body_of, unencoded};
use super::{leader, seen};
use openkv_core::model::{
    Error, FRAMES_READ_BYTES_MAX, FRAMES_WRITE_BYTES_MAX, Kind, Limits, REQUEST_BYTES_MAX, Result,
    SHORT_BYTES_MAX,
};
use openkv_wire::protocol::extension::{
    CALL, CONSUME, EXPIRIES_HEADER, FEED, FOLLOW, FRAMES_TYPE, GRANT, KINDS_HEADER, LIMITS_HEADER,
    READ, RECEIVE, REPEATED_HEADER, RESULTS_HEADER, WATCH, WRITE, read_kinds, read_limits,
    write_bad, write_good, write_grant,
};
use openkv_wire::protocol::{Command, CommandFlag};

pub(crate) use consume::{Writing, consuming};
pub(crate) use receive::{ReceiveRequest, received};

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    Read,
    Write,
    Call(Command),
    Feed,
    Follow,
    Watch,
    Consume,
    Receive,
    Grant,
}

/// The request of a path, without the version in front; `None` for an unknown path.
pub(super) fn kind_of(path: &str) -> Option<RequestKind> {
    match path {
        READ => return Some(RequestKind::Read),
        WRITE => return Some(RequestKind::Write),
        FEED => return Some(RequestKind::Feed),
        FOLLOW => return Some(RequestKind::Follow),
        WATCH => return Some(RequestKind::Watch),
        CONSUME => return Some(RequestKind::Consume),
        RECEIVE => return Some(RequestKind::Receive),
        GRANT => return Some(RequestKind::Grant),
        _ => {}
    }
    let command = path.strip_prefix(CALL)?.strip_prefix('/')?;
    let command = command.parse().ok().and_then(Command::from_number)?;
    call::rights(command).map(|_| RequestKind::Call(command))
}

impl RequestKind {
    /// Whether a read server can answer it.
    fn is_on_replica(self) -> bool {
        match self {
            Self::Call(command) => command.is(CommandFlag::OnReplica),
            kind => kind.rights() == Rights::Read,
        }
    }

    fn rights(self) -> Rights {
        match self {
            Self::Read => Rights::Read,
            Self::Write => Rights::Write,
            // A command without rights has no path.
            Self::Call(command) => call::rights(command).unwrap_or(Rights::Admin),
            Self::Feed | Self::Follow | Self::Watch | Self::Grant => Rights::Read,
            Self::Consume | Self::Receive => Rights::Write,
        }
    }

    /// The bound of the body. Only requests that carry values for many keys may be long.
    fn body_bytes_max(self) -> usize {
        match self {
            Self::Write => FRAMES_WRITE_BYTES_MAX,
            Self::Call(command) if command.is(CommandFlag::LongFrame) => FRAMES_WRITE_BYTES_MAX,
            Self::Feed | Self::Follow | Self::Consume | Self::Receive => SHORT_BYTES_MAX,
            kind if kind.rights() == Rights::Read => FRAMES_READ_BYTES_MAX,
            _ => REQUEST_BYTES_MAX,
        }
    }

    /// Whether its answer, or the wait for it, is unbounded in time.
    fn goes_on(self) -> bool {
        matches!(self, Self::Feed | Self::Follow | Self::Watch | Self::Consume | Self::Receive)
    }
}

/// Answers a request.
pub(super) async fn route(
    serving: &Arc<Serving>,
    head: &Parts,
    body: RequestBody,
    kind: RequestKind,
    permit: &mut Option<RequestPermit>,
) -> Result<Answer, Refusal> {
    let client = authorize(serving, head).await?;
    let database = &client.database;
    database.allows(client.grant.rights, kind.rights())?;
    unencoded(head)?;
    let writes = kind.rights() > Rights::Read;
    let is_elsewhere = writes || database.primary().is_some() && !kind.is_on_replica();
    if is_elsewhere && let Some(other) = leader::other(database).await? {
        return leader::answer(serving, &other, head, body).await;
    }
    database.take_operation().await?;
    let limits = limits(&head.headers)?;
    let kinds = read_kinds(head.headers.get(KINDS_HEADER).and_then(|text| text.to_str().ok()));
    *permit = Some(database.memory.permit(head).await?);
    let (body, claim) = body_of(database, body, kind.body_bytes_max()).await?;
    still(&client)?;
    let goes_on = kind.goes_on();
    if goes_on {
        // From here on it counts as a watch.
        *permit = None;
    }
    let answer = match kind {
        RequestKind::Read => read::read(database, &body, kinds).await,
        RequestKind::Write => {
            let form = write::Form {
                results: head.headers.contains_key(RESULTS_HEADER),
                repeated: head.headers.contains_key(REPEATED_HEADER),
                kinds,
            };
            write::write(database, body, limits, form).await
        }
        RequestKind::Call(command) => call::call(database, command, &body, limits, kinds).await,
        RequestKind::Feed => {
            let expiries = head.headers.contains_key(EXPIRIES_HEADER);
            feed::feed(&client, &body, expiries).await
        }
        RequestKind::Follow => follow::follow(&client, &head.headers, &body).await,
        RequestKind::Watch => watch::watch(&client, &body, claim).await,
        RequestKind::Consume => consume::consume(&client, &body).await,
        RequestKind::Receive => receive::receive(&client, &body).await,
        RequestKind::Grant => Ok(grant(&client)),
    };
    let answer = if writes { leader::checked(serving, database, answer).await? } else { answer? };
    if goes_on {
        Ok(answer)
    } else {
        Ok(seen::with_last_commit(database, &head.headers, answer).await)
    }
}

/// The rights of the token of a request, for a read server.
fn grant(Client { serving, grant, .. }: &Client) -> Answer {
    let left_ms = grant.expires_at_ms.saturating_sub(serving.catalog.now_ms());
    let frame = write_grant(grant.rights as u8, u64::try_from(left_ms).unwrap_or(0));
    answer(StatusCode::OK, FRAMES_TYPE, whole(frame))
}

/// The limits for the client's writes: its own, but not beyond the server's.
fn limits(headers: &HeaderMap) -> Result<Limits, Refusal> {
    let Some(header) = headers.get(LIMITS_HEADER) else { return Ok(Limits::wide()) };
    let text = header
        .to_str()
        .map_err(|_| Refusal::bad_request(format!("{LIMITS_HEADER} is not text")))?;
    Ok(read_limits(text)?)
}

/// The store's answer. An error that may pass has a status, after which clients repeat the request.
fn answered(outcome: Result<Vec<u8>>) -> Result<Answer, Refusal> {
    answered_within(None, outcome)
}

/// As [`answered`], with the memory of the answer.
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
        Err(error) => Ok(error_answer(&error)),
    }
}

/// An error as an answer that the client does not repeat.
fn error_answer(error: &Error) -> Answer {
    if matches!(error.kind(), Kind::Internal | Kind::Corrupt) {
        tracing::error!(%error, "failed");
    }
    answer(StatusCode::OK, FRAMES_TYPE, whole(write_bad(error)))
}

/// A frame that does not follow the contract.
fn malformed(malformed: impl std::fmt::Display) -> Refusal {
    Refusal::bad_request(format!("The frame cannot be read: {malformed}"))
}
