//! Values that Deno and Node have written are read, hostile bytes are rejected.
//! `tests/vectors/v8.json` has golden values in all three formats.

use super::*;
use crate::codec::{cbor, hex::hex};
use crate::model::{Blob, Kind, Node, VALUE_DEPTH_MAX, Value};

fn vectors() -> Vec<serde_json::Value> {
    let text = include_str!("../../../../../tests/vectors/v8.json");
    let json: serde_json::Value = serde_json::from_str(text).unwrap();
    json["values"].as_array().unwrap().clone()
}

/// The CBOR of a value in V8's format.
fn cbor_of(name: &str, bytes: &[u8]) -> Vec<u8> {
    let value = decode(bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
    cbor::encode(&value).unwrap()
}

#[test]
fn values_of_deno_and_node_are_read() {
    for case in vectors() {
        let name = case["name"].as_str().unwrap();
        let expected = hex(case["cbor"].as_str().unwrap());
        for writer in ["deno", "node"] {
            let Some(written) = case[writer].as_str() else { continue };
            assert_eq!(cbor_of(name, &hex(written)), expected, "{writer}: {name}");
        }
    }
}

#[test]
fn values_round_trip_through_their_golden_bytes() {
    for case in vectors() {
        let name = case["name"].as_str().unwrap();
        let in_cbor = hex(case["cbor"].as_str().unwrap());
        let written = encode(&cbor::decode(&in_cbor).unwrap()).unwrap();
        assert_eq!(written, hex(case["written"].as_str().unwrap()), "{name}");
        assert_eq!(cbor_of(name, &written), in_cbor, "{name}");
    }
}

/// Forms that are read although openkv does not write them; the bytes after the version.
#[test]
fn other_forms_are_read() {
    let cases = [
        ("zeros before tags", "00 00 49 02", "01"),
        ("an object count", "3f 01 49 02", "01"),
        ("uint32", "55 ff ff ff ff 0f", "1affffffff"),
        ("UTF-8 text", "53 02 c3a9", "62c3a9"),
        ("a bigint with as few bytes as it needs", "5a 02 02", "c24102"),
        ("a bigint with superfluous zeros", "5a 20 0100000000000000 0000000000000000", "c24101"),
        ("a dense array in the sparse form", "61 01 49 00 49 02 40 01 01", "8101"),
        ("an array of holes", "41 02 2d 2d 24 00 02", "d81b83654172726179 02 a0"),
        ("an index as a double", "6f 4e 0000c0ffffffef41 30 7b 01", "a16a34323934393637323934f6"),
        (
            "an error in Node's order",
            "72 6d 22 01 6d 63 22 01 63 73 22 01 73 2e",
            "d81b82654572726f72a3676d657373616765616d65737461636b6173656361757365 6163",
        ),
        ("bytes behind the value", "30 99 99", "f6"),
        ("a Node Buffer", "5c 0a 03 010203", "43010203"),
        ("a view alone over a part", "42 04 01020304 56 42 01 02 00", "420203"),
        ("-0 as a key of a Map", "3b 4e 0000000000000080 30 3a 02", "d90103a100f6"),
    ];
    for (name, bytes, expected) in cases {
        for version in ["ff0e", "ff0f", "ff10"] {
            let bytes = hex(&format!("{version}{bytes}"));
            assert_eq!(cbor_of(name, &bytes), hex(expected), "{name}");
        }
    }
    // Version 13 has no flags, but some of its writers wrote them.
    for flags in ["", "00"] {
        let bytes = hex(&format!("ff0d 41 01 42 02 0102 56 42 00 02 {flags} 24 00 01"));
        assert_eq!(cbor_of("version 13", &bytes), hex("81420102"));
    }
}

#[test]
fn invalid_bytes_are_rejected() {
    let cases = [
        ("nothing", ""),
        ("no version", "49 02"),
        ("a version alone", "ff 0f"),
        ("version 12", "ff 0c 30"),
        ("version 17", "ff 11 30"),
        ("an unknown tag", "ff 0f 21"),
        ("a shared buffer", "ff 0f 75 00"),
        ("a reference to nothing", "ff 0f 5e 00"),
        ("a wrong trailer", "ff 0f 41 01 30 24 00 02"),
        ("a wrong count", "ff 0f 6f 22 01 61 30 7b 02"),
        ("a Map with a key and no value", "ff 0f 3b 30 3a 01"),
        ("a Map with a key twice", "ff 0f 3b 30 30 30 30 3a 04"),
        ("a Set with an item twice", "ff 0f 27 49 02 49 02 2c 02"),
        ("a name twice", "ff 0f 6f 22 01 61 30 22 01 61 30 7b 02"),
        ("an object as a name", "ff 0f 6f 6f 7b 00 30 7b 01"),
        ("an element beyond the array", "ff 0f 61 01 49 02 30 40 01 01"),
        ("half a character", "ff 0f 63 01 61"),
        ("a view outside", "ff 0f 42 01 00 56 42 00 02 00"),
        ("a view off its element", "ff 0f 42 04 00000000 56 57 01 02 00"),
        ("a view that tracks a fixed buffer", "ff 0f 42 01 00 56 42 00 00 01"),
        ("a buffer beyond its maximum", "ff 0f 7e 02 01 0000"),
        ("a maximum that no buffer has", "ff 0f 7e 00 ffffffffffffffff01"),
        ("an unknown flag of a RegExp", "ff 0f 52 22 01 61 40"),
        ("RegExp flags u and v", "ff 0f 52 22 01 61 90 02"),
        ("a host object of an unknown kind", "ff 0f 5c 63 00"),
        ("a Blob of Deno's", "ff 0f 5c ffffffff0f 6f 22 04 74797065 22 04 426c6f62 7b 01"),
    ];
    for (name, bytes) in cases {
        assert!(decode(&hex(bytes)).is_err(), "{name}");
    }
    for case in vectors() {
        let written = hex(case["deno"].as_str().unwrap());
        for len in 0..written.len() {
            assert!(decode(&written[..len]).is_err(), "{} cut to {len}", case["name"]);
        }
    }
}

#[test]
fn nesting_is_bounded_both_ways() {
    let nested = |depth: usize| {
        let ends = hex("24 00 01").repeat(depth);
        [hex("ff 0f"), hex("41 01").repeat(depth), hex("30"), ends].concat()
    };
    assert!(decode(&nested(VALUE_DEPTH_MAX)).is_ok());
    assert!(decode(&nested(VALUE_DEPTH_MAX + 1)).is_err());
    assert!(decode(&hex("41 01").repeat(1 << 20)).is_err());
    let mut value = Value::new(Node::Null);
    let root = value.root_id();
    value.set(root, Node::Array(vec![root]));
    assert!(encode(&value).is_ok());
    let mut inner = value.push(Node::Null);
    for _ in 0..=VALUE_DEPTH_MAX {
        inner = value.push(Node::Array(vec![inner]));
    }
    value.set(root, Node::Set(vec![inner]));
    assert_eq!(encode(&value).unwrap_err().kind(), Kind::Range);
}

/// Each hole once was a recursive call; a long array of holes overflowed the stack of a debug
/// build.
#[test]
fn holes_use_no_stack() {
    let holes: usize = 1 << 16;
    let length = [0x80, 0x80, 0x04];
    let bytes =
        [&hex("ff 0f 41"), &length[..], &b"-".repeat(holes), &hex("24 00"), &length].concat();
    const STACK_BYTES: usize = 128 * 1024;
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    let value = thread.spawn(move || decode(&bytes)).unwrap().join().unwrap().unwrap();
    let Some(Node::SparseArray { length, entries }) = value.node(value.root_id()) else { panic!() };
    assert_eq!((*length as usize, entries.len()), (holes, 0));
}

#[test]
fn a_blob_is_rejected() {
    let blob = Blob { bytes: vec![1], media_type: "".into(), file: None };
    let error = encode(&Value::new(Node::Blob(Box::new(blob)))).unwrap_err();
    assert_eq!(error.kind(), Kind::Invalid);
}
