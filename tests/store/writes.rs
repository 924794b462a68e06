//! Short constructors of keys, values and writes.

use openkv::model::{
    AtomicWrite, Check, EncodedValue, Encoding, Key, Limits, Message, Mutation, Time, Versionstamp,
    WriteParts,
};

pub(crate) fn key(text: &str) -> Key {
    let mut bytes = vec![2];
    bytes.extend_from_slice(text.as_bytes());
    bytes.push(0);
    Key::from_encoded(bytes)
}

pub(crate) fn bytes(value: &[u8]) -> EncodedValue {
    EncodedValue { encoding: Encoding::Bytes, bytes: value.to_vec() }
}

pub(crate) fn set(name: &str, value: &[u8]) -> Mutation {
    Mutation::Set { key: key(name), suffixed: false, value: bytes(value), expiry: None }
}

pub(crate) fn set_until(name: &str, value: &[u8], end_ms: i64) -> Mutation {
    let expiry = Some(Time::At(end_ms));
    Mutation::Set { key: key(name), suffixed: false, value: bytes(value), expiry }
}

pub(crate) fn set_suffixed(name: &str, value: &[u8]) -> Mutation {
    Mutation::Set { key: key(name), suffixed: true, value: bytes(value), expiry: None }
}

pub(crate) fn delete(name: &str) -> Mutation {
    Mutation::Delete { key: key(name) }
}

pub(crate) fn absent(name: &str) -> Check {
    Check { key: key(name), expected: None }
}

pub(crate) fn write(mutations: Vec<Mutation>) -> AtomicWrite {
    checked(Vec::new(), mutations)
}

pub(crate) fn checked(checks: Vec<Check>, mutations: Vec<Mutation>) -> AtomicWrite {
    let parts = WriteParts { checks, mutations, ..WriteParts::default() };
    AtomicWrite::new(parts, &Limits::default()).expect("within the limits")
}

/// Messages of one byte each.
pub(crate) fn enqueue(
    values: std::ops::Range<u8>,
    due_ms: i64,
    backoff_ms: &[u32],
    undelivered: &[&str],
) -> AtomicWrite {
    let message = |value| Message {
        due: Time::At(due_ms),
        backoff_ms: backoff_ms.to_vec(),
        keys_if_undelivered: undelivered.iter().map(|name| key(name)).collect(),
        value: vec![value],
        ..Message::default()
    };
    let messages = values.map(message).collect();
    let parts = WriteParts { messages, ..WriteParts::default() };
    AtomicWrite::new(parts, &Limits::default()).expect("within the limits")
}

pub(crate) fn stamp(version: u64) -> Versionstamp {
    Versionstamp::new(version)
}
