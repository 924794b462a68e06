//! Objects without child items: dates, and the forms of tag 27 that are a name and data. Reader and
//! writer of each form stand together.

use super::Malformed;
use super::head::{Head, Reader, TAG_BIGINT, TAG_DATE, TAG_GENERIC, TAG_NEGATIVE_BIGINT, Writer};
use super::number::{read_bigint, write_bigint};
use crate::model::{Blob, Boxed, Buffer, DomException, FileProperties, Node, RegExp, ViewClass};

/// The largest distance of a `Date` from the epoch, in ms.
const DATE_MS_MAX: f64 = 8.64e15;

/// All flags of regular expressions, in the order of JavaScript's `flags`.
const REGEXP_FLAGS: &str = "dgimsuvy";

/// Reads the content after the name in a tag 27 of `items` items; `None` for a name without such a
/// form.
pub(super) fn read(
    reader: &mut Reader<'_>,
    name: &str,
    items: usize,
) -> Result<Option<Node>, Malformed> {
    Ok(Some(match (name, items) {
        ("RegExp", 3) => read_regexp(reader)?,
        ("Boolean" | "Number" | "String" | "BigInt", 2) => read_boxed(reader, name)?,
        ("DOMException", 3 | 4) => Node::DomException(Box::new(DomException {
            message: reader.string()?,
            name: reader.string()?,
            stack: if items == 4 { Some(reader.string()?) } else { None },
        })),
        ("ArrayBuffer", 2 | 3) => Node::Buffer(Box::new(read_buffer(reader, items)?)),
        ("DataView", 2) => Node::View(ViewClass::DataView, reader.byte_string()?.into()),
        ("Blob", 3) => read_blob(reader, false)?,
        ("File", 5) => read_blob(reader, true)?,
        _ => return Ok(None),
    }))
}

/// Reads a buffer, after its name.
pub(super) fn read_buffer(reader: &mut Reader<'_>, items: usize) -> Result<Buffer, Malformed> {
    let start = *reader;
    let bytes = reader.byte_string()?.to_vec();
    let max_bytes = if items == 3 { Some(reader.count()?) } else { None };
    if max_bytes.is_some_and(|max| max < bytes.len() as u64) {
        return start.fail("invalid value: buffer beyond its maximum");
    }
    Ok(Buffer { bytes, max_bytes })
}

pub(super) fn write_buffer(writer: &mut Writer, buffer: &Buffer) {
    write_name(writer, "ArrayBuffer", if buffer.max_bytes.is_some() { 3 } else { 2 });
    writer.bytes(&buffer.bytes);
    if let Some(max) = buffer.max_bytes {
        writer.count(max);
    }
}

/// Writes tag 27, the length of its array, and the name.
pub(super) fn write_name(writer: &mut Writer, name: &str, items: usize) {
    writer.tag(TAG_GENERIC);
    writer.array(items);
    writer.text(name);
}

/// Reads a date, after its tag.
pub(super) fn read_date(reader: &mut Reader<'_>) -> Result<Node, Malformed> {
    let start = *reader;
    let seconds = reader.float()?;
    if seconds.is_nan() {
        return Ok(Node::Date(f64::NAN));
    }
    // Beyond 2^42 seconds the product can be nearer to half a millisecond than to a whole one.
    let rounded = (seconds * 1000.0).round();
    let candidates = [rounded, rounded - 1.0, rounded + 1.0];
    // A Date holds no −0. Adding 0 turns −0 into 0, whose seconds have other bits.
    let written = |ms: &f64| ((ms + 0.0) / 1000.0).to_bits() == seconds.to_bits();
    match candidates.into_iter().find(written).filter(|ms| ms.abs() <= DATE_MS_MAX) {
        Some(ms) => Ok(Node::Date(ms + 0.0)),
        None => start.fail("invalid value: time that no Date has"),
    }
}

pub(super) fn write_date(writer: &mut Writer, ms: f64) {
    writer.tag(TAG_DATE);
    writer.float(ms / 1000.0);
}

fn read_regexp(reader: &mut Reader<'_>) -> Result<Node, Malformed> {
    let source = reader.string()?;
    let start = *reader;
    let flags = match reader.head()? {
        Head::Text(len) => reader.text(len)?,
        _ => return start.fail("invalid value: flags that are no text"),
    };
    let places: Option<Vec<usize>> = flags.chars().map(|flag| REGEXP_FLAGS.find(flag)).collect();
    let ascending = places.is_some_and(|places| places.is_sorted_by(|a, b| a < b));
    if !ascending || flags.contains("uv") {
        return start.fail("invalid value: flags that no regular expression has");
    }
    Ok(Node::RegExp(Box::new(RegExp { source, flags: flags.to_owned() })))
}

pub(super) fn write_regexp(writer: &mut Writer, regexp: &RegExp) {
    write_name(writer, "RegExp", 3);
    writer.string(&regexp.source);
    writer.text(&regexp.flags);
}

fn read_boxed(reader: &mut Reader<'_>, name: &str) -> Result<Node, Malformed> {
    let start = *reader;
    let boxed = match (name, reader.head()?) {
        ("Boolean", Head::Bool(b)) => Boxed::Boolean(b),
        ("Number", Head::Number(n)) => Boxed::Number(n),
        ("String", head) => Boxed::String(reader.string_of(head)?),
        ("BigInt", Head::Tag(tag @ (TAG_BIGINT | TAG_NEGATIVE_BIGINT))) => {
            Boxed::BigInt(read_bigint(reader, tag)?)
        }
        _ => return start.fail("invalid value: box of something else"),
    };
    Ok(Node::Boxed(Box::new(boxed)))
}

pub(super) fn write_boxed(writer: &mut Writer, boxed: &Boxed) {
    let name = match boxed {
        Boxed::Boolean(_) => "Boolean",
        Boxed::Number(_) => "Number",
        Boxed::String(_) => "String",
        Boxed::BigInt(_) => "BigInt",
    };
    write_name(writer, name, 2);
    match boxed {
        Boxed::Boolean(b) => writer.bool(*b),
        Boxed::Number(n) => writer.number(*n),
        Boxed::String(string) => writer.string(string),
        Boxed::BigInt(n) => write_bigint(writer, n),
    }
}

pub(super) fn write_dom_exception(writer: &mut Writer, exception: &DomException) {
    write_name(writer, "DOMException", if exception.stack.is_some() { 4 } else { 3 });
    writer.string(&exception.message);
    writer.string(&exception.name);
    if let Some(stack) = &exception.stack {
        writer.string(stack);
    }
}

fn read_blob(reader: &mut Reader<'_>, is_file: bool) -> Result<Node, Malformed> {
    let bytes = reader.byte_string()?.to_vec();
    let media_type = reader.string()?;
    let file = if is_file {
        let name = reader.string()?;
        let start = *reader;
        let Head::Number(last_modified_ms) = reader.head()? else {
            return start.fail("invalid value: file without its time");
        };
        Some(FileProperties { name, last_modified_ms })
    } else {
        None
    };
    Ok(Node::Blob(Box::new(Blob { bytes, media_type, file })))
}

pub(super) fn write_blob(writer: &mut Writer, blob: &Blob) {
    match &blob.file {
        None => write_name(writer, "Blob", 3),
        Some(_) => write_name(writer, "File", 5),
    }
    writer.bytes(&blob.bytes);
    writer.string(&blob.media_type);
    if let Some(file) = &blob.file {
        writer.string(&file.name);
        writer.number(file.last_modified_ms);
    }
}
