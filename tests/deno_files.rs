//! Files of Deno get openkv's tables, and later commits of Deno are detected.
//! `tests/vectors/files/deno.sqlite3` is a file of Deno.

#![expect(clippy::expect_used, reason = "a test ends where something is not as it should be")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use openkv::engine::sqlite::SqliteEngine;
use openkv::engine::{Engine, FeedState, Reader, Work, Writer};
use openkv::model::{
    AtomicWrite, Claim, DENO_RUNNING_MS, Delivery, EncodedValue, Encoding, Key, Kind, LOCK_MS,
    Limits, Message, Mutation, Origin, Outcome, Settlement, Time, WriteParts,
};
use rusqlite::Connection;

const ORIGIN: Origin = Origin { database: [7; 16], incarnation: 7 };

fn denos(directory: &Path) -> PathBuf {
    let path = directory.join("deno.sqlite3");
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/files/deno.sqlite3");
    std::fs::copy(kept, &path).expect("a copy");
    path
}

fn open(path: &Path, wanted: Option<Encoding>) -> openkv::model::Result<SqliteEngine> {
    SqliteEngine::open_as(path, false, Duration::from_secs(5), wanted)
}

/// The names of everything in a file, and the columns of every table, without the text of its
/// `CREATE`.
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
fn files_of_deno_and_for_deno_are_equal() {
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
        expiry: None,
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
        state = Some(snapshot.feed_state()?);
        Ok(())
    });
    read.expect("read");
    state.expect("a state")
}

#[test]
fn commits_of_deno_are_a_gap_in_the_feed() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = denos(directory.path());
    let engine = open(&path, None).expect("opened");
    let deadline = Instant::now() + Duration::from_secs(20);
    let from =
        engine.writer().expect("a writer").log_changes(ORIGIN, 1000, deadline).expect("logging");
    let first = set(&engine, 1);
    let state = feed(&engine);
    assert_eq!((state.version, state.complete, state.removed), (first, from, from));
    // Replicas and archives get none: Deno logs nothing.
    let mut reader = engine.reader().expect("a reader");
    let offered = reader.read(0, &mut |snapshot| {
        assert_eq!(snapshot.log()?.state()?.log, None);
        Ok(())
    });
    offered.expect("read");

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

fn apply(engine: &SqliteEngine, work: Work, now_ms: i64) -> Vec<Delivery> {
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut writer = engine.writer().expect("a writer");
    let report = writer.apply(work, now_ms, deadline).expect("applied");
    report.deliveries.into_iter().flatten().collect()
}

fn claim(engine: &SqliteEngine, now_ms: i64) -> Vec<Delivery> {
    let claim = Claim { queue: String::new(), max: 1, lock_ms: LOCK_MS, lock: 9 };
    apply(engine, Work { claims: vec![claim], ..Work::default() }, now_ms)
}

fn end(engine: &SqliteEngine, of: &Delivery, outcome: Outcome, now_ms: i64) {
    let settlements = vec![Settlement::new(of.id, of.lock, outcome)];
    apply(engine, Work { settlements, ..Work::default() }, now_ms);
}

/// The messages that wait in a table of Deno.
fn waiting(path: &Path, table: &str) -> Vec<String> {
    let raw = Connection::open(path).expect("opened raw");
    let time = if table == "queue" { "ts" } else { "deadline" };
    let sql = format!(
        "SELECT {time} || ' ' || hex(data) || ' ' || backoff_schedule || ' ' || keys_if_undelivered \
         || ' ' || typeof(data) || typeof(backoff_schedule) || typeof(keys_if_undelivered) \
         || (id GLOB '????????-????-4???-a???-????????????') FROM {table}"
    );
    let mut statement = raw.prepare(&sql).expect("prepared");
    let rows = statement.query_map([], |row| row.get(0)).expect("queried");
    rows.collect::<Result<_, _>>().expect("read")
}

const NULL: &str = "FF0F30";

fn with_message(path: &Path) -> SqliteEngine {
    let engine = open(path, Some(Encoding::V8)).expect("made");
    let message = Message {
        due: Time::At(100),
        backoff_ms: vec![7, 8],
        keys_if_undelivered: vec![Key::from_encoded(vec![0x15, 1])],
        value: vec![0xf6],
        ..Message::default()
    };
    let parts = WriteParts { messages: vec![message], ..WriteParts::default() };
    let write = AtomicWrite::new(parts, &Limits::default()).expect("within the limits");
    apply(&engine, Work { writes: vec![write], ..Work::default() }, 50);
    engine
}

#[test]
fn messages_wait_in_the_table_of_deno() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("made.sqlite3");
    let engine = with_message(&path);
    let row =
        |at: i64, backoff: &str| vec![format!("{at} {NULL} {backoff} [[21,1]] blobtexttext1")];
    assert_eq!(waiting(&path, "queue"), row(100, "[7,8]"));
    assert_eq!(claim(&engine, 99), []);
    let mut writer = engine.writer().expect("a writer");
    assert_eq!(writer.next_message_ms("").expect("due times"), Some(100));

    // Unseen, failed, expired, failed for the last time.
    let first = claim(&engine, 100).pop().expect("a message");
    assert_eq!(first.value, [0xf6]);
    assert!(waiting(&path, "queue").is_empty());
    assert_eq!(writer.next_message_ms("").expect("due times"), Some(100 + LOCK_MS));
    end(&engine, &first, Outcome::Returned, 101);
    assert_eq!(waiting(&path, "queue"), row(100, "[7,8]"));
    let second = claim(&engine, 102).pop().expect("again");
    end(&engine, &second, Outcome::Failed, 103);
    assert_eq!(waiting(&path, "queue"), row(110, "[8]"));
    assert_eq!(claim(&engine, 110).len(), 1);
    assert_eq!(claim(&engine, 110 + LOCK_MS), []);
    assert_eq!(waiting(&path, "queue"), row(110 + LOCK_MS + 8, "[]"));
    let last = claim(&engine, 110 + LOCK_MS + 8).pop().expect("for the last time");
    end(&engine, &last, Outcome::Failed, 110 + LOCK_MS + 9);
    assert!(waiting(&path, "queue").is_empty());
    let raw = Connection::open(&path).expect("opened raw");
    let left: String = raw
        .query_row("SELECT hex(v) || v_encoding FROM kv WHERE k = x'1501'", [], |row| row.get(0))
        .expect("left behind");
    assert_eq!(left, format!("{NULL}1"));
    let ours: i64 =
        raw.query_row("SELECT count(*) FROM openkv_queue", [], |row| row.get(0)).expect("counted");
    assert_eq!(ours, 0);
}

#[test]
fn messages_claimed_by_an_ended_deno_are_redelivered() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("made.sqlite3");
    let engine = with_message(&path);
    let raw = Connection::open(&path).expect("opened raw");
    let deno = "INSERT INTO queue_running SELECT ts + 5000, id, data, backoff_schedule, \
                keys_if_undelivered FROM queue; DELETE FROM queue";
    raw.execute_batch(deno).expect("as Deno does");
    let ended = 5100 + DENO_RUNNING_MS;
    assert_eq!(claim(&engine, ended - 1), []);
    assert_eq!(claim(&engine, ended), []);
    let expected = format!("{} {NULL} [8] [[21,1]] blobtexttext1", ended + 7);
    assert_eq!(waiting(&path, "queue"), [expected]);
    assert_eq!(claim(&engine, ended + 7).len(), 1);
    assert!(waiting(&path, "queue_running").is_empty());
}
