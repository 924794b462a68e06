//! Encoded keys sort like their parts, and the decoder accepts only canonical bytes.

use std::cmp::Ordering;

use proptest::prelude::*;

use super::*;
use crate::codec::hex::hex;
use kit::{compare, encode};

#[path = "../../../../../tests/kit/key.rs"]
mod kit;

fn big(text: &str) -> KeyPart {
    KeyPart::BigInt(text.parse().unwrap())
}

fn text(text: &str) -> KeyPart {
    KeyPart::String(text.into())
}

#[test]
fn parts_have_the_bytes_of_deno_kv() {
    let pow = |base: i32, exponent: u32| BigInt::from(base).pow(exponent);
    let vectors: Vec<(KeyPart, &str)> = vec![
        (KeyPart::Bytes(vec![]), "0100"),
        (KeyPart::Bytes(vec![0]), "0100ff00"),
        (KeyPart::Bytes(vec![0xff, 0, 0xff, 0]), "01ff00ffff00ff00"),
        (KeyPart::Bytes(vec![0, 0xff]), "0100ffff00"),
        (text(""), "0200"),
        (text("a\0b"), "026100ff6200"),
        (text("😀"), "02f09f988000"),
        (big("0"), "14"),
        (big("255"), "15ff"),
        (big("256"), "160100"),
        (KeyPart::BigInt(pow(2, 64) - 1), "1cffffffffffffffff"),
        (KeyPart::BigInt(pow(2, 64)), "1d09010000000000000000"),
        (big("-1"), "13fe"),
        (big("-255"), "1300"),
        (big("-256"), "12feff"),
        (KeyPart::BigInt(1 - pow(2, 64)), "0c0000000000000000"),
        (KeyPart::BigInt(-pow(2, 64)), "0bf6feffffffffffffffff"),
        (KeyPart::Number(0.0), "218000000000000000"),
        (KeyPart::Number(-0.0), "217fffffffffffffff"),
        (KeyPart::Number(-1.0), "21400fffffffffffff"),
        (KeyPart::Number(0.5), "21bfe0000000000000"),
        (KeyPart::Number(f64::INFINITY), "21fff0000000000000"),
        (KeyPart::Number(f64::NEG_INFINITY), "21000fffffffffffff"),
        (KeyPart::Number(f64::NAN), "21fff8000000000000"),
        (KeyPart::Number(-f64::NAN), "210007ffffffffffff"),
        (KeyPart::Bool(false), "26"),
        (KeyPart::Bool(true), "27"),
    ];
    for (part, expected) in vectors {
        let key = encode(std::slice::from_ref(&part)).unwrap();
        assert_eq!(key, hex(expected), "{part:?}");
        assert_eq!(compare(&decode(&key).unwrap(), &[part]), Ordering::Equal);
    }
}

#[test]
fn invalid_bytes_are_rejected_with_their_offset() {
    let refused = [
        ("00", 0, "unknown tag"),
        ("03", 0, "unknown tag"),
        ("0a", 0, "unknown tag"),
        ("1e", 0, "unknown tag"),
        ("2620", 1, "unknown tag"),
        ("ff", 0, "unknown tag"),
        ("01", 0, "truncated"),
        ("0161", 0, "truncated"),
        ("0100ff", 0, "truncated"),
        ("26020061", 3, "unknown tag"),
        ("15", 0, "truncated"),
        ("1c00", 0, "truncated"),
        ("1d", 0, "truncated"),
        ("0b", 0, "truncated"),
        ("1d0901", 0, "truncated"),
        ("21bff00000000000", 0, "truncated"),
        ("02ff00", 0, "not UTF-8"),
        ("02c300ffa900", 0, "not UTF-8"),
        ("02eda08000", 0, "not UTF-8"),
        ("1500", 0, "leading zeros"),
        ("160001", 0, "leading zeros"),
        ("13ff", 0, "leading zeros"),
        ("1d09000000000000000001", 0, "leading zeros"),
        ("0bf6ffffffffffffffffff", 0, "leading zeros"),
        ("1d0101", 0, "long form"),
        ("1d00", 0, "long form"),
        ("0bff", 0, "long form"),
        ("1d08ffffffffffffffff", 0, "long form"),
        ("21fff8000000000001", 0, "NaN"),
        ("210007fffffffffffe", 0, "NaN"),
    ];
    for (bytes, at, what) in refused {
        let error = validate(&hex(bytes)).expect_err(bytes);
        assert!(error.what().contains(what), "{bytes}: {error}");
        let place = format!("(at byte {at})");
        assert!(error.to_string().ends_with(&place), "{bytes}: {error}");
        assert_eq!(decode(&hex(bytes)).err(), Some(error));
    }
}

