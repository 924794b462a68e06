//! Views of buffers: typed arrays and `DataView`, either stored alone (RFC 8746) or over a buffer
//! that is shared or resizable.

use super::Malformed;
use super::decoder::{Decoder, UNFINISHED};
use super::head::{Head, Reader, TAG_GENERIC, TAG_SHAREABLE, TAG_SHARED, Writer};
use super::special::{read_buffer, write_name};
use crate::model::{Node, NodeId, ViewClass, Window};

/// RFC 8746, little-endian. A `Uint8Array` is a plain byte string, a `DataView` a tag 27.
const TAGS: [(ViewClass, u64); 11] = [
    (ViewClass::Uint8Clamped, 68),
    (ViewClass::Uint16, 69),
    (ViewClass::Uint32, 70),
    (ViewClass::BigUint64, 71),
    (ViewClass::Int8, 72),
    (ViewClass::Int16, 77),
    (ViewClass::Int32, 78),
    (ViewClass::BigInt64, 79),
    (ViewClass::Float16, 84),
    (ViewClass::Float32, 85),
    (ViewClass::Float64, 86),
];

pub(super) fn class_of_tag(tag: u64) -> Option<ViewClass> {
    TAGS.iter().find(|entry| entry.1 == tag).map(|entry| entry.0)
}

/// Reads a typed array, after its tag.
pub(super) fn read_alone(reader: &mut Reader<'_>, class: ViewClass) -> Result<Node, Malformed> {
    let start = *reader;
    let bytes = reader.byte_string()?;
    if !bytes.len().is_multiple_of(class.element_bytes()) {
        return start.fail("invalid value: typed array with a part of an element");
    }
    Ok(Node::View(class, bytes.into()))
}

pub(super) fn write_alone(writer: &mut Writer, class: ViewClass, bytes: &[u8]) {
    if class == ViewClass::DataView {
        write_name(writer, class.name(), 2);
    } else if let Some((_, tag)) = TAGS.iter().find(|entry| entry.0 == class) {
        writer.tag(*tag);
    }
    writer.bytes(bytes);
}

/// The size of a buffer, as far as its views need it.
struct Extent {
    bytes: u64,
    resizable: bool,
}

impl Decoder<'_> {
    /// Reads a view over a buffer, after `"View"`.
    pub(super) fn window(&mut self) -> Result<Node, Malformed> {
        let start = self.reader;
        let class = match self.reader.head()? {
            Head::Text(len) => ViewClass::from_name(self.reader.text(len)?),
            _ => None,
        };
        let Some(class) = class else {
            return start.fail("invalid value: view of an unknown class");
        };
        let (buffer, extent) = self.buffer()?;
        let offset_bytes = self.reader.count()?;
        let before_length = self.reader;
        let length = match self.reader.head()? {
            Head::Null => None,
            _ => {
                self.reader = before_length;
                Some(self.reader.count()?)
            }
        };
        if !fits(class, offset_bytes, length, &extent) {
            return start.fail("invalid value: view outside of its buffer");
        }
        Ok(Node::Window(Box::new(Window { class, buffer, offset_bytes, length })))
    }

    /// Reads the buffer of a view: in full, or as a reference. Accepts nothing else, so views
    /// cannot nest.
    fn buffer(&mut self) -> Result<(NodeId, Extent), Malformed> {
        let start = self.reader;
        let mut head = self.reader.head()?;
        if head == Head::Tag(TAG_SHARED) {
            let id = self.shared()?;
            return match self.value.node(id) {
                Some(Node::Buffer(buffer)) => {
                    let bytes = buffer.bytes.len() as u64;
                    Ok((id, Extent { bytes, resizable: buffer.max_bytes.is_some() }))
                }
                _ => start.fail("invalid value: view of what is no buffer"),
            };
        }
        let id = self.value.push(UNFINISHED);
        let shareable = head == Head::Tag(TAG_SHAREABLE);
        if shareable {
            head = self.share(id)?;
        }
        let items = match (head, self.reader.head()?) {
            (Head::Tag(TAG_GENERIC), Head::Array(items @ (2 | 3))) => items,
            _ => return start.fail("invalid value: view of what is no buffer"),
        };
        match self.reader.head()? {
            Head::Text(len) if self.reader.text(len)? == "ArrayBuffer" => {}
            _ => return start.fail("invalid value: view of what is no buffer"),
        }
        let buffer = read_buffer(&mut self.reader, items)?;
        let extent =
            Extent { bytes: buffer.bytes.len() as u64, resizable: buffer.max_bytes.is_some() };
        if !shareable && !extent.resizable {
            return start.fail("invalid value: view with a buffer that could stand alone");
        }
        self.value.set(id, Node::Buffer(Box::new(buffer)));
        Ok((id, extent))
    }
}

/// Whether the view lies inside its buffer, aligned to its element size.
fn fits(class: ViewClass, offset: u64, length: Option<u64>, buffer: &Extent) -> bool {
    let element = class.element_bytes() as u64;
    let end = match length {
        None if !buffer.resizable => return false,
        None => Some(offset),
        Some(length) => length.checked_mul(element).and_then(|bytes| bytes.checked_add(offset)),
    };
    offset.is_multiple_of(element) && end.is_some_and(|end| end <= buffer.bytes)
}

/// Writes a view up to its buffer; the caller writes the buffer, then calls [`write_place`].
pub(super) fn write_class(writer: &mut Writer, window: &Window) {
    write_name(writer, "View", 5);
    writer.text(window.class.name());
}

/// Writes the fields after the buffer.
pub(super) fn write_place(writer: &mut Writer, window: &Window) {
    writer.count(window.offset_bytes);
    match window.length {
        Some(length) => writer.count(length),
        None => writer.null(),
    }
}
