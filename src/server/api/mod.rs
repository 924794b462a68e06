//! The HTTP API (docs/http.md): REST routes for any client, below `/api` of a database's URL.
//!
//! Duty: media types, conditional requests, problem details; from a request to a call of the store.
//! Invariant: every route is a handler with an OpenAPI description, and admitted by `admit`, which
//! checks host, token, rights and quotas before it reads the body.
//! Never: another right or quota than those of the data path; an unbounded answer.
//!
//! | file | what |
//! |---|---|
//! | `admit` | host, token, rights, leader and quotas of a request |
//! | `problem` | errors as problem details |
//! | `media`, `precondition`, `target`, `range`, `byte_range` | pure: forms of bodies, conditions, keys, ranges |
//! | `body`, `lines`, `envelope`, `write` | values and entries out of bodies and into them |
//! | `entries`, `deletion`, `message_page` | calls of the store |
//! | `entry`, `list`, `atomic`, `watch_keys`, `watch_prefix`, `queue`, `listen`, `messages`, `dead_letters`, `indexes`, `search`, `export`, `import`, `backup`, `metrics` | the handlers |
//! | `events` | server-sent events |
//! | `document`, `schema`, `page` | the OpenAPI document, and its page |

mod admit;
mod atomic;
mod backup;
mod body;
mod byte_range;
mod dead_letters;
mod deletion;
mod document;
mod entries;
mod entry;
mod envelope;
mod events;
mod export;
mod import;
mod indexes;
mod lines;
mod list;
mod listen;
mod media;
mod message_page;
mod messages;
mod metrics;
mod page;
mod precondition;
mod problem;
mod queue;
mod range;
mod schema;
mod search;
mod target;
mod watch_keys;
mod watch_prefix;
mod write;

use std::future::ready;
use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, IF_MATCH,
    IF_NONE_MATCH, IF_RANGE, RANGE, RETRY_AFTER,
};
use hyper::{Method, StatusCode};
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::SizeAbove;
use tower_http::cors::CorsLayer;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Serving;
use crate::model::HTTP_COMPRESS_BYTES_MIN;
use crate::protocol::backup::HASH_HEADER;
use problem::Problem;

/// The pages of a server beside its databases.
pub(super) const DOCS: &str = "/docs";
pub(super) const METRICS: &str = "/metrics";

type Routes = OpenApiRouter<Arc<Serving>>;

/// The routes that read.
fn reads(serving: &Arc<Serving>) -> Routes {
    let lists = OpenApiRouter::new()
        .routes(routes!(entry::get_or_list))
        .routes(routes!(list::list))
        .routes(routes!(list::paginate_query, list::paginate))
        .routes(routes!(list::batch))
        .routes(routes!(metrics::prometheus))
        .routes(routes!(search::by_query, search::search))
        .routes(routes!(messages::list))
        .routes(routes!(dead_letters::list))
        .routes(routes!(dead_letters::get))
        .layer(CompressionLayer::new().compress_when(SizeAbove::new(HTTP_COMPRESS_BYTES_MIN)));
    let mut routes = OpenApiRouter::new()
        .routes(routes!(entry::get))
        .routes(routes!(list::count_query, list::count_body))
        .routes(routes!(metrics::of_database))
        .routes(routes!(indexes::list))
        .routes(routes!(queue::stats))
        .routes(routes!(export::export))
        .routes(routes!(watch_keys::watch))
        .routes(routes!(watch_keys::poll))
        .routes(routes!(watch_prefix::watch))
        .routes(routes!(watch_prefix::poll))
        .merge(lists)
        .route_layer(from_fn_with_state(serving.clone(), admit::reading));
    document::complete(routes.get_openapi_mut(), document::Access::Read);
    routes
}

/// The routes that write.
fn writes(serving: &Arc<Serving>) -> Routes {
    let mut routes = OpenApiRouter::new()
        .routes(routes!(entry::put, entry::delete))
        .routes(routes!(entry::put_key, entry::delete_key))
        .routes(routes!(list::delete_batch))
        .routes(routes!(atomic::atomic))
        .routes(routes!(backup::backup))
        .routes(routes!(import::import))
        .routes(routes!(indexes::create, indexes::remove))
        .routes(routes!(queue::enqueue))
        .routes(routes!(queue::poll))
        .routes(routes!(listen::listen))
        .routes(routes!(queue::ack))
        .routes(routes!(queue::nack))
        .routes(routes!(queue::extend))
        .routes(routes!(dead_letters::purge))
        .routes(routes!(dead_letters::delete))
        .routes(routes!(dead_letters::requeue))
        .route_layer(from_fn_with_state(serving.clone(), admit::writing));
    document::complete(routes.get_openapi_mut(), document::Access::Write);
    routes
}

/// The routes of the API of a server.
pub(super) fn router(serving: &Arc<Serving>) -> Router<Arc<Serving>> {
    let of_database = OpenApiRouter::new().merge(reads(serving)).merge(writes(serving));
    let is_folder = serving.catalog.is_folder();
    let base = if is_folder { "/{database}/api" } else { "/api" };
    let (router, found) =
        OpenApiRouter::with_openapi(document::base()).nest(base, of_database).split_for_parts();
    let document = document::completed(found, is_folder);
    let page = document.page.clone();
    let router = router
        .route("/openapi.json", get(move || ready(document.answer())))
        .route(DOCS, get(move || ready(page.answer())))
        .route(METRICS, get(metrics::of_server))
        .method_not_allowed_fallback(not_allowed);
    let router = match &serving.cors_origin {
        Some(origin) => router.layer(cors(origin)),
        None => router,
    };
    router.layer(from_fn_with_state(serving.clone(), admit::of_host))
}

/// The answer to a path inside the API that has no route; `None` for other paths. The router has one
/// fallback for all paths, beside that of databases.
pub(super) fn unknown(serving: &Serving, path: &str) -> Option<Problem> {
    let place = if serving.catalog.is_folder() { 2 } else { 1 };
    let is_within = path.split('/').nth(place) == Some("api");
    is_within
        .then(|| Problem::new(StatusCode::NOT_FOUND, "There is no such route: see /openapi.json."))
}

async fn not_allowed() -> Problem {
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "The route has no such method: see /openapi.json.")
}

fn cors(origin: &str) -> CorsLayer {
    let origins: Vec<HeaderValue> = origin.parse().into_iter().collect();
    let lossy = HeaderName::from_static("openkv-lossy");
    let expire_at = HeaderName::from_static("openkv-expire-at");
    let last_event = HeaderName::from_static("last-event-id");
    let digest = HeaderName::from_static(HASH_HEADER);
    let conditions = [IF_MATCH, IF_NONE_MATCH, IF_RANGE, RANGE];
    let asked = [ACCEPT, AUTHORIZATION, CONTENT_TYPE, last_event].into_iter().chain(conditions);
    CorsLayer::new()
        .allow_origin(origins)
        .allow_methods([Method::GET, Method::HEAD, Method::PUT, Method::POST, Method::DELETE])
        .allow_headers(asked.collect::<Vec<_>>())
        .expose_headers([ETAG, RETRY_AFTER, CONTENT_RANGE, lossy, expire_at, digest])
}
