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
use openkv::engine::{Engine, FeedState, Reader};
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

/// A change without its value: the commit, the key and the kind.
type Shown = (u64, Vec<u8>, ChangeKind<usize>);

/// How far feeds can read back, and what they read. A value is shown by its length.
fn feed(path: &Path) -> (FeedState, Vec<Shown>) {
    let mut reader = open(path, false).expect("migrated").reader().expect("a reader");
    let (mut state, mut changes) = (None, Vec::new());
    let read = reader.read(0, &mut |snapshot| {
        state = Some(snapshot.feed_state()?);
        snapshot.changes(0, &mut |change| {
            let kind = change.kind.map(|(_, bytes)| bytes.len());
            changes.push((change.version, change.key.to_vec(), kind));
            true
        })
    });
    read.expect("read");
    (state.expect("a state"), changes)
}

/// A copy of a released file, changed as its version could have.
fn changed(directory: &Path, format: i64, sql: &str) -> PathBuf {
    let path = directory.join(format!("{format}.sqlite3"));
    std::fs::copy(kept(format), &path).expect("a copy");
    Connection::open(&path).expect("opened raw").execute_batch(sql).expect(sql);
    path
}

fn key(name: &str) -> Vec<u8> {
    [b"\x02", name.as_bytes(), b"\0"].concat()
}

fn set(len: usize, expire_at_ms: Option<i64>) -> ChangeKind<usize> {
    ChangeKind::Set { value: len, expire_at_ms }
}

/// The segments have every commit up to the last one, each once.
fn assert_gapless(path: &Path, complete: u64, version: u64) {
    let rows = strings(path, "SELECT first || ' ' || version FROM openkv_log ORDER BY version");
    let mut last = complete;
    for row in rows {
        let (first, end) = row.split_once(' ').expect("two numbers");
        assert_eq!(first.parse::<u64>().expect("a number"), last + 1, "{row}");
        last = end.parse().expect("a number");
    }
    assert_eq!(last, version);
}

/// Each segment counts its changes and `SEGMENT_BYTES`, once.
fn assert_segments_count(path: &Path) {
    let sql = "SELECT '' || (bytes - (SELECT sum(length(changes) + 64) FROM openkv_log)) FROM openkv_log_state";
    assert_eq!(strings(path, sql), ["0"]);
}

#[test]
fn the_log_of_format_2_gets_the_expiries_of_entries_that_are_there() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = changed(directory.path(), 2, "");
    let (state, changes) = feed(&path);
    let expected = [
        (10, key("text"), set(6, Some(4_102_444_800_000))),
        (11, key("absent"), ChangeKind::Deleted),
    ];
    assert_eq!(changes, expected);
    assert_eq!(state, FeedState { on: true, version: 11, complete: 9, removed: 9 });
    assert_gapless(&path, 9, 11);
}

/// Before format 6 feeds had a table of their own, which had no values over 64 KiB and trimmed sets before removals.
#[test]
fn the_changes_of_feeds_become_segments_of_the_log() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = changed(
        directory.path(),
        3,
        "UPDATE openkv_feed_state SET complete = 2, removed = 1;
         INSERT INTO openkv_feed VALUES (2, 1, 5, 0, x'026F6C6400', NULL, NULL);
         INSERT INTO openkv_feed VALUES (4, 1, 7, 323, x'026C6172676500', NULL, NULL);
         INSERT INTO openkv_feed VALUES (5, 1, 6, 256, x'026B65707400', NULL, 9);
         INSERT INTO openkv_feed VALUES (5, 2, 6, 0, x'02676F6E6500', NULL, 8);
         UPDATE data_version SET version = 14 WHERE k = 0;",
    );
    let (state, changes) = feed(&path);
    let expected = [
        (4, key("large"), set(5003, None)),
        (5, key("kept"), ChangeKind::ExpirySet { expire_at_ms: Some(9) }),
        (5, key("gone"), ChangeKind::Expired),
        (10, key("text"), set(6, Some(4_102_444_800_000))),
        (11, key("absent"), ChangeKind::Deleted),
    ];
    assert_eq!(changes, expected);
    // The removal of commit 2 had no sets of its commit left, so it is not in the log.
    assert_eq!(state, FeedState { on: true, version: 14, complete: 2, removed: 2 });
    assert_gapless(&path, 2, 14);
    let times = strings(&path, "SELECT '' || at_ms FROM openkv_log ORDER BY version LIMIT 2");
    assert_eq!(times, ["7", "7"], "a clock that was set back");
    assert_segments_count(&path);
    let bounds = "SELECT retention_ms || ' ' || bytes_max FROM openkv_log_state";
    assert_eq!(strings(&path, bounds), ["604800000 1073741824"]);
}

