//! Values that are a single number or bigint, read and written without a tree: every `sum` does
//! both.

use num_bigint::{BigInt, Sign};

use super::Malformed;
use super::head::{Head, Reader, TAG_BIGINT, TAG_NEGATIVE_BIGINT, Writer};
use crate::model::Numeric;

/// The number or bigint that the value is; `None` for any other value, without validating the rest
/// of its bytes.
///
/// ```
/// use openkv_core::codec::cbor;
/// use openkv_core::model::Numeric;
/// assert_eq!(cbor::number_of(&[0x18, 0x2a]), Some(Numeric::Number(42.0)));
/// assert_eq!(cbor::number_of(&[0xc2, 0x41, 0x2a]), Some(Numeric::BigInt(42.into())));
/// assert_eq!(cbor::number_of(&[0x61, 0x61]), None); // "a"
/// ```
pub fn number_of(bytes: &[u8]) -> Option<Numeric> {
    let mut reader = Reader::new(bytes);
    let number = match reader.head().ok()? {
        Head::Number(n) => Numeric::Number(n),
        Head::Tag(tag @ (TAG_BIGINT | TAG_NEGATIVE_BIGINT)) => {
            Numeric::BigInt(read_bigint(&mut reader, tag).ok()?)
        }
        _ => return None,
    };
    reader.end().ok().map(|()| number)
}

/// Encodes a number.
pub fn encode_number(n: f64) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.number(n);
    writer.into_bytes()
}

/// Encodes a bigint.
pub fn encode_bigint(n: &BigInt) -> Vec<u8> {
    let mut writer = Writer::new();
    write_bigint(&mut writer, n);
    writer.into_bytes()
}

/// Reads the rest of a bigint, after its tag.
pub(super) fn read_bigint(reader: &mut Reader<'_>, tag: u64) -> Result<BigInt, Malformed> {
    let start = *reader;
    let magnitude = reader.byte_string()?;
    if magnitude.first() == Some(&0) {
        return start.fail("invalid value: bigint with leading zeros");
    }
    let n = BigInt::from_bytes_be(Sign::Plus, magnitude);
    Ok(if tag == TAG_NEGATIVE_BIGINT { -1 - n } else { n })
}

