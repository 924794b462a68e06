//! Files that Deno has made become files of both, and what Deno does to them later is noticed.
//! `vectors/files/deno.sqlite3` is such a file.

#![expect(clippy::expect_used, reason = "a test ends where something is not as it should be")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use openkv::engine::sqlite::SqliteEngine;
use openkv::engine::{Engine, FeedState, Reader, Work, Writer};
use openkv::model::{AtomicWrite, EncodedValue, Encoding, Key, Kind, Limits, Mutation, WriteParts};
use rusqlite::Connection;

fn denos(directory: &Path) -> PathBuf {
    let path = directory.join("deno.sqlite3");
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors/files/deno.sqlite3");
    std::fs::copy(kept, &path).expect("a copy");
    path
}

fn open(path: &Path, wanted: Option<Encoding>) -> openkv::model::Result<SqliteEngine> {
    SqliteEngine::open_as(path, false, Duration::from_secs(5), wanted)
}

/// Names of everything in a file, and the columns of every table, without the words of its `CREATE`.
fn schema(path: &Path) -> Vec<String> {
    let raw = Connection::open(path).expect("opened raw");
    let sql = "SELECT s.type || ' ' || s.name || ' ' || s.tbl_name || ' ' || coalesce(c.name || ' ' || \
               lower(c.type) || c.\"notnull\" || coalesce(c.dflt_value, '') || c.pk, '') \
               FROM sqlite_master AS s LEFT JOIN pragma_table_info(s.name) AS c ORDER BY 1";
    let mut statement = raw.prepare(sql).expect(sql);
    let rows = statement.query_map([], |row| row.get(0)).expect(sql);
    rows.collect::<Result<_, _>>().expect(sql)
}

#[test]
fn a_file_of_denos_and_a_file_for_deno_are_alike() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = denos(directory.path());
    let refused = SqliteEngine::open(&path, true, Duration::ZERO).err().expect("not read-only");
    assert_eq!(refused.kind(), Kind::Unsupported);
    let refused = open(&path, Some(Encoding::Cbor)).err().expect("another format");
    assert_eq!(refused.kind(), Kind::Invalid);
    assert!(!schema(&path).iter().any(|line| line.contains("openkv")), "it stayed as it was");
    assert_eq!(open(&path, None).expect("opened").encoding(), Encoding::V8);
    let made = directory.path().join("made.sqlite3");
    drop(open(&made, Some(Encoding::V8)).expect("made"));
    assert_eq!(schema(&path), schema(&made));
    let readonly = SqliteEngine::open(&path, true, Duration::ZERO).expect("read-only");
    assert_eq!(readonly.encoding(), Encoding::V8);
}

#[test]
fn tables_of_another_deno_are_refused_by_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = denos(directory.path());
    let raw = Connection::open(&path).expect("opened raw");
    raw.execute("UPDATE migration_state SET version = 4", []).expect("changed");
    drop(raw);
    let refused = open(&path, None).err().expect("a newer one");
    assert_eq!(refused.kind(), Kind::Unsupported);
    assert!(refused.message().contains("version 4"), "{refused}");
}

fn set(engine: &SqliteEngine, at: u8) -> u64 {
    let mutation = Mutation::Set {
        key: Key::from_encoded(vec![0x15, at]),
        suffixed: false,
        value: EncodedValue { encoding: Encoding::Cbor, bytes: vec![0xf6] },
        expire_at_ms: None,
    };
    let parts = WriteParts { mutations: vec![mutation], ..WriteParts::default() };
    let write = AtomicWrite::new(parts, &Limits::default()).expect("within the limits");
    let work = Work { writes: vec![write], ..Work::default() };
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut writer = engine.writer().expect("a writer");
    writer.apply(work, 1000, deadline).expect("applied").versions.1
}

fn feed(engine: &SqliteEngine) -> FeedState {
    let mut state = None;
    let mut reader = engine.reader().expect("a reader");
    let read = reader.read(0, &mut |snapshot| {
        state = Some(snapshot.feed().state()?);
        Ok(())
    });
    read.expect("read");
    state.expect("a state")
}

#[test]
fn what_deno_commits_is_a_gap_of_the_feed() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = denos(directory.path());
    let engine = open(&path, None).expect("opened");
    let deadline = Instant::now() + Duration::from_secs(20);
    let from = engine.writer().expect("a writer").log_changes(deadline).expect("logging");
    let first = set(&engine, 1);
    let state = feed(&engine);
    assert_eq!((state.version, state.complete, state.removed), (first, from, from));

    let raw = Connection::open(&path).expect("opened raw");
    let deno = "DELETE FROM kv WHERE k = x'1501'; UPDATE data_version SET version = version + 7";
    raw.execute_batch(deno).expect("as Deno does");
    let lost = first + 7;
    let state = feed(&engine);
    assert_eq!((state.version, state.complete, state.removed), (lost, lost, lost));
    let next = set(&engine, 2);
    let state = feed(&engine);
    assert_eq!((state.version, state.complete, state.removed), (next, lost, lost));
    let next = set(&engine, 3);
    let state = feed(&engine);
    assert_eq!((state.version, state.complete, state.removed), (next, lost, lost));
}
