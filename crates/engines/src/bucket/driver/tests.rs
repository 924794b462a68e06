//! A driver without its thread, over a store in memory that fails as a test says.

mod in_flight;
mod indexes;
mod inspected;
mod merged;
mod served;
mod store;
mod times;
mod write_ids;

use std::sync::atomic::{AtomicU64, Ordering};

use self::store::{Fault, Store};
use super::*;
use crate::bucket::location::Timing;
use crate::bucket::objects::Objects;
use crate::bucket::publisher::LogPublisher;
use crate::bucket::{BucketEngine, BucketOptions, BucketReader, BucketWriter, attempt};
use crate::objects::Target;
use crate::sqlite::publisher::Publisher as _;
use crate::suite::{doc, key, of, set, sum, write};
use crate::{Engine as _, Reader, Work, Writer as _};
use openkv_core::model::{
    AtomicWrite, BUCKET_OPENING_ATTEMPTS, BUCKET_SNAPSHOT_BYTES_MIN, Decision, Segment,
};

/// Longer than any test.
const LEASE_MS: u64 = 300_000;
const TIMING: Timing = Timing { lease_ms: LEASE_MS, linger: None };

struct Process {
    local: Arc<Local>,
    lead: Arc<Lead>,
    driver: Driver,
}

fn opened(store: &Arc<Store>, lead: LeadMode, eventual: bool) -> Result<Process> {
    opened_with(store, lead, eventual, TIMING)
}

fn opened_with(
    store: &Arc<Store>,
    lead: LeadMode,
    eventual: bool,
    timing: Timing,
) -> Result<Process> {
    let url = "s3://bucket/test".to_owned();
    let options = BucketOptions { url, cache: None, lead, eventual, advertise: None };
    let objects = Objects { target: Target::over(store.clone(), "test") };
    let (local, lead, driver) = BucketEngine::begin(&options, objects, timing)?;
    Ok(Process { local, lead, driver })
}

fn leader(store: &Arc<Store>) -> Process {
    let process = opened(store, LeadMode::Auto, false).unwrap();
    assert!(process.leads());
    process
}

/// The value of `n`.
fn number_in(reader: &mut impl Reader) -> u64 {
    let mut found = 0;
    let read = reader.read(1_000_000, &mut |snapshot| {
        snapshot.get(key("n").as_bytes(), &mut |row| {
            found = u64::from_le_bytes(row.value.try_into().unwrap());
        })?;
        Ok(())
    });
    read.unwrap();
    found
}

impl Process {
    fn writer(&self) -> BucketWriter {
        BucketWriter::new(self.local.clone(), self.lead.clone())
    }

    fn leads(&self) -> bool {
        matches!(self.lead.state.lock().role, Role::Leads(_))
    }

    fn rests(&self) -> bool {
        matches!(self.lead.state.lock().role, Role::Rests(_))
    }

    fn reads(&self) -> bool {
        matches!(self.lead.state.lock().role, Role::Reads(_))
    }

    /// Adds 1 to `n`.
    fn add(&self) -> Result<()> {
        self.apply(vec![write(vec![], vec![sum("n", 1)])])
    }

    fn apply(&self, writes: Vec<AtomicWrite>) -> Result<()> {
        let mut writer = BucketWriter::new(self.local.clone(), self.lead.clone());
        let deadline = Instant::now() + Duration::from_secs(30);
        let work = Work { writes, durable: true, ..Work::default() };
        let report = writer.apply(work, 1_000_000, deadline)?;
        assert!(report.decisions.iter().all(|made| matches!(made, Decision::Committed(_))));
        Ok(())
    }

    /// The number that the local copy has.
    fn count(&self) -> u64 {
        let reader = self.local.engine.reader().unwrap();
        number_in(&mut BucketReader::new(reader, self.lead.clone(), self.local.clone()))
    }

    /// The same without a look whether it is current.
    fn count_at_hand(&self) -> u64 {
        let inner = self.local.engine.reader().unwrap();
        let mut reader = BucketReader::new(inner, self.lead.clone(), self.local.clone());
        let mut rows = 0;
        let read = reader.read_at_hand(1_000_000, &mut |snapshot| {
            rows = u64::from(snapshot.get(key("n").as_bytes(), &mut |_| {})?);
            Ok(())
        });
        read.unwrap();
        rows
    }

    /// Changes the file beside the log.
    fn change_file(&self, sql: &str) {
        self.local.writer.lock().change_file(sql);
    }

