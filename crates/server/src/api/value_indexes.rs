//! Value indexes in documents.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::body::shown_key;
use super::order::Direction;
use super::problem::Problem;
use crate::data::{Client, has_room, store_of};
use crate::pending::Pending;
use crate::request::Object;
use openkv_core::model::{OrderPath, Result, ValueIndexInfo, ValueIndexRequest, ValueIndexState};

/// The paths of an index.
#[derive(Deserialize, ToSchema)]
#[serde(
    untagged,
    expecting = "on: a path, or an array of paths or {\"path\":\"joined\",\"order\":\"desc\"}"
)]
#[schema(as = IndexPaths)]
pub(super) enum Paths {
    One(PathBody),
    Several(Vec<PathBody>),
}

/// A path, or with its order.
#[derive(Deserialize, ToSchema)]
#[serde(untagged)]
#[schema(as = IndexPath)]
pub(super) enum PathBody {
    Path(String),
    // As an array it would be two paths.
    #[schema(value_type = OrderedPath)]
    Ordered(Object<OrderedPath>),
}

/// A path with its order.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OrderedPath {
    path: String,
    /// `asc` or `desc`.
    order: Direction,
}

impl Paths {
    pub(super) fn into_paths(self) -> Vec<OrderPath> {
        let paths = match self {
            Self::One(path) => vec![path],
            Self::Several(paths) => paths,
        };
        let path = |path| match path {
            PathBody::Path(path) => Direction::Asc.path(path),
            PathBody::Ordered(Object(OrderedPath { path, order })) => order.path(path),
        };
        paths.into_iter().map(path).collect()
    }
}

/// Why a unique index could not be built.
#[derive(Serialize, ToSchema)]
struct IndexFailure {
    /// The entry that does not fit.
    #[schema(value_type = Vec<serde_json::Value>)]
    key: Box<RawValue>,
    /// The entry with the same value; `null` if the value itself cannot be unique.
    #[schema(value_type = Option<Vec<serde_json::Value>>)]
    other: Option<Box<RawValue>>,
}

/// A value index.
#[derive(Serialize, ToSchema)]
pub(super) struct ValueIndex {
    name: String,
    #[schema(value_type = Vec<serde_json::Value>)]
    prefix: Box<RawValue>,
    on: Vec<OrderedPath>,
    unique: bool,
    multi: bool,
    sparse: bool,
    /// `building` while entries older than the index are being added, then `ready`; `failed` if two of them have one
    /// value of a unique index, or one has a value that cannot be unique.
    state: &'static str,
    /// The number of such entries that were read.
    indexed: u64,
    /// Of a failed index.
    failure: Option<IndexFailure>,
}

impl ValueIndex {
    fn of(ValueIndexInfo { spec, state, scanned, .. }: ValueIndexInfo) -> Result<Self> {
        let failure = match &state {
            ValueIndexState::Failed(failure) => Some(IndexFailure {
                key: shown_key(&failure.key)?,
                other: failure.other.as_ref().map(shown_key).transpose()?,
            }),
            ValueIndexState::Building | ValueIndexState::Ready => None,
        };
        let path = |on: OrderPath| OrderedPath { order: Direction::of(&on), path: on.path };
        Ok(Self {
            name: spec.name,
            prefix: shown_key(&spec.prefix)?,
            on: spec.on.into_iter().map(path).collect(),
            unique: spec.unique,
            multi: spec.multi,
            sparse: spec.sparse,
            state: match state {
                ValueIndexState::Building => "building",
                ValueIndexState::Ready => "ready",
                ValueIndexState::Failed(_) => "failed",
            },
            indexed: scanned,
            failure,
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

/// Creates a value index.
pub(super) async fn made(
    client: &Client,
    request: ValueIndexRequest,
) -> Result<ValueIndex, Problem> {
    request.spec.check()?;
    has_room(&client.database).await?;
    let store = store_of(&client.database).await?;
    let made = Pending::of(|reply| store.create_value_index(request, reply)).await?;
    Ok(ValueIndex::of(made)?)
}

/// The value indexes of the database.
pub(super) async fn all(client: &Client) -> Result<Vec<ValueIndex>, Problem> {
    let store = store_of(&client.database).await?;
    let found = Pending::of(|reply| store.value_indexes(reply)).await?;
    Ok(found.into_iter().map(ValueIndex::of).collect::<Result<_>>()?)
}

/// The default name: that of the prefix, and the paths, as `kv.createIndex` makes it.
pub(super) fn name_of(prefix: &str, on: &[OrderPath]) -> String {
    let spelled = |on: &OrderPath| match on.descending {
        true => format!("-{}", on.path),
        false => on.path.clone(),
    };
    let paths: Vec<_> = on.iter().map(spelled).collect();
    format!("{prefix} by {}", paths.join(", "))
}
