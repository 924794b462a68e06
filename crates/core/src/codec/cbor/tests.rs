//! Accepted and rejected bytes, and the limits of depth and size. `tests/golden.rs` tests the
//! vectors that both implementations share.

mod graphs;
mod refused;

use super::*;
use crate::codec::hex::hex;
use crate::model::{
    Blob, Boxed, Error, JsString, Kind, Node, NodeId, VALUE_DEPTH_MAX, Value, ViewClass,
};

/// Runs `work` on a stack that a recursion as deep as the data would overflow.
fn on_a_small_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    const STACK_BYTES: usize = 128 * 1024;
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work).unwrap();
    thread.join().unwrap()
}

/// Decodes, and checks that encoding gives the same bytes and that a generic CBOR reader accepts
/// them.
fn read(bytes: &[u8]) -> Value {
    let value = decode(bytes).unwrap_or_else(|error| panic!("{bytes:02x?}: {error}"));
    assert_eq!(encode(&value).unwrap(), bytes, "{value:?}");
    ciborium::from_reader::<ciborium::Value, _>(bytes).expect("standard CBOR");
    value
}

fn root(value: &Value) -> &Node {
    value.node(value.root_id()).unwrap()
}

#[test]
fn leaves_have_the_bytes_of_the_format() {
    let text = |text: &str| Node::String(text.into());
    let view = |class, bytes: &[u8]| Node::View(class, bytes.into());
    let vectors = [
        ("f7", Node::Undefined),
        ("f6", Node::Null),
        ("f4", Node::Bool(false)),
        ("f5", Node::Bool(true)),
        ("1903e8", Node::Number(1000.0)),
        ("20", Node::Number(-1.0)),
        ("fb8000000000000000", Node::Number(-0.0)),
        ("c240", Node::BigInt(0.into())),
        ("c340", Node::BigInt((-1).into())),
        ("c249010000000000000000", Node::BigInt((1i128 << 64).into())),
        ("60", text("")),
        ("62c3a9", text("é")),
        ("d9011143eda080", Node::String(JsString::from_wtf8(vec![0xed, 0xa0, 0x80]).unwrap())),
        ("420102", view(ViewClass::Uint8, &[1, 2])),
        ("d84440", view(ViewClass::Uint8Clamped, &[])),
        ("d84d420100", view(ViewClass::Int16, &[1, 0])),
        ("d854420100", view(ViewClass::Float16, &[1, 0])),
        ("d81b82684461746156696577 4101", view(ViewClass::DataView, &[1])),
        ("c1fb0000000000000000", Node::Date(0.0)),
        ("c1fb3ff8000000000000", Node::Date(1500.0)),
        ("c1fbbf50624dd2f1a9fc", Node::Date(-1.0)),
        ("80", Node::Array(vec![])),
        ("a0", Node::Object(vec![])),
        ("d9010280", Node::Set(vec![])),
        ("d90103a0", Node::Map(vec![])),
        ("d81b8365417272617902a0", Node::SparseArray { length: 2, entries: vec![] }),
        ("d81b8267426f6f6c65616ef5", Node::Boxed(Box::new(Boxed::Boolean(true)))),
        ("d81b82664e756d62657201", Node::Boxed(Box::new(Boxed::Number(1.0)))),
        ("d81b8266537472696e676161", Node::Boxed(Box::new(Boxed::String("a".into())))),
        ("d81b8266426967496e74c24101", Node::Boxed(Box::new(Boxed::BigInt(1.into())))),
        (
            "d81b8364426c6f62410161 74",
            Node::Blob(Box::new(Blob { bytes: vec![1], media_type: "t".into(), file: None })),
        ),
    ];
    for (bytes, node) in vectors {
        let bytes = hex(bytes);
        assert_eq!(root(&read(&bytes)), &node, "{bytes:02x?}");
    }
}

#[test]
fn every_date_round_trips() {
    let mut dates = vec![0.0, 1.0, -1.0, 8.64e15, -8.64e15, f64::NAN];
    // Times at which rounding alone would be a millisecond off.
    dates.extend((0..2_000).map(|step| 4_398_046_511_104_001.0 + f64::from(step) * 52_776_001.0));
    dates.extend((0..2_000).map(|step| -8.64e15 + f64::from(step) * 8_640_000_000_017.0));
    for ms in dates {
        let bytes = encode(&Value::new(Node::Date(ms))).unwrap();
        let Node::Date(back) = *root(&read(&bytes)) else { panic!("{ms}") };
        assert_eq!(back.to_bits(), ms.to_bits());
    }
}

#[test]
fn a_repeated_object_is_one_node() {
    // a = [a, {b: a}]
    let value = read(&hex("d81c82 d81d00 a1 6162 d81d00"));
    let Node::Array(items) = root(&value) else { panic!("{value:?}") };
    assert_eq!(items[0], value.root_id());
    let Some(Node::Object(entries)) = value.node(items[1]) else { panic!("{value:?}") };
    assert_eq!(entries[..], [("b".into(), value.root_id())]);
}

