//! Packed arrays: arrays of numbers that are stored as the elements of a typed array.
//!
//! JavaScript writes them; everything here reads them as arrays. A tree does not keep the form, so a
//! value that Rust writes again has plain arrays.

use std::borrow::Cow;

use super::Malformed;
use super::decoder::Decoder;
use super::head::{Head, NAN_BITS, Reader, TAG_GENERIC, Writer};
use super::view::class_of_tag;
use crate::model::{Node, ViewClass};

/// The fewest items of a packed array.
pub const PACKED_ITEMS_MIN: usize = 32;

/// The bytes of every packed array up to its elements: tag 27, an array of two items, the name.
const START: &[u8] = b"\xd8\x1b\x82\x65Array";

/// The numbers of a packed array.
#[derive(Clone, Copy, Debug)]
pub struct Packed<'a> {
    class: ViewClass,
    bytes: &'a [u8],
}

impl<'a> Packed<'a> {
    /// The packed array at the start of these bytes, and its end; `None` if there is another item.
    pub(in crate::codec) fn at_start(bytes: &'a [u8]) -> Option<(Self, usize)> {
        if !bytes.starts_with(START) {
            return None;
        }
        let mut reader = Reader::new(bytes);
        reader.body(START.len()).ok()?;
        let packed = Self::read(&mut reader).ok()?;
        Some((packed, reader.at()))
    }

    /// Reads the elements, after `"Array"`.
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let start = *reader;
        let (class, len) = match reader.head()? {
            Head::Bytes(len) => (ViewClass::Uint8, len),
            Head::Tag(tag) => {
                match (class_of_tag(tag).filter(|class| is_packed(*class)), reader.head()?) {
                    (Some(class), Head::Bytes(len)) => (class, len),
                    _ => return start.fail("invalid value: packed array of another class"),
                }
            }
            _ => return start.fail("invalid value: packed array without its elements"),
        };
        let packed = Self { class, bytes: reader.body(len)? };
        let is_whole = len.is_multiple_of(class.element_bytes());
        if !is_whole || packed.len() < PACKED_ITEMS_MIN {
            return start.fail("invalid value: packed array that is too short");
        }
        if class == ViewClass::Float64 && packed.iter().any(has_payload) {
            return start.fail("invalid value: NaN with a sign or a payload");
        }
        Ok(packed)
    }

    /// The number of items, which is not 0.
    #[expect(clippy::len_without_is_empty, reason = "no packed array is empty")]
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len() / self.class.element_bytes()
    }

    /// The bytes of all elements.
    pub(super) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// An item; `None` beyond the last.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<f64> {
        let size = self.class.element_bytes();
        let start = index.checked_mul(size)?;
        let element = self.bytes.get(start..)?.get(..size)?;
        Some(number(self.class, element))
    }

    /// The items in order.
    pub fn iter(&self) -> impl Iterator<Item = f64> + use<'a> {
        let class = self.class;
        self.bytes.chunks_exact(class.element_bytes()).map(move |element| number(class, element))
    }

    fn write_plain(&self, writer: &mut Writer) {
        writer.array(self.len());
        self.iter().for_each(|n| writer.number(n));
    }
}

/// Whether the elements of packed arrays can have the class, beside bytes.
fn is_packed(class: ViewClass) -> bool {
    matches!(
        class,
        ViewClass::Int8
            | ViewClass::Int16
            | ViewClass::Uint16
            | ViewClass::Int32
            | ViewClass::Float64
    )
}

fn has_payload(n: f64) -> bool {
    n.is_nan() && n.to_bits() != NAN_BITS
}

/// The number of an element, which is little-endian and as long as the class says.
fn number(class: ViewClass, element: &[u8]) -> f64 {
    let bits = element.iter().rev().fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
    match class {
        ViewClass::Float64 => f64::from_bits(bits),
        ViewClass::Int8 => f64::from(bits as i8),
        ViewClass::Int16 => f64::from(bits as i16),
        ViewClass::Int32 => f64::from(bits as i32),
        _ => bits as f64,
    }
}

