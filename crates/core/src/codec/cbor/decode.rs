//! Bytes → value.
//!
//! One loop with an explicit stack: it reads an item up to its first child, then pushes a frame
//! that collects the children.

use super::decoder::{Decoder, UNFINISHED};
use super::frames::{Children, Frame, Identity};
use super::head::{
    Head, Reader, TAG_BIGINT, TAG_DATE, TAG_GENERIC, TAG_MAP, TAG_NEGATIVE_BIGINT, TAG_SET,
    TAG_SHAREABLE, TAG_SHARED, TAG_WTF8,
};
use super::number::read_bigint;
use super::{Malformed, special, view};
use crate::model::{ErrorName, ErrorProperties, Node, NodeId, VALUE_DEPTH_MAX, Value, ViewClass};

/// Decodes a value.
///
/// Time and memory are proportional to the input: fewer than 256 bytes for each of its bytes, 512
/// for each level of nesting, and 4 KiB.
///
/// Anything that [`encode`](super::encode) would not write for a JavaScript value: malformed CBOR,
/// unknown tags and names, forms that are not the shortest, a property or key that occurs twice, a
/// reference to a missing object, nesting beyond [`VALUE_DEPTH_MAX`] levels, trailing bytes. Does
/// not check that the source of a regular expression compiles.
///
/// ```
/// use openkv_core::codec::cbor;
/// use openkv_core::model::Node;
/// let value = cbor::decode(&[0x82, 0x01, 0xf5])?; // [1, true]
/// let Some(Node::Array(items)) = value.node(value.root_id()) else { panic!() };
/// assert_eq!(value.node(items[1]), Some(&Node::Bool(true)));
/// # Ok::<(), openkv_core::codec::Malformed>(())
/// ```
pub fn decode(bytes: &[u8]) -> Result<Value, Malformed> {
    let mut decoder = Decoder::new(bytes);
    decoder.run()?;
    decoder.end()
}

impl<'a> Decoder<'a> {
    fn run(&mut self) -> Result<(), Malformed> {
        let mut start = self.reader;
        let mut whole = self.item()?;
        loop {
            if let Some(id) = whole {
                let identity = self.identity(id, start);
                let Some(frame) = self.frames.last_mut() else {
                    return Ok(());
                };
                frame.accept(id, identity).or_else(|what| start.fail(what))?;
            }
            whole = match self.frames.pop_if(|frame| frame.is_full()) {
                Some(frame) => {
                    let id = frame.id;
                    let node = frame.into_node().or_else(|what| self.reader.fail(what))?;
                    self.value.set(id, node);
                    Some(id)
                }
                None => {
                    if let Some(frame) = self.frames.last_mut() {
                        frame.read_name(&mut self.reader)?;
                    }
                    start = self.reader;
                    self.item()?
                }
            };
        }
    }

    /// Reads an item up to its first child. Returns its node if it has no children, `None` if it
    /// opened a frame.
    fn item(&mut self) -> Result<Option<NodeId>, Malformed> {
        let start = self.reader;
        let mut head = self.reader.head()?;
        if head == Head::Tag(TAG_SHARED) {
            return self.shared().map(Some);
        }
        let id = if start.at() == 0 { self.value.root_id() } else { self.value.push(UNFINISHED) };
        let shareable = head == Head::Tag(TAG_SHAREABLE);
        if shareable {
            head = self.share(id)?;
        }
        let node = match head {
            Head::Undefined => Node::Undefined,
            Head::Null => Node::Null,
            Head::Bool(b) => Node::Bool(b),
            Head::Number(n) => Node::Number(n),
            Head::Text(len) => Node::String(self.reader.text(len)?.into()),
            Head::Bytes(len) => Node::View(ViewClass::Uint8, self.reader.body(len)?.into()),
            Head::Array(len) => return self.open(Frame::array(id, len)),
            Head::Map(len) => return self.open(Frame::object(id, len)),
            Head::Tag(tag) => match self.tagged(id, tag)? {
                Some(node) => node,
                None => return Ok(None),
            },
        };
        if shareable && node.is_primitive() {
            return start.fail("invalid value: shareable that is no object");
        }
        self.value.set(id, node);
        Ok(Some(id))
    }