    /// Works until this process leads.
    fn lead_again(&mut self) {
        self.driver.lease_look_ms = 0;
        for _ in 0..3 {
            if !self.leads() {
                self.driver.round();
            }
        }
        assert!(self.leads());
    }

    /// Whether the driver takes the process for used although no call comes.
    fn is_used(&mut self) -> bool {
        self.lead.used.store(false, Ordering::Relaxed);
        let before_ms = self.driver.used_ms;
        while self.lead.now_ms() <= before_ms {
            std::thread::yield_now();
        }
        self.driver.round();
        self.driver.used_ms > before_ms
    }

    fn may_read_at_once(&self) -> bool {
        self.lead.fresh(false).is_ok()
    }
}

/// A COMMIT that failed after the object was there was answered as a failure, and run again after a full disk.
fn a_commit_that_the_file_loses(breaks: &str, repairs: &str) {
    let store = Arc::new(Store::default());
    let mut process = leader(&store);
    process.add().unwrap();
    process.change_file(breaks);
    let before = store.requests("PUT log/").len();
    let error = process.add().unwrap_err();
    assert_eq!(error.kind(), Kind::OutcomeUnknown, "{error}");
    assert_eq!(store.requests("PUT log/").len(), before + 1);
    assert!(process.reads() && !process.may_read_at_once());
    process.change_file(repairs);
    process.lead_again();
    assert_eq!(process.count(), 2);
    process.add().unwrap();
    assert_eq!(process.count(), 3);
    process.driver.release().unwrap();
    assert_eq!(leader(&store).count(), 3);
}

#[test]
fn a_commit_whose_place_cannot_be_stored_is_read_from_the_log() {
    let breaks = "CREATE TRIGGER lost BEFORE INSERT ON openkv_meta WHEN NEW.name = 'bucket'
                  BEGIN SELECT RAISE(ABORT, 'lost'); END";
    a_commit_that_the_file_loses(breaks, "DROP TRIGGER lost");
}

#[test]
fn a_commit_that_the_file_refuses_is_read_from_the_log() {
    let breaks = "CREATE TABLE one (k INTEGER PRIMARY KEY);
                  CREATE TABLE two (k INTEGER REFERENCES one DEFERRABLE INITIALLY DEFERRED);
                  CREATE TRIGGER lost BEFORE INSERT ON openkv_meta WHEN NEW.name = 'bucket'
                  BEGIN INSERT INTO two VALUES (1); END";
    a_commit_that_the_file_loses(breaks, "DROP TRIGGER lost; DROP TABLE two; DROP TABLE one");
}

#[test]
fn a_process_whose_file_is_behind_answers_no_read_before_it_follows() {
    let store = Arc::new(Store::default());
    let mut process = leader(&store);
    process.add().unwrap();
    assert!(process.may_read_at_once());
    let mut publisher = LogPublisher::new(process.lead.clone(), process.local.database);
    let commit = Segment { first: 9, last: 9, at_ms: 0, changes: Vec::new() };
    let error = publisher.publish(commit).unwrap_err();
    assert_eq!(error.kind(), Kind::Unavailable);
    assert!(process.reads() && !process.may_read_at_once());
    process.lead_again();
    assert_eq!(process.count(), 1);
}

/// The first reader took the error, and the others read as if the look had succeeded.
#[test]
fn a_failed_look_is_told_to_all_that_wait_for_it() {
    let store = Arc::new(Store::default());
    drop(leader(&store));
    let mut process = opened(&store, LeadMode::Never, false).unwrap();
    let lead = process.lead.clone();
    std::thread::scope(|scope| {
        let waiting: Vec<_> = (0..3).map(|_| scope.spawn(|| lead.fresh(true))).collect();
        while lead.state.lock().looks.0 < 3 {
            std::thread::yield_now();
        }
        store.fail("GET log/", Fault::Denied);
        process.driver.round();
        for reader in waiting {
            assert_eq!(reader.join().unwrap().unwrap_err().kind(), Kind::Denied);
        }
    });
}

/// A read of a process with a full disk was told that its outcome is unknown, and a write that the process does not lead yet.
#[test]
fn a_local_copy_that_cannot_be_written_is_named() {
    let store = Arc::new(Store::default());
    let mut writer = leader(&store);
    let mut process = opened(&store, LeadMode::Auto, false).unwrap();
    writer.apply(vec![write(vec![], vec![set("a", &[7; 60_000]), sum("n", 1)])]).unwrap();
    writer.driver.release().unwrap();
    // As large as it is now.
    process.change_file("PRAGMA max_page_count = 1");
    let lead = process.lead.clone();
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| lead.fresh(true));
        while lead.state.lock().looks.0 == 0 {
            std::thread::yield_now();
        }
        process.driver.round();
        let error = reader.join().unwrap().unwrap_err();
        assert_eq!(error.kind(), Kind::Unavailable, "{error}");
        assert!(error.message().starts_with("cache: "), "{error}");
    });
    lead.state.lock().role = Role::Reads(None);
    let error = lead.lead_by(Instant::now(), true).unwrap_err();
    assert!(error.message().contains("cache: "), "{error}");
    process.change_file("PRAGMA max_page_count = 1000000");
    process.lead_again();
    assert_eq!(process.count(), 1);
}

