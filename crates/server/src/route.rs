//! The router: from method and path to a handler. The checks of a request follow this order: path,
//! method, token, version, database, rights, quotas, and then the body. The token is checked again
//! after the body, because it may be revoked meanwhile.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, post};
use hyper::body::Incoming;
use hyper::header::{HeaderValue, ORIGIN};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use tower_service::Service;
use tracing::Instrument;

use super::answer::{Answer, Refusal, RoutedBody, text};
use super::api::Problem;
use super::auth::Rights;
use super::held::routed;
use super::memory::RequestPermit;
use super::quota::hold;
use super::request::{RequestBody, body_of, only, read, unencoded};
use super::trace_context::traceparent_of;
use super::{
    Serving, admin, api, data, exchange, extension, host, keyval, leader, read_entry, seen, studio,
    unread, watch,
};
use openkv_core::model::{METADATA_BYTES_MAX, REQUEST_BYTES_MAX, REQUEST_HEAD_BYTES_MAX};

/// The routes of a server. Its connections share one router.
///
/// The handlers check the method themselves, because their refusals have texts. A path without a
/// route may be the name of a database.
pub(super) fn routes(serving: &Arc<Serving>) -> Routes {
    let failures = Router::new().fallback(failed);
    match &serving.cors_origin {
        // The outermost layer, so that a page of the origin can read every refusal.
        Some(origin) => Routes {
            all: router(serving).layer(api::cors(origin)),
            failures: failures.layer(api::cors(origin)),
        },
        None => Routes { all: router(serving), failures },
    }
}

/// The routers of a server.
#[derive(Clone)]
pub(super) struct Routes {
    all: Router,
    /// Answers requests that have a [`Failure`].
    failures: Router,
}

/// Why no handler answers a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    LongHead,
    Panic,
}

/// The answer to a request that no handler answers.
async fn failed(request: Request) -> Response {
    match request.extensions().get() {
        Some(Failure::LongHead) => {
            routed(text(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, ""), None)
        }
        Some(Failure::Panic) | None => {
            let text = "The request ended by a panic; please report this. A write may or may not have happened.";
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, text).into_response()
        }
    }
}

fn router(serving: &Arc<Serving>) -> Router {
    let other = Router::new()
        .route("/", any(root))
        .route("/healthz", any(healthz))
        .route("/readyz", any(readyz))
        .route("/v2/snapshot_read", any(snapshot_read))
        .route("/v2/atomic_write", any(atomic_write))
        .route("/v2/watch", any(watch))
        .route("/v2/openkv/{*request}", any(extension))
        .route("/v1/admin/{*request}", any(admin))
        .merge(studio::router(serving))
        .fallback(metadata);
    // Clients of KV Connect send POST to the name of a database, which may be that of a page.
    let other = match serving.catalog.is_folder() {
        true => other.route(api::DOCS, post(metadata)).route(api::METRICS, post(metadata)),
        false => other,
    };
    // The tokens of the data path are the primary's, so only the path says which database it is.
    let other = match serving.catalog.primary_folder() {
        Some(_) => other
            .route("/{database}/v2/snapshot_read", any(snapshot_read))
            .route("/{database}/v2/atomic_write", any(atomic_write))
            .route("/{database}/v2/watch", any(watch))
            .route("/{database}/v2/openkv/{*request}", any(extension)),
        None => other,
    };
    let other = match serving.catalog.is_open() {
        // Without tokens, the host is all that keeps pages of other sites out.
        true => other.layer(from_fn_with_state(serving.clone(), of_known_host)),
        false => other,
    };
    other.merge(api::router(serving)).merge(keyval::router(serving)).with_state(serving.clone())
}

async fn of_known_host(
    State(serving): State<Arc<Serving>>,
    request: Request,
    next: Next,
) -> Response {
    let (head, body) = request.into_parts();
    match host::check(&serving, &head) {
        Ok(()) => next.run(Request::from_parts(head, body)).await,
        Err(refusal) => routed(refusal.answer(), None),
    }
}

/// Whether a head is within its bound. The buffer of the library grows in steps, so it may accept a longer one.
fn has_short_head(request: &hyper::Request<Incoming>) -> bool {
    let path = request.uri().path_and_query().map_or(0, |path| path.as_str().len());
    let headers = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len());
    path + headers.sum::<usize>() <= REQUEST_HEAD_BYTES_MAX
}

/// The output of a future, or why there is none.
async fn caught<T>(future: impl Future<Output = T>) -> Result<T, Failure> {
    let mut future = pin!(future);
    let polled = poll_fn(|context| {
        // After a panic the future is only dropped.
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context)));
        polled.map_or(Poll::Ready(Err(Failure::Panic)), |polled| polled.map(Ok))
    });
    polled.await
}

