//! Concatenates arrays without decoding their items.

use super::decode::decode;
use super::head::{Head, Reader, TAG_SHAREABLE, Writer};
use super::packed::Packed;
use crate::model::Node;

/// The bytes of tags 28 and 29, which mark and reference shared objects: the first byte, then the
/// second.
const TAG_ONE_BYTE: u8 = 0xd8;
const SHARING_TAGS: [u8; 2] = [0x1c, 0x1d];

/// An array as its number of items and their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Items<'a> {
    count: usize,
    bytes: &'a [u8],
    /// Whether an item may refer to the array itself.
    shareable: bool,
}

/// The items of an array without holes and further properties; `None` for any other value, and for a
/// packed array ([`unpacked`](super::unpacked)). Does not validate the items.
pub fn plain_items(bytes: &[u8]) -> Option<Items<'_>> {
    let mut reader = Reader::new(bytes);
    let mut head = reader.head().ok()?;
    let shareable = head == Head::Tag(TAG_SHAREABLE);
    if shareable {
        head = reader.head().ok()?;
    }
    let Head::Array(count) = head else { return None };
    Some(Items { count, bytes: bytes.get(reader.at()..)?, shareable })
}

/// The length of an array, also of one with holes or further properties; `None` for any other
/// value.
pub fn array_length(bytes: &[u8]) -> Option<u32> {
    if let Some(items) = plain_items(bytes) {
        return u32::try_from(items.count).ok();
    }
    if let Some((packed, _)) = Packed::at_start(bytes) {
        return u32::try_from(packed.len()).ok();
    }
    let value = decode(bytes).ok()?;
    match value.node(value.root_id())? {
        Node::SparseArray { length, .. } => Some(*length),
        _ => None,
    }
}

impl Items<'_> {
    /// Whether the array contains no shared object and no reference to one, so that its items can
    /// be moved into any other value. May return `false` for such an array, never `true` for
    /// another.
    pub fn share_nothing(&self) -> bool {
        let mut rest = self.bytes;
        while let Some(at) = rest.iter().position(|byte| *byte == TAG_ONE_BYTE) {
            rest = rest.get(at + 1..).unwrap_or_default();
            if rest.first().is_some_and(|byte| SHARING_TAGS.contains(byte)) {
                return false;
            }
        }
        !self.shareable
    }
}

/// The array of the items of both; one of the two must share nothing ([`Items::share_nothing`]).
pub fn joined(first: Items<'_>, second: Items<'_>) -> Vec<u8> {
    let mut writer = Writer::new();
    if first.shareable || second.shareable {
        writer.tag(TAG_SHAREABLE);
    }
    writer.array(first.count + second.count);
    let mut out = writer.into_bytes();
    out.reserve_exact(first.bytes.len() + second.bytes.len());
    out.extend_from_slice(first.bytes);
    out.extend_from_slice(second.bytes);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_grow_with_their_counts() {
        let one = plain_items(&[0x81, 0x01]).unwrap();
        let many: Vec<u8> = [vec![0x97], vec![0xf6; 23]].concat();
        let all = joined(one, plain_items(&many).unwrap());
        assert_eq!(all[..4], [0x98, 24, 0x01, 0xf6]);
        assert_eq!(all.len(), 26);
    }

    #[test]
    fn arrays_of_every_kind_have_a_length() {
        assert_eq!(array_length(&[0x82, 1, 2]), Some(2));
        // An array that contains itself, and [ , ] with a property beside its hole.
        assert_eq!(array_length(&[0xd8, 28, 0x81, 0xd8, 29, 0]), Some(1));
        let hole = [0xd8, 27, 0x83, 0x65, b'A', b'r', b'r', b'a', b'y', 1, 0xa0];
        assert_eq!(array_length(&hole), Some(1));
        for other in [&[0xa0][..], &[0x01], &[], &[0xf6]] {
            assert_eq!(array_length(other), None);
        }
    }

    #[test]
    fn shared_objects_and_other_values_are_detected() {
        assert!(plain_items(&[0x80]).unwrap().share_nothing());
        // [a = {}, a]
        assert!(!plain_items(&[0x82, 0xd8, 28, 0xa0, 0xd8, 29, 0]).unwrap().share_nothing());
        // An array that contains itself.
        assert!(!plain_items(&[0xd8, 28, 0x81, 0xd8, 29, 0]).unwrap().share_nothing());
        // A date is a tag too.
        assert!(plain_items(&[0x81, 0xd8, 72, 0x40]).unwrap().share_nothing());
        for other in [&[0xa0][..], &[0x01], &[], &[0x9f, 0xff], &[0xd9, 1, 2, 0x80]] {
            assert_eq!(plain_items(other), None);
        }
    }
}