/// The renewal that happened, and whose answer was lost, counted as one of the attempt that found out.
#[test]
fn a_renewal_counts_from_its_first_attempt() {
    let store = Arc::new(Store::default());
    let mut process = leader(&store);
    store.fail("PUT lease.json", Fault::Lost);
    for _ in 0..crate::objects::READS {
        store.fail("GET lease.json", Fault::Refused);
    }
    process.driver.renew().unwrap_err();
    assert_eq!(store.faults(), 0);
    let ended_ms = process.lead.now_ms();
    while process.lead.now_ms() == ended_ms {
        std::thread::yield_now();
    }
    process.driver.renew().unwrap();
    let tenure = match &process.lead.state.lock().role {
        Role::Leads(leading) => leading.tenure,
        Role::Reads(_) | Role::Rests(_) => panic!("the lead is lost"),
    };
    assert!(tenure.answers_until_ms() <= ended_ms + LEASE_MS / 2);
    // The next one counts from itself.
    process.driver.renew().unwrap();
    match &process.lead.state.lock().role {
        Role::Leads(leading) => {
            assert!(leading.tenure.answers_until_ms() > ended_ms + LEASE_MS / 2);
        }
        Role::Reads(_) | Role::Rests(_) => panic!("the lead is lost"),
    }
}

/// A store that failed for a while, or refused one request, ended the wait.
#[test]
fn a_process_waits_for_the_lead_while_the_store_fails() {
    let store = Arc::new(Store::default());
    let mut other = leader(&store);
    let mut process = opened(&store, LeadMode::Wait, false).unwrap();
    assert!(process.reads());
    other.driver.release().unwrap();
    process.driver.lease_look_ms = 0;
    store.fail("GET log/", Fault::Denied);
    for _ in 0..crate::objects::READS {
        store.fail("GET lease.json", Fault::Refused);
    }
    store.fail("PUT log/", Fault::Lost);
    process.driver.wait_for_lead(&|| true).unwrap();
    assert_eq!(store.faults(), 0);
    process.add().unwrap();
}

/// It slept for an hour, and its reads waited in vain.
#[test]
fn a_process_that_has_lost_its_lead_at_rest_reads_at_once() {
    let store = Arc::new(Store::default());
    let mut process = leader(&store);
    process.add().unwrap();
    process.driver.release().unwrap();
    assert!(process.rests() && !process.may_read_at_once());
    let other = leader(&store);
    other.add().unwrap();
    assert_eq!(process.driver.round().longest, Duration::ZERO);
    assert!(process.reads());
    let lead = process.lead.clone();
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| lead.fresh(true));
        while !reader.is_finished() {
            process.driver.round();
        }
        reader.join().unwrap().unwrap();
    });
    assert!(process.reads());
}

#[test]
fn a_read_and_a_watch_end_a_rest() {
    let store = Arc::new(Store::default());
    for eventual in [false, true] {
        let mut process = opened(&store, LeadMode::Auto, eventual).unwrap();
        assert!(process.leads() && process.may_read_at_once());
        process.driver.release().unwrap();
        // It may miss what others have written meanwhile.
        assert!(process.rests() && !process.may_read_at_once());
        assert!(process.lead.state.lock().wanted);
        process.driver.round();
        assert!(process.leads() && process.may_read_at_once());
        process.driver.release().unwrap();
        process.lead.state.lock().wanted = false;
        // Metrics do not.
        assert_eq!(process.count_at_hand(), 0);
        assert!(process.rests() && !process.lead.state.lock().wanted);
        let watch = process.lead.listen(Box::new(|_| {}));
        assert!(process.rests() && process.lead.state.lock().wanted);
        process.driver.round();
        assert!(process.leads());
        // A watch keeps the process at work, and a process that nobody uses comes to rest.
        assert!(process.is_used());
        drop(watch);
        assert!(!process.is_used());
        process.driver.release().unwrap();
    }
}

