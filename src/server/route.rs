//! From method and path to a handler. The checks of a request follow this order: path, method,
//! token, version, database, rights, quotas, and then the body. The token is checked again after
//! the body, because it may be revoked meanwhile.

use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::{Method, Request, StatusCode};

use super::answer::{Answer, Refusal, text};
use super::auth::Rights;
use super::memory::RequestPermit;
use super::request::{body_of, only, read};
use super::{Serving, admin, data, exchange, extension, leader, watch};
use crate::model::{METADATA_BYTES_MAX, OVER_QUOTA_PAUSE_MS, REQUEST_BYTES_MAX};

/// Answers any request.
pub(super) async fn answer(
    serving: Arc<Serving>,
    request: Request<Incoming>,
) -> (Answer, Option<RequestPermit>) {
    let (head, body) = request.into_parts();
    let (method, path) = (head.method.clone(), head.uri.path().to_owned());
    let begun = std::time::Instant::now();
    let mut permit = None;
    let answer = match route(&serving, head, body, &mut permit).await {
        Ok(answer) => answer,
        Err(refusal) => {
            let again = [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE];
            if again.contains(&refusal.status) {
                hold(&serving).await;
            }
            refusal.answer()
        }
    };
    let (status, ms) = (answer.status().as_u16(), begun.elapsed().as_millis());
    tracing::debug!(%method, path, status, ms, "request");
    (answer, permit)
}

/// Delays the answer to a client that is over a quota or finds no room. A client that repeats at
/// once would otherwise take the server's time from the others.
async fn hold(serving: &Serving) {
    let mut closing = serving.closing.subscribe();
    let pause = Duration::from_millis(OVER_QUOTA_PAUSE_MS);
    let _either = tokio::time::timeout(pause, closing.wait_for(|closing| *closing)).await;
}

/// `permit` gets the request's place among the running ones, if it needs one.
async fn route(
    serving: &Arc<Serving>,
    head: Parts,
    body: Incoming,
    permit: &mut Option<RequestPermit>,
) -> Result<Answer, Refusal> {
    let path = head.uri.path().to_owned();
    match path.as_str() {
        "/healthz" => {
            only(&head, &[Method::GET, Method::HEAD])?;
            Ok(text(StatusCode::OK, "ok\n"))
        }
        "/readyz" => {
            only(&head, &[Method::GET, Method::HEAD])?;
            if serving.is_closing() {
                return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "closing\n"));
            }
            Ok(text(StatusCode::OK, "ready\n"))
        }
        "/v2/snapshot_read" | "/v2/atomic_write" | "/v2/watch" => {
            only(&head, &[Method::POST])?;
            data_path(serving, &head, body, path.trim_start_matches("/v2/"), permit).await
        }
        _ if path.starts_with("/v2/openkv/") => {
            let kind = extension::kind_of(path.trim_start_matches("/v2/"));
            let kind = kind.ok_or_else(Refusal::not_found)?;
            only(&head, &[Method::POST])?;
            extension::route(serving, &head, body, kind, permit).await
        }
        _ if path.starts_with("/v1/admin/") => admin::route(serving, head, body, &path).await,
        _ => {
            let name = path.trim_start_matches('/');
            let is_metadata = if serving.catalog.is_folder() {
                !name.is_empty() && !name.contains('/')
            } else {
                name.is_empty()
            };
            if serving.catalog.is_folder() && name.is_empty() {
                let text = "This server has many databases: add /NAME to its URL.";
                return Err(Refusal::new(StatusCode::NOT_FOUND, text));
            }
            if !is_metadata {
                return Err(Refusal::not_found());
            }
            only(&head, &[Method::POST])?;
            let who = exchange::authorize(serving, name, &head)?;
            who.0.take_operation()?;
            *permit = Some(who.0.memory.permit().await?);
            let body = read(body, METADATA_BYTES_MAX).await?;
            exchange::exchange(serving, who, (&head.uri, &head.headers), &body).await
        }
    }
}

async fn data_path(
    serving: &Arc<Serving>,
    head: &Parts,
    body: Incoming,
    method: &str,
    permit: &mut Option<RequestPermit>,
) -> Result<Answer, Refusal> {
    let client = data::authorize(serving, head)?;
    let database = &client.database;
    let needed = if method == "atomic_write" { Rights::Write } else { Rights::Read };
    database.allows(client.grant.rights, needed)?;
    if needed == Rights::Write
        && let Some(other) = leader::other(database).await?
    {
        return leader::answer(serving, &other, head, body).await;
    }
    database.take_operation()?;
    *permit = Some(database.memory.permit().await?);
    let (body, claim) = body_of(database, body, REQUEST_BYTES_MAX).await?;
    data::still(&client)?;
    match method {
        "snapshot_read" => data::snapshot_read(database, &body).await,
        "atomic_write" => {
            let answer = data::atomic_write(database, &body).await;
            leader::checked(serving, database, answer).await
        }
        _ => {
            *permit = None;
            watch::watch(&client, &body, claim).await
        }
    }
}
