//! Value → bytes.
//!
//! Two walks, each with an explicit stack: the first counts the occurrences of objects, the second
//! writes.

use super::head::{TAG_MAP, TAG_SET, TAG_SHAREABLE, TAG_SHARED, Writer};
use super::number::write_bigint;
use super::special::{self, write_name};
use super::view;
use crate::codec::deeper;
use crate::model::{Error, ErrorProperties, JsString, Node, NodeId, Result, Value, Window};

/// Encodes a value to the bytes that JavaScript would write for it.
///
/// A tree that no JavaScript value has (a duplicate property name, a `Date` out of range) is
/// written as it is; [`decode`](super::decode) rejects it.
///
/// # Errors
/// `Range` if it is nested beyond [`VALUE_DEPTH_MAX`](crate::model::VALUE_DEPTH_MAX) levels; `Invalid` if a node refers to an id
/// outside this value, or a [`Window`] to a node that is no buffer.
pub fn encode(value: &Value) -> Result<Vec<u8>> {
    let sharing = find_shared(value)?;
    let mut encoder =
        Encoder { value, sharing, marks: 0, writer: Writer::new(), tasks: Vec::new() };
    encoder.tasks.push(Task::Node { id: value.root_id(), depth: 0 });
    while let Some(task) = encoder.tasks.pop() {
        match task {
            Task::Name(name) => encoder.writer.string(name),
            Task::Node { id, depth } => encoder.node(id, depth)?,
        }
    }
    Ok(encoder.writer.into_bytes())
}

/// How often an object occurs, and whether it is written.
#[derive(Clone, Copy, PartialEq)]
enum Sharing {
    Unseen,
    Once,
    /// More than once, and not written yet.
    Repeated,
    /// Written as shareable, with this index.
    Marked(u64),
}

fn node_of(value: &Value, id: NodeId) -> Result<&Node> {
    value.node(id).ok_or_else(|| Error::invalid("a node of another value"))
}

/// Counts the occurrences of each node, by index.
fn find_shared(value: &Value) -> Result<Vec<Sharing>> {
    let mut sharing = vec![Sharing::Unseen; value.node_count()];
    let mut waiting = vec![value.root_id()];
    while let Some(id) = waiting.pop() {
        let node = node_of(value, id)?;
        let Some(state) = sharing.get_mut(id.index()) else {
            continue;
        };
        if *state != Sharing::Unseen {
            *state = Sharing::Repeated;
            continue;
        }
        *state = Sharing::Once;
        match node {
            Node::Array(items) | Node::Set(items) => waiting.extend(items),
            Node::Object(entries) | Node::SparseArray { entries, .. } => {
                waiting.extend(entries.iter().map(|(_, id)| id));
            }
            Node::Map(entries) => waiting.extend(entries.iter().flat_map(|(key, id)| [key, id])),
            Node::Error(error) => waiting.extend(error.cause),
            Node::Window(window) => waiting.push(window.buffer),
            _ => {}
        }
    }
    Ok(sharing)
}

/// Pending work; the last element is next.
enum Task<'v> {
    Name(&'v JsString),
    /// A node inside `depth` containers.
    Node {
        id: NodeId,
        depth: usize,
    },
}

struct Encoder<'v> {
    value: &'v Value,
    sharing: Vec<Sharing>,
    /// The number of objects written as shareable.
    marks: u64,
    writer: Writer,
    tasks: Vec<Task<'v>>,
}

