//! Containers whose items are still being decoded.

use std::collections::HashSet;

use super::Malformed;
use super::head::Reader;
use crate::model::{ErrorProperties, JsString, Node, NodeId};

/// A container with items still to come.
pub(super) struct Frame<'a> {
    /// The node of the container.
    pub(super) id: NodeId,
    /// The number of items to come; property names do not count.
    left: usize,
    children: Children<'a>,
}

/// The items read so far.
pub(super) enum Children<'a> {
    Array(Vec<NodeId>),
    Set {
        items: Vec<NodeId>,
        met: HashSet<Identity<'a>>,
    },
    Map {
        entries: Vec<(NodeId, NodeId)>,
        /// The key of the value that comes next.
        key: Option<NodeId>,
        met: HashSet<Identity<'a>>,
    },
    Properties {
        /// The array's length, `None` for an object.
        array_length: Option<u32>,
        entries: Vec<(JsString, NodeId)>,
        /// The name of the value that comes next.
        name: JsString,
        met: HashSet<&'a [u8]>,
    },
    Cause(ErrorProperties),
}

/// Equal for two items that a `Map` or `Set` treats as the same.
#[derive(PartialEq, Eq, Hash)]
pub(super) enum Identity<'a> {
    /// Equal primitives have equal bytes.
    Primitive(&'a [u8]),
    Object(NodeId),
    /// Invalid as a key or item: JavaScript stores 0 instead.
    NegativeZero,
}

impl<'a> Frame<'a> {
    pub(super) fn new(id: NodeId, left: usize, children: Children<'a>) -> Self {
        Self { id, left, children }
    }

    pub(super) fn array(id: NodeId, len: usize) -> Self {
        Self::new(id, len, Children::Array(Vec::new()))
    }

    pub(super) fn set(id: NodeId, len: usize) -> Self {
        Self::new(id, len, Children::Set { items: Vec::new(), met: HashSet::new() })
    }

    pub(super) fn map(id: NodeId, len: usize) -> Self {
        let (entries, met) = (Vec::new(), HashSet::new());
        // `Reader::head` has checked that the input has at least `len` bytes left.
        Self::new(id, len.saturating_mul(2), Children::Map { entries, key: None, met })
    }

    pub(super) fn object(id: NodeId, len: usize) -> Self {
        Self::properties(id, None, len)
    }

    pub(super) fn sparse_array(id: NodeId, length: u32, len: usize) -> Self {
        Self::properties(id, Some(length), len)
    }

    fn properties(id: NodeId, array_length: Option<u32>, len: usize) -> Self {
        let (entries, met) = (Vec::new(), HashSet::new());
        let name = JsString::default();
        Self::new(id, len, Children::Properties { array_length, entries, name, met })
    }

    pub(super) fn is_full(&self) -> bool {
        self.left == 0
    }

    /// Reads the property name before the next item, in a frame of properties.
    pub(super) fn read_name(&mut self, reader: &mut Reader<'a>) -> Result<(), Malformed> {
        if let Children::Properties { name, met, .. } = &mut self.children {
            let start = *reader;
            *name = reader.string()?;
            if !met.insert(reader.since(start.at())) {
                return start.fail("invalid value: property that occurs twice");
            }
        }
        Ok(())
    }

    /// Adds an item to the frame.
    pub(super) fn accept(
        &mut self,
        id: NodeId,
        identity: Identity<'a>,
    ) -> Result<(), &'static str> {
        self.left = self.left.saturating_sub(1);
        match &mut self.children {
            Children::Array(items) => items.push(id),
            Children::Set { items, met } => {
                meet(met, identity)?;
                items.push(id);
            }
            Children::Map { entries, key, met } => match key.take() {
                Some(key) => entries.push((key, id)),
                None => {
                    meet(met, identity)?;
                    *key = Some(id);
                }
            },
            Children::Properties { entries, name, .. } => entries.push((std::mem::take(name), id)),
            Children::Cause(error) => error.cause = Some(id),
        }
        Ok(())
    }

    /// The node, once all items are read.
    pub(super) fn into_node(self) -> Result<Node, &'static str> {
        Ok(match self.children {
            Children::Array(items) => Node::Array(items),
            Children::Set { items, .. } => Node::Set(items),
            Children::Map { entries, .. } => Node::Map(entries),
            Children::Properties { array_length: None, entries, .. } => Node::Object(entries),
            Children::Properties { array_length: Some(length), entries, .. } => {
                check_sparse(length, &entries)?;
                Node::SparseArray { length, entries }
            }
            Children::Cause(error) => Node::Error(Box::new(error)),
        })
    }
}

fn meet<'a>(met: &mut HashSet<Identity<'a>>, identity: Identity<'a>) -> Result<(), &'static str> {
    if identity == Identity::NegativeZero {
        return Err("invalid value: −0 as a key");
    }
    if !met.insert(identity) {
        return Err("invalid value: key that occurs twice");
    }
    Ok(())
}

/// Whether the name is an index or `length`, which no further property of an array can have.
fn is_of_arrays(name: &JsString) -> bool {
    name.as_array_index().is_some() || name.as_str() == Some("length")
}

/// Requires indexes first, ascending and below the length, and at least one hole or further
/// property.
fn check_sparse(length: u32, entries: &[(JsString, NodeId)]) -> Result<(), &'static str> {
    let indexes: Vec<u32> = entries.iter().map_while(|(name, _)| name.as_array_index()).collect();
    let beside = entries.get(indexes.len()..).unwrap_or_default();
    let last_fits = indexes.last().is_none_or(|last| *last < length);
    if !last_fits || !indexes.is_sorted() || beside.iter().any(|(name, _)| is_of_arrays(name)) {
        return Err("invalid value: array with a misplaced property");
    }
    if beside.is_empty() && indexes.len() == length as usize {
        return Err("invalid value: array without holes in the form of one with holes");
    }
    Ok(())
}
