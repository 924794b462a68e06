//! Bytes → value.
//!
//! One loop with an explicit stack: it reads a value up to its first child, then pushes a frame
//! that collects the children.

use super::finish::Buffers;
use super::frames::{self, Frame, Kind};
use super::reader::Reader;
use super::{Malformed, host, tag};
use crate::model::{
    Boxed, Buffer, ErrorName, ErrorProperties, JsString, Node, NodeId, RegExp, VALUE_DEPTH_MAX,
    Value, ViewClass, Window,
};

/// Decodes a value. Like V8, ignores bytes after its end.
///
/// # Errors
/// Bytes that V8 would not read or write: an unknown version or tag, truncated input, a reference
/// to a missing object, a count that differs from the number of items, a key that occurs twice;
/// nesting beyond [`VALUE_DEPTH_MAX`] levels; Deno's objects that have no value outside of its
/// process (`Blob`, `CryptoKey`).
///
/// ```
/// use openkv_core::codec::v8;
/// use openkv_core::model::Node;
/// let value = v8::decode(&[0xff, 0x0f, b'I', 84])?;
/// assert_eq!(value.node(value.root_id()), Some(&Node::Number(42.0)));
/// # Ok::<(), openkv_core::codec::Malformed>(())
/// ```
pub fn decode(bytes: &[u8]) -> Result<Value, Malformed> {
    let mut reader = Reader::new(bytes);
    if reader.byte()? != tag::VERSION {
        return reader.fail("invalid value: no version");
    }
    let start = reader;
    let version = reader.varint()?;
    if !(tag::VERSION_MIN..=tag::VERSION_MAX).contains(&version) {
        return start.fail("invalid value: a version that is not read");
    }
    if version >= tag::VERSION_WITH_VIEW_FLAGS {
        return run(reader, true);
    }
    // Some writers of version 13 wrote flags of views without a mark in the format.
    run(reader, false).or_else(|_| run(reader, true))
}

fn run(reader: Reader<'_>, view_flags: bool) -> Result<Value, Malformed> {
    let mut decoder = Decoder {
        reader,
        view_flags,
        value: Value::new(UNFINISHED),
        objects: Vec::new(),
        frames: Vec::new(),
        buffers: Buffers::default(),
        singles: [None; 5],
    };
    let root = decoder.run()?;
    let Decoder { mut value, buffers, .. } = decoder;
    if root != value.root_id()
        && let Some(node) = value.node(root).cloned()
    {
        // `root` differs from `root_id` only for nodes without children, so nothing refers to it.
        let id = value.root_id();
        value.set(id, node);
    }
    buffers.finish(&mut value, root);
    Ok(value)
}

/// Placeholder for a node whose content is not read yet; its content may refer to it.
const UNFINISHED: Node = Node::Object(Vec::new());

/// Nodes without identity, which a value needs only once.
#[derive(Clone, Copy)]
enum Single {
    Undefined,
    Null,
    True,
    False,
    Hole,
}

struct Decoder<'a> {
    reader: Reader<'a>,
    /// Whether views have flags.
    view_flags: bool,
    value: Value,
    /// The nodes that a reference can name, by its number.
    objects: Vec<NodeId>,
    frames: Vec<Frame>,
    buffers: Buffers,
    singles: [Option<NodeId>; 5],
}

/// The next state of a frame.
enum Step {
    Value,
    Closed(Node),
}