#[test]
fn an_eventual_read_is_answered_at_once_and_fails_with_its_database() {
    let store = Arc::new(Store::default());
    leader(&store).add().unwrap();
    let mut process = opened(&store, LeadMode::Never, true).unwrap();
    assert!(process.may_read_at_once());
    process.driver.round();
    assert!(process.may_read_at_once());
    process.lead.state.lock().failed = Some(Error::closed());
    process.lead.note_tenure(&process.lead.state.lock());
    assert_eq!(process.lead.fresh(true).unwrap_err().kind(), Kind::Closed);
}

/// What did not fit into one transaction was read again for the next one.
#[test]
fn following_reads_each_object_once() {
    let store = Arc::new(Store::default());
    let process = leader(&store);
    let value = vec![7; 60_000];
    // The reader asks for 1, 2, 4 and 8 objects. The last eight have more than one transaction repeats.
    for at in 1..=14 {
        let names = (0..if at < 7 { 1 } else { 20 }).map(|n| format!("{at}-{n}"));
        process.apply(names.map(|name| write(vec![], vec![set(&name, &value)])).collect()).unwrap();
    }
    let before = store.requests("GET log/").len();
    let reader = opened(&store, LeadMode::Never, false).unwrap();
    let mut read = store.requests("GET log/").split_off(before);
    let newest = format!("GET log/{:016x}", reader.driver.position.next);
    assert_eq!(reader.driver.position.next, 15);
    // There is nothing behind the end.
    read.retain(|name| *name < newest);
    let all = read.len();
    read.sort_unstable();
    read.dedup();
    assert_eq!((read.len(), all), (15, 15));
}

#[test]
fn a_commit_is_denied_only_if_no_attempt_can_have_created_it() {
    let store = Arc::new(Store::default());
    let mut process = leader(&store);
    process.add().unwrap();
    store.fail("PUT log/", Fault::Denied);
    assert_eq!(process.add().unwrap_err().kind(), Kind::Denied);
    process.lead_again();
    assert_eq!(process.count(), 1);
    store.fail("PUT log/", Fault::Lost);
    store.fail("PUT log/", Fault::Denied);
    assert_eq!(process.add().unwrap_err().kind(), Kind::OutcomeUnknown);
    process.lead_again();
    assert_eq!(process.count(), 2);
}

/// Begins a snapshot.
fn begin_snapshot(process: &mut Process) {
    process.lead.state.lock().weight = BUCKET_SNAPSHOT_BYTES_MIN;
    process.driver.snapshots.tend(&process.lead, &process.local);
    assert_eq!(process.lead.state.lock().weight, 0);
}

#[test]
fn a_snapshot_that_fails_counts_as_not_taken() {
    let store = Arc::new(Store::default());
    let mut process = leader(&store);
    process.add().unwrap();
    store.fail("UPLOAD snapshots/", Fault::Refused);
    begin_snapshot(&mut process);
    while process.lead.state.lock().weight == 0 {
        process.driver.snapshots.tend(&process.lead, &process.local);
        std::thread::yield_now();
    }
    assert_eq!(process.lead.state.lock().weight, BUCKET_SNAPSHOT_BYTES_MIN);
    assert_eq!(process.lead.objects.snapshots().unwrap().len(), 0);
}

#[test]
fn others_lead_while_a_process_that_ends_uploads_its_snapshot() {
    let store = Arc::new(Store::default());
    let mut process = leader(&store);
    process.add().unwrap();
    store.fail("UPLOAD snapshots/", Fault::AfterRelease);
    begin_snapshot(&mut process);
    process.driver.resign();
    assert!(store.saw_release.load(Ordering::SeqCst));
    assert_eq!(process.lead.objects.snapshots().unwrap().len(), 1);
}

/// Each object took a request of its own, and a process that was closed waited for all of them.
#[test]
fn objects_are_deleted_at_once_and_closing_ends_that() {
    let store = Arc::new(Store::default());
    let process = leader(&store);
    for _ in 0..10 {
        process.add().unwrap();
    }
    let lead = &process.lead;
    let numbers =
        || -> Vec<_> { lead.objects.log().unwrap().iter().map(|listed| listed.number).collect() };
    let asked = Arc::new(AtomicU64::new(0));
    let three_times = move || asked.fetch_add(1, Ordering::Relaxed) < 3;
    lead.objects.delete(Some(9), &[], three_times).unwrap();
    assert_eq!(numbers().first(), Some(&3));
    let before = store.requests("DELETE").len();
    lead.objects.delete(Some(9), &[], || true).unwrap();
    assert_eq!(numbers(), [10]);
    // The log, the copies, and the snapshots.
    assert!(store.requests("DELETE").len() <= before + 3);
}

