//! Value → bytes, in one walk with an explicit stack.

use super::tag;
use super::writer::Writer;
use crate::codec::deeper;
use crate::model::{
    Boxed, Buffer, DomException, Error, ErrorProperties, JsString, Node, NodeId, Result, Value,
    ViewClass, Window,
};

/// Encodes a value in format version 15, with the tags that Deno and every Node read. A
/// `DOMException` is the exception: only Deno reads its record.
///
/// # Errors
/// `Invalid` for a `Blob`, which the format cannot represent, and for a node that refers to an id
/// outside this value; `Range` if it is nested beyond [`VALUE_DEPTH_MAX`](crate::model::VALUE_DEPTH_MAX) levels.
pub fn encode(value: &Value) -> Result<Vec<u8>> {
    let mut encoder = Encoder {
        value,
        ids: vec![None; value.node_count()],
        next_id: 0,
        writer: Writer::with_capacity(0),
        tasks: vec![Task::Node { id: value.root_id(), depth: 0 }],
    };
    while let Some(task) = encoder.tasks.pop() {
        match task {
            Task::Name(name) => encoder.name(name),
            Task::Node { id, depth } => encoder.node(id, depth)?,
            Task::End(tag, first, second) => {
                encoder.writer.byte(tag);
                encoder.writer.varint(first);
                second.into_iter().for_each(|n| encoder.writer.varint(n));
            }
            Task::ErrorEnd => encoder.writer.byte(tag::ERROR_END),
        }
    }
    Ok(encoder.writer.into_bytes())
}

/// Pending work; the last element is next.
enum Task<'v> {
    Name(&'v JsString),
    /// A node inside `depth` containers.
    Node {
        id: NodeId,
        depth: usize,
    },
    /// The end of a container, with its counts.
    End(u8, u64, Option<u64>),
    ErrorEnd,
}

struct Encoder<'v> {
    value: &'v Value,
    /// The reference number of each object, by index of its node.
    ids: Vec<Option<u32>>,
    next_id: u32,
    writer: Writer,
    tasks: Vec<Task<'v>>,
}

impl<'v> Encoder<'v> {
    fn node(&mut self, id: NodeId, depth: usize) -> Result<()> {
        let value = self.value;
        let Some(node) = value.node(id) else {
            return Err(Error::invalid("a node of another value"));
        };
        if !node.is_primitive() && self.wrote_reference(id) {
            return Ok(());
        }
        // A view is numbered after its buffer.
        if !node.is_primitive() && !matches!(node, Node::Window(_) | Node::View(..)) {
            self.number(id);
        }
        let writer = &mut self.writer;
        match node {
            Node::Undefined => writer.byte(tag::UNDEFINED),
            Node::Null => writer.byte(tag::NULL),
            Node::Bool(true) => writer.byte(tag::TRUE),
            Node::Bool(false) => writer.byte(tag::FALSE),
            Node::Number(n) => writer.number(*n),
            Node::BigInt(n) => {
                writer.byte(tag::BIGINT);
                writer.bigint(n);
            }
            Node::String(string) => writer.string(string),
            Node::Date(ms) => {
                writer.byte(tag::DATE);
                writer.double(*ms);
            }
            Node::RegExp(regexp) => {
                writer.byte(tag::REGEXP);
                writer.string(&regexp.source);
                writer.varint(u64::from(tag::bits_of(&regexp.flags)));
            }
            Node::Boxed(boxed) => self.boxed(boxed),
            Node::Array(items) => {
                let depth = deeper(depth)?;
                let length = items.len() as u64;
                writer.byte(tag::DENSE_ARRAY);
                writer.varint(length);
                self.tasks.push(Task::End(tag::DENSE_ARRAY_END, 0, Some(length)));
                self.tasks.extend(items.iter().rev().map(|&id| Task::Node { id, depth }));
            }
            Node::SparseArray { length, entries } => {
                let length = u64::from(*length);
                writer.byte(tag::SPARSE_ARRAY);
                writer.varint(length);
                let end = Task::End(tag::SPARSE_ARRAY_END, entries.len() as u64, Some(length));
                self.properties(entries, end, depth)?;
            }
            Node::Object(entries) => {
                writer.byte(tag::OBJECT);
                let end = Task::End(tag::OBJECT_END, entries.len() as u64, None);
                self.properties(entries, end, depth)?;
            }
            Node::Map(entries) => {
                let depth = deeper(depth)?;
                writer.byte(tag::MAP);
                self.tasks.push(Task::End(tag::MAP_END, entries.len() as u64 * 2, None));
                let both = entries.iter().rev().flat_map(|(key, item)| [*item, *key]);
                self.tasks.extend(both.map(|id| Task::Node { id, depth }));
            }
            Node::Set(items) => {
                let depth = deeper(depth)?;
                writer.byte(tag::SET);
                self.tasks.push(Task::End(tag::SET_END, items.len() as u64, None));
                self.tasks.extend(items.iter().rev().map(|&id| Task::Node { id, depth }));
            }
            Node::Error(error) => self.error(error, depth)?,
            Node::DomException(exception) => self.dom_exception(exception),
            Node::Buffer(buffer) => self.buffer(buffer),
            Node::View(class, bytes) => self.view(id, *class, bytes),
            Node::Window(window) => self.window(id, window)?,
            Node::Blob(_) => {
                return Err(Error::invalid(
                    "a Blob cannot be stored in Deno's format: store its bytes as a Uint8Array",
                ));
            }
        }
        Ok(())
    }

