//! Merges one value into another and preserves the identity of its objects.

use super::tree::{Node, NodeId, Value};

impl Value {
    /// Adds all nodes of another value and returns the new id of its root. They become part of this
    /// value once one of its nodes refers to them.
    pub fn absorb(&mut self, other: Self) -> NodeId {
        let offset = self.nodes.len();
        let moved = |id: NodeId| NodeId(id.0 + offset);
        self.nodes.extend(other.nodes.into_iter().map(|node| renamed(node, &moved)));
        NodeId(offset)
    }
}

fn renamed(node: Node, moved: &impl Fn(NodeId) -> NodeId) -> Node {
    let all = |ids: Vec<NodeId>| ids.into_iter().map(moved).collect();
    match node {
        Node::Object(entries) => {
            Node::Object(entries.into_iter().map(|(name, id)| (name, moved(id))).collect())
        }
        Node::SparseArray { length, entries } => {
            let entries = entries.into_iter().map(|(name, id)| (name, moved(id))).collect();
            Node::SparseArray { length, entries }
        }
        Node::Array(items) => Node::Array(all(items)),
        Node::Set(items) => Node::Set(all(items)),
        Node::Map(pairs) => {
            Node::Map(pairs.into_iter().map(|(key, item)| (moved(key), moved(item))).collect())
        }
        Node::Error(mut error) => {
            error.cause = error.cause.map(moved);
            Node::Error(error)
        }
        Node::Window(mut window) => {
            window.buffer = moved(window.buffer);
            Node::Window(window)
        }
        Node::Undefined
        | Node::Null
        | Node::Bool(_)
        | Node::Number(_)
        | Node::BigInt(_)
        | Node::String(_)
        | Node::Date(_)
        | Node::RegExp(_)
        | Node::Boxed(_)
        | Node::DomException(_)
        | Node::Buffer(_)
        | Node::View(..)
        | Node::Blob(_) => node,
    }
}
