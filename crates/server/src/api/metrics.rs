//! Metrics: of a database as JSON or as Prometheus' text, and of all databases of the server.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use hyper::StatusCode;
use hyper::header::{ACCEPT, HeaderMap};
use hyper::http::request::Parts;

use super::admit::{Admitted, authorized};
use super::body::json;
use super::problem::{Answered, Problem};
use crate::answer::{Answer, answer, whole};
use crate::auth::Rights;
use crate::data::store_of;
use crate::pending::Pending;
use crate::{Serving, admin};
use openkv_core::model::Result;
use openkv_store::Store;
use openkv_store::metrics::{MetricsSnapshot, exposition, exposition_of_many, open_metrics};

const TEXT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
const OPEN_METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The metrics of the database.
#[utoipa::path(get, path = "/metrics", tag = "operation", operation_id = "metrics",
    responses((status = 200, description = "The counters, as `kv.metrics()` has them, without `slowest` for a \
        token with the rights `metrics`.", body = Object)))]
pub(super) async fn of_database(client: Extension<Admitted>) -> Answered {
    let store = store_of(&client.database).await?;
    let mut snapshot = snapshot(&store).await?;
    // It has keys.
    if client.grant.rights < Rights::Read {
        snapshot.slowest = None;
    }
    json(&snapshot)
}

/// The metrics of the database as Prometheus' text, or OpenMetrics.
#[utoipa::path(get, path = "/metrics/prometheus", tag = "operation",
    operation_id = "metricsOfPrometheus",
    responses((status = 200, description = "Prometheus' text.", content_type = "text/plain",
        body = String)))]
pub(super) async fn prometheus(client: Extension<Admitted>, request: Request) -> Answered {
    let store = store_of(&client.database).await?;
    Ok(exposed(request.headers(), exposition(&snapshot(&store).await?)?))
}

/// The metrics of all databases of the server that are open.
pub(super) async fn of_server(State(serving): State<Arc<Serving>>, request: Request) -> Response {
    let (head, _) = request.into_parts();
    match all(&serving, &head).await {
        Ok(answer) => answer.into_response(),
        Err(problem) => problem.into_response(),
    }
}

async fn all(serving: &Arc<Serving>, head: &Parts) -> Answered {
    if serving.catalog.is_folder() {
        admin::authorize_metrics(serving, head).await?;
    } else {
        authorized(serving, head).await?;
    }
    let mut snapshots = Vec::new();
    let mut archives = Vec::new();
    for database in serving.catalog.all() {
        let name = database.name.clone();
        if let Some(store) = database.open_store() {
            snapshots.push((name, snapshot(&store).await?));
        } else if let Some(figures) = serving.archives.figures(&database) {
            archives.push((name, figures));
        }
    }
    Ok::<_, Problem>(exposed(&head.headers, exposition_of_many(&snapshots, &archives)?))
}

pub(crate) async fn snapshot(store: &Store) -> Result<MetricsSnapshot> {
    Pending::of(|reply| store.metrics_snapshot(reply)).await
}

/// Prometheus' text, or OpenMetrics for a client that names it.
fn exposed(headers: &HeaderMap, text: String) -> Answer {
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    match accept.contains("application/openmetrics-text") {
        true => answer(StatusCode::OK, OPEN_METRICS_TYPE, whole(open_metrics(&text))),
        false => answer(StatusCode::OK, TEXT_TYPE, whole(text)),
    }
}
