//! The API of KeyVal, for its clients: `/keyval/api` beside `/api` (docs/keyval.md).
//!
//! Duty: translates keys, bodies, filters and answers of KeyVal to what the HTTP API calls, and back.
//! Invariant: one table makes the router and the list of routes that a test compares with the documented one.
//! Every route is admitted as those of `/api` are: by the same hosts, tokens, rights, quotas and bounds.
//! Never: a rule of the store; another right than that of `/api`.
//!
//! | file | what |
//! |---|---|
//! | `rules` | the server's options for it |
//! | `json`, `bigint`, `keys`, `number`, `filter` | pure: JSON of requests, integers, keys, leading digits, `where` |
//! | `entries`, `deletion`, `atomic`, `arithmetic` | entries, their deletion, atomic operations, sums |
//! | `watch`, `prefix` | the states of keys; changes below prefixes |
//! | `queue`, `dlq` | messages and dead letters |
//! | `search`, `indexes` | full-text search |
//! | `metrics` | counters by KeyVal's names |
//! | `answer` | entries in answers, and errors |

mod answer;
mod arithmetic;
mod atomic;
mod bigint;
mod deletion;
mod dlq;
mod entries;
mod filter;
mod indexes;
mod json;
mod keys;
mod metrics;
mod number;
mod prefix;
mod queue;
mod rules;
mod search;
#[cfg(test)]
mod tests;
mod watch;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};
use hyper::StatusCode;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::SizeAbove;

use super::api::admit::{self, Asks};
use super::api::problem::Problem;
use super::{Serving, host};
use openkv_core::model::HTTP_COMPRESS_BYTES_MIN;
pub(super) use rules::Rules;

/// The API of a database, below its URL.
const BASE: &str = "/keyval/api";
/// What the path of an entry begins with, below the base.
const ENTRY: &str = "/keys/";

/// What a route asks for, which decides how it is admitted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    /// Documents, which are compressed.
    Read,
    /// Endless answers.
    Follow,
    Queues,
    Metrics,
    Write,
}

/// Declares the routes: method, path, access and handler.
macro_rules! routes {
    ($($method:ident $path:literal $access:ident $handler:path;)*) => {
        /// The methods and paths.
        #[cfg(test)]
        const ROUTES: &[(&str, &str)] = &[$((stringify!($method), $path)),*];

        fn with_access(access: Access, base: &str) -> Router<Arc<Serving>> {
            let mut router = Router::new();
            $(if access == Access::$access {
                let route = on(MethodFilter::$method, $handler);
                router = router.route(&format!("{base}{}", $path), route);
            })*
            with_shadowed(access, base, router)
        }
    };
}

routes! {
    GET "/keys" Read entries::list;
    POST "/keys/list" Read entries::list_in_body;
    POST "/keys/batch" Read entries::batch;
    GET "/keys/count" Read entries::count;
    GET "/keys/paginate" Read entries::paginate;
    GET "/keys/{*path}" Read entries::get;
    PUT "/keys/{*path}" Write entries::put;
    DELETE "/keys/{*path}" Write deletion::delete;
    POST "/keys/delete-batch" Write deletion::delete_batch;
    POST "/atomic" Write atomic::atomic;
    POST "/queue/enqueue" Write queue::enqueue;
    GET "/queue/poll" Write queue::poll;
    GET "/queue/listen" Write queue::listen;
    POST "/queue/ack" Write queue::ack;
    POST "/queue/nack" Write queue::nack;
    GET "/queue/stats" Queues queue::stats;
    GET "/queue/dlq" Queues dlq::list;
    DELETE "/queue/dlq" Write dlq::purge;
    GET "/queue/dlq/{id}" Queues dlq::get;
    DELETE "/queue/dlq/{id}" Write dlq::delete;
    POST "/queue/dlq/{id}/requeue" Write dlq::requeue;
    GET "/watch" Follow watch::follow;
    GET "/watch/poll" Read watch::poll;
    GET "/watch/prefix" Follow prefix::follow;
    GET "/watch/prefix/poll" Read prefix::poll;
    GET "/indexes" Read indexes::list;
    POST "/indexes" Write indexes::create;
    DELETE "/indexes" Write indexes::remove;
    GET "/search" Read search::by_query;
    POST "/search" Read search::search;
    GET "/metrics" Metrics metrics::json;
    GET "/metrics/prometheus" Metrics metrics::prometheus;
}

/// Keys of entries whose paths are those of other routes, with other methods.
const SHADOWED: [&str; 5] = ["list", "batch", "delete-batch", "count", "paginate"];

/// Adds the entries of these keys.
fn with_shadowed(access: Access, base: &str, router: Router<Arc<Serving>>) -> Router<Arc<Serving>> {
    SHADOWED.into_iter().fold(router, |router, name| {
        let path = format!("{base}{ENTRY}{name}");
        match access {
            Access::Read if !["count", "paginate"].contains(&name) => {
                router.route(&path, on(MethodFilter::GET, entries::get))
            }
            Access::Write => router
                .route(&path, on(MethodFilter::PUT, entries::put))
                .route(&path, on(MethodFilter::DELETE, deletion::delete)),
            Access::Read | Access::Follow | Access::Queues | Access::Metrics => router,
        }
    })
}

/// The routes of a server.
pub(super) fn router(serving: &Arc<Serving>) -> Router<Arc<Serving>> {
    let base = if serving.catalog.is_folder() { "/{database}/keyval/api" } else { BASE };
    let compression =
        || CompressionLayer::new().compress_when(SizeAbove::new(HTTP_COMPRESS_BYTES_MIN));
    let admits = |asks| from_fn_with_state((serving.clone(), asks), admit::admitted);
    let reads = with_access(Access::Read, base).layer(compression());
    let reads = reads.merge(with_access(Access::Follow, base)).route_layer(admits(Asks::Read));
    let queues = with_access(Access::Queues, base).layer(compression());
    let queues = queues.route_layer(admits(Asks::ReadQueues));
    let metrics = with_access(Access::Metrics, base).route_layer(admits(Asks::Metrics));
    let writes = with_access(Access::Write, base).route_layer(admits(Asks::Write));
    let all = reads.merge(queues).merge(metrics).merge(writes);
    all.method_not_allowed_fallback(not_allowed).layer(map_response(answer::as_keyval))
}

/// The answer to a path below the base that has no route; `None` for other paths.
pub(super) fn unknown(serving: &Serving, path: &str) -> Option<Response> {
    let path = match serving.catalog.is_folder() {
        true => path.get(1..).and_then(|path| path.find('/').and_then(|at| path.get(at..)))?,
        false => path,
    };
    let rest = path.strip_prefix(BASE).filter(|rest| rest.is_empty() || rest.starts_with('/'))?;
    let problem = match rest {
        ENTRY => Problem::bad_request(keys::EMPTY_PATH),
        _ => Problem::new(StatusCode::NOT_FOUND, "There is no such route: see docs/keyval.md."),
    };
    Some(answer::of_problem(&problem))
}

async fn not_allowed(State(serving): State<Arc<Serving>>, request: Request) -> Response {
    let text = "The route has no such method: see docs/keyval.md.";
    let problem = match host::check(&serving, &request.into_parts().0) {
        Ok(()) => Problem::new(StatusCode::METHOD_NOT_ALLOWED, text),
        Err(refusal) => refusal.into(),
    };
    problem.into_response()
}
