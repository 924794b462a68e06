//! Admission of a request of the HTTP API, before its body: host, token, rights, leader, quotas.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::CONTENT_TYPE;
use hyper::http::request::Parts;
use parking_lot::Mutex;

use super::media::{Form, named};
use super::problem::Problem;
use crate::answer::Refusal;
use crate::auth::{Grant, Rights};
use crate::data::{Client, still};
use crate::database::Database;
use crate::held::held;
use crate::memory::Claim;
use crate::quota::hold;
use crate::read_server::InUse;
use crate::request::{RequestBody, body_of, database_in, unencoded};
use crate::{Serving, exchange, host, leader, read_entry};
use openkv_core::model::REQUEST_BYTES_MAX;

/// The sender of an admitted request, for its handler.
pub(crate) type Admitted = Arc<Client>;

/// Refuses a request for a page that names another host.
pub(super) async fn of_host(
    State(serving): State<Arc<Serving>>,
    request: Request,
    next: Next,
) -> Response {
    let (head, body) = request.into_parts();
    match host::check(&serving, &head) {
        Ok(()) => next.run(Request::from_parts(head, body)).await,
        Err(refusal) => Problem::from(refusal).into_response(),
    }
}

/// What the requests of a route ask for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asks {
    /// Reads the metrics.
    Metrics,
    Read,
    /// Reads messages, which no replica has.
    ReadQueues,
    Write,
}

impl Asks {
    fn rights(self) -> Rights {
        match self {
            Self::Metrics => Rights::Metrics,
            Self::Read | Self::ReadQueues => Rights::Read,
            Self::Write => Rights::Write,
        }
    }

    fn is_about_queues(self) -> bool {
        self == Self::ReadQueues
    }
}

/// Admits the requests of a route.
pub(crate) async fn admitted(
    State((serving, asks)): State<(Arc<Serving>, Asks)>,
    request: Request,
    next: Next,
) -> Response {
    let (mut head, body) = request.into_parts();
    let client = match admit(&serving, &head, asks).await {
        Ok(Admission::Here(client)) => client,
        // Boxed, so that the future of each request is small.
        Ok(Admission::Led(leader)) => {
            return Box::pin(forwarded(&serving, leader, head, body)).await;
        }
        Err(problem) => return Box::pin(refused(&serving, problem)).await,
    };
    head.extensions.insert(client.clone());
    let response = next.run(Request::from_parts(head, body)).await;
    let busy = [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE];
    if busy.contains(&response.status()) {
        // If the store refused a write for now, another server may have become the leader.
        let is_write = asks == Asks::Write && serving.forwarder.is_none();
        if is_write && let Ok(Some(leader)) = client.database.leader().await {
            return Problem::led_by(leader).into_response();
        }
        hold(&serving).await;
    }
    match client.take_permit() {
        // An answer that goes on without end.
        None => response,
        Some(permit) => held(response, permit),
    }
}

enum Admission {
    Here(Admitted),
    /// Another server, at this URL, leads the database.
    Led(String),
}

async fn admit(serving: &Arc<Serving>, head: &Parts, asks: Asks) -> Result<Admission, Problem> {
    let needed = asks.rights();
    host::check(serving, head)?;
    let (database, grant, in_use) = authorized(serving, head).await?;
    database.allows(grant.rights, needed)?;
    unencoded(head)?;
    if (needed > Rights::Read || asks.is_about_queues() && database.primary().is_some())
        && let Some(leader) = leader::other(&database).await?
    {
        return Ok(Admission::Led(leader));
    }
    database.take_operation().await?;
    let permit = Mutex::new(Some(database.memory.permit(head).await?));
    let client = Client { serving: serving.clone(), database, grant, in_use, permit };
    Ok(Admission::Here(Arc::new(client)))
}

/// The database of a request, and what its access token may do.
pub(super) async fn authorized(
    serving: &Arc<Serving>,
    head: &Parts,
) -> Result<(Arc<Database>, Grant, Option<InUse>), Problem> {
    if let Some((database, grant, in_use)) = read_entry::admitted(serving, head, false).await? {
        return Ok((database, grant, Some(in_use)));
    }
    let name = if serving.catalog.is_folder() { database_in(head) } else { "" };
    let (database, rights, issued_for) = exchange::authorize(serving, name, head).await?;
    // An access token is valid until it is revoked.
    let grant = Grant { database: database.id, rights, issued_for, expires_at_ms: i64::MAX };
    Ok((database, grant, None))
}

async fn forwarded(
    serving: &Arc<Serving>,
    leader: String,
    head: Parts,
    body: RequestBody,
) -> Response {
    let Some(forwarder) = &serving.forwarder else {
        return Problem::led_by(leader).into_response();
    };
    match forwarder.send(&leader, &head, body).await {
        Ok(answer) => answer.into_response(),
        Err(refusal) => refused(serving, refusal.into()).await,
    }
}

/// The answer to a refused request. One that may be repeated at once waits first.
pub(crate) async fn refused(serving: &Serving, problem: Problem) -> Response {
    let busy = [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE];
    if busy.contains(&problem.status()) {
        hold(serving).await;
    }
    problem.into_response()
}

/// The body of a request in one of the offered forms, with its memory. The token is checked again,
/// because it may be revoked while the body arrives.
pub(crate) async fn body_in(
    client: &Client,
    head: &Parts,
    body: RequestBody,
    offered: &[Form],
) -> Result<(Form, Bytes, Option<Arc<Claim>>), Problem> {
    let given = head.headers.get(CONTENT_TYPE).and_then(|given| given.to_str().ok());
    let form = given.and_then(|given| named(given, offered)).ok_or_else(|| {
        let names: Vec<_> = offered.iter().map(|form| form.name()).collect();
        let text = format!("Content-Type must be one of {}.", names.join(", "));
        Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, text)
    })?;
    let (body, claim) = body_of(&client.database, body, REQUEST_BYTES_MAX).await?;
    still(client)?;
    Ok((form, body, claim))
}