/// Answers any request.
pub(super) fn answer(
    routes: &Routes,
    request: hyper::Request<Incoming>,
) -> impl Future<Output = Response> + Send + use<> {
    let failures = routes.failures.clone();
    let origin = request.headers().get(ORIGIN).cloned();
    let logged = tracing::enabled!(tracing::Level::DEBUG)
        .then(|| (request.method().clone(), request.uri().path().to_owned(), Instant::now()));
    let span = match traceparent_of(request.headers()) {
        Some(traceparent) => tracing::info_span!("request", traceparent),
        None => tracing::Span::none(),
    };
    let answered = match has_short_head(&request) {
        true => Ok(routes.all.clone().call(unread::request(request))),
        false => Err(Failure::LongHead),
    };
    async move {
        let answer = match answered {
            Ok(answered) => caught(answered).await,
            Err(failure) => Err(failure),
        };
        let answer = match answer {
            Ok(Ok::<_, Infallible>(answer)) => answer,
            Err(failure) => failure_answer(failures, failure, origin).await,
        };
        if let Some((method, path, begun)) = logged {
            let (status, ms) = (answer.status().as_u16(), begun.elapsed().as_millis());
            tracing::debug!(%method, path, status, ms, "request");
        }
        answer
    }
    .instrument(span)
}

async fn failure_answer(
    mut failures: Router,
    failure: Failure,
    origin: Option<HeaderValue>,
) -> Response {
    let mut request = Request::new(RoutedBody::empty());
    request.extensions_mut().insert(failure);
    if let Some(origin) = origin {
        request.headers_mut().insert(ORIGIN, origin);
    }
    let Ok::<_, Infallible>(answer) = failures.call(request).await;
    answer
}

/// The end of a handler. `permit` is its request's place among the running ones, which the answer
/// keeps until it is sent.
async fn end(
    serving: &Serving,
    answer: Result<Answer, Refusal>,
    permit: Option<RequestPermit>,
) -> Response {
    let answer = match answer {
        Ok(answer) => answer,
        Err(refusal) => {
            let again = [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE];
            if again.contains(&refusal.status) {
                hold(serving).await;
            }
            refusal.answer()
        }
    };
    routed(answer, permit)
}

async fn healthz(State(serving): State<Arc<Serving>>, request: Request) -> Response {
    let (head, _) = request.into_parts();
    let answer = only(&head, &[Method::GET, Method::HEAD]);
    end(&serving, answer.map(|()| text(StatusCode::OK, "ok\n")), None).await
}

async fn readyz(State(serving): State<Arc<Serving>>, request: Request) -> Response {
    let (head, _) = request.into_parts();
    let answer = only(&head, &[Method::GET, Method::HEAD]).and_then(|()| {
        if serving.is_closing() {
            return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "closing\n"));
        }
        if let Some((_, primary)) = serving.catalog.replica() {
            primary.store()?;
        }
        Ok(text(StatusCode::OK, "ready\n"))
    });
    end(&serving, answer, None).await
}

/// A request of the data path of KV Connect.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DataRequest {
    SnapshotRead,
    AtomicWrite,
    Watch,
}

async fn snapshot_read(State(serving): State<Arc<Serving>>, request: Request) -> Response {
    data_path(&serving, request, DataRequest::SnapshotRead).await
}

async fn atomic_write(State(serving): State<Arc<Serving>>, request: Request) -> Response {
    data_path(&serving, request, DataRequest::AtomicWrite).await
}

async fn watch(State(serving): State<Arc<Serving>>, request: Request) -> Response {
    data_path(&serving, request, DataRequest::Watch).await
}

async fn data_path(serving: &Arc<Serving>, request: Request, kind: DataRequest) -> Response {
    let (head, body) = request.into_parts();
    let mut permit = None;
    let answer = data_answer(serving, &head, body, kind, &mut permit).await;
    end(serving, answer, permit).await
}

async fn data_answer(
    serving: &Arc<Serving>,
    head: &Parts,
    body: RequestBody,
    kind: DataRequest,
    permit: &mut Option<RequestPermit>,
) -> Result<Answer, Refusal> {
    only(head, &[Method::POST])?;
    let client = data::authorize(serving, head).await?;
    let database = &client.database;
    let needed = if kind == DataRequest::AtomicWrite { Rights::Write } else { Rights::Read };
    database.allows(client.grant.rights, needed)?;
    unencoded(head)?;
    if needed == Rights::Write
        && let Some(other) = leader::other(database).await?
    {
        return leader::answer(serving, &other, head, body).await;
    }
    database.take_operation().await?;
    *permit = Some(database.memory.permit(head).await?);
    let (body, claim) = body_of(database, body, REQUEST_BYTES_MAX).await?;
    data::still(&client)?;
    let answer = match kind {
        DataRequest::SnapshotRead => data::snapshot_read(database, &body).await,
        DataRequest::AtomicWrite => {
            let answer = data::atomic_write(database, &body).await;
            leader::checked(serving, database, answer).await
        }
        DataRequest::Watch => {
            *permit = None;
            return watch::watch(&client, &body, claim).await;
        }
    };
    Ok(seen::with_last_commit(database, &head.headers, answer?).await)
}

