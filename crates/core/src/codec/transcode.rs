//! Converts values between formats: the CBOR of openkv's own files ⇄ V8's format of Deno's files
//! and protocol.
//!
//! Most values are plain data: objects and arrays of numbers, strings and dates without shared
//! references. [`fast`] rewrites these in one pass, head by head; all others are decoded into a
//! [`Value`](crate::model::Value) and encoded. Both ways give the same bytes
//! (docs/decisions/0022-values.md).

mod fast;
mod into_cbor;
mod into_v8;

use super::{Malformed, cbor, v8};
use crate::model::{Error, Result};

/// The V8 bytes of a value in CBOR.
///
/// # Errors
/// `Corrupt` for invalid bytes; as [`v8::encode`] for a value that the format cannot represent.
pub fn to_v8(bytes: &[u8]) -> Result<Vec<u8>> {
    match into_v8::plain(bytes) {
        Some(plain) => Ok(plain),
        None => v8::encode(&cbor::decode(bytes).map_err(unreadable)?),
    }
}

/// The CBOR bytes of a value in V8's format.
///
/// # Errors
/// `Corrupt` for invalid bytes, and for a value that only V8 can read.
pub fn to_cbor(bytes: &[u8]) -> Result<Vec<u8>> {
    match into_cbor::plain(bytes) {
        Some(plain) => Ok(plain),
        None => cbor::encode(&v8::decode(bytes).map_err(unreadable)?),
    }
}

fn unreadable(why: Malformed) -> Error {
    Error::corrupt(why.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::hex::hex;

    fn vectors() -> Vec<(String, Vec<u8>, Vec<u8>)> {
        let text = include_str!("../../../../tests/vectors/v8.json");
        let json: serde_json::Value = serde_json::from_str(text).unwrap();
        let vectors = json["values"].as_array().unwrap().iter();
        let bytes = |case: &serde_json::Value, of: &str| hex(case[of].as_str().unwrap());
        vectors
            .map(|case| (case["name"].to_string(), bytes(case, "cbor"), bytes(case, "written")))
            .collect()
    }

    #[test]
    fn both_ways_give_the_same_bytes() {
        let mut plain = 0;
        for (name, cbor_bytes, v8_bytes) in vectors() {
            assert_eq!(to_v8(&cbor_bytes).unwrap(), v8_bytes, "{name}");
            assert_eq!(to_cbor(&v8_bytes).unwrap(), cbor_bytes, "{name}");
            for (fast, slow) in [
                (into_v8::plain(&cbor_bytes), &v8_bytes),
                (into_cbor::plain(&v8_bytes), &cbor_bytes),
            ] {
                plain += usize::from(fast.is_some());
                assert!(fast.is_none_or(|fast| fast == *slow), "{name}");
            }
        }
        assert!(plain > 100, "only {plain} took the fast way");
    }

    #[test]
    fn long_objects_and_deep_ones() {
        let mut value = crate::model::Value::new(crate::model::Node::Null);
        let mut inner = value.push(crate::model::Node::Number(1.0));
        for depth in 0..900_u32 {
            let entries = (0..depth % 40).map(|at| (format!("n{at}").as_str().into(), inner));
            let entries: Vec<_> = entries.collect();
            let last = entries.last().cloned();
            // One reference to each node, so that nothing is shared.
            let one = value.push(crate::model::Node::Number(f64::from(depth)));
            let mut entries: Vec<_> = entries.into_iter().map(|(name, _)| (name, one)).collect();
            if let (Some(end), Some(_)) = (entries.last_mut(), last) {
                end.1 = inner;
            } else {
                entries.push(("only".into(), inner));
            }
            inner = value.push(crate::model::Node::Object(entries));
        }
        let root = value.root_id();
        value.set(root, crate::model::Node::Array(vec![inner]));
        let (in_cbor, in_v8) = (cbor::encode(&value).unwrap(), v8::encode(&value).unwrap());
        assert_eq!(into_v8::plain(&in_cbor), Some(in_v8.clone()));
        assert_eq!(into_cbor::plain(&in_v8), Some(in_cbor));
    }

    /// Found by fuzzing: the one-pass conversion did not sort array indexes.
    #[test]
    fn indexes_are_sorted_by_both_ways() {
        for bytes in [
            "6f 49 06 30 49 04 30 7b 02",
            "6f 22 01 61 30 49 04 30 7b 02",
            "6f 22 01 33 30 22 01 32 30 7b 02",
        ] {
            let bytes = hex(&format!("ff0f {bytes}"));
            assert_eq!(
                to_cbor(&bytes).unwrap(),
                cbor::encode(&v8::decode(&bytes).unwrap()).unwrap()
            );
        }
    }

    #[test]
    fn truncated_bytes_are_rejected_by_both_ways() {
        for (name, cbor_bytes, v8_bytes) in vectors() {
            for len in 0..v8_bytes.len() {
                let cut = &v8_bytes[..len];
                assert_eq!(to_cbor(cut).is_ok(), v8::decode(cut).is_ok(), "{name} {len}");
            }
            for len in 0..cbor_bytes.len() {
                assert!(to_v8(&cbor_bytes[..len]).is_err(), "{name} {len}");
            }
        }
    }
}
