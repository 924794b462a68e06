//! Files of every released format are migrated to the current one without loss.
//! `tests/vectors/files/` has one of each, with the same contents.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test ends where something is not as it should be"
)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use openkv::engine::sqlite::{FORMAT_VERSION, SqliteEngine};
use openkv::engine::{Engine, Reader};
use openkv::model::{ChangeKind, Encoding, Kind};
use rusqlite::Connection;

fn kept(format: i64) -> PathBuf {
    let name = format!("tests/vectors/files/format-{format}.sqlite3");
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn open(path: &Path, readonly: bool) -> openkv::model::Result<SqliteEngine> {
    SqliteEngine::open(path, readonly, Duration::from_secs(5))
}

fn strings(path: &Path, sql: &str) -> Vec<String> {
    let connection = Connection::open(path).expect("opened raw");
    let mut statement = connection.prepare(sql).expect(sql);
    let rows = statement.query_map([], |row| row.get(0)).expect(sql);
    rows.collect::<Result<_, _>>().expect(sql)
}

const SCHEMA: &str = "SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_master \
                      WHERE name NOT LIKE 'sqlite_%' ORDER BY 1";

#[test]
fn every_older_format_is_migrated() {
    let directory = tempfile::tempdir().expect("a directory");
    let fresh = directory.path().join("fresh.sqlite3");
    drop(open(&fresh, false).expect("a new file"));
    for format in 1..FORMAT_VERSION {
        let path = directory.path().join(format!("{format}.sqlite3"));
        std::fs::copy(kept(format), &path).expect("a copy");
        let refused = open(&path, true).err().expect("read-only cannot migrate");
        assert_eq!(refused.kind(), Kind::Unsupported);
        let engine = open(&path, false).expect("migrated");
        assert_eq!(strings(&path, SCHEMA), strings(&fresh, SCHEMA), "format {format}");
        entries_are_there(&engine);
        let left = strings(&path, "SELECT hex(v) FROM openkv_queue ORDER BY id");
        assert_eq!(left, ["A1636A6F6201", "A1636A6F6202"]);
    }
}

fn entries_are_there(engine: &SqliteEngine) {
    let mut reader = engine.reader().expect("a reader");
    let expected = [
        ("bytes", Encoding::Bytes, vec![1, 2, 3]),
        ("count", Encoding::Le64, 41_u64.to_le_bytes().to_vec()),
        ("kept", Encoding::Cbor, vec![0xa1, 0x61, b'n', 0xc2, 0x41, 1]),
        ("large", Encoding::Cbor, [&[0x79, 0x13, 0x88][..], &[b'x'; 5000]].concat()),
        ("text", Encoding::Cbor, b"\x65hello".to_vec()),
    ];
    let read = reader.read(0, &mut |snapshot| {
        let mut rest = expected.iter();
        snapshot.scan(&[], &[0xff], false, &mut |row| {
            let (name, encoding, value) = rest.next().unwrap_or_else(|| panic!("too many rows"));
            assert_eq!(row.key, [b"\x02", name.as_bytes(), b"\0"].concat(), "{name}");
            assert_eq!((row.encoding, row.value), (*encoding, value.as_slice()), "{name}");
            true
        })?;
        assert!(rest.next().is_none());
        Ok(())
    });
    read.expect("read");
}

#[test]
fn the_history_of_format_4_is_kept() {
    const BLOCKS: &str = "SELECT id || ' ' || hex(replaced) FROM openkv_history ORDER BY id";
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("4.sqlite3");
    std::fs::copy(kept(4), &path).expect("a copy");
    let before = strings(&path, BLOCKS);
    assert!(before.iter().any(|block| block.contains("68656C6C6F")), "{before:?}");
    drop(open(&path, false).expect("migrated"));
    assert_eq!(strings(&path, BLOCKS), before);
}

#[test]
fn the_log_of_format_2_gets_the_expiries_of_entries_that_are_there() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("2.sqlite3");
    std::fs::copy(kept(2), &path).expect("a copy");
    let mut reader = open(&path, false).expect("migrated").reader().expect("a reader");
    let mut log = Vec::new();
    let read = reader.read(0, &mut |snapshot| {
        snapshot.feed().changes(0, &mut |change| {
            log.push((change.version, change.key.to_vec(), change.kind.map(|_| ())));
            true
        })
    });
    read.expect("read");
    let set = ChangeKind::Set { value: (), expire_at_ms: Some(4_102_444_800_000) };
    let expected =
        [(10, b"\x02text\0".to_vec(), set), (11, b"\x02absent\0".to_vec(), ChangeKind::Deleted)];
    assert_eq!(log, expected);
}