impl Decoder<'_> {
    fn run(&mut self) -> Result<NodeId, Malformed> {
        let mut whole = self.item()?;
        loop {
            if let Some(id) = whole.take() {
                match self.frames.last_mut() {
                    Some(frame) => accept(frame, id, &mut self.value),
                    None => return Ok(id),
                }
            }
            let Some(mut frame) = self.frames.pop() else {
                return self.reader.fail("invalid value: nothing");
            };
            match self.step(&mut frame)? {
                Step::Value => {
                    self.frames.push(frame);
                    whole = self.item()?;
                }
                Step::Closed(node) => {
                    self.value.set(frame.id, node);
                    whole = Some(frame.id);
                }
            }
        }
    }

    /// Reads up to the next value of a frame, or its end.
    fn step(&mut self, frame: &mut Frame) -> Result<Step, Malformed> {
        let start = self.reader;
        let closed = match &mut frame.kind {
            Kind::Object { entries, name } => {
                if !self.end(tag::OBJECT_END) {
                    *name = Some(self.name()?);
                    return Ok(Step::Value);
                }
                self.count(entries.len())?;
                frames::properties(std::mem::take(entries)).map(Node::Object)
            }
            Kind::Dense { length, items, beside, name } => {
                while items.len() < *length as usize {
                    if !self.end(tag::HOLE) {
                        return Ok(Step::Value);
                    }
                    items.push(self.single(Single::Hole));
                }
                if !self.end(tag::DENSE_ARRAY_END) {
                    *name = Some(self.name()?);
                    return Ok(Step::Value);
                }
                self.count(beside.len())?;
                self.count(*length as usize)?;
                let hole = self.single(Single::Hole);
                dense(*length, std::mem::take(items), std::mem::take(beside), hole)
            }
            Kind::Sparse { length, entries, name } => {
                if !self.end(tag::SPARSE_ARRAY_END) {
                    *name = Some(self.name()?);
                    return Ok(Step::Value);
                }
                self.count(entries.len())?;
                self.count(*length as usize)?;
                frames::array(*length, std::mem::take(entries))
            }
            Kind::Map { entries, key } => {
                if key.is_some() || !self.end(tag::MAP_END) {
                    return Ok(Step::Value);
                }
                self.count(entries.len() * 2)?;
                frames::map(&self.value, std::mem::take(entries))
            }
            Kind::Set(items) => {
                if !self.end(tag::SET_END) {
                    return Ok(Step::Value);
                }
                self.count(items.len())?;
                frames::set(&self.value, std::mem::take(items))
            }
            Kind::Error(error) => match self.error(error)? {
                true => return Ok(Step::Value),
                false => Ok(Node::Error(Box::new(error.clone()))),
            },
            Kind::Host(None) => return Ok(Step::Value),
            Kind::Host(Some(record)) => host::of_record(&self.value, *record),
        };
        closed.or_else(|what| start.fail(what)).map(Step::Closed)
    }

    /// Skips an end tag or a hole, if it is next.
    fn end(&mut self, tag: u8) -> bool {
        let is_there = self.reader.peek() == Some(tag);
        is_there && self.reader.tag().is_ok()
    }

    /// Reads the count after an end tag, which must be that of the items read.
    fn count(&mut self, counted: usize) -> Result<(), Malformed> {
        let start = self.reader;
        if self.reader.varint()? as usize != counted {
            return start.fail("invalid value: a count that is not right");
        }
        Ok(())
    }

    /// Reads the name of a property: a string, or an index as a number.
    fn name(&mut self) -> Result<JsString, Malformed> {
        let start = self.reader;
        let tag = self.reader.tag()?;
        let index = match tag {
            tag::INT32 => f64::from(self.reader.zigzag()?),
            tag::UINT32 => f64::from(self.reader.varint()?),
            tag::DOUBLE => self.reader.double()?,
            _ => {
                return match self.reader.string(tag)? {
                    Some(name) => Ok(name),
                    None => start.fail("invalid value: no name where one must be"),
                };
            }
        };
        if index.fract() != 0.0 || index.abs() >= 9_007_199_254_740_992.0 {
            return start.fail("invalid value: a name that is no whole number");
        }
        Ok((index as i64).to_string().into())
    }

    /// Reads a value up to its first child. Returns its node if it has no children, `None` if it
    /// opened a frame.
    fn item(&mut self) -> Result<Option<NodeId>, Malformed> {
        let start = self.reader;
        let mut tag = self.reader.tag()?;
        while tag == tag::OBJECT_COUNT {
            self.reader.varint()?;
            tag = self.reader.tag()?;
        }
        let node = match tag {
            tag::UNDEFINED => return Ok(Some(self.single(Single::Undefined))),
            tag::NULL => return Ok(Some(self.single(Single::Null))),
            tag::TRUE => return Ok(Some(self.single(Single::True))),
            tag::FALSE => return Ok(Some(self.single(Single::False))),
            tag::INT32 => Node::Number(f64::from(self.reader.zigzag()?)),
            tag::UINT32 => Node::Number(f64::from(self.reader.varint()?)),
            tag::DOUBLE => Node::Number(self.reader.double()?),
            tag::BIGINT => Node::BigInt(self.reader.bigint()?),
            tag::REFERENCE => return self.reference().map(Some),
            _ => match self.reader.string(tag)? {
                Some(string) => Node::String(string),
                None => return self.object(tag, start),
            },
        };
        Ok(Some(self.value.push(node)))
    }

    fn reference(&mut self) -> Result<NodeId, Malformed> {
        let start = self.reader;
        let index = self.reader.varint()? as usize;
        let Some(id) = self.objects.get(index).copied() else {
            return start.fail("invalid value: reference to nothing");
        };
        match self.value.node(id) {
            Some(Node::Buffer(_)) => self.buffer_or_view(id),
            _ => Ok(id),
        }
    }

    /// Reads a value with identity, after its tag.
    fn object(&mut self, tag: u8, start: Reader<'_>) -> Result<Option<NodeId>, Malformed> {
        let kind = match tag {
            tag::OBJECT => Kind::Object { entries: Vec::new(), name: None },
            tag::DENSE_ARRAY => {
                // Each element has at least one byte.
                let length = self.reader.length()? as u32;
                Kind::Dense { length, items: Vec::new(), beside: Vec::new(), name: None }
            }
            tag::SPARSE_ARRAY => {
                let length = self.reader.varint()?;
                Kind::Sparse { length, entries: Vec::new(), name: None }
            }
            tag::MAP => Kind::Map { entries: Vec::new(), key: None },
            tag::SET => Kind::Set(Vec::new()),
            tag::ERROR => Kind::Error(ErrorProperties {
                name: ErrorName::Error,
                message: None,
                stack: None,
                cause: None,
            }),
            tag::HOST_OBJECT => {
                let index = self.reader.varint()?;
                if index != tag::DENO_HOST {
                    let node = self.node_view(index)?;
                    return Ok(Some(self.leaf(node)));
                }
                Kind::Host(None)
            }
            tag::BUFFER | tag::RESIZABLE_BUFFER => {
                let buffer = self.buffer(tag)?;
                let id = self.leaf(Node::Buffer(Box::new(buffer)));
                self.buffers.add(id);
                return self.buffer_or_view(id).map(Some);
            }
            _ => return self.plain_object(tag, start).map(Some),
        };
        if self.frames.len() >= VALUE_DEPTH_MAX {
            return start.fail("invalid value: nested too deeply");
        }
        let id = match self.frames.is_empty() {
            true => self.value.root_id(),
            false => self.value.push(UNFINISHED),
        };
        self.objects.push(id);
        self.frames.push(Frame { id, kind });
        Ok(None)
    }

    /// Reads a value with identity and without children.
    fn plain_object(&mut self, tag: u8, start: Reader<'_>) -> Result<NodeId, Malformed> {
        let boxed = |boxed| Node::Boxed(Box::new(boxed));
        let node = match tag {
            tag::DATE => Node::Date(date(self.reader.double()?)),
            tag::TRUE_OBJECT => boxed(Boxed::Boolean(true)),
            tag::FALSE_OBJECT => boxed(Boxed::Boolean(false)),
            tag::NUMBER_OBJECT => boxed(Boxed::Number(self.reader.double()?)),
            tag::BIGINT_OBJECT => boxed(Boxed::BigInt(self.reader.bigint()?)),
            tag::STRING_OBJECT => boxed(Boxed::String(self.reader.tagged_string()?)),
            tag::REGEXP => {
                let source = self.reader.tagged_string()?;
                match tag::flags_of(self.reader.varint()?) {
                    Some(flags) => Node::RegExp(Box::new(RegExp { source, flags })),
                    None => return start.fail("invalid value: unknown flags of a RegExp"),
                }
            }
            _ => return start.fail("invalid value: unknown tag"),
        };
        Ok(self.leaf(node))
    }

    /// Adds a node with identity and without children.
    fn leaf(&mut self, node: Node) -> NodeId {
        let id = self.value.push(node);
        self.objects.push(id);
        id
    }

    fn single(&mut self, which: Single) -> NodeId {
        let node = match which {
            Single::Undefined | Single::Hole => Node::Undefined,
            Single::Null => Node::Null,
            Single::True => Node::Bool(true),
            Single::False => Node::Bool(false),
        };
        let value = &mut self.value;
        match self.singles.get_mut(which as usize) {
            Some(place) => *place.get_or_insert_with(|| value.push(node)),
            None => value.push(node),
        }
    }

    fn buffer(&mut self, tag: u8) -> Result<Buffer, Malformed> {
        let start = self.reader;
        if tag == tag::BUFFER {
            return Ok(Buffer { bytes: self.reader.sized()?.to_vec(), max_bytes: None });
        }
        let (len, max) = (self.reader.length()?, self.reader.varint64()?);
        if max < len as u64 || max > BUFFER_BYTES_MAX {
            return start.fail("invalid value: buffer beyond its maximum");
        }
        Ok(Buffer { bytes: self.reader.take(len)?.to_vec(), max_bytes: Some(max) })
    }

    /// The buffer, or the view of it that follows.
    fn buffer_or_view(&mut self, buffer: NodeId) -> Result<NodeId, Malformed> {
        self.buffers.used(buffer);
        if !self.end(tag::VIEW) {
            return Ok(buffer);
        }
        let start = self.reader;
        let Some(class) = tag::view_of(self.reader.byte()?) else {
            return start.fail("invalid value: view of an unknown class");
        };
        let (offset, bytes) = (self.reader.varint64()?, self.reader.varint64()?);
        let flags = if self.view_flags { self.reader.varint()? } else { 0 };
        let Some(Node::Buffer(of)) = self.value.node(buffer) else {
            return start.fail("invalid value: view of what is no buffer");
        };
        let (element, len) = (class.element_bytes() as u64, of.bytes.len() as u64);
        let tracking = flags & tag::LENGTH_TRACKING != 0;
        let grows = of.max_bytes.is_some();
        let end = if tracking { Some(offset) } else { offset.checked_add(bytes) };
        let fits = offset.is_multiple_of(element)
            && bytes.is_multiple_of(element)
            && end.is_some_and(|end| end <= len)
            && flags & !(tag::LENGTH_TRACKING | tag::RESIZABLE) == 0
            && (!tracking || grows);
        if !fits {
            return start.fail("invalid value: view outside of its buffer");
        }
        let length = if tracking { None } else { Some(bytes / element) };
        let window = Window { class, buffer, offset_bytes: offset, length };
        let id = self.leaf(Node::Window(Box::new(window)));
        self.buffers.viewed(id);
        Ok(id)
    }

    /// Reads a view that Node wrote as a host object.
    fn node_view(&mut self, index: u32) -> Result<Node, Malformed> {
        let start = self.reader;
        let Some(class) = tag::node_view_of(index) else {
            return start.fail("invalid value: unknown host object");
        };
        let bytes = self.reader.sized()?;
        if class != ViewClass::DataView && !bytes.len().is_multiple_of(class.element_bytes()) {
            return start.fail("invalid value: typed array with a part of an element");
        }
        Ok(Node::View(class, bytes.into()))
    }

    /// Reads the next part of an error; returns `true` if its cause is next.
    fn error(&mut self, error: &mut ErrorProperties) -> Result<bool, Malformed> {
        loop {
            let start = self.reader;
            match self.reader.tag()? {
                tag::ERROR_END => return Ok(false),
                tag::ERROR_MESSAGE => error.message = Some(self.reader.tagged_string()?),
                tag::ERROR_STACK => error.stack = Some(self.reader.tagged_string()?),
                tag::ERROR_CAUSE if error.cause.is_none() => return Ok(true),
                letter => match tag::error_of(letter) {
                    Some(name) => error.name = name,
                    None => return start.fail("invalid value: unknown part of an error"),
                },
            }
        }
    }
}