    /// Reads the content of a tag: a node, or `None` if it opened a frame.
    fn tagged(&mut self, id: NodeId, tag: u64) -> Result<Option<Node>, Malformed> {
        let start = self.reader;
        Ok(Some(match tag {
            TAG_DATE => special::read_date(&mut self.reader)?,
            TAG_BIGINT | TAG_NEGATIVE_BIGINT => Node::BigInt(read_bigint(&mut self.reader, tag)?),
            TAG_WTF8 => Node::String(self.reader.wtf8()?),
            TAG_GENERIC => return self.generic(id),
            TAG_SET => match self.reader.head()? {
                Head::Array(len) => return self.open(Frame::set(id, len)).map(|_| None),
                _ => return start.fail("invalid value: Set that is no array"),
            },
            TAG_MAP => match self.reader.head()? {
                Head::Map(len) => return self.open(Frame::map(id, len)).map(|_| None),
                _ => return start.fail("invalid value: Map that is no map"),
            },
            tag => match view::class_of_tag(tag) {
                Some(class) => view::read_alone(&mut self.reader, class)?,
                None => return start.fail("invalid value: unknown tag"),
            },
        }))
    }

    /// Reads the content of tag 27: a name and its data.
    fn generic(&mut self, id: NodeId) -> Result<Option<Node>, Malformed> {
        let start = self.reader;
        let Head::Array(items) = self.reader.head()? else {
            return start.fail("invalid value: generic object that is no array");
        };
        let name = match self.reader.head()? {
            Head::Text(len) => self.reader.text(len)?,
            _ => return start.fail("invalid value: generic object without a name"),
        };
        match (name, items) {
            ("Array", 2) => self.packed(),
            ("Array", 3) => self.sparse_array(id),
            ("View", 5) => self.window().map(Some),
            _ => match ErrorName::from_name(name).filter(|_| items == 2) {
                Some(name) => self.error(id, name),
                None => special::read(&mut self.reader, name, items)
                    .transpose()
                    .unwrap_or_else(|| start.fail("invalid value: unknown generic object"))
                    .map(Some),
            },
        }
    }

    fn sparse_array(&mut self, id: NodeId) -> Result<Option<Node>, Malformed> {
        let start = self.reader;
        let Ok(length) = u32::try_from(self.reader.count()?) else {
            return start.fail("invalid value: array length");
        };
        let Head::Map(len) = self.reader.head()? else {
            return start.fail("invalid value: array without its properties");
        };
        self.open(Frame::sparse_array(id, length, len)).map(|_| None)
    }

    fn error(&mut self, id: NodeId, name: ErrorName) -> Result<Option<Node>, Malformed> {
        let start = self.reader;
        let Head::Map(mut left) = self.reader.head()? else {
            return start.fail("invalid value: error without its properties");
        };
        let mut error = ErrorProperties { name, message: None, stack: None, cause: None };
        self.refuse_depth()?;
        while left > 0 {
            let at = self.reader;
            let property = match self.reader.head()? {
                Head::Text(len) => self.reader.text(len)?,
                _ => return at.fail("invalid value: unknown property of an error"),
            };
            left -= 1;
            match property {
                "message" if error.message.is_none() && error.stack.is_none() => {
                    error.message = Some(self.reader.string()?);
                }
                "stack" if error.stack.is_none() => error.stack = Some(self.reader.string()?),
                "cause" if left == 0 => {
                    return self.open(Frame::new(id, 1, Children::Cause(error))).map(|_| None);
                }
                _ => return at.fail("invalid value: unknown property of an error"),
            }
        }
        Ok(Some(Node::Error(Box::new(error))))
    }

    fn open(&mut self, frame: Frame<'a>) -> Result<Option<NodeId>, Malformed> {
        self.refuse_depth()?;
        self.frames.push(frame);
        Ok(None)
    }

    pub(super) fn refuse_depth(&self) -> Result<(), Malformed> {
        if self.frames.len() < VALUE_DEPTH_MAX {
            return Ok(());
        }
        self.reader.fail("invalid value: nested too deeply")
    }

    /// The identity of the item just read as a key or item of a `Map` or `Set`.
    fn identity(&self, id: NodeId, start: Reader<'a>) -> Identity<'a> {
        match self.value.node(id) {
            Some(Node::Number(n)) if *n == 0.0 && n.is_sign_negative() => Identity::NegativeZero,
            Some(node) if node.is_primitive() => Identity::Primitive(self.reader.since(start.at())),
            _ => Identity::Object(id),
        }
    }
}
