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
//! | `description`, `schema`, `openapi.json` | writes the OpenAPI document from the handlers, in a test |
//! | `document`, `page` | the document that a server answers, and its page |

pub(super) mod admit;
mod atomic;
mod backup;
mod body;
mod byte_range;
pub(super) mod dead_letters;
mod deletion;
pub(super) mod delivery_ends;
#[cfg(test)]
mod description;
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

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::handler::Handler;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, MethodRouter, get};
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, IF_MATCH,
    IF_NONE_MATCH, IF_RANGE, RANGE, RETRY_AFTER,
};
use hyper::{Method, StatusCode};
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::SizeAbove;
use tower_http::cors::CorsLayer;
use utoipa::__dev::{SchemaReferences, Tags};
use utoipa::openapi::HttpMethod;

use super::{Serving, host};
use admit::Asks;
pub(super) use admit::refused;
use openkv_core::model::HTTP_COMPRESS_BYTES_MIN;
use openkv_wire::protocol::backup::HASH_HEADER;
pub(super) use problem::Problem;

/// The API of a database, below its URL.
const BASE: &str = "/api";
/// The same in a folder of databases.
const BASE_IN_FOLDER: &str = "/{database}/api";
/// The pages of a server beside its databases.
pub(super) const DOCS: &str = "/docs";
pub(super) const METRICS: &str = "/metrics";

/// The handlers of a path.
struct Route {
    path: String,
    handlers: MethodRouter<Arc<Serving>>,
    #[cfg(test)]
    description: description::RouteDescription,
}

impl Route {
    /// The description has the path and the methods of the handler.
    fn of<D: HandlerDescription, T: 'static>(handler: impl Handler<T, Arc<Serving>>) -> Self {
        let none = Self {
            path: D::path(),
            handlers: MethodRouter::new(),
            #[cfg(test)]
            description: Default::default(),
        };
        none.and::<D, T>(handler)
    }

    fn and<D: HandlerDescription, T: 'static>(
        mut self,
        handler: impl Handler<T, Arc<Serving>>,
    ) -> Self {
        debug_assert_eq!(D::path(), self.path);
        for method in D::methods() {
            self.handlers = self.handlers.on(filter(method), handler.clone());
        }
        #[cfg(test)]
        self.description.add::<D>();
        self
    }
}

/// The description of a handler, which `#[utoipa::path]` makes.
trait HandlerDescription: utoipa::Path + SchemaReferences + for<'t> Tags<'t> {}

impl<D: utoipa::Path + SchemaReferences + for<'t> Tags<'t>> HandlerDescription for D {}

const fn filter(method: HttpMethod) -> MethodFilter {
    match method {
        HttpMethod::Get => MethodFilter::GET,
        HttpMethod::Post => MethodFilter::POST,
        HttpMethod::Put => MethodFilter::PUT,
        HttpMethod::Delete => MethodFilter::DELETE,
        HttpMethod::Options => MethodFilter::OPTIONS,
        HttpMethod::Head => MethodFilter::HEAD,
        HttpMethod::Patch => MethodFilter::PATCH,
        HttpMethod::Trace => MethodFilter::TRACE,
    }
}

/// The route of handlers of one path.
macro_rules! route {
    ($module:ident::$handler:ident $(, $others:ident::$other:ident)*) => {
        pastey::paste! {
            Route::of::<$module::[<__path_ $handler>], _>($module::$handler)
                $(.and::<$others::[<__path_ $other>], _>($others::$other))*
        }
    };
}

/// Routes whose requests ask for the same.
struct Routes {
    asks: Asks,
    /// Long answers are compressed for clients that ask for it.
    compressed: bool,
    routes: Vec<Route>,
}

/// All routes below a database.
fn routes() -> [Routes; 7] {
    let of = |asks, compressed, routes| Routes { asks, compressed, routes };
    let lists = vec![
        route!(entry::get_or_list),
        route!(list::list),
        route!(list::paginate_query, list::paginate),
        route!(list::batch),
        route!(explain::explain),
        route!(history::list),
        route!(sizes::sizes),
        route!(jobs::result),
        route!(jobs::progress),
        route!(search::by_query, search::search),
    ];
    let reads = vec![
        route!(entry::get),
        route!(list::count_query, list::count_body),
        route!(indexes::list),
        route!(export::export),
        route!(watch_keys::watch),
        route!(watch_keys::poll),
        route!(watch_prefix::watch),
        route!(watch_prefix::poll),
        route!(jobs::follow),
        route!(rights::rights),
    ];
    let queues = vec![
        route!(messages::list),
        route!(schedules::list),
        route!(groups::list),
        route!(groups::limits),
        route!(dead_letters::list),
        route!(dead_letters::get),
    ];
    let writes = vec![
        route!(entry::put, entry::delete),
        route!(entry::put_key, entry::delete_key),
        route!(list::delete_batch),
        route!(atomic::atomic),
        route!(backup::backup),
        route!(import::import),
        route!(indexes::create, indexes::remove),
        route!(queue::enqueue),
        route!(queue::poll),
        route!(listen::listen),
        route!(delivery_ends::ack),
        route!(delivery_ends::nack),
        route!(delivery_ends::extend),
        route!(delivery_ends::progress),
        route!(messages::delete),
        route!(schedules::set, schedules::remove),
        route!(queue_changes::cancel),
        route!(queue_changes::pause),
        route!(queue_changes::resume),
        route!(queue_changes::drain),
        route!(groups::set),
        route!(dead_letters::purge),
        route!(dead_letters::delete),
        route!(dead_letters::requeue),
        route!(dead_letters::requeue_all),
    ];
    [
        of(Asks::Read, true, lists),
        of(Asks::Read, false, reads),
        of(Asks::ReadQueues, true, queues),
        of(Asks::ReadQueues, false, vec![route!(queue::stats)]),
        of(Asks::Metrics, true, vec![route!(metrics::prometheus)]),
        of(Asks::Metrics, false, vec![route!(metrics::of_database)]),
        of(Asks::Write, false, writes),
    ]
}

/// The handlers behind what admits their requests, and compresses their answers.
fn admitted(
    mut handlers: MethodRouter<Arc<Serving>>,
    asks: Asks,
    compressed: bool,
    serving: &Arc<Serving>,
) -> MethodRouter<Arc<Serving>> {
    if compressed {
        let long = SizeAbove::new(HTTP_COMPRESS_BYTES_MIN);
        handlers = handlers.layer(CompressionLayer::new().compress_when(long));
    }
    handlers.route_layer(from_fn_with_state((serving.clone(), asks), admit::admitted))
}

/// The routes of the API of a server.
pub(super) fn router(serving: &Arc<Serving>) -> Router<Arc<Serving>> {
    let is_folder = serving.catalog.is_folder();
    let base = if is_folder { BASE_IN_FOLDER } else { BASE };
    let mut router = Router::new()
        .route("/openapi.json", get(async move || document::of(is_folder).answer()))
        .route(DOCS, get(async move || document::of(is_folder).page.answer()))
        .route(METRICS, get(metrics::of_server))
        .route_layer(from_fn_with_state(serving.clone(), admit::of_host));
    for Routes { asks, compressed, routes } in routes() {
        for Route { path, handlers, .. } in routes {
            let handlers = admitted(handlers, asks, compressed, serving);
            // They are not nested: axum would write the URI of each request anew.
            router = router.route(&format!("{base}{path}"), handlers);
        }
    }
    router.method_not_allowed_fallback(not_allowed)
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
