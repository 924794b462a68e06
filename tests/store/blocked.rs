//! Consumers of several processes on a file that another process locks for longer than their own
//! locks last. Messages with running handlers were delivered a second time: the first writer that
//! got the file took the message locks for lapsed before their holders could renew them.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use openkv::engine::sqlite::{SqliteEngine, SqliteWriter};
use openkv::engine::{Engine, Report, Work, Writer};
use openkv::model::{
    AtomicWrite, Claim, Delivery, LOCK_GRACE_MS, Limits, Message, Renewal, Time, WriteParts,
};

const BUSY: Duration = Duration::from_secs(20);
const LOCK_MS: i64 = 5000;
const NOW: i64 = 1_000_000;

/// A writer of another process.
fn writer(path: &Path) -> SqliteWriter {
    SqliteEngine::open(path, false, BUSY).expect("opened").writer().expect("a writer")
}

fn apply(writer: &mut SqliteWriter, work: Work, now_ms: i64) -> Report {
    writer.apply(work, now_ms, Instant::now() + BUSY).expect("applied")
}

fn claim(writer: &mut SqliteWriter, lock: i64, now_ms: i64) -> Vec<Delivery> {
    let claims = vec![Claim { queue: "mail".into(), max: 10, lock_ms: LOCK_MS, lock }];
    apply(writer, Work { claims, ..Work::default() }, now_ms).deliveries.remove(0)
}

/// How long another process keeps the file after a claim has begun: far longer than a wait has to be to
/// count, so that a late start of the claim does not matter.
const KEPT: Duration = Duration::from_millis(300);

/// Claims while another process locks the file for a moment.
fn claim_kept_out(path: &Path, writer: &mut SqliteWriter, lock: i64, now_ms: i64) -> usize {
    let other = rusqlite::Connection::open(path).expect("opened raw");
    other.execute_batch("BEGIN IMMEDIATE").expect("began");
    let (begins, begun) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let claiming = scope.spawn(move || {
            begins.send(()).expect("awaited");
            claim(writer, lock, now_ms).len()
        });
        begun.recv().expect("begun");
        std::thread::sleep(KEPT);
        other.execute_batch("COMMIT").expect("ended");
        claiming.join().expect("claimed")
    })
}

/// A file with three messages, all claimed by `holder` at [`NOW`].
fn held(directory: &Path, holder: i64) -> (PathBuf, SqliteWriter, Vec<Renewal>) {
    let path = directory.join("kv.sqlite3");
    let mut writer = writer(&path);
    let message = |value| Message {
        queue: "mail".into(),
        due: Time::At(NOW),
        backoff_ms: vec![0; 5],
        value: vec![value],
        ..Message::default()
    };
    let messages = vec![message(1), message(2), message(3)];
    let parts = WriteParts { messages, ..WriteParts::default() };
    let writes = vec![AtomicWrite::new(parts, &Limits::default()).expect("valid")];
    apply(&mut writer, Work { writes, ..Work::default() }, NOW);
    let renewal = |d: &Delivery| Renewal { id: d.id, lock: holder, lock_ms: LOCK_MS };
    let renewals = claim(&mut writer, holder, NOW).iter().map(renewal).collect();
    (path, writer, renewals)
}

#[test]
fn locks_that_expired_during_a_blocked_file_are_renewed() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, mut holder, renewals) = held(directory.path(), 7);
    let freed = NOW + LOCK_MS + 2000;
    assert_eq!(claim_kept_out(&path, &mut writer(&path), 8, freed), 0);
    // A writer that comes now has not waited, and finds valid locks.
    assert_eq!(claim(&mut writer(&path), 9, freed + 200).len(), 0);
    let work = Work { renewals: renewals.clone(), ..Work::default() };
    assert_eq!(apply(&mut holder, work, freed + 400).renewed, [true; 3]);
    // The second time the same holds.
    let again = freed + 400 + LOCK_MS + 2000;
    assert_eq!(claim_kept_out(&path, &mut writer(&path), 10, again), 0);
    let work = Work { renewals, ..Work::default() };
    assert_eq!(apply(&mut holder, work, again + 400).renewed, [true; 3]);
}

#[test]
fn a_message_without_renewal_is_redelivered_after_the_grace_period() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, ..) = held(directory.path(), 7);
    let freed = NOW + LOCK_MS + 2000;
    let mut contender = writer(&path);
    assert_eq!(claim_kept_out(&path, &mut contender, 8, freed), 0);
    // The same for a writer that has to wait each time.
    let over = freed + 60 + 2 * LOCK_GRACE_MS;
    assert_eq!(claim_kept_out(&path, &mut contender, 9, over), 3);
}

#[test]
fn an_expired_lock_is_claimed_at_once_without_a_wait() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, ..) = held(directory.path(), 7);
    assert_eq!(claim(&mut writer(&path), 8, NOW + LOCK_MS - 1).len(), 0);
    assert_eq!(claim(&mut writer(&path), 9, NOW + LOCK_MS).len(), 3);
}

/// A writer that waited took the messages of its own handlers for lost, because their renewals were
/// not yet due when the wait began.
#[test]
fn a_writer_that_waited_keeps_its_locks() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, mut holder, renewals) = held(directory.path(), 7);
    assert_eq!(claim_kept_out(&path, &mut holder, 8, NOW + LOCK_MS), 0);
    let work = Work { renewals, ..Work::default() };
    assert_eq!(apply(&mut holder, work, NOW + LOCK_MS + 500).renewed, [true; 3]);
}
