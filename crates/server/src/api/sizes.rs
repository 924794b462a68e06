//! Sizes by prefix: the entries and the bytes below each prefix of so many parts, a part of the range at each request.
//!
//! Invariant: a request reads at most [`HTTP_SIZES_ENTRIES_MAX`] entries, in steps, so a client can stop between any
//! two requests, and adds up what several of them say about one prefix.

use std::sync::Arc;
use std::time::Instant;

use axum::Extension;
use axum::extract::Request;
use serde::Serialize;
use utoipa::ToSchema;

use super::admit::Admitted;
use super::body::json;
use super::list::{Range, depth_of};
use super::problem::Answered;
use super::range::Bounds;
use super::schema::Depth;
use super::target::Query;
use crate::data::store_of;
use crate::memory::{Claim, attempt};
use crate::pending::{Reading, Wanted};
use openkv_core::codec::key::cut;
use openkv_core::interchange::key_literal;
use openkv_core::model::{
    Error, FRAMES_ANSWER_BYTES_MAX, HTTP_SIZES_ENTRIES_MAX, HTTP_SIZES_PREFIXES_MAX,
    HTTP_SIZES_STEP_ENTRIES, Result, Seen,
};
use openkv_store::metrics::Operation;
use openkv_store::{Room, Scan, Store};

const NAMES: &[&str] = &["prefix", "depth", "cursor"];

/// What is below a prefix, in the part of the range that was read.
#[derive(Serialize, ToSchema)]
#[schema(as = PrefixSize)]
struct SizeBody {
    /// A key, as a literal.
    prefix: String,
    /// Entries.
    entries: u64,
    /// Bytes of their keys and values, as they are stored.
    bytes: u64,
}

/// The sizes of the prefixes in a part of a range, in the order of their keys.
#[derive(Serialize, ToSchema)]
#[schema(as = PrefixSizes)]
pub(super) struct SizesBody {
    prefixes: Vec<SizeBody>,
    /// Where the rest of the range begins; `null` at its end. The first prefix of the rest may be the last one here.
    cursor: Option<String>,
}

/// Tells entries and bytes of each prefix of a range.
#[utoipa::path(get, path = "/sizes", tag = "lists", operation_id = "sizes",
    params(
        ("prefix" = Option<String>, Query, description = "A key, as a literal."),
        ("depth" = inline(Option<Depth>), Query, description = "Parts of a prefix behind `prefix`, by default 1."),
        ("cursor" = Option<String>, Query, description = "Where the part before this one ended."),
    ),
    responses((status = 200, description = "The sizes of the prefixes in a part of the range.", body = SizesBody)))]
pub(super) async fn sizes(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, _) = request.into_parts();
    let query = Query::of(&head.uri, NAMES)?;
    let depth = depth_of(query.number("depth")?)?.unwrap_or(1);
    let whole = Range::of_query(&query)?.bounds()?;
    let mut rest = whole.clone();
    if let Some(cursor) = query.get("cursor").filter(|cursor| !cursor.is_empty()) {
        rest.resume(cursor, false)?;
    }
    let store = store_of(&client.database).await?;
    let claim = client.database.memory.claim(FRAMES_ANSWER_BYTES_MAX);
    let since = Instant::now();
    let read = attempt!(claim, measured(&store, &claim, &rest, depth).await)?;
    let about = || rest.subject();
    store.metrics().answered(Operation::List, (1, read.is_ok()), since, about);
    let (groups, last) = read?;
    let prefixes = groups.into_iter().map(|Group { prefix, entries, bytes }| SizeBody {
        prefix: key_literal::print(&prefix),
        entries,
        bytes,
    });
    let cursor = last.map(|key| whole.cursor(&key));
    json(&SizesBody { prefixes: prefixes.collect(), cursor })
}

/// What is below a prefix.
struct Group {
    prefix: Vec<u8>,
    entries: u64,
    bytes: u64,
}

/// The groups so far, and the last key that was read.
struct Measuring {
    claim: Arc<Claim>,
    /// Bytes of the common prefix, and parts behind it.
    level: (usize, usize),
    groups: Vec<Group>,
    entries: usize,
    last: Vec<u8>,
    /// Bytes of the prefixes.
    held: usize,
    fault: Option<Error>,
}

impl Measuring {
    fn take(&mut self, seen: &Seen<'_>) {
        let (key, bytes) = (seen.row.key, seen.row.key.len() + seen.row.value.len());
        let prefix = cut(key, self.level.0, self.level.1).unwrap_or(key);
        self.entries += 1;
        self.last.clear();
        self.last.extend_from_slice(key);
        match self.groups.last_mut() {
            Some(group) if group.prefix == prefix => {
                group.entries += 1;
                group.bytes += bytes as u64;
            }
            _ => {
                self.held += prefix.len();
                self.fault = self.fault.take().or_else(|| self.claim.holds(self.held).err());
                self.groups.push(Group {
                    prefix: prefix.to_vec(),
                    entries: 1,
                    bytes: bytes as u64,
                });
            }
        }
    }

    fn end<T>(self, read: Result<T>) -> Result<(Self, T)> {
        let Self { fault: None, .. } = self else {
            return Err(self.fault.unwrap_or_else(Error::closed));
        };
        read.map(|done| (self, done))
    }
}

/// The groups of a part of the range, and its last key if there is more.
async fn measured(
    store: &Store,
    claim: &Arc<Claim>,
    bounds: &Bounds,
    depth: usize,
) -> Result<(Vec<Group>, Option<Vec<u8>>)> {
    let wanted = Wanted::new();
    let patience = wanted.patience(store, "sizes");
    let range = Scan::of_range(bounds.start.clone(), bounds.end.clone());
    let mut scan = Scan { values: true, ..range };
    let mut measuring = Measuring {
        claim: claim.clone(),
        level: (bounds.common, depth),
        groups: Vec::new(),
        entries: 0,
        last: Vec::new(),
        held: 0,
        fault: None,
    };
    loop {
        let rows =
            HTTP_SIZES_STEP_ENTRIES.min(HTTP_SIZES_ENTRIES_MAX.saturating_sub(measuring.entries));
        let (reading, answer) = Reading::new(measuring, Measuring::end);
        store.scan(scan, rows, patience.clone(), reading, |to, seen, _| {
            to.state.take(seen);
        });
        let (state, (rest, done)) = answer.await?;
        (measuring, scan) = (state, rest);
        let is_enough = measuring.entries >= HTTP_SIZES_ENTRIES_MAX
            || measuring.groups.len() >= HTTP_SIZES_PREFIXES_MAX;
        if done || is_enough {
            let Measuring { groups, last, .. } = measuring;
            return Ok((groups, (!done).then_some(last)));
        }
        patience.check()?;
    }
}