async fn extension(State(serving): State<Arc<Serving>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let mut permit = None;
    let path = head.uri.path().split_once("/v2/").map(|(_, path)| path);
    let kind = path.and_then(extension::kind_of);
    let answer = match kind.ok_or_else(Refusal::not_found) {
        Ok(kind) => match only(&head, &[Method::POST]) {
            Ok(()) => extension::route(&serving, &head, body, kind, &mut permit).await,
            Err(refusal) => Err(refusal),
        },
        Err(refusal) => Err(refusal),
    };
    end(&serving, answer, permit).await
}

async fn admin(State(serving): State<Arc<Serving>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let path = head.uri.path().to_owned();
    match admin::route(&serving, head, body, &path).await {
        Ok(answer) => routed(answer, None),
        Err(refusal) => api::refused(&serving, refusal.into()).await,
    }
}

/// The URL of the server: the studio for browsers, for other clients that of its one database.
async fn root(State(serving): State<Arc<Serving>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    match studio::page(&serving, &head).await {
        Some(page) => page,
        None => metadata(State(serving), Request::from_parts(head, body)).await,
    }
}

/// The metadata exchange, at the path of a database.
async fn metadata(State(serving): State<Arc<Serving>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    if let Some(problem) = api::unknown(&serving, head.uri.path()) {
        return problem.into_response();
    }
    if let Some(answer) = keyval::unknown(&serving, head.uri.path()) {
        return answer;
    }
    if head.method != Method::POST && !is_database(&serving, head.uri.path()) {
        return Problem::from(Refusal::not_found()).into_response();
    }
    let mut permit = None;
    let answer = metadata_answer(&serving, &head, body, &mut permit).await;
    end(&serving, answer, permit).await
}

/// Whether a path may be that of a database.
fn is_database(serving: &Serving, path: &str) -> bool {
    let name = path.trim_start_matches('/');
    match serving.catalog.is_folder() {
        true => !name.contains('/'),
        false => name.is_empty(),
    }
}

async fn metadata_answer(
    serving: &Arc<Serving>,
    head: &Parts,
    body: RequestBody,
    permit: &mut Option<RequestPermit>,
) -> Result<Answer, Refusal> {
    let name = head.uri.path().trim_start_matches('/');
    if serving.catalog.is_folder() && name.is_empty() {
        let text = "This server has many databases: add /NAME to its URL. (A read server of all of them has a \
                    folder as path.)";
        return Err(Refusal::new(StatusCode::NOT_FOUND, text));
    }
    if !is_database(serving, head.uri.path()) {
        return Err(Refusal::not_found());
    }
    only(head, &[Method::POST])?;
    unencoded(head)?;
    if let Some(known) = read_entry::requested_database(serving, head).await? {
        *permit = Some(known.0.memory.permit(head).await?);
        let body = read(body, METADATA_BYTES_MAX).await?;
        return read_entry::metadata(serving, known, head, &body).await;
    }
    let who = exchange::authorize(serving, name, head).await?;
    who.0.allows(who.1, Rights::Read)?;
    who.0.take_operation().await?;
    *permit = Some(who.0.memory.permit(head).await?);
    let body = read(body, METADATA_BYTES_MAX).await?;
    exchange::exchange(serving, who, (&head.uri, &head.headers), &body).await
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A panic of a handler ended its connection without an answer.
    #[tokio::test]
    async fn a_panic_is_an_answer_with_a_code_that_pages_of_the_origin_read() {
        let origin = "https://app.example.com";
        let panics = caught(async { std::panic::panic_any("a defect") }).await;
        let failure: Result<(), _> = panics;
        assert_eq!(failure, Err(Failure::Panic));
        assert_eq!(caught(async { 7 }).await, Ok(7));
        for (failure, status) in [(Failure::Panic, 500), (Failure::LongHead, 431)] {
            let failures = Router::new().fallback(failed).layer(api::cors(origin));
            let answer = failure_answer(failures, failure, origin.parse().ok()).await;
            assert_eq!(answer.status(), status);
            assert_eq!(answer.headers()["access-control-allow-origin"], origin);
        }
    }
}
