//! append and prepend: joins two arrays.
//!
//! In most cases neither array is decoded: the code writes a new head and copies the bytes of the
//! items. Arrays with shared objects or holes are decoded, to keep the identity of objects.

use crate::codec::cbor;
use crate::model::{EncodedValue, Encoding, Error, JsString, Node, NodeId, Result, Value};

/// Joins `items`, a CBOR array, to the start or end of the stored array.
///
/// # Errors
/// `Invalid` if the stored value is no array, `Corrupt` if it cannot be read.
pub(super) fn append(
    stored: Option<&EncodedValue>,
    items: Vec<u8>,
    front: bool,
) -> Result<EncodedValue> {
    let Some(stored) = stored else { return Ok(array(items)) };
    if stored.encoding != Encoding::Cbor {
        return Err(no_array(front));
    }
    let (old, new) = (cbor::unpacked(&stored.bytes), cbor::unpacked(&items));
    if let (Some(old), Some(new)) = (cbor::plain_items(&old), cbor::plain_items(&new))
        && new.share_nothing()
    {
        return Ok(array(if front { cbor::joined(new, old) } else { cbor::joined(old, new) }));
    }
    append_decoded(&old, &new, front).map(array)
}

fn array(bytes: Vec<u8>) -> EncodedValue {
    EncodedValue { encoding: Encoding::Cbor, bytes }
}

/// The name of the method in messages.
pub(super) const fn method(front: bool) -> &'static str {
    if front { "prepend" } else { "append" }
}

fn no_array(front: bool) -> Error {
    let method = method(front);
    Error::invalid(format!("Failed to perform '{method}' mutation on a value that is no array"))
}

fn append_decoded(stored: &[u8], items: &[u8], front: bool) -> Result<Vec<u8>> {
    let mut value = decode(stored)?;
    let root = value.root_id();
    let old = List::of(&value, root).ok_or_else(|| no_array(front))?;
    let new = value.absorb(decode(items)?);
    let new = List::of(&value, new).ok_or_else(|| no_array(front))?;
    // Like push and unshift, this keeps named properties of the stored array only.
    let names = old.names.clone();
    let joined = if front { new.followed_by(old) } else { old.followed_by(new) };
    let node = joined?.into_node(names);
    value.set(root, node);
    cbor::encode(&value)
}

fn decode(bytes: &[u8]) -> Result<Value> {
    cbor::decode(bytes).map_err(|malformed| Error::corrupt(malformed.to_string()))
}

/// An array by its indexes.
struct List {
    length: u32,
    items: Vec<(u32, NodeId)>,
    /// Properties that are no indexes.
    names: Vec<(JsString, NodeId)>,
}

impl List {
    fn of(value: &Value, id: NodeId) -> Option<Self> {
        match value.node(id)? {
            Node::Array(items) => {
                let length = u32::try_from(items.len()).ok()?;
                Some(Self {
                    length,
                    items: (0..length).zip(items.iter().copied()).collect(),
                    names: Vec::new(),
                })
            }
            Node::SparseArray { length, entries } => {
                let mut list = Self { length: *length, items: Vec::new(), names: Vec::new() };
                for (name, id) in entries {
                    match index(name, *length) {
                        Some(at) => list.items.push((at, *id)),
                        None => list.names.push((name.clone(), *id)),
                    }
                }
                Some(list)
            }
            _ => None,
        }
    }

    fn followed_by(mut self, other: Self) -> Result<Self> {
        let before = self.length;
        self.length = before.checked_add(other.length).ok_or_else(|| {
            Error::too_large("Invalid array length: an array has at most 4294967295 items")
        })?;
        self.items.extend(other.items.into_iter().map(|(at, id)| (before + at, id)));
        Ok(self)
    }

    fn into_node(self, names: Vec<(JsString, NodeId)>) -> Node {
        if names.is_empty() && self.items.len() == self.length as usize {
            return Node::Array(self.items.into_iter().map(|(_, id)| id).collect());
        }
        let indexed = self.items.into_iter().map(|(at, id)| (at.to_string().as_str().into(), id));
        Node::SparseArray { length: self.length, entries: indexed.chain(names).collect() }
    }
}

/// The array index in a property name, below `length`.
fn index(name: &JsString, length: u32) -> Option<u32> {
    let text = name.as_str()?;
    let at: u32 = text.parse().ok()?;
    (at < length && at.to_string() == text).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Kind;

    fn appended(stored: &[u8], items: &[u8], front: bool) -> Vec<u8> {
        append(Some(&array(stored.to_vec())), items.to_vec(), front).unwrap().bytes
    }

    #[test]
    fn plain_arrays_are_spliced() {
        assert_eq!(appended(&[0x81, 1], &[0x82, 2, 3], false), [0x83, 1, 2, 3]);
        assert_eq!(appended(&[0x81, 1], &[0x82, 2, 3], true), [0x83, 2, 3, 1]);
        assert_eq!(append(None, vec![0x80], true).unwrap().bytes, [0x80]);
    }

    #[test]
    fn shared_objects_keep_their_identity() {
        // a = {}; [a, a]
        let twice = [0x82, 0xd8, 28, 0xa0, 0xd8, 29, 0];
        let once = [0x81, 7];
        assert_eq!(appended(&twice, &once, true), [0x83, 7, 0xd8, 28, 0xa0, 0xd8, 29, 0]);
        let both = appended(&twice, &twice, false);
        let pair = |n| [0xd8, 28, 0xa0, 0xd8, 29, n];
        assert_eq!(both, [&[0x84][..], &pair(0), &pair(1)].concat());
        // An array that contains itself still does.
        let itself = [0xd8, 28, 0x81, 0xd8, 29, 0];
        assert_eq!(appended(&itself, &once, false), [0xd8, 28, 0x82, 0xd8, 29, 0, 7]);
    }

    #[test]
    fn packed_arrays_become_plain() {
        let packed = [&b"\xd8\x1b\x82\x65Array\x58\x20"[..], &[7; 32]].concat();
        let plain = [&[0x98, 33][..], &[7; 32], &[1]].concat();
        assert_eq!(appended(&packed, &[0x81, 1], false), plain);
        assert_eq!(appended(&[0x81, 1], &packed, true), plain);
        assert_eq!(append(None, packed.clone(), true).unwrap().bytes, packed);
        // a = {}; [a, a]
        let twice = [0x82, 0xd8, 28, 0xa0, 0xd8, 29, 0];
        let both = [&[0x98, 34][..], &[7; 32], &twice[1..]].concat();
        assert_eq!(appended(&packed, &twice, false), both);
    }

    #[test]
    fn holes_are_kept() {
        // [ , ]
        let hole = [0xd8, 27, 0x83, 0x65, b'A', b'r', b'r', b'a', b'y', 1, 0xa0];
        let mut expected = hole.to_vec();
        expected.splice(9.., [2, 0xa1, 0x61, b'1', 5]);
        assert_eq!(appended(&hole, &[0x81, 5], false), expected);
        expected.splice(9.., [2, 0xa1, 0x61, b'0', 5]);
        assert_eq!(appended(&hole, &[0x81, 5], true), expected);
    }

    #[test]
    fn anything_else_is_refused() {
        for other in [&[0xa0][..], &[1], &[0xf6], &[0xd9, 1, 2, 0x80]] {
            let error = append(Some(&array(other.to_vec())), vec![0x80], false).unwrap_err();
            assert_eq!(error.kind(), Kind::Invalid);
        }
        let bytes = EncodedValue { encoding: Encoding::Bytes, bytes: vec![0x80] };
        assert!(append(Some(&bytes), vec![0x80], false).is_err());
    }
}
