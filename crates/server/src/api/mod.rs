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
//! | `media`, `precondition`, `target`, `range`, `order`, `byte_range` | pure: forms of bodies, conditions, keys, ranges, orders |
//! | `body`, `lines`, `write` | values and entries out of bodies |
//! | `document_writer`, `envelope` | documents of answers in each form, and the entries in them |
//! | `placeholders` | UUIDs of atomic operations |
//! | `entries`, `deletion`, `item_page` | calls of the store |
//! | `entry`, `history`, `list`, `atomic`, `watch_keys`, `watch_prefix`, `queue`, `queue_changes`, `listen`, `messages`, `schedules`, `groups`, `jobs`, `dead_letters`, `indexes`, `value_indexes`, `explain`, `search`, `export`, `import`, `backup`, `metrics`, `rights`, `sizes` | the handlers |
//! | `events` | server-sent events |
//! | `document`, `schema`, `page` | the OpenAPI document, and its page |

pub(super) mod admit;
mod atomic;
mod backup;
mod body;
mod byte_range;
pub(super) mod dead_letters;
mod deletion;
pub(super) mod delivery_ends;
mod document;
pub(super) mod document_writer;
mod duration;
pub(super) mod entries;
pub(super) mod entry;
pub(super) mod envelope;
pub(super) mod events;
mod explain;
mod export;
mod groups;
mod history;
mod import;
pub(super) mod indexes;
pub(super) mod item_page;
mod jobs;
mod lines;
pub(super) mod list;
pub(super) mod listen;
pub(super) mod media;
mod messages;
pub(super) mod metrics;
mod order;
mod page;
mod placeholders;
mod precondition;
pub(super) mod problem;
pub(super) mod queue;
mod queue_changes;
pub(super) mod range;
mod rights;
mod schedules;
pub(super) mod schema;
pub(super) mod search;
mod sizes;
mod target;
mod value_indexes;
pub(super) mod watch_keys;
pub(super) mod watch_prefix;
pub(super) mod write;

use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::extract::{Request, State};
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
use utoipa::openapi::OpenApi;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};
use utoipa_axum::routes;

use super::{Serving, host};
pub(super) use admit::refused;
use document::Document;
use openkv_core::model::HTTP_COMPRESS_BYTES_MIN;
use openkv_wire::protocol::backup::HASH_HEADER;
pub(super) use problem::Problem;

/// The API of a database, below its URL.
const BASE: &str = "/api";
/// The pages of a server beside its databases.
pub(super) const DOCS: &str = "/docs";
pub(super) const METRICS: &str = "/metrics";

type Routes = OpenApiRouter<Arc<Serving>>;

/// These routes below `base`. They are not nested: axum would write the URI of each request anew.
fn below<const N: usize>(base: &str, routes: [UtoipaMethodRouter<Arc<Serving>>; N]) -> Routes {
    routes.into_iter().fold(OpenApiRouter::new(), |router, (schemas, mut paths, methods)| {
        let relative = std::mem::take(&mut paths.paths);
        paths.paths =
            relative.into_iter().map(|(path, item)| (format!("{base}{path}"), item)).collect();
        router.routes((schemas, paths, methods))
    })
}

/// The routes that read.
fn reads(serving: &Arc<Serving>, base: &str) -> Routes {
    let lists = [
        routes!(entry::get_or_list),
        routes!(list::list),
        routes!(list::paginate_query, list::paginate),
        routes!(list::batch),
        routes!(explain::explain),
        routes!(history::list),
        routes!(sizes::sizes),
        routes!(jobs::result),
        routes!(jobs::progress),
        routes!(search::by_query, search::search),
    ];
    let queues = [
        routes!(messages::list),
        routes!(schedules::list),
        routes!(groups::list),
        routes!(groups::limits),
        routes!(dead_letters::list),
        routes!(dead_letters::get),
    ];
    let others = [
        routes!(entry::get),
        routes!(list::count_query, list::count_body),
        routes!(indexes::list),
        routes!(export::export),
        routes!(watch_keys::watch),
        routes!(watch_keys::poll),
        routes!(watch_prefix::watch),
        routes!(watch_prefix::poll),
        routes!(jobs::follow),
        routes!(rights::rights),
    ];
    let compression =
        CompressionLayer::new().compress_when(SizeAbove::new(HTTP_COMPRESS_BYTES_MIN));
    let of_queues = below(base, [routes!(queue::stats)])
        .merge(below(base, queues).layer(compression.clone()))
        .route_layer(from_fn_with_state(serving.clone(), admit::reading_queues));
    let of_metrics = below(base, [routes!(metrics::of_database)])
        .merge(below(base, [routes!(metrics::prometheus)]).layer(compression.clone()))
        .route_layer(from_fn_with_state(serving.clone(), admit::reading_metrics));
    let mut routes = below(base, others)
        .merge(below(base, lists).layer(compression))
        .route_layer(from_fn_with_state(serving.clone(), admit::reading))
        .merge(of_queues)
        .merge(of_metrics);
    document::complete(routes.get_openapi_mut(), document::Access::Read);
    routes
}

