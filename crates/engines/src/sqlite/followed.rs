//! The mark of a file that is a copy: what it follows, and who may open it.
//!
//! Invariant: the position in `openkv_meta` is the commit counter of the file. If they differ, another program
//! has written to the file, and the follower repeats nothing more.

use rusqlite::{Connection, OptionalExtension};

use super::errors::failure;
use openkv_core::model::{Error, Followed, Key, Origin, Result};

/// The database that a file follows.
const FOLLOWED: &str = "SELECT (SELECT value FROM openkv_meta WHERE name = 'follows'), version \
                        FROM data_version WHERE k = 0";

/// The role in which a process opens a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// For reading only.
    Reads,
    /// As a database of its own.
    Writes,
    /// As a copy of another database.
    Follows,
    /// To make a copy a database of its own.
    Promotes,
}

/// The database that a file follows, with its commit counter; `None` for a file that follows none.
pub(super) fn read(connection: &Connection) -> Result<(Option<Followed>, u64)> {
    let row = connection.query_row(FOLLOWED, [], |row| {
        Ok((row.get::<_, Option<Vec<u8>>>(0)?, row.get::<_, i64>(1)?))
    });
    let (marker, version) = row.map_err(failure)?;
    let version = version.cast_unsigned();
    let Some(marker) = marker else { return Ok((None, version)) };
    let followed = decode(&marker).ok_or_else(|| {
        Error::corrupt("the file does not say what it follows: its openkv_meta table is damaged")
    })?;
    if followed.version != version {
        return Err(written_by_others(&followed, version));
    }
    Ok((Some(followed), version))
}

/// Checks that a file may be opened in a role. `follows`: whether it follows a database.
///
/// # Errors
/// `Denied` for a replica that is to be written, and for a database of its own that is to be a replica;
/// `Corrupt` for a replica that something else has written to.
pub(super) fn check(connection: &Connection, role: Role, follows: bool) -> Result<()> {
    if role == Role::Reads || (role == Role::Writes && !follows) {
        return Ok(());
    }
    match (role, read(connection)) {
        (Role::Reads, _) => Ok(()),
        (_, Err(error)) => Err(error),
        (Role::Writes, Ok((None, _))) => Ok(()),
        (Role::Writes, Ok((Some(_), _))) => Err(Error::denied(
            "the file is a replica, which only changes of the database that it follows are written to: give \
             it as option replica to openKv(url), open it with readonly: true, or make it a database of its own \
             with openkv promote",
        )),
        (Role::Follows, Ok((Some(_), _))) => Ok(()),
        (Role::Promotes, Ok((Some(_), _))) => promote(connection),
        (Role::Promotes, Ok((None, _))) => Err(Error::denied(
            "the file is not a replica, so there is nothing to promote: open it as it is",
        )),
        (Role::Follows, Ok((None, _))) if has_data(connection)? => Err(own_database()),
        (Role::Follows, Ok((None, _))) => Ok(()),
    }
}

/// Whether a file without a mark has anything in it.
pub(super) fn has_data(connection: &Connection) -> Result<bool> {
    let any = "SELECT 1 WHERE (SELECT version FROM data_version WHERE k = 0) > 0 \
               OR EXISTS (SELECT 1 FROM kv) OR EXISTS (SELECT 1 FROM openkv_queue)";
    let found = connection.query_row(any, [], |_| Ok(())).optional();
    Ok(found.map_err(failure)?.is_some())
}

fn written_by_others(followed: &Followed, version: u64) -> Error {
    Error::corrupt(format!(
        "the replica has the commit {version}, but has followed up to {} only: something else has written \
         to it, so it is no copy any more. Nothing was changed. Move the file away, with its -wal and -shm \
         files, to have it copied again",
        followed.version
    ))
}

/// The bytes of the mark: database, incarnation, version and time, little-endian, then the prefixes, each
/// after its length.
pub(super) fn encode(followed: &Followed) -> Vec<u8> {
    let Followed { origin, version, at_ms, prefixes } = followed;
    let mut bytes = origin.database.to_vec();
    bytes.extend_from_slice(&origin.incarnation.to_le_bytes());
    bytes.extend_from_slice(&version.to_le_bytes());
    bytes.extend_from_slice(&at_ms.to_le_bytes());
    for prefix in prefixes {
        bytes.extend_from_slice(&(prefix.len() as u32).to_le_bytes());
        bytes.extend_from_slice(prefix.as_bytes());
    }
    bytes
}

fn decode(bytes: &[u8]) -> Option<Followed> {
    let (database, rest) = bytes.split_first_chunk()?;
    let (incarnation, rest) = rest.split_first_chunk()?;
    let (version, rest) = rest.split_first_chunk()?;
    let (at_ms, mut rest) = rest.split_first_chunk()?;
    let mut prefixes = Vec::new();
    while !rest.is_empty() {
        let (len, behind) = rest.split_first_chunk()?;
        let (prefix, behind) = behind.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        prefixes.push(Key::from_encoded(prefix.to_vec()));
        rest = behind;
    }
    Some(Followed {
        origin: Origin { database: *database, incarnation: u64::from_le_bytes(*incarnation) },
        version: u64::from_le_bytes(*version),
        at_ms: i64::from_le_bytes(*at_ms),
        prefixes,
    })
}

/// Makes a copy a database of its own: another incarnation of the database that it has followed. Its unique indexes
/// are built again, which checks them.
fn promote(connection: &Connection) -> Result<()> {
    let sql = "BEGIN IMMEDIATE; \
               DELETE FROM openkv_meta WHERE name = 'follows'; \
               UPDATE openkv_index SET progress = prefix, scanned = 0 \
               WHERE tokenizer = 'value' AND substr(prefix_lengths, 1, 1) IN (x'01', x'03', x'05', x'07'); \
               INSERT OR REPLACE INTO openkv_meta VALUES ('generation', random()); \
               UPDATE openkv_meta SET value = value + 1 WHERE name = 'features'; \
               COMMIT;";
    connection.execute_batch(sql).map_err(|error| {
        // Without a transaction this fails, and changes nothing.
        let _none = connection.execute_batch("ROLLBACK");
        failure(error)
    })
}

