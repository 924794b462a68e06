//! Method and path → what answers, and in which order a request is looked at: path, method, token,
//! version, database, rights, quotas, and only then the body; behind it the token once more, which
//! may have been withdrawn meanwhile.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::http::request::Parts;
use hyper::{Method, Request, StatusCode};

use super::answer::{Answer, Refusal, text};
use super::auth::Rights;
use super::database::Database;
use super::memory::{Claim, Place};
use super::{Serving, admin, data, exchange, extension, watch};
use crate::model::{
    METADATA_BYTES_MAX, OVER_QUOTA_PAUSE_MS, REQUEST_BODY_MS_MAX, REQUEST_BYTES_MAX,
    SHORT_BYTES_MAX,
};

/// Answers a request, whatever it is.
pub(super) async fn answer(
    serving: Arc<Serving>,
    request: Request<Incoming>,
) -> (Answer, Option<Place>) {
    let (head, body) = request.into_parts();
    let (method, path) = (head.method.clone(), head.uri.path().to_owned());
    let begun = std::time::Instant::now();
    let mut place = None;
    let answer = match route(&serving, head, body, &mut place).await {
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
    (answer, place)
}

/// Keeps who is over a quota, or comes when there is no room, waiting: a client that asks again at
/// once, whatever it is told, would otherwise take the server's time from the others.
async fn hold(serving: &Serving) {
    let mut closing = serving.closing.subscribe();
    let pause = Duration::from_millis(OVER_QUOTA_PAUSE_MS);
    let _either = tokio::time::timeout(pause, closing.wait_for(|closing| *closing)).await;
}

/// `place` gets the request's place among those under way, if it needs one.
async fn route(
    serving: &Arc<Serving>,
    head: Parts,
    body: Incoming,
    place: &mut Option<Place>,
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
            data_path(serving, &head, body, path.trim_start_matches("/v2/"), place).await
        }
        _ if path.starts_with("/v2/openkv/") => {
            let asked = extension::asked(path.trim_start_matches("/v2/"));
            let asked = asked.ok_or_else(Refusal::not_found)?;
            only(&head, &[Method::POST])?;
            extension::route(serving, &head, body, asked, place).await
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
            *place = Some(who.0.memory.place().await?);
            let body = read(body, METADATA_BYTES_MAX).await?;
            exchange::exchange(serving, who, (&head.uri, &head.headers), &body)
        }
    }
}

async fn data_path(
    serving: &Arc<Serving>,
    head: &Parts,
    body: Incoming,
    verb: &str,
    place: &mut Option<Place>,
) -> Result<Answer, Refusal> {
    let (database, grant) = data::authorize(serving, head)?;
    let needed = if verb == "atomic_write" { Rights::Write } else { Rights::Read };
    database.allows(grant.rights, needed)?;
    database.take_operation()?;
    *place = Some(database.memory.place().await?);
    let (body, claim) = body_of(&database, body, REQUEST_BYTES_MAX).await?;
    data::still(&database, &grant)?;
    match verb {
        "snapshot_read" => data::snapshot_read(&database, &body).await,
        "atomic_write" => data::atomic_write(&database, &body).await,
        _ => {
            *place = None;
            watch::watch(serving, &database, &grant, (&body, claim)).await
        }
    }
}

/// A body, and the memory that it has: of what is long there is only as much as there is room for.
pub(super) async fn body_of(
    database: &Database,
    body: Incoming,
    bytes_max: usize,
) -> Result<(Bytes, Option<Arc<Claim>>), Refusal> {
    let said = body.size_hint().upper().and_then(|bytes| usize::try_from(bytes).ok());
    let most = said.unwrap_or(usize::MAX).min(bytes_max);
    if most <= SHORT_BYTES_MAX {
        return Ok((read(body, bytes_max).await?, None));
    }
    let claim = database.memory.claim(bytes_max);
    claim.wait(most).await?;
    let body = read(body, bytes_max).await?;
    claim.shrink(body.len());
    Ok((body, Some(claim)))
}

/// Refuses other methods.
pub(super) fn only(head: &Parts, methods: &[Method]) -> Result<(), Refusal> {
    if methods.contains(&head.method) {
        return Ok(());
    }
    let names: Vec<_> = methods.iter().map(Method::as_str).collect();
    let text = format!("Method not allowed: use {}.", names.join(" or "));
    Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, text))
}

/// Takes in a body, within its bounds of length and time.
pub(super) async fn read(body: Incoming, bytes_max: usize) -> Result<Bytes, Refusal> {
    let whole = Limited::new(body, bytes_max).collect();
    let wait = Duration::from_millis(REQUEST_BODY_MS_MAX);
    let Ok(read) = tokio::time::timeout(wait, whole).await else {
        let text = format!("The body of the request took too long (max {REQUEST_BODY_MS_MAX} ms).");
        return Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, text));
    };
    match read {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Refusal::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!(
                "Failed to buffer the request body: length limit exceeded (max {bytes_max} bytes)."
            ),
        )),
        Err(error) => {
            Err(Refusal::bad_request(format!("Failed to buffer the request body: {error}")))
        }
    }
}