/// The value with its outermost array plain, if that is packed.
#[must_use]
pub fn unpacked(bytes: &[u8]) -> Cow<'_, [u8]> {
    match Packed::at_start(bytes) {
        Some((packed, end)) if end == bytes.len() => {
            let mut writer = Writer::with_capacity(bytes.len() * 9 / packed.class.element_bytes());
            packed.write_plain(&mut writer);
            writer.into_bytes().into()
        }
        _ => bytes.into(),
    }
}

/// The head of tag 27 and the name, after which [`Packed::read`] reads; used where items are read one by
/// one.
pub(super) fn packed_of<'a>(reader: &mut Reader<'a>, tag: u64) -> Option<Packed<'a>> {
    if tag != TAG_GENERIC || reader.head().ok()? != Head::Array(2) {
        return None;
    }
    let Head::Text(len) = reader.head().ok()? else { return None };
    (reader.body(len).ok()? == b"Array").then(|| Packed::read(reader).ok())?
}

impl Decoder<'_> {
    /// Reads a packed array, after `"Array"`, as an array.
    pub(super) fn packed(&mut self) -> Result<Option<Node>, Malformed> {
        self.refuse_depth()?;
        let packed = Packed::read(&mut self.reader)?;
        Ok(Some(Node::Array(packed.iter().map(|n| self.value.push(Node::Number(n))).collect())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::cbor::{decode, encode};
    use crate::codec::hex::hex;

    /// A packed array of `items` elements of one class, each with these digits.
    fn packed(tag: &str, element: &str, items: usize) -> Vec<u8> {
        let bytes = items * element.len() / 2;
        hex(&format!("d81b82 654172726179 {tag} 59{bytes:04x} {}", element.repeat(items)))
    }

    #[test]
    fn every_class_is_read_as_an_array() {
        for (tag, element, number) in [
            ("", "ff", 255.0),
            ("d848", "ff", -1.0),
            ("d845", "ffff", 65535.0),
            ("d84d", "fffe", -257.0),
            ("d84e", "00000080", -2_147_483_648.0),
            ("d856", "000000000000f83f", 1.5),
            ("d856", "0000000000000080", -0.0),
        ] {
            let bytes = packed(tag, element, 300);
            let value = decode(&bytes).unwrap();
            let Some(Node::Array(items)) = value.node(value.root_id()) else { panic!("{value:?}") };
            assert_eq!(items.len(), 300);
            for item in items {
                let Some(Node::Number(n)) = value.node(*item) else { panic!("{value:?}") };
                assert_eq!(n.to_bits(), f64::to_bits(number));
            }
            let plain = encode(&value).unwrap();
            assert_eq!(plain, unpacked(&bytes)[..], "{tag}");
            assert_eq!(unpacked(&plain)[..], plain);
            let (read, end) = Packed::at_start(&bytes).unwrap();
            assert_eq!((read.len(), end), (300, bytes.len()));
            assert_eq!(read.get(299).map(f64::to_bits), Some(f64::to_bits(number)));
            assert_eq!(read.get(300), None);
        }
    }

    #[test]
    fn other_elements_are_refused() {
        for bytes in [
            packed("d856", "010000000000f87f", 256),
            packed("d856", "000000000000f8ff", 256),
            packed("d844", "ff", 256),
            packed("d846", "ffffffff", 256),
            packed("d856", "00", 257),
            hex(&format!("d81b82 654172726179 581f {}", "01".repeat(31))),
            hex("d81b82 654172726179 9820"),
            hex("d81b82 654172726179"),
        ] {
            assert!(decode(&bytes).is_err(), "{bytes:02x?}");
            assert!(Packed::at_start(&bytes).is_none(), "{bytes:02x?}");
            assert_eq!(unpacked(&bytes)[..], bytes);
        }
        let least = hex(&format!("d81b82 654172726179 5820 {}", "01".repeat(32)));
        assert!(decode(&least).is_ok());
    }
}