pub(super) fn own_database() -> Error {
    Error::denied(
        "the file is a database of its own, not a replica, and a copy would replace it: name another file",
    )
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::sqlite::SqliteEngine;
    use crate::sqlite::writer::SqliteWriter;
    use crate::{Engine as _, Indexer as _, Writer};
    use openkv_core::model::{
        CopiedEntry, EncodedValue, Encoding, Kind, OrderPath, Replacement, ValueIndexRequest,
        ValueIndexSpec, ValueIndexState,
    };

    /// Runs SQL on a replica, and answers the error of opening it then.
    fn tampered(sql: &str) -> Error {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kv");
        let busy = Duration::from_secs(5);
        let engine = SqliteEngine::open_copy(&path, busy).unwrap();
        let origin = Origin { database: [1; 16], incarnation: 2 };
        let after = Followed { origin, version: 3, at_ms: 4, prefixes: Vec::new() };
        let replacement = Replacement { before: None, after, generation: 5 };
        let mut writer = engine.writer().unwrap();
        let deadline = Instant::now() + busy;
        Writer::replace_all(&mut writer, &replacement, &mut || Ok(None), deadline).unwrap();
        drop((writer, engine));
        SqliteEngine::open_copy(&path, busy).unwrap();
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        let before = std::fs::read(&path).unwrap();
        let refused = SqliteEngine::open_copy(&path, busy).err().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), before, "the file is changed");
        refused
    }

    #[test]
    fn a_replica_that_was_changed_is_refused_and_stays() {
        let refused = tampered("UPDATE data_version SET version = 9 WHERE k = 0");
        assert_eq!(refused.kind(), Kind::Corrupt);
        assert!(refused.message().contains("something else has written"), "{refused}");
        let refused = tampered("UPDATE openkv_meta SET value = x'01' WHERE name = 'follows'");
        assert_eq!(refused.kind(), Kind::Corrupt);
        let refused = tampered("UPDATE openkv_meta SET value = 99 WHERE name = 'format'");
        assert_eq!(refused.kind(), Kind::Unsupported);
        assert!(refused.message().contains("update openkv"), "{refused}");
    }

    /// The state of a unique index after the promotion of a copy with two entries.
    fn promoted(values: [&[u8]; 2]) -> ValueIndexState {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kv");
        let busy = Duration::from_secs(5);
        let deadline = Instant::now() + busy;
        let engine = SqliteEngine::open_copy(&path, busy).unwrap();
        let mut writer = engine.writer().unwrap();
        let entry = |(name, bytes): (u8, &[u8])| CopiedEntry {
            key: Key::from_encoded(vec![2, b'd', 0, 2, name, 0]),
            version: 1,
            value: EncodedValue { encoding: Encoding::Cbor, bytes: bytes.to_vec() },
            expire_at_ms: None,
        };
        let origin = Origin { database: [1; 16], incarnation: 2 };
        let after = Followed { origin, version: 3, at_ms: 4, prefixes: Vec::new() };
        let replacement = Replacement { before: None, after, generation: 5 };
        let mut pages = vec![(b'a'..).zip(values).map(entry).collect()].into_iter();
        let mut next = || Ok(pages.next());
        Writer::replace_all(&mut writer, &replacement, &mut next, deadline).unwrap();
        let spec = ValueIndexSpec {
            name: "t".into(),
            prefix: Key::from_encoded(vec![2, b'd', 0]),
            on: vec![OrderPath { path: "t".into(), descending: false }],
            unique: true,
            multi: false,
            sparse: false,
        };
        let request = ValueIndexRequest { spec, replace: false };
        writer.create_value_index(&request, deadline).unwrap();
        while writer.build_indexes(0, deadline).unwrap() {}
        let state = |writer: &mut SqliteWriter| {
            writer.create_value_index(&request, deadline).unwrap().state
        };
        assert_eq!(state(&mut writer), ValueIndexState::Ready);
        drop((writer, engine));
        SqliteEngine::promote(&path, busy).unwrap();
        let engine = SqliteEngine::open(&path, false, busy).unwrap();
        let mut writer = engine.writer().unwrap();
        assert_eq!(state(&mut writer), ValueIndexState::Building);
        while writer.build_indexes(0, deadline).unwrap() {}
        state(&mut writer)
    }

    #[test]
    fn a_promotion_checks_unique_indexes_again() {
        let (one, two) = (b"\xa1\x61t\x61\x31", b"\xa1\x61t\x61\x32");
        assert_eq!(promoted([one, two]), ValueIndexState::Ready);
        assert!(matches!(promoted([one, one]), ValueIndexState::Failed(_)));
    }

    #[test]
    fn a_mark_round_trips_and_cut_ones_are_rejected() {
        let followed = Followed {
            origin: Origin { database: *b"sixteen bytes...", incarnation: 7 },
            version: 9,
            at_ms: -1,
            prefixes: vec![Key::from_encoded(vec![2, 97, 0]), Key::from_encoded(vec![])],
        };
        let bytes = encode(&followed);
        assert_eq!(decode(&bytes), Some(followed.clone()));
        let whole = [40, 40 + 4 + 3, bytes.len()];
        for end in 0..bytes.len() {
            assert_eq!(decode(&bytes[..end]).is_some(), whole.contains(&end), "{end}");
        }
    }
}
