//! Values and versionstamps in columns.
//!
//! A file that Deno and openkv share has values in V8's format. This is internal to the engine:
//! reading converts values to CBOR, writing converts them to V8's format.

use std::borrow::Cow;

use openkv_core::codec::transcode::{to_cbor, to_v8};
use openkv_core::model::{EncodedValue, Encoding, Error, Result, Versionstamp};

/// Deno's index of expiries, which its files have beside openkv's smaller one.
pub(super) const INDEX: &str = "CREATE INDEX kv_expiration_ms_idx ON kv (expiration_ms);";

/// The versionstamp of a stored commit counter.
pub(super) fn stamp(version: i64) -> Versionstamp {
    Versionstamp::new(version.cast_unsigned())
}

/// The encoding with a stored id.
pub(super) fn encoding(id: i64) -> Result<Encoding> {
    Encoding::from_id(id)
        .ok_or_else(|| Error::invalid(format!("The value encoding {id} is unknown.")))
}

/// A stored value, converted to CBOR from V8's format. A value that only Deno can read is returned
/// unchanged; decoding it fails.
pub(super) fn shown(encoding: Encoding, bytes: &[u8]) -> (Encoding, Cow<'_, [u8]>) {
    let plain = || (encoding, Cow::Borrowed(bytes));
    match encoding {
        Encoding::V8 => {
            to_cbor(bytes).map_or_else(|_| plain(), |cbor| (Encoding::Cbor, Cow::Owned(cbor)))
        }
        _ => plain(),
    }
}

/// Checks whether a file with this format can store a value.
///
/// # Errors
/// `Invalid` if it cannot.
pub(super) fn check(file: Encoding, encoding: Encoding, bytes: &[u8]) -> Result<()> {
    if (file, encoding) != (Encoding::V8, Encoding::Cbor) {
        return Ok(());
    }
    to_v8(bytes).map(drop).map_err(|error| {
        Error::invalid(format!(
            "The file keeps values in V8's format, for Deno, which has no place for this one: {}",
            error.message()
        ))
    })
}

/// The encoding and bytes with which a value is stored in a row.
pub(super) fn stored(file: Encoding, value: &EncodedValue) -> (Encoding, Cow<'_, [u8]>) {
    let plain = (value.encoding, Cow::Borrowed(value.bytes.as_slice()));
    if (file, value.encoding) != (Encoding::V8, Encoding::Cbor) {
        return plain;
    }
    match to_v8(&value.bytes) {
        Ok(bytes) => (Encoding::V8, Cow::Owned(bytes)),
        // [`check`] rejects these, but older messages may contain them.
        Err(error) => {
            tracing::warn!(%error, "a value stays in openkv's format: Deno cannot read it");
            plain
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_only_deno_can_read_are_returned_unchanged() {
        assert_eq!(shown(Encoding::V8, &[1, 2]), (Encoding::V8, Cow::Borrowed(&[1, 2][..])));
        let (encoding, bytes) = shown(Encoding::V8, &[0xff, 0x0f, b'0']);
        assert_eq!((encoding, &*bytes), (Encoding::Cbor, &[0xf6][..]));
    }

    #[test]
    fn only_files_for_deno_reject_values() {
        // Tag 27 ["Blob", h'', ""].
        let blob = [0xd8, 27, 0x83, 0x64, b'B', b'l', b'o', b'b', 0x40, 0x60];
        let value = EncodedValue { encoding: Encoding::Cbor, bytes: blob.to_vec() };
        assert!(check(Encoding::Cbor, Encoding::Cbor, &blob).is_ok());
        assert!(check(Encoding::V8, Encoding::Cbor, &blob).is_err());
        assert_eq!(stored(Encoding::V8, &value).0, Encoding::Cbor);
        let null = EncodedValue { encoding: Encoding::Cbor, bytes: vec![0xf6] };
        assert_eq!(stored(Encoding::V8, &null), (Encoding::V8, vec![0xff, 0x0f, b'0'].into()));
        assert_eq!(stored(Encoding::Cbor, &null).0, Encoding::Cbor);
    }
}