/// After a request that no answer came to, the next one waited for as long.
#[test]
fn a_process_that_closes_does_not_ask_what_has_become_of_its_release() {
    for closes in [false, true] {
        let store = Arc::new(Store::default());
        let mut process = leader(&store);
        if closes {
            process.lead.close();
        }
        store.fail("PUT lease.json", Fault::Lost);
        let before = store.requests("GET lease.json").len();
        assert_eq!(process.driver.release().is_err(), closes);
        assert_eq!(store.requests("GET lease.json").len() == before, closes);
    }
}

#[test]
fn an_opening_begins_no_attempt_after_its_time() {
    let openings = |longest| {
        let mut count = 0;
        let refused = attempt::<()>(longest, &|| true, |_| {
            count += 1;
            Err(Error::unavailable("late"))
        });
        refused.unwrap_err();
        count
    };
    assert_eq!(openings(Duration::MAX), BUCKET_OPENING_ATTEMPTS);
    assert_eq!(openings(Duration::ZERO), 1);
}

#[test]
fn a_restored_database_goes_on_from_its_snapshot() {
    let store = Arc::new(Store::default());
    let mut process = leader(&store);
    process.add().unwrap();
    begin_snapshot(&mut process);
    process.driver.snapshots.finish();
    process.add().unwrap();
    process.driver.release().unwrap();
    let listings = store.requests("LIST snapshots").len();
    let other = opened(&store, LeadMode::Auto, false).unwrap();
    assert_eq!(other.count(), 2);
    // The log behind the snapshot is known to be whole from the same listing.
    assert_eq!(store.requests("LIST snapshots").len(), listings + 1);
}

#[test]
fn a_process_tries_the_conditions_of_a_store_once() {
    let store = Arc::new(Store::default());
    let mut process = leader(&store);
    // Created, replaced, and tried in vain.
    assert_eq!(store.requests("PUT lease.json").len(), 3);
    process.driver.release().unwrap();
    let mut other = leader(&store);
    process.driver.round();
    assert!(process.reads());
    other.driver.release().unwrap();
    let before = (store.requests("PUT openkv.json").len(), store.requests("PUT lease.json").len());
    process.lead_again();
    let after = (store.requests("PUT openkv.json").len(), store.requests("PUT lease.json").len());
    assert_eq!(after, (before.0, before.1 + 1));
}

#[test]
fn a_store_without_conditions_is_refused_at_the_first_lead() {
    for request in ["PUT openkv.json", "PUT lease.json"] {
        let store = Arc::new(Store::default());
        for _ in 0..4 {
            store.fail(request, Fault::Unconditional);
        }
        let refused = opened(&store, LeadMode::Auto, false).map(drop).unwrap_err();
        assert_eq!(refused.kind(), Kind::Unsupported, "{request}: {refused}");
    }
}

#[test]
fn a_place_with_other_objects_is_refused_without_listing_all() {
    let store = Arc::new(Store::default());
    let target = Target::over(store.clone(), "test");
    for n in 0..100 {
        target.create(&format!("photos/{n}"), vec![1]).unwrap();
    }
    let refused = opened(&store, LeadMode::Auto, false).map(drop).unwrap_err();
    assert_eq!(refused.kind(), Kind::Invalid, "{refused}");
    assert_eq!(store.listed.load(Ordering::SeqCst), 1);
}

#[test]
fn requests_are_counted_by_kind() {
    let store = Arc::new(Store::default());
    let mut process = leader(&store);
    process.add().unwrap();
    begin_snapshot(&mut process);
    process.driver.snapshots.finish();
    process.driver.release().unwrap();
    let target = &process.lead.objects.target;
    let counted = target.requests();
    let of = |like: &str| store.requests(like).len() as u64;
    // Its one part, and its end.
    assert_eq!(of("UPLOAD "), 1);
    assert_eq!(counted.put, of("PUT ") + of("UPLOAD ") + 2);
    assert_eq!(counted.get, of("GET "));
    assert_eq!((counted.list, counted.delete), (of("LIST "), 0));
    let listed = target.list("snapshots").unwrap();
    let (name, bytes) = &listed[0];
    assert!(counted.put_bytes > *bytes);
    target.find(name).unwrap();
    target.remove(std::slice::from_ref(name)).unwrap();
    let after = target.requests();
    assert_eq!((after.get, after.delete), (counted.get + 1, 1));
    assert_eq!(after.got_bytes, counted.got_bytes + bytes);
}