impl<'v> Encoder<'v> {
    /// Writes a node up to its first child.
    fn node(&mut self, id: NodeId, depth: usize) -> Result<()> {
        let node = node_of(self.value, id)?;
        if !node.is_primitive() && self.wrote_reference(id) {
            return Ok(());
        }
        let writer = &mut self.writer;
        match node {
            Node::Undefined => writer.undefined(),
            Node::Null => writer.null(),
            Node::Bool(b) => writer.bool(*b),
            Node::Number(n) => writer.number(*n),
            Node::BigInt(n) => write_bigint(writer, n),
            Node::String(string) => writer.string(string),
            Node::Date(ms) => special::write_date(writer, *ms),
            Node::RegExp(regexp) => special::write_regexp(writer, regexp),
            Node::Boxed(boxed) => special::write_boxed(writer, boxed),
            Node::DomException(exception) => special::write_dom_exception(writer, exception),
            Node::Blob(blob) => special::write_blob(writer, blob),
            Node::Buffer(buffer) => special::write_buffer(writer, buffer),
            Node::View(class, bytes) => view::write_alone(writer, *class, bytes),
            Node::Window(window) => self.window(window)?,
            Node::Array(items) => {
                writer.array(items.len());
                self.items(items, depth)?;
            }
            Node::Set(items) => {
                writer.tag(TAG_SET);
                writer.array(items.len());
                self.items(items, depth)?;
            }
            Node::Map(entries) => {
                writer.tag(TAG_MAP);
                writer.map(entries.len());
                let depth = deeper(depth)?;
                let both = entries.iter().rev().flat_map(|(key, item)| [*item, *key]);
                self.tasks.extend(both.map(|id| Task::Node { id, depth }));
            }
            Node::Object(entries) => self.properties(entries, depth)?,
            Node::SparseArray { length, entries } => {
                write_name(writer, "Array", 3);
                writer.count(u64::from(*length));
                self.properties(entries, depth)?;
            }
            Node::Error(error) => self.error(error, depth)?,
        }
        Ok(())
    }

    /// If the object was written before, writes a reference and returns true. Otherwise writes its
    /// mark, if it occurs again.
    fn wrote_reference(&mut self, id: NodeId) -> bool {
        let Some(sharing) = self.sharing.get_mut(id.index()) else {
            return false;
        };
        match *sharing {
            Sharing::Marked(index) => {
                self.writer.tag(TAG_SHARED);
                self.writer.count(index);
                return true;
            }
            Sharing::Repeated => {
                self.writer.tag(TAG_SHAREABLE);
                *sharing = Sharing::Marked(self.marks);
                self.marks += 1;
            }
            Sharing::Unseen | Sharing::Once => {}
        }
        false
    }

    fn items(&mut self, items: &[NodeId], depth: usize) -> Result<()> {
        let depth = deeper(depth)?;
        self.tasks.extend(items.iter().rev().map(|&id| Task::Node { id, depth }));
        Ok(())
    }

    fn properties(&mut self, entries: &'v [(JsString, NodeId)], depth: usize) -> Result<()> {
        let depth = deeper(depth)?;
        self.writer.map(entries.len());
        let both =
            |(name, id): &'v (JsString, NodeId)| [Task::Node { id: *id, depth }, Task::Name(name)];
        self.tasks.extend(entries.iter().rev().flat_map(both));
        Ok(())
    }

    fn error(&mut self, error: &ErrorProperties, depth: usize) -> Result<()> {
        let depth = deeper(depth)?;
        let texts = [("message", &error.message), ("stack", &error.stack)];
        let count = texts.iter().filter(|(_, text)| text.is_some()).count();
        write_name(&mut self.writer, error.name.name(), 2);
        self.writer.map(count + usize::from(error.cause.is_some()));
        for (name, text) in texts {
            if let Some(text) = text {
                self.writer.text(name);
                self.writer.string(text);
            }
        }
        if let Some(id) = error.cause {
            self.writer.text("cause");
            self.tasks.push(Task::Node { id, depth });
        }
        Ok(())
    }

    fn window(&mut self, window: &Window) -> Result<()> {
        let Node::Buffer(buffer) = node_of(self.value, window.buffer)? else {
            return Err(Error::invalid("a view of a node that is no buffer"));
        };
        view::write_class(&mut self.writer, window);
        if !self.wrote_reference(window.buffer) {
            special::write_buffer(&mut self.writer, buffer);
        }
        view::write_place(&mut self.writer, window);
        Ok(())
    }
}
