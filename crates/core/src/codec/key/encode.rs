//! Parts → bytes, for keys that arrive as text.

use num_bigint::{BigInt, Sign};

use super::{
    BIGINT_BYTES_MAX, BIGINT_NEGATIVE_LONG, BIGINT_POSITIVE_LONG, BIGINT_SHORT_BYTES_MAX,
    BIGINT_ZERO, BYTES, FALSE, NAN_BITS, NUMBER, SIGN_BIT, TRUE, push_escaped, push_string,
};
use crate::model::{Error, Key, KeyPart, Result};

/// Encodes a key. Its length is not checked.
///
/// # Errors
/// `Invalid` for a bigint of more than [`BIGINT_BYTES_MAX`] bytes.
///
/// ```
/// use openkv_core::codec::key;
/// use openkv_core::model::KeyPart;
/// let key = key::encode(&[KeyPart::String("a".to_owned()), KeyPart::Bool(true)])?;
/// assert_eq!(key.as_bytes(), b"\x02a\x00\x27");
/// # Ok::<(), openkv_core::model::Error>(())
/// ```
pub fn encode(parts: &[KeyPart]) -> Result<Key> {
    let mut out = Vec::new();
    for part in parts {
        match part {
            KeyPart::Bytes(bytes) => push_escaped(&mut out, BYTES, bytes),
            KeyPart::String(text) => push_string(&mut out, text),
            KeyPart::BigInt(n) => push_bigint(&mut out, n)?,
            KeyPart::Number(n) => push_number(&mut out, *n),
            KeyPart::Bool(b) => out.push(if *b { TRUE } else { FALSE }),
        }
    }
    Ok(Key::from_encoded(out))
}

fn push_bigint(out: &mut Vec<u8>, n: &BigInt) -> Result<()> {
    let (sign, magnitude) = n.to_bytes_be();
    let len = u8::try_from(magnitude.len()).map_err(|_| {
        Error::too_large(format!("a bigint of a key has at most {BIGINT_BYTES_MAX} bytes"))
    })?;
    let is_short = magnitude.len() <= BIGINT_SHORT_BYTES_MAX;
    match sign {
        Sign::NoSign => out.push(BIGINT_ZERO),
        Sign::Plus if is_short => out.push(BIGINT_ZERO + len),
        Sign::Plus => out.extend([BIGINT_POSITIVE_LONG, len]),
        Sign::Minus if is_short => out.push(BIGINT_ZERO - len),
        Sign::Minus => out.extend([BIGINT_NEGATIVE_LONG, !len]),
    }
    match sign {
        Sign::NoSign => {}
        Sign::Plus => out.extend(magnitude),
        Sign::Minus => out.extend(magnitude.iter().map(|byte| !byte)),
    }
    Ok(())
}

fn push_number(out: &mut Vec<u8>, n: f64) {
    let sign = if n.is_sign_negative() { SIGN_BIT } else { 0 };
    let bits = if n.is_nan() { NAN_BITS | sign } else { n.to_bits() };
    out.push(NUMBER);
    out.extend((if sign == 0 { bits | SIGN_BIT } else { !bits }).to_be_bytes());
}