/// The routes that write.
fn writes(serving: &Arc<Serving>, base: &str) -> Routes {
    let routes = [
        routes!(entry::put, entry::delete),
        routes!(entry::put_key, entry::delete_key),
        routes!(list::delete_batch),
        routes!(atomic::atomic),
        routes!(backup::backup),
        routes!(import::import),
        routes!(indexes::create, indexes::remove),
        routes!(queue::enqueue),
        routes!(queue::poll),
        routes!(listen::listen),
        routes!(delivery_ends::ack),
        routes!(delivery_ends::nack),
        routes!(delivery_ends::extend),
        routes!(delivery_ends::progress),
        routes!(messages::delete),
        routes!(schedules::set, schedules::remove),
        routes!(queue_changes::cancel),
        routes!(queue_changes::pause),
        routes!(queue_changes::resume),
        routes!(queue_changes::drain),
        routes!(groups::set),
        routes!(dead_letters::purge),
        routes!(dead_letters::delete),
        routes!(dead_letters::requeue),
        routes!(dead_letters::requeue_all),
    ];
    let mut routes =
        below(base, routes).route_layer(from_fn_with_state(serving.clone(), admit::writing));
    document::complete(routes.get_openapi_mut(), document::Access::Write);
    routes
}

/// The routes of the API of a server.
pub(super) fn router(serving: &Arc<Serving>) -> Router<Arc<Serving>> {
    let (router, _) = described(serving);
    let pages = Router::new()
        .route("/openapi.json", get(async |State(serving)| document_of(&serving).answer()))
        .route(DOCS, get(async |State(serving)| document_of(&serving).page.answer()))
        .route(METRICS, get(metrics::of_server))
        .route_layer(from_fn_with_state(serving.clone(), admit::of_host));
    router.merge(pages).method_not_allowed_fallback(not_allowed)
}

/// The routes below databases, and their descriptions.
fn described(serving: &Arc<Serving>) -> (Router<Arc<Serving>>, OpenApi) {
    let base = if serving.catalog.is_folder() { "/{database}/api" } else { BASE };
    OpenApiRouter::with_openapi(document::base())
        .merge(reads(serving, base))
        .merge(writes(serving, base))
        .split_for_parts()
}

/// The document of a server, made for the first request of the process: all servers with the same paths have the
/// same.
fn document_of(serving: &Arc<Serving>) -> &'static Document {
    static OF_FILES: OnceLock<Document> = OnceLock::new();
    static OF_FOLDERS: OnceLock<Document> = OnceLock::new();
    let is_folder = serving.catalog.is_folder();
    let made = if is_folder { &OF_FOLDERS } else { &OF_FILES };
    made.get_or_init(|| document::completed(described(serving).1, is_folder))
}

/// The answer to a path inside the API that has no route; `None` for other paths. The router has one
/// fallback for all paths, beside that of databases.
pub(super) fn unknown(serving: &Serving, path: &str) -> Option<Problem> {
    let place = if serving.catalog.is_folder() { 2 } else { 1 };
    let is_within = path.split('/').nth(place) == Some("api");
    let text = match path.ends_with("/api/keys/") {
        true => entry::MISSING_KEY,
        false => "There is no such route: see /openapi.json.",
    };
    is_within.then(|| Problem::new(StatusCode::NOT_FOUND, text))
}

async fn not_allowed(State(serving): State<Arc<Serving>>, request: Request) -> Problem {
    let text = "The route has no such method: see /openapi.json.";
    match host::check(&serving, &request.into_parts().0) {
        Ok(()) => Problem::new(StatusCode::METHOD_NOT_ALLOWED, text),
        Err(refusal) => refusal.into(),
    }
}

/// Lets pages of one origin send requests and read the answers. It answers the requests before those of the
/// pages itself.
pub(super) fn cors(origin: &str) -> CorsLayer {
    let origins: Vec<HeaderValue> = origin.parse().into_iter().collect();
    let lossy = HeaderName::from_static("openkv-lossy");
    let expire_at = HeaderName::from_static("openkv-expire-at");
    let last_event = HeaderName::from_static("last-event-id");
    let digest = HeaderName::from_static(HASH_HEADER);
    let conditions = [IF_MATCH, IF_NONE_MATCH, IF_RANGE, RANGE];
    let request_headers =
        [ACCEPT, AUTHORIZATION, CONTENT_TYPE, last_event].into_iter().chain(conditions);
    CorsLayer::new()
        .allow_origin(origins)
        .allow_methods([Method::GET, Method::HEAD, Method::PUT, Method::POST, Method::DELETE])
        .allow_headers(request_headers.collect::<Vec<_>>())
        .expose_headers([ETAG, RETRY_AFTER, CONTENT_RANGE, lossy, expire_at, digest])
}