#[test]
fn a_change_whose_value_is_not_known_is_where_the_log_begins() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = changed(
        directory.path(),
        3,
        "UPDATE openkv_feed_state SET complete = 2, removed = 1;
         INSERT INTO openkv_feed VALUES (5, 1, 6, 323, x'026C6172676500', NULL, NULL);",
    );
    let (state, changes) = feed(&path);
    assert_eq!(changes.iter().map(|change| change.0).collect::<Vec<_>>(), [10, 11]);
    // No removal is missing, so a feed behind it gets the last change of each key.
    assert_eq!(state, FeedState { on: true, version: 11, complete: 5, removed: 1 });
    assert_gapless(&path, 5, 11);
}

#[test]
fn a_replication_log_stays_as_it_is() {
    let directory = tempfile::tempdir().expect("a directory");
    for format in [4, 5] {
        let before = strings(&kept(format), "SELECT version || hex(changes) FROM openkv_log");
        let path = changed(directory.path(), format, "");
        let (state, changes) = feed(&path);
        assert_eq!(changes, [(12, key("text"), set(8, None)), (13, key("text"), set(6, None))]);
        assert_eq!(state, FeedState { on: true, version: 13, complete: 11, removed: 11 });
        assert_eq!(strings(&path, "SELECT version || hex(changes) FROM openkv_log"), before);
        assert_segments_count(&path);
    }
    // Without feeds, nothing after the last removal is missing.
    let path = changed(
        directory.path(),
        5,
        "DELETE FROM openkv_feed; DELETE FROM openkv_feed_state; \
         UPDATE data_version SET seq = 7 WHERE k = 0",
    );
    let (state, _) = feed(&path);
    assert_eq!(state, FeedState { on: true, version: 13, complete: 11, removed: 7 });
}

/// The file that [`a_migration_that_is_killed_has_changed_nothing`] lets a process of its own migrate.
const MIGRATES: &str = "OPENKV_TEST_MIGRATES";

#[test]
fn a_migration_that_is_killed_has_changed_nothing() {
    if let Some(path) = std::env::var_os(MIGRATES) {
        drop(open(Path::new(&path), false).expect("migrated"));
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let large = changed(
        directory.path(),
        3,
        "INSERT INTO openkv_feed
         WITH RECURSIVE n(at) AS (SELECT 1 UNION ALL SELECT at + 1 FROM n WHERE at < 20000)
         SELECT 100 + at / 3, at, at, 3, cast(at AS BLOB), randomblob(500), NULL FROM n;
         UPDATE data_version SET version = 10000, seq = 10000 WHERE k = 0;
         PRAGMA wal_checkpoint(TRUNCATE);",
    );
    let whole = directory.path().join("whole.sqlite3");
    std::fs::copy(&large, &whole).expect("a copy");
    let expected = feed(&whole);
    assert_eq!(expected.1.len(), 20_002);
    let me = std::env::current_exe().expect("this program");
    for log_bytes in [0, 1, 1 << 16, 1 << 20, 4 << 20, 8 << 20] {
        let path = directory.path().join(format!("{log_bytes}.sqlite3"));
        std::fs::copy(&large, &path).expect("a copy");
        let mut child = std::process::Command::new(&me)
            .args(["--exact", "a_migration_that_is_killed_has_changed_nothing"])
            .env(MIGRATES, &path)
            .stdout(std::process::Stdio::null())
            .spawn()
            .expect("started");
        let log = directory.path().join(format!("{log_bytes}.sqlite3-wal"));
        // It ends by itself if its log does not get so long.
        while child.try_wait().expect("a status").is_none()
            && std::fs::metadata(&log).map_or(0, |log| log.len()) < log_bytes
        {
            std::thread::yield_now();
        }
        child.kill().expect("killed");
        child.wait().expect("ended");
        assert_eq!(feed(&path), expected, "killed with a log of {log_bytes} bytes");
    }
}