/// The largest exact integer; no `ArrayBuffer` can be longer.
const BUFFER_BYTES_MAX: u64 = (1 << 53) - 1;

/// The largest distance of a `Date` from the epoch, in ms.
const DATE_MS_MAX: f64 = 8.64e15;

/// The time of `new Date(ms)`.
fn date(ms: f64) -> f64 {
    if ms.abs() <= DATE_MS_MAX { ms.trunc() + 0.0 } else { f64::NAN }
}

/// Adds a value to the frame.
fn accept(frame: &mut Frame, id: NodeId, value: &mut Value) {
    match &mut frame.kind {
        Kind::Object { entries, name } | Kind::Sparse { entries, name, .. } => {
            entries.extend(name.take().map(|name| (name, id)));
        }
        Kind::Dense { items, beside, name, .. } => match name.take() {
            Some(name) => beside.push((name, id)),
            None => items.push(id),
        },
        Kind::Map { entries, key } => match key.take() {
            Some(key) => entries.push((key, id)),
            None => *key = Some(as_key(id, value)),
        },
        Kind::Set(items) => items.push(as_key(id, value)),
        Kind::Error(error) => error.cause = Some(id),
        Kind::Host(record) => *record = Some(id),
    }
}

/// JavaScript converts −0 to 0 in a key.
fn as_key(id: NodeId, value: &mut Value) -> NodeId {
    match value.node(id) {
        Some(Node::Number(n)) if *n == 0.0 && n.is_sign_negative() => value.push(Node::Number(0.0)),
        _ => id,
    }
}

/// The node of an array whose elements were stored in sequence, with `hole` for each hole.
fn dense(
    length: u32,
    items: Vec<NodeId>,
    beside: Vec<(JsString, NodeId)>,
    hole: NodeId,
) -> Result<Node, &'static str> {
    if beside.is_empty() && !items.contains(&hole) {
        return Ok(Node::Array(items));
    }
    let indexed = items.into_iter().enumerate().filter(|(_, id)| *id != hole);
    let mut entries: Vec<_> =
        indexed.map(|(index, id)| (JsString::from(index.to_string()), id)).collect();
    entries.extend(beside);
    frames::array(length, entries)
}
