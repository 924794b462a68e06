//! Values and versionstamps.

use crate::connect::schema::{self, ENCODING_BYTES, ENCODING_LE64, ENCODING_V8};
use openkv_core::codec::transcode;
use openkv_core::model::{EncodedValue, Encoding, Error, Key, Result, Row, Versionstamp};

use super::Entry;

/// Encodes a value: its bytes and the number of their encoding.
///
/// # Errors
/// `Corrupt` for invalid stored bytes; `Unsupported` for a value that V8's format cannot represent.
pub fn to_wire(encoding: Encoding, bytes: &[u8]) -> Result<(Vec<u8>, i32)> {
    match encoding {
        Encoding::V8 => Ok((bytes.to_vec(), ENCODING_V8)),
        Encoding::Le64 => Ok((bytes.to_vec(), ENCODING_LE64)),
        Encoding::Bytes => Ok((bytes.to_vec(), ENCODING_BYTES)),
        Encoding::Cbor => Ok((transcode::to_v8(bytes)?, ENCODING_V8)),
    }
}

/// Decodes a value.
///
/// # Errors
/// `Invalid` for an unknown encoding, a `KvU64` that is not 8 bytes long, and invalid bytes.
pub fn from_wire(encoding: i32, bytes: Vec<u8>) -> Result<EncodedValue> {
    let encoding = match encoding {
        ENCODING_V8 => {
            let bytes = transcode::to_cbor(&bytes).map_err(|error| {
                Error::invalid(format!("A value cannot be read: {}", error.message()))
            })?;
            return Ok(EncodedValue { encoding: Encoding::Cbor, bytes });
        }
        ENCODING_LE64 if bytes.len() == 8 => Encoding::Le64,
        ENCODING_LE64 => {
            let given = bytes.len();
            return Err(Error::invalid(format!("A KvU64 must be 8 bytes: {given} given")));
        }
        ENCODING_BYTES => Encoding::Bytes,
        other => return Err(Error::invalid(format!("Unknown encoding {other}"))),
    };
    Ok(EncodedValue { encoding, bytes })
}

/// Encodes an entry.
pub fn entry_to_wire(row: &Row<'_>) -> Result<schema::KvEntry> {
    let (value, encoding) = to_wire(row.encoding, row.value)?;
    let versionstamp = row.stamp.to_bytes().to_vec();
    Ok(schema::KvEntry { key: row.key.to_vec(), value, encoding, versionstamp })
}

/// Decodes an entry, without validating the key. A value in V8's format that only V8 can read is
/// kept unchanged, so that the other entries of the answer can be used.
///
/// # Errors
/// As [`from_wire`], except for such a value; `Invalid` for an invalid versionstamp.
pub fn entry_from_wire(entry: schema::KvEntry) -> Result<Entry> {
    let stamp = stamp(&entry.versionstamp)?;
    let value = match transcoded(entry.encoding, &entry.value) {
        Some(value) => value,
        None if entry.encoding == ENCODING_V8 => {
            EncodedValue { encoding: Encoding::V8, bytes: entry.value }
        }
        None => from_wire(entry.encoding, entry.value)?,
    };
    Ok(Entry { key: Key::from_encoded(entry.key), stamp, value })
}

/// Converts a value in V8's format to CBOR; `None` if it cannot be read.
fn transcoded(encoding: i32, bytes: &[u8]) -> Option<EncodedValue> {
    let bytes = (encoding == ENCODING_V8).then(|| transcode::to_cbor(bytes).ok()).flatten()?;
    Some(EncodedValue { encoding: Encoding::Cbor, bytes })
}

/// Decodes a versionstamp.
pub(super) fn stamp(bytes: &[u8]) -> Result<Versionstamp> {
    let bytes = bytes.try_into().map_err(|_| {
        Error::invalid(format!(
            "a versionstamp of {} bytes came where {} were due",
            bytes.len(),
            Versionstamp::BYTES
        ))
    })?;
    Ok(Versionstamp::from_bytes(bytes))
}

/// The error for an answer that violates the protocol. The fault is the server's, not the caller's.
pub(super) fn bad_answer(what: impl std::fmt::Display) -> Error {
    Error::unavailable(format!("KV Connect failed to decode response: {what}"))
}
