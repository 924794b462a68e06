//! Completes views once the whole value is decoded. A view is stored as its own bytes if no other
//! node refers to its buffer and the buffer cannot grow.

use crate::model::{Buffer, Node, NodeId, Value, ViewClass, Window};

/// The buffers and views of a value.
#[derive(Default)]
pub(super) struct Buffers {
    /// Each buffer and the number of its uses, in ascending order of ids.
    buffers: Vec<(NodeId, u32)>,
    views: Vec<NodeId>,
}

impl Buffers {
    pub(super) fn add(&mut self, id: NodeId) {
        self.buffers.push((id, 0));
    }

    /// Counts a use of the buffer, by itself or by a view.
    pub(super) fn used(&mut self, id: NodeId) {
        if let Ok(at) = self.buffers.binary_search_by_key(&id, |entry| entry.0)
            && let Some(entry) = self.buffers.get_mut(at)
        {
            entry.1 += 1;
        }
    }

    pub(super) fn viewed(&mut self, id: NodeId) {
        self.views.push(id);
    }

    /// Stores every view alone that can be. `root` is the node read as the whole value.
    pub(super) fn finish(self, value: &mut Value, root: NodeId) {
        for id in self.views {
            let Some(Node::Window(window)) = value.node(id) else { continue };
            let at = self.buffers.binary_search_by_key(&window.buffer, |entry| entry.0);
            let uses = at.ok().and_then(|at| self.buffers.get(at)).map_or(0, |entry| entry.1);
            let Some(Node::Buffer(buffer)) = value.node(window.buffer) else { continue };
            if uses == 1
                && let Some(bytes) = alone(window, buffer)
            {
                let view = Node::View(window.class, bytes);
                if id == root {
                    let place = value.root_id();
                    value.set(place, view.clone());
                }
                value.set(id, view);
            }
        }
    }
}

fn alone(window: &Window, buffer: &Buffer) -> Option<Box<[u8]>> {
    if buffer.max_bytes.is_some() {
        return None;
    }
    let start = usize::try_from(window.offset_bytes).ok()?;
    let element = match window.class {
        ViewClass::DataView => 1,
        class => class.element_bytes(),
    };
    let len = usize::try_from(window.length?).ok()?.checked_mul(element)?;
    Some(buffer.bytes.get(start..start.checked_add(len)?)?.into())
}
