//! Values: no input panics, accepted input is the canonical encoding of its value, and the length
//! of the input bounds the memory.

use super::within;
use openkv::codec::cbor;
use openkv::model::{Node, Numeric, VALUE_DEPTH_MAX};

/// The documented bound of the decoder.
fn bytes_max(len: usize) -> usize {
    len * 256 + len.min(VALUE_DEPTH_MAX) * 512 + 4096
}

/// Whether `part` is in `whole`.
fn contains(whole: &[u8], part: &[u8]) -> bool {
    whole.windows(part.len()).any(|window| window == part)
}

pub(crate) fn check(data: &[u8]) {
    let value = within(bytes_max(data.len()), || cbor::decode(data));
    let number = cbor::number_of(data);
    let Ok(value) = value else {
        assert_eq!(number, None);
        return;
    };
    let again = within(bytes_max(data.len()), || cbor::encode(&value));
    let again = again.expect("a value that was decoded");
    // Packed arrays become plain.
    if contains(data, b"Array") {
        let value = cbor::decode(&again).expect("bytes that were encoded");
        assert_eq!(cbor::encode(&value).expect("a value that was decoded"), again);
    } else {
        assert_eq!(again, data);
    }
    let root = value.node(value.root_id()).expect("a root");
    match number {
        Some(Numeric::Number(n)) => {
            assert!(matches!(root, Node::Number(other) if other.to_bits() == n.to_bits()));
            assert_eq!(cbor::encode_number(n), data);
        }
        Some(Numeric::BigInt(n)) => {
            assert_eq!(cbor::encode_bigint(&n), data);
            assert_eq!(root, &Node::BigInt(n));
        }
        None => assert!(!matches!(root, Node::Number(_) | Node::BigInt(_))),
    }
}
