//! The description of a verified copy of a database.

use crate::model::Versionstamp;

/// Appends f64 bytes, f64 entries, versionstamp, SHA-256 as 32 bytes.
pub fn push_copied(
    out: &mut Vec<u8>,
    bytes: u64,
    entries: u64,
    stamp: Versionstamp,
    digest: &[u8; 32],
) {
    out.extend_from_slice(&(bytes as f64).to_le_bytes());
    out.extend_from_slice(&(entries as f64).to_le_bytes());
    out.extend_from_slice(&stamp.hex());
    out.extend_from_slice(digest);
}
