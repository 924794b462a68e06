//! The headers of a download of a backup, for server and client.

/// The path of the download, behind the URL of a database.
pub const PATH: &str = "api/backup";
/// The media type of a database file.
pub const FILE_TYPE: &str = "application/vnd.sqlite3";
/// SHA-256 of the file (RFC 9530): `sha-256=:BASE64:`.
pub const HASH_HEADER: &str = "repr-digest";
/// The number of entries.
pub const ENTRIES_HEADER: &str = "openkv-entries";
/// The last commit.
pub const STAMP_HEADER: &str = "openkv-versionstamp";
/// SHA-256 of the contents, as `kv.backup` answers it.
pub const SHA256_HEADER: &str = "openkv-sha256";

/// The digits of a hash.
pub fn hex_of(hash: &[u8; 32]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The hash of 64 hexadecimal digits.
///
/// ```
/// use openkv_wire::protocol::backup::{hash_of, hex_of};
/// assert_eq!(hash_of(&hex_of(&[0xa5; 32])), Some([0xa5; 32]));
/// assert_eq!(hash_of("a5"), None);
/// ```
pub fn hash_of(text: &str) -> Option<[u8; 32]> {
    let mut hash = [0; 32];
    let is_hex = text.len() == 2 * hash.len() && text.bytes().all(|b| b.is_ascii_hexdigit());
    for (at, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    is_hex.then_some(hash)
}
