//! Explanations of lists: the ranges and indexes that a list reads, and how many entries.

use axum::Extension;
use axum::extract::Request;
use serde::Serialize;
use utoipa::ToSchema;

use super::admit::Admitted;
use super::body::{json, json_body};
use super::entries::explained;
use super::list::{ListBody, ListRequest, limit_of};
use super::problem::Answered;
use openkv_core::index::{Explanation, Method, PathBounds, ReadBranch};

/// How a list finds its entries.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum MethodBody {
    /// By value indexes.
    Index,
    /// By their keys.
    Scan,
    /// By their keys, or by value indexes for `where`, and sorts them in memory.
    Sort,
}

/// The values under a path that a list reads.
#[derive(Serialize, ToSchema)]
struct ExplainedBounds {
    path: String,
    /// Values and ranges of values, in words.
    ranges: Vec<String>,
}

/// What a list reads of an index.
#[derive(Serialize, ToSchema)]
struct ExplainedBranch {
    /// The name of the index.
    index: String,
    /// The first paths of the index. None: the whole index is read.
    bounds: Vec<ExplainedBounds>,
}

/// What a list reads, and how much.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Explanation)]
pub(super) struct ExplanationBody {
    method: MethodBody,
    /// What is read of value indexes.
    branches: Vec<ExplainedBranch>,
    /// Why no index is read, or with `sort` why none has the order; `null` if one does all, or if nothing asks for one.
    reason: Option<String>,
    /// Entries of indexes that were read.
    index_entries: u64,
    /// Entries that were read.
    visited: u64,
    /// Those of them that do not match.
    filtered: u64,
    /// Entries that the list has.
    returned: u64,
    /// False if the explanation ended before the list: the numbers are those until then.
    complete: bool,
}

impl ExplanationBody {
    fn of(explanation: Explanation) -> Self {
        let Explanation { method, branches, reason, is_complete, .. } = explanation;
        let Explanation { index_entries, visited, filtered, returned, .. } = explanation;
        let bounds = |PathBounds { path, ranges }| ExplainedBounds { path, ranges };
        let branch = |ReadBranch { index, bounds: of }| {
            let bounds = of.into_iter().map(bounds).collect();
            ExplainedBranch { index, bounds }
        };
        let method = match method {
            Method::Index => MethodBody::Index,
            Method::Scan => MethodBody::Scan,
            Method::Sort => MethodBody::Sort,
        };
        let branches = branches.into_iter().map(branch).collect();
        let complete = is_complete;
        Self { method, branches, reason, index_entries, visited, filtered, returned, complete }
    }
}

/// Explains a list: carries it out without answering its entries, and tells what it reads.
#[utoipa::path(post, path = "/keys/explain", tag = "lists", operation_id = "explain",
    request_body = ListBody,
    responses((status = 200, description = "What the list reads.", body = ExplanationBody)))]
pub(super) async fn explain(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, body) = request.into_parts();
    let (_, body) = json_body::<ListBody>(&client, &head, body).await?;
    let ListRequest { selection, order, .. } = ListRequest::of(&body)?;
    let limit = limit_of(body.limit())?;
    json(&ExplanationBody::of(explained(&client, &selection, &order, limit).await?))
}