    /// If the object was written before, writes a reference and returns true.
    fn wrote_reference(&mut self, id: NodeId) -> bool {
        let Some(Some(number)) = self.ids.get(id.index()).copied() else { return false };
        self.writer.byte(tag::REFERENCE);
        self.writer.varint(u64::from(number));
        true
    }

    /// Gives the object the next reference number.
    fn number(&mut self, id: NodeId) {
        if let Some(place) = self.ids.get_mut(id.index()) {
            *place = Some(self.next_id);
        }
        self.next_id += 1;
    }

    /// Writes the name of a property; an index is a number.
    fn name(&mut self, name: &JsString) {
        match name.as_array_index() {
            Some(index) => self.writer.number(f64::from(index)),
            None => self.writer.string(name),
        }
    }

    fn properties(
        &mut self,
        entries: &'v [(JsString, NodeId)],
        end: Task<'v>,
        depth: usize,
    ) -> Result<()> {
        let depth = deeper(depth)?;
        self.tasks.push(end);
        let both =
            |(name, id): &'v (JsString, NodeId)| [Task::Node { id: *id, depth }, Task::Name(name)];
        self.tasks.extend(entries.iter().rev().flat_map(both));
        Ok(())
    }

    fn boxed(&mut self, boxed: &Boxed) {
        let writer = &mut self.writer;
        match boxed {
            Boxed::Boolean(true) => writer.byte(tag::TRUE_OBJECT),
            Boxed::Boolean(false) => writer.byte(tag::FALSE_OBJECT),
            Boxed::Number(n) => {
                writer.byte(tag::NUMBER_OBJECT);
                writer.double(*n);
            }
            Boxed::BigInt(n) => {
                writer.byte(tag::BIGINT_OBJECT);
                writer.bigint(n);
            }
            Boxed::String(string) => {
                writer.byte(tag::STRING_OBJECT);
                writer.string(string);
            }
        }
    }

    /// Writes class, message, stack and cause in the order that Deno requires.
    fn error(&mut self, error: &ErrorProperties, depth: usize) -> Result<()> {
        let depth = deeper(depth)?;
        let writer = &mut self.writer;
        writer.byte(tag::ERROR);
        tag::letter_of(error.name).into_iter().for_each(|letter| writer.byte(letter));
        let texts = [(tag::ERROR_MESSAGE, &error.message), (tag::ERROR_STACK, &error.stack)];
        for (part, text) in texts {
            if let Some(text) = text {
                writer.byte(part);
                writer.string(text);
            }
        }
        self.tasks.push(Task::ErrorEnd);
        if let Some(id) = error.cause {
            writer.byte(tag::ERROR_CAUSE);
            self.tasks.push(Task::Node { id, depth });
        }
        Ok(())
    }

    /// Writes the record that Deno reads as a `DOMException`.
    fn dom_exception(&mut self, exception: &DomException) {
        let writer = &mut self.writer;
        writer.byte(tag::HOST_OBJECT);
        writer.varint(u64::from(tag::DENO_HOST));
        // The record has a reference number too.
        self.next_id += 1;
        writer.byte(tag::OBJECT);
        let kind = JsString::from("DOMException");
        let parts = [
            ("type", Some(&kind)),
            ("message", Some(&exception.message)),
            ("name", Some(&exception.name)),
            ("stack", exception.stack.as_ref()),
        ];
        let parts = parts.iter().filter_map(|(name, text)| Some((*name, (*text)?)));
        let mut count = 0;
        for (name, text) in parts {
            writer.string(&name.into());
            writer.string(text);
            count += 1;
        }
        writer.byte(tag::OBJECT_END);
        writer.varint(count);
    }

    fn buffer(&mut self, buffer: &Buffer) {
        let (writer, len) = (&mut self.writer, buffer.bytes.len() as u64);
        match buffer.max_bytes {
            None => {
                writer.byte(tag::BUFFER);
                writer.varint(len);
            }
            Some(max) => {
                writer.byte(tag::RESIZABLE_BUFFER);
                writer.varint(len);
                writer.varint(max);
            }
        }
        writer.bytes(&buffer.bytes);
    }

    /// Writes a view over its own whole buffer, which is numbered before the view.
    fn view(&mut self, id: NodeId, class: ViewClass, bytes: &[u8]) {
        self.next_id += 1;
        self.writer.byte(tag::BUFFER);
        self.writer.varint(bytes.len() as u64);
        self.writer.bytes(bytes);
        self.place(id, class, 0, bytes.len() as u64, 0);
    }

    fn window(&mut self, id: NodeId, window: &Window) -> Result<()> {
        let Some(Node::Buffer(buffer)) = self.value.node(window.buffer) else {
            return Err(Error::invalid("a view of a node that is no buffer"));
        };
        if !self.wrote_reference(window.buffer) {
            self.number(window.buffer);
            self.buffer(buffer);
        }
        let element = window.class.element_bytes() as u64;
        let grows = if buffer.max_bytes.is_some() { tag::RESIZABLE } else { 0 };
        let (bytes, flags) = match window.length {
            Some(length) => (length.saturating_mul(element), grows),
            None => (0, grows | tag::LENGTH_TRACKING),
        };
        self.place(id, window.class, window.offset_bytes, bytes, flags);
        Ok(())
    }

    /// Writes the position of a view in the buffer before it.
    fn place(&mut self, id: NodeId, class: ViewClass, offset: u64, bytes: u64, flags: u32) {
        self.number(id);
        self.writer.byte(tag::VIEW);
        self.writer.byte(tag::letter_of_view(class));
        self.writer.varint(offset);
        self.writer.varint(bytes);
        self.writer.varint(u64::from(flags));
    }
}