#[test]
fn indexes_of_shared_objects_follow_the_bytes() {
    // [a, b, b, a] with a = [b']: the mark of a comes before that of b.
    let value = read(&hex("84 d81ca0 d81c80 d81d01 d81d00"));
    let Node::Array(items) = root(&value) else { panic!("{value:?}") };
    assert_eq!((items[2], items[3]), (items[1], items[0]));
}

/// The digits of a view, of those of its buffer and of its window.
fn view(class: &str, buffer: &str, window: &str) -> String {
    let name: String = class.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("d81b85 6456696577 {:02x}{name} {buffer} {window}", 0x60 + class.len())
}

#[test]
fn views_of_one_buffer_share_it() {
    let buffer = "d81b826b4172726179427566666572 4401020304";
    let first = view("Uint8Array", &format!("d81c {buffer}"), "01 02");
    let second = view("Int16Array", "d81d00", "02 01");
    let value = read(&hex(&format!("82 {first} {second}")));
    let Node::Array(items) = root(&value) else { panic!("{value:?}") };
    let windows = items.iter().map(|id| match value.node(*id) {
        Some(Node::Window(window)) => **window,
        other => panic!("{other:?}"),
    });
    let windows: Vec<_> = windows.collect();
    assert_eq!(windows[0].buffer, windows[1].buffer);
    assert_eq!(windows[1].class, ViewClass::Int16);
    assert_eq!((windows[1].offset_bytes, windows[1].length), (2, Some(1)));

    let growing = "d81b836b4172726179427566666572 42010208";
    read(&hex(&view("DataView", growing, "01 f6")));
}

#[test]
fn errors_keep_their_standard_properties() {
    let value = read(&hex("d81b82 69547970654572726f72 a3 676d657373616765 616d
        65737461636b 6173 656361757365 d81b82 654572726f72 a0"
        .replace(char::is_whitespace, "")
        .as_str()));
    let Node::Error(error) = root(&value) else { panic!("{value:?}") };
    assert_eq!(error.name.name(), "TypeError");
    assert_eq!(error.message, Some("m".into()));
    assert!(
        matches!(value.node(error.cause.unwrap()), Some(Node::Error(inner)) if inner.cause.is_none())
    );
}

/// `depth` nested arrays around the bytes.
fn nested(depth: usize, inside: &[u8]) -> Vec<u8> {
    [vec![0x81; depth], inside.to_vec()].concat()
}

#[test]
fn nesting_is_bounded_in_both_directions() {
    let regexp = hex("d81b8366526567457870616160");
    let error = hex("d81b82654572726f72a0");
    on_a_small_stack(move || {
        for inside in [&[0x01][..], &regexp] {
            let bytes = nested(VALUE_DEPTH_MAX, inside);
            assert_eq!(encode(&decode(&bytes).unwrap()).unwrap(), bytes);
        }
        for inside in [&[0x80][..], &[0xa0], &error] {
            decode(&nested(VALUE_DEPTH_MAX - 1, inside)).unwrap();
            let refused = decode(&nested(VALUE_DEPTH_MAX, inside)).unwrap_err();
            assert!(refused.what().contains("too deeply"), "{refused}");
        }
        decode(&nested(1_000_000, &[0x01])).unwrap_err();
    });
}

#[test]
fn a_tree_that_is_too_deep_is_not_written() {
    let chain = |depth: usize| {
        let mut value = Value::new(Node::Null);
        let mut inner = value.push(Node::Array(vec![]));
        for _ in 2..depth {
            inner = value.push(Node::Array(vec![inner]));
        }
        value.set(value.root_id(), Node::Set(vec![inner]));
        value
    };
    on_a_small_stack(move || {
        assert!(encode(&chain(VALUE_DEPTH_MAX)).is_ok());
        assert_eq!(encode(&chain(VALUE_DEPTH_MAX + 1)).map_err(|e| e.kind()), Err(Kind::Range));
        // Dropping does not recurse either.
        drop(chain(1_000_000));
    });
}

#[test]
fn ids_of_other_values_are_not_followed() {
    let mut large = Value::new(Node::Null);
    let others: Vec<NodeId> = (0..3).map(|_| large.push(Node::Null)).collect();
    let value = Value::new(Node::Array(others));
    assert_eq!(encode(&value).map_err(|error: Error| error.kind()), Err(Kind::Invalid));
}

#[test]
fn a_declared_length_allocates_nothing() {
    for claim in
        ["9b0000000fffffffff", "bb0000000fffffffff", "5b0000000fffffffff", "7b7fffffffffffffff"]
    {
        let error = decode(&hex(claim)).unwrap_err();
        assert!(error.what().contains("truncated"), "{claim}: {error}");
    }
}
