//! The changes of a segment of the replication log (docs/format.md §6).
//!
//! A segment has the changes of one transaction, in the order of its commits. Keys of a transaction are
//! often alike, so each one is stored as what differs from the key before it.

use super::Malformed;
use super::fields::{Fields, put_bytes, put_number};
use crate::model::{Change, ChangeKind, Logged};

/// The first byte of a segment.
const FORM: u8 = 1;

/// The kinds of changes. A kind with an expiry has it behind everything else.
const DELETED: u8 = 0;
const EXPIRED: u8 = 1;
const SET: u8 = 2;
const SET_WITH_EXPIRY: u8 = 3;
const EXPIRY_REMOVED: u8 = 4;
const EXPIRY_SET: u8 = 5;

/// Encodes the changes of commits from `first` on, in the order of the commits.
#[must_use]
pub fn encode(first: u64, changes: &[Change]) -> Vec<u8> {
    let bytes: usize = changes.iter().map(|change| change.size_bytes() + 8).sum();
    let mut out = Vec::with_capacity(bytes + 1);
    out.push(FORM);
    let (mut version, mut before): (u64, &[u8]) = (first, &[]);
    for change in changes {
        let (kind, value, expiry) = match &change.kind {
            ChangeKind::Deleted => (DELETED, None, None),
            ChangeKind::Expired => (EXPIRED, None, None),
            ChangeKind::Set { value, expire_at_ms: None } => (SET, Some(value), None),
            ChangeKind::Set { value, expire_at_ms } => {
                (SET_WITH_EXPIRY, Some(value), *expire_at_ms)
            }
            ChangeKind::ExpirySet { expire_at_ms: None } => (EXPIRY_REMOVED, None, None),
            ChangeKind::ExpirySet { expire_at_ms } => (EXPIRY_SET, None, *expire_at_ms),
        };
        out.push(kind);
        put_number(&mut out, change.version - version);
        let key = change.key.as_bytes();
        let shared = key.iter().zip(before).take_while(|(a, b)| a == b).count();
        put_number(&mut out, shared as u64);
        put_bytes(&mut out, key.get(shared..).unwrap_or_default());
        if let Some(value) = value {
            out.push(value.encoding.id());
            put_bytes(&mut out, &value.bytes);
        }
        if let Some(end) = expiry {
            out.extend_from_slice(&end.to_le_bytes());
        }
        (version, before) = (change.version, key);
    }
    out
}

/// Visits the changes of a segment, in order, until `visit` returns `false`.
///
/// # Errors
/// For bytes that are not those of a segment; changes before the fault have been visited.
pub fn decode(
    first: u64,
    bytes: &[u8],
    mut visit: impl FnMut(Logged<'_>) -> bool,
) -> Result<(), Malformed> {
    let mut rest = Fields::of(bytes);
    if rest.byte()? != FORM {
        return Err(Malformed::new("a segment of another format", 0));
    }
    let (mut version, mut key) = (first, Vec::new());
    while !rest.is_at_end() {
        let start = rest.at();
        let kind = rest.byte()?;
        let ahead = rest.number()?;
        version = match version.checked_add(ahead) {
            Some(version) => version,
            None => return Err(Malformed::new("a version that is too large", start)),
        };
        let shared = rest.length()?;
        if shared > key.len() {
            return Err(Malformed::new("a key that shares more than there is", start));
        }
        key.truncate(shared);
        key.extend_from_slice(rest.slice()?);
        let kind = match kind {
            DELETED => ChangeKind::Deleted,
            EXPIRED => ChangeKind::Expired,
            SET => ChangeKind::Set { value: rest.value()?, expire_at_ms: None },
            SET_WITH_EXPIRY => {
                let value = rest.value()?;
                ChangeKind::Set { value, expire_at_ms: Some(rest.time()?) }
            }
            EXPIRY_REMOVED => ChangeKind::ExpirySet { expire_at_ms: None },
            EXPIRY_SET => ChangeKind::ExpirySet { expire_at_ms: Some(rest.time()?) },
            _ => return Err(Malformed::new("an unknown kind of change", start)),
        };
        if !visit(Logged { version, key: &key, kind }) {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{EncodedValue, Encoding, Key};

    fn change(version: u64, key: &[u8], kind: ChangeKind<EncodedValue>) -> Change {
        Change { key: Key::from_encoded(key.to_vec()), version, kind }
    }

    fn set(bytes: &[u8], expire_at_ms: Option<i64>) -> ChangeKind<EncodedValue> {
        let value = EncodedValue { encoding: Encoding::Bytes, bytes: bytes.to_vec() };
        ChangeKind::Set { value, expire_at_ms }
    }

    fn all_kinds() -> Vec<Change> {
        vec![
            change(7, b"users/1", set(b"one", None)),
            change(7, b"users/12", set(&[9; 300], Some(i64::MAX))),
            change(8, b"users/12", ChangeKind::Deleted),
            change(300, b"", ChangeKind::Expired),
            change(300, b"users/1", ChangeKind::ExpirySet { expire_at_ms: None }),
            change(u64::MAX, b"u", ChangeKind::ExpirySet { expire_at_ms: Some(-1) }),
        ]
    }

    fn decoded(first: u64, bytes: &[u8]) -> Result<Vec<Change>, Malformed> {
        let mut changes = Vec::new();
        decode(first, bytes, |logged| {
            changes.push(logged.to_change());
            true
        })?;
        Ok(changes)
    }

    #[test]
    fn every_kind_survives_the_round_trip() {
        assert_eq!(decoded(5, &encode(5, &all_kinds())), Ok(all_kinds()));
        assert_eq!(decoded(5, &encode(5, &[])), Ok(vec![]));
    }

    #[test]
    fn the_bytes_are_those_of_the_format_page() {
        let bytes = encode(
            3,
            &[
                change(3, b"ab", set(b"x", None)),
                change(4, b"ac", ChangeKind::ExpirySet { expire_at_ms: Some(5) }),
            ],
        );
        let expected = [
            &[1, 2, 0, 0, 2][..],
            b"ab",
            &[3, 1],
            b"x",
            &[5, 1, 1, 1],
            b"c",
            &[5, 0, 0, 0, 0, 0, 0, 0],
        ];
        assert_eq!(bytes, expected.concat());
    }

    #[test]
    fn a_cut_segment_is_rejected_or_ends_at_a_change() {
        let bytes = encode(5, &all_kinds());
        for end in 0..bytes.len() {
            if let Ok(changes) = decoded(5, &bytes[..end]) {
                assert_eq!(changes, all_kinds()[..changes.len()]);
            }
        }
    }

    #[test]
    fn other_bytes_are_rejected() {
        for bytes in [
            &[][..],
            &[2],
            &[1, 9, 0, 0, 0],
            &[1, 0, 0, 1, 0],
            &[1, 2, 0, 0, 0, 4, 0],
            &[1, 0, 0, 0, 0x80],
            &[1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0],
        ] {
            assert!(decoded(0, bytes).is_err(), "{bytes:?}");
        }
        let too_late = [1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0, 0];
        assert!(decoded(1, &too_late).is_err());
    }
}