pub(super) fn write_bigint(writer: &mut Writer, n: &BigInt) {
    let (tag, magnitude) = match n.sign() {
        Sign::Minus => (TAG_NEGATIVE_BIGINT, (n + 1u8).to_bytes_be()),
        Sign::NoSign | Sign::Plus => (TAG_BIGINT, n.to_bytes_be()),
    };
    writer.tag(tag);
    // Zero has an empty byte string in the format, but one byte in `magnitude`.
    writer.bytes(match magnitude.1.as_slice() {
        [0] => &[],
        magnitude => magnitude,
    });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bigint(n: impl Into<BigInt>) -> Numeric {
        Numeric::BigInt(n.into())
    }

    #[test]
    fn numbers_have_one_form_each() {
        let max = 9_007_199_254_740_991.0;
        let vectors: Vec<(f64, &[u8])> = vec![
            (0.0, &[0x00]),
            (23.0, &[0x17]),
            (24.0, &[0x18, 24]),
            (256.0, &[0x19, 1, 0]),
            (65_536.0, &[0x1a, 0, 1, 0, 0]),
            (4_294_967_296.0, &[0x1b, 0, 0, 0, 1, 0, 0, 0, 0]),
            (max, &[0x1b, 0, 0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
            (max + 1.0, &[0xfb, 0x43, 0x40, 0, 0, 0, 0, 0, 0]),
            (-1.0, &[0x20]),
            (-24.0, &[0x37]),
            (-25.0, &[0x38, 24]),
            (-max, &[0x3b, 0, 0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe]),
            (-max - 1.0, &[0xfb, 0xc3, 0x40, 0, 0, 0, 0, 0, 0]),
            (-0.0, &[0xfb, 0x80, 0, 0, 0, 0, 0, 0, 0]),
            (1.5, &[0xfb, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0]),
            (f64::INFINITY, &[0xfb, 0x7f, 0xf0, 0, 0, 0, 0, 0, 0]),
        ];
        for (n, bytes) in vectors {
            assert_eq!(encode_number(n), bytes, "{n}");
            let Some(Numeric::Number(read)) = number_of(bytes) else { panic!("{n} is not read") };
            assert_eq!(read.to_bits(), n.to_bits());
        }
        for nan in [f64::NAN, -f64::NAN, f64::from_bits(0x7ff0_0000_0000_0001)] {
            assert_eq!(encode_number(nan), [0xfb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0]);
        }
    }

    #[test]
    fn bigints_have_one_form_each() {
        let vectors: Vec<(Numeric, &[u8])> = vec![
            (bigint(0), &[0xc2, 0x40]),
            (bigint(255), &[0xc2, 0x41, 0xff]),
            (bigint(256), &[0xc2, 0x42, 1, 0]),
            (bigint(-1), &[0xc3, 0x40]),
            (bigint(-2), &[0xc3, 0x41, 1]),
            (bigint(-256), &[0xc3, 0x41, 0xff]),
            (bigint(-257), &[0xc3, 0x42, 1, 0]),
        ];
        for (n, bytes) in vectors {
            assert_eq!(number_of(bytes), Some(n.clone()));
            let Numeric::BigInt(n) = n else { unreachable!("all are bigints") };
            assert_eq!(encode_bigint(&n), bytes);
        }
    }

    #[test]
    fn other_values_are_no_number() {
        let others: [&[u8]; 15] = [
            &[],
            &[0x18],
            &[0x18, 23],
            &[0x00, 0x00],
            &[0xc2, 0x41, 0x00],
            &[0xc2, 0x40, 0x00],
            &[0xc3, 0x00],
            &[0xc2, 0x5f, 0xff],
            &[0xfb, 0, 0, 0, 0, 0, 0, 0, 0],
            &[0xfb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 1],
            &[0xf9, 0x3e, 0x00],
            &[0x1b, 0, 0x20, 0, 0, 0, 0, 0, 0],
            &[0x3b, 0, 0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            &[0xf6],
            &[0xc2, 0x5b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        ];
        for bytes in others {
            assert_eq!(number_of(bytes), None, "{bytes:02x?}");
        }
    }

    fn any_bigint() -> impl Strategy<Value = BigInt> {
        (any::<bool>(), prop::collection::vec(any::<u8>(), 0..40)).prop_map(
            |(negative, magnitude)| {
                BigInt::from_bytes_be(if negative { Sign::Minus } else { Sign::Plus }, &magnitude)
            },
        )
    }

    proptest! {
        #[test]
        fn bigint_sums_round_trip(a in any_bigint(), b in any_bigint()) {
            let read = |n: &BigInt| match number_of(&encode_bigint(n)) {
                Some(Numeric::BigInt(n)) => n,
                other => panic!("{other:?}"),
            };
            prop_assert_eq!(read(&(read(&a) + read(&b))), a + b);
        }

        #[test]
        fn number_sums_round_trip(a in any::<f64>(), b in any::<f64>()) {
            let read = |n: f64| match number_of(&encode_number(n)) {
                Some(Numeric::Number(n)) => n,
                other => panic!("{other:?}"),
            };
            let sum = read(read(a) + read(b));
            prop_assert!(sum.to_bits() == (a + b).to_bits() || (sum.is_nan() && (a + b).is_nan()));
        }

        #[test]
        fn accepted_bytes_are_canonical(bytes in prop::collection::vec(any::<u8>(), 0..12)) {
            match number_of(&bytes) {
                Some(Numeric::Number(n)) => prop_assert_eq!(encode_number(n), bytes),
                Some(Numeric::BigInt(n)) => prop_assert_eq!(encode_bigint(&n), bytes),
                None => {}
            }
        }
    }
}
