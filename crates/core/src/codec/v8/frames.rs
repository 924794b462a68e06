//! Containers whose values are still being decoded.

use std::cmp::Ordering;

use crate::model::{ErrorProperties, JsString, Node, NodeId, Value};

/// A container with more to come.
pub(super) struct Frame {
    /// The node of the container.
    pub(super) id: NodeId,
    pub(super) kind: Kind,
}

/// The values read so far.
pub(super) enum Kind {
    Object {
        entries: Vec<(JsString, NodeId)>,
        name: Option<JsString>,
    },
    /// Elements first, then further properties.
    Dense {
        length: u32,
        items: Vec<NodeId>,
        beside: Vec<(JsString, NodeId)>,
        name: Option<JsString>,
    },
    Sparse {
        length: u32,
        entries: Vec<(JsString, NodeId)>,
        name: Option<JsString>,
    },
    Map {
        entries: Vec<(NodeId, NodeId)>,
        key: Option<NodeId>,
    },
    Set(Vec<NodeId>),
    Error(ErrorProperties),
    /// An object of Deno's, with the record that describes it.
    Host(Option<NodeId>),
}

const TWICE: &str = "invalid value: key that occurs twice";

/// The properties of an object or array, indexes first and ascending, as JavaScript has them.
pub(super) fn properties(
    mut entries: Vec<(JsString, NodeId)>,
) -> Result<Vec<(JsString, NodeId)>, &'static str> {
    if has_duplicates(&entries, |a, b| a.0.as_wtf8().cmp(b.0.as_wtf8())) {
        return Err(TWICE);
    }
    // All known writers have them in order already.
    let rank = |entry: &(JsString, NodeId)| entry.0.as_array_index().map_or(u64::MAX, u64::from);
    if !entries.is_sorted_by_key(rank) {
        entries.sort_by_key(rank);
    }
    Ok(entries)
}

pub(super) fn map(value: &Value, entries: Vec<(NodeId, NodeId)>) -> Result<Node, &'static str> {
    if has_duplicates(&entries, |a, b| compare(value, a.0, b.0)) {
        return Err(TWICE);
    }
    Ok(Node::Map(entries))
}

pub(super) fn set(value: &Value, items: Vec<NodeId>) -> Result<Node, &'static str> {
    if has_duplicates(&items, |a, b| compare(value, *a, *b)) {
        return Err(TWICE);
    }
    Ok(Node::Set(items))
}

/// An array in its canonical form: [`Node::Array`] unless it has holes or further properties.
pub(super) fn array(length: u32, entries: Vec<(JsString, NodeId)>) -> Result<Node, &'static str> {
    let entries = properties(entries)?;
    let indexes = entries.iter().take_while(|(name, _)| name.as_array_index().is_some()).count();
    let last = indexes.checked_sub(1).and_then(|at| entries.get(at));
    if last.and_then(|(name, _)| name.as_array_index()).is_some_and(|last| last >= length) {
        return Err("invalid value: array element beyond its length");
    }
    if entries.iter().any(|(name, _)| name.as_str() == Some("length")) {
        return Err("invalid value: array with two lengths");
    }
    if indexes == length as usize && indexes == entries.len() {
        return Ok(Node::Array(entries.into_iter().map(|(_, id)| id).collect()));
    }
    Ok(Node::SparseArray { length, entries })
}

/// Up to this many are compared pairwise.
const PAIRWISE_MAX: usize = 8;

/// Whether two items are equal. Uses one pointer of memory for each item.
fn has_duplicates<T>(items: &[T], compare: impl Fn(&T, &T) -> Ordering) -> bool {
    if items.len() <= PAIRWISE_MAX {
        let mut rest = items;
        while let Some((first, others)) = rest.split_first() {
            if others.iter().any(|other| compare(first, other) == Ordering::Equal) {
                return true;
            }
            rest = others;
        }
        return false;
    }
    let mut order: Vec<&T> = items.iter().collect();
    order.sort_unstable_by(|a, b| compare(a, b));
    order.is_sorted_by(|a, b| compare(a, b) == Ordering::Less).then_some(()).is_none()
}

/// An order in which keys that JavaScript treats as the same are equal. Keys contain no −0.
fn compare(value: &Value, a: NodeId, b: NodeId) -> Ordering {
    let (Some(left), Some(right)) = (value.node(a), value.node(b)) else { return a.cmp(&b) };
    match (left, right) {
        (Node::Bool(a), Node::Bool(b)) => a.cmp(b),
        (Node::Number(a), Node::Number(b)) => a.total_cmp(b),
        (Node::BigInt(a), Node::BigInt(b)) => a.cmp(b),
        (Node::String(a), Node::String(b)) => a.as_wtf8().cmp(b.as_wtf8()),
        _ if rank(left) != rank(right) => rank(left).cmp(&rank(right)),
        (Node::Undefined, _) | (Node::Null, _) => Ordering::Equal,
        _ => a.cmp(&b),
    }
}

fn rank(node: &Node) -> u8 {
    match node {
        Node::Undefined => 0,
        Node::Null => 1,
        Node::Bool(_) => 2,
        Node::Number(_) => 3,
        Node::BigInt(_) => 4,
        Node::String(_) => 5,
        _ => 6,
    }
}
