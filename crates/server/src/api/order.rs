//! The order of a list in a body, and cursors of lists in it, which are those of `kv.list`.

use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use super::problem::Problem;
use openkv_core::model::OrderPath;

/// The order of the values under a path.
#[derive(Clone, Copy, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Direction {
    Asc,
    Desc,
}

impl Direction {
    pub(super) fn of(path: &OrderPath) -> Self {
        if path.descending { Self::Desc } else { Self::Asc }
    }

    pub(super) fn path(self, path: String) -> OrderPath {
        OrderPath { path, descending: matches!(self, Self::Desc) }
    }
}

/// A path, or an object of paths with their orders, whose members are in the order of their importance.
pub(super) struct OrderBody(pub(super) Vec<OrderPath>);

impl<'de> Deserialize<'de> for OrderBody {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OfOrder)
    }
}

struct OfOrder;

impl<'de> Visitor<'de> for OfOrder {
    type Value = OrderBody;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(r#"orderBy: a path, or an object such as {"createdAt":"desc"}"#)
    }

    fn visit_str<E>(self, path: &str) -> Result<OrderBody, E> {
        Ok(OrderBody(vec![Direction::Asc.path(path.to_owned())]))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OrderBody, A::Error> {
        let mut paths = Vec::new();
        while let Some((path, direction)) = map.next_entry::<String, Direction>()? {
            paths.push(direction.path(path));
        }
        match paths.is_empty() {
            false => Ok(OrderBody(paths)),
            true => Err(serde::de::Error::custom("orderBy names no path")),
        }
    }
}

/// The position in a cursor.
pub(super) fn position_of(cursor: &str) -> Result<Vec<u8>, Problem> {
    BASE64_URL_SAFE.decode(cursor).map_err(|_| Problem::wrong_cursor(cursor))
}

/// The cursor of a position.
pub(super) fn cursor_of(position: &[u8]) -> String {
    BASE64_URL_SAFE.encode(position)
}
