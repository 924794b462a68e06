//! Values in V8's format: no input panics; the length of the input bounds the memory; an accepted
//! value can be encoded again with the same meaning; the one-pass conversions of `transcode` give
//! the same bytes as those through a tree.

use super::within;
use openkv::codec::{cbor, transcode, v8};
use openkv::model::VALUE_DEPTH_MAX;

/// The documented bound of the decoder. The depth bounds its stack, which doubles as it grows.
fn bytes_max(len: usize) -> usize {
    len * 64 + len.min(VALUE_DEPTH_MAX) * 512 + 64 * 1024
}

pub(crate) fn check(data: &[u8]) {
    let value = within(bytes_max(data.len()), || v8::decode(data));
    let rewritten = transcode::to_cbor(data);
    let Ok(value) = value else {
        assert!(rewritten.is_err());
        return;
    };
    let in_cbor = cbor::encode(&value).expect("a value that was decoded");
    assert_eq!(rewritten.expect("as by the long way"), in_cbor);
    let again = cbor::decode(&in_cbor).expect("what was just written");
    let in_v8 = v8::encode(&again).expect("V8 has a place for what came from it");
    assert_eq!(transcode::to_v8(&in_cbor).expect("as by the long way"), in_v8);
    let back = v8::decode(&in_v8).expect("what was just written");
    assert_eq!(cbor::encode(&back).expect("a value that was decoded"), in_cbor);
}