#[test]
fn a_bigint_of_255_bytes_is_the_longest() {
    for sign in [Sign::Plus, Sign::Minus] {
        let longest = KeyPart::BigInt(BigInt::from_bytes_be(sign, &[0xff; BIGINT_BYTES_MAX]));
        let longest = [longest];
        assert_eq!(
            compare(&decode(&encode(&longest).unwrap()).unwrap(), &longest),
            Ordering::Equal
        );
        let longer = KeyPart::BigInt(BigInt::from_bytes_be(sign, &[0xff; BIGINT_BYTES_MAX + 1]));
        assert_eq!(encode(&[longer]), None);
    }
}

#[test]
fn a_versionstamp_is_appended_as_a_string_part() {
    let stamp = Versionstamp::new(0xabc);
    let key = with_versionstamp(&Key::from_encoded(encode(&[text("sv")]).unwrap()), stamp);
    let parts = [text("sv"), text(&stamp.to_string())];
    assert_eq!(key.as_bytes(), encode(&parts).unwrap());
}

/// Few distinct bytes, so that zeros, escapes and equal prefixes occur often.
fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(0x00), Just(0x01), Just(0xff), any::<u8>()];
    prop::collection::vec(byte, 0..12)
}

fn any_part() -> impl Strategy<Value = KeyPart> {
    let signed = |(negative, magnitude): (bool, Vec<u8>)| {
        let sign = if negative { Sign::Minus } else { Sign::Plus };
        KeyPart::BigInt(BigInt::from_bytes_be(sign, &magnitude))
    };
    prop_oneof![
        any_bytes().prop_map(KeyPart::Bytes),
        prop::collection::vec(prop_oneof![Just('\0'), Just('a'), any::<char>()], 0..8)
            .prop_map(|text| KeyPart::String(text.into_iter().collect())),
        (any::<bool>(), any_bytes()).prop_map(signed),
        (any::<bool>(), prop::collection::vec(any::<u8>(), 0..=BIGINT_BYTES_MAX)).prop_map(signed),
        any::<u64>().prop_map(|bits| KeyPart::Number(f64::from_bits(bits))),
        prop_oneof![Just(0.0), Just(-0.0), Just(f64::NAN), Just(-f64::NAN), -1e3..1e3]
            .prop_map(KeyPart::Number),
        any::<bool>().prop_map(KeyPart::Bool),
    ]
}

fn any_parts() -> impl Strategy<Value = Vec<KeyPart>> {
    prop::collection::vec(any_part(), 0..4)
}

/// A key and one with a common beginning, so that a late byte decides the order.
fn related() -> impl Strategy<Value = (Vec<KeyPart>, Vec<KeyPart>)> {
    (any_parts(), any_parts(), any_parts())
        .prop_map(|(shared, a, b)| ([shared.clone(), a].concat(), [shared, b].concat()))
}

proptest! {
    #[test]
    fn decoding_gives_back_what_was_encoded(parts in any_parts()) {
        let key = encode(&parts).unwrap();
        prop_assert_eq!(validate(&key), Ok(()));
        prop_assert_eq!(compare(&decode(&key).unwrap(), &parts), Ordering::Equal);
    }

    #[test]
    fn bytes_have_the_order_of_parts((a, b) in related()) {
        prop_assert_eq!(encode(&a).unwrap().cmp(&encode(&b).unwrap()), compare(&a, &b));
    }

    #[test]
    fn accepted_bytes_are_canonical(
        parts in any_parts(), at in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let mut bytes = encode(&parts).unwrap();
        if !bytes.is_empty() {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(parts) = decode(&bytes) {
            prop_assert_eq!(encode(&parts).unwrap(), bytes);
        }
    }

    #[test]
    fn decode_and_validate_agree_on_arbitrary_bytes(bytes in any_bytes()) {
        prop_assert_eq!(validate(&bytes).err(), decode(&bytes).err());
    }
}

#[test]
fn deeper_keys_are_cut() {
    let key = b"\x02a\x00\x02b\x00\x14";
    assert_eq!(cut(key, 0, 1), Some(&key[..3]));
    assert_eq!(cut(key, 3, 1), Some(&key[..6]));
    assert_eq!(cut(key, 3, 0), Some(&key[..3]));
    assert_eq!(cut(key, 3, 2), None);
    assert_eq!(cut(key, 3, 9), None);
    assert_eq!(cut(key, 99, 0), None);
}
