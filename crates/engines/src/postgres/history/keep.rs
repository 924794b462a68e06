//! What a batch replaces, as rows.

use std::collections::HashMap;

use crate::postgres::line::{Call, Value};
use openkv_core::model::{Change, ChangeKind, EncodedValue, Key};

/// Keeps entries as they are before the batch, some with an expiry that the batch has changed before.
const KEEP_STORED: &str = "\
INSERT INTO openkv.past (db, k, until, version, encoding, v, expires_ms) \
SELECT $1, u.k, u.until, e.version, e.encoding, e.v, \
CASE WHEN u.moved THEN u.expires_ms ELSE e.expires_ms END \
FROM unnest($2::bytea[], $3::int8[], $4::bool[], $5::int8[]) AS u(k, until, moved, expires_ms) \
LEFT JOIN LATERAL (SELECT version, encoding, v, expires_ms FROM openkv.entries \
WHERE db = $1 AND k = u.k LIMIT 1) AS e ON true";

/// Keeps entries that the batch itself has made before, and that there was none.
const KEEP_MADE: &str = "\
INSERT INTO openkv.past (db, k, until, version, encoding, v, expires_ms) \
SELECT $1, u.k, u.until, u.version, u.encoding, u.v, u.expires_ms \
FROM unnest($2::bytea[], $3::int8[], $4::int8[], $5::int2[], $6::bytea[], $7::int8[]) \
AS u(k, until, version, encoding, v, expires_ms)";

/// The entry of a key after the changes of a batch so far.
#[derive(Clone, Copy)]
enum Earlier<'c> {
    /// Nothing, or only another expiry.
    Stored { moved: Option<Option<i64>> },
    /// It has removed it.
    Absent,
    /// This one.
    Made { version: u64, value: &'c EncodedValue, expire_at_ms: Option<i64> },
}

/// The rows of a batch, as columns.
#[derive(Debug, Default)]
pub(in crate::postgres) struct Replaced {
    stored: Stored,
    made: Made,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Stored {
    keys: Vec<Vec<u8>>,
    until: Vec<i64>,
    moved: Vec<bool>,
    expiries: Vec<Option<i64>>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Made {
    keys: Vec<Vec<u8>>,
    until: Vec<i64>,
    versions: Vec<Option<i64>>,
    encodings: Vec<Option<i16>>,
    values: Vec<Option<Vec<u8>>>,
    expiries: Vec<Option<i64>>,
}

impl Replaced {
    /// What changes replace, which are in the order of their commits. No commit changes a key twice.
    pub(in crate::postgres) fn of(changes: &[Change]) -> Self {
        let mut rows = Self::default();
        let mut touched = HashMap::<&Key, Earlier<'_>>::with_capacity(changes.len());
        for Change { key, version, kind } in changes {
            let earlier = touched.get(key).copied().unwrap_or(Earlier::Stored { moved: None });
            let after = match (kind, earlier) {
                (ChangeKind::Deleted | ChangeKind::Expired, _) => Earlier::Absent,
                (ChangeKind::Set { value, expire_at_ms }, _) => {
                    Earlier::Made { version: *version, value, expire_at_ms: *expire_at_ms }
                }
                (ChangeKind::ExpirySet { expire_at_ms }, Earlier::Made { version, value, .. }) => {
                    Earlier::Made { version, value, expire_at_ms: *expire_at_ms }
                }
                (ChangeKind::ExpirySet { .. }, Earlier::Absent) => Earlier::Absent,
                (ChangeKind::ExpirySet { expire_at_ms }, Earlier::Stored { .. }) => {
                    Earlier::Stored { moved: Some(*expire_at_ms) }
                }
            };
            rows.add(key, *version, earlier);
            touched.insert(key, after);
        }
        rows
    }

    fn add(&mut self, key: &Key, until: u64, entry: Earlier<'_>) {
        let (key, until) = (key.as_bytes().to_vec(), until.cast_signed());
        let Self { stored, made } = self;
        let (version, value, expire_at_ms) = match entry {
            Earlier::Stored { moved } => {
                stored.keys.push(key);
                stored.until.push(until);
                stored.moved.push(moved.is_some());
                stored.expiries.push(moved.flatten());
                return;
            }
            Earlier::Absent => (None, None, None),
            Earlier::Made { version, value, expire_at_ms } => {
                (Some(version), Some(value), expire_at_ms)
            }
        };
        made.keys.push(key);
        made.until.push(until);
        made.versions.push(version.map(u64::cast_signed));
        made.encodings.push(value.map(|value| i16::from(value.encoding.id())));
        made.values.push(value.map(|value| value.bytes.clone()));
        made.expiries.push(expire_at_ms);
    }

    /// The number of rows.
    pub(in crate::postgres) fn len(&self) -> usize {
        self.stored.keys.len() + self.made.keys.len()
    }

    /// Adds the statements that insert the rows, which come before those that change entries.
    pub(in crate::postgres) fn calls<'a>(&'a self, db: &'a i64, calls: &mut Vec<Call<'a>>) {
        let Self { stored, made } = self;
        if !stored.keys.is_empty() {
            let Stored { keys, until, moved, expiries } = stored;
            calls.push((KEEP_STORED, vec![db, keys, until, moved, expiries]));
        }
        if !made.keys.is_empty() {
            let Made { keys, until, versions, encodings, values, expiries } = made;
            let mut columns: Vec<&Value<'_>> = vec![db, keys, until, versions];
            columns.extend([encodings as &Value<'_>, values, expiries]);
            calls.push((KEEP_MADE, columns));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openkv_core::model::Encoding;

    fn change(version: u64, name: &[u8], kind: ChangeKind<EncodedValue>) -> Change {
        Change { key: Key::from_encoded(name.to_vec()), version, kind }
    }

    fn value(byte: u8) -> EncodedValue {
        EncodedValue { encoding: Encoding::Bytes, bytes: vec![byte] }
    }

    #[test]
    fn each_change_of_a_batch_replaces_what_the_one_before_has_made() {
        let set = |byte, expire_at_ms| ChangeKind::Set { value: value(byte), expire_at_ms };
        let expires = |expire_at_ms| ChangeKind::ExpirySet { expire_at_ms };
        let rows = Replaced::of(&[
            change(5, b"a", expires(Some(9))),
            change(6, b"a", expires(None)),
            change(7, b"a", set(1, Some(3))),
            change(7, b"b", ChangeKind::Deleted),
            change(8, b"a", expires(Some(4))),
            change(9, b"a", ChangeKind::Expired),
            change(9, b"b", set(2, None)),
            change(10, b"a", set(3, None)),
        ]);
        let stored = Stored {
            keys: [b"a", b"a", b"a", b"b"].map(|key| key.to_vec()).to_vec(),
            until: vec![5, 6, 7, 7],
            moved: vec![false, true, true, false],
            expiries: vec![None, Some(9), None, None],
        };
        assert_eq!(rows.stored, stored);
        let bytes = Some(i16::from(Encoding::Bytes.id()));
        let made = Made {
            keys: [b"a", b"a", b"b", b"a"].map(|key| key.to_vec()).to_vec(),
            until: vec![8, 9, 9, 10],
            versions: vec![Some(7), Some(7), None, None],
            encodings: vec![bytes, bytes, None, None],
            values: vec![Some(vec![1]), Some(vec![1]), None, None],
            expiries: vec![Some(3), Some(4), None, None],
        };
        assert_eq!(rows.made, made);
        assert_eq!(rows.len(), 8);
    }
}
