//! Archives and restores of a store in a file, with a clock that only the tests move.

mod damage;
mod ends;
mod faults;
mod faulty;
mod forms;
mod restores;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use super::target::add_test_store;
use super::{Archive, ArchiveOptions, RestoreOptions, Restored, Status, restore};
use openkv_core::model::{
    AtomicWrite, Decision, EncodedValue, Encoding, Env, Key, Limits, Mutation, Result, Step, Time,
    Versionstamp, Walk, When, WriteParts,
};
use openkv_engines::sqlite::SqliteEngine;
use openkv_engines::{Engine, Reader};
use openkv_store::Store;

const START_MS: i64 = 1_000_000;
const PATIENCE: Duration = Duration::from_secs(60);

struct Clock {
    now_ms: AtomicI64,
    drawn: AtomicU64,
}

impl Env for Clock {
    fn now_ms(&self) -> i64 {
        self.now_ms.load(Ordering::SeqCst)
    }

    fn random(&self) -> u64 {
        self.drawn.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::SeqCst)
    }
}

/// Entries with the commit, the value and the expiry of each.
type Entries = BTreeMap<Vec<u8>, (u64, Vec<u8>, Option<i64>)>;

struct Machine {
    store: Option<Arc<Store>>,
    clock: Arc<Clock>,
    path: PathBuf,
    folder: tempfile::TempDir,
}

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self::on(folder.path().join("kv"), folder)
    }

    fn on(path: PathBuf, folder: tempfile::TempDir) -> Self {
        let drawn = AtomicU64::new(Instant::now().elapsed().subsec_nanos().into());
        let clock = Arc::new(Clock { now_ms: START_MS.into(), drawn });
        let mut machine = Self { store: None, clock, path, folder };
        machine.open();
        machine
    }

    fn open(&mut self) {
        let engine = SqliteEngine::open(&self.path, false, PATIENCE).unwrap();
        self.store = Some(Arc::new(Store::start(engine, self.clock.clone(), false).unwrap()));
    }

    fn store(&self) -> Arc<Store> {
        self.store.clone().unwrap()
    }

    fn pass(&self, ms: i64) {
        self.clock.now_ms.fetch_add(ms, Ordering::SeqCst);
    }

    /// Commits mutations; returns the version.
    fn commit(&self, mutations: Vec<Mutation>) -> u64 {
        let parts = WriteParts { mutations, ..WriteParts::default() };
        let write = AtomicWrite::new(parts, &Limits::default()).unwrap();
        let (sender, answer) = channel();
        let reply = move |decisions: Vec<Decision>| sender.send(decisions).unwrap();
        self.store().commit(vec![Ok(write)], false, PATIENCE, Box::new(reply));
        match answer.recv_timeout(PATIENCE).unwrap().remove(0) {
            Decision::Committed(stamp) | Decision::CommittedWith(stamp, _) => stamp.version(),
            other => panic!("{other:?}"),
        }
    }

    fn set(&self, name: &str, value: &str) -> u64 {
        self.commit(vec![set(name, value, None)])
    }

    /// The last commit and all entries, of one moment.
    fn state(&self) -> (u64, Entries) {
        let (mut version, mut entries) = (0, Entries::new());
        let mut reader = self.store().lane();
        reader
            .read(-1, &mut |snapshot| {
                version = snapshot.log()?.state()?.version;
                entries = entries_in(snapshot)?;
                Ok(())
            })
            .unwrap();
        (version, entries)
    }

    fn options(&self, target: &str) -> ArchiveOptions {
        ArchiveOptions {
            look_ms: 5,
            lease_ms: 200,
            ..ArchiveOptions::new(target.to_owned(), self.path.with_extension("archive"))
        }
    }

    fn archive(&self, target: &str) -> Archive {
        self.archive_with(self.options(target)).unwrap()
    }

    fn archive_with(&self, options: ArchiveOptions) -> Result<Archive> {
        let (sender, begun) = channel();
        let archive = Archive::start(self.store(), options, move |done| sender.send(done).unwrap());
        begun.recv_timeout(PATIENCE).unwrap().map(|()| archive)
    }

    /// Waits until everything is archived.
    fn settle(&self, archive: &Archive) -> Status {
        let (version, _) = self.state();
        let stamp = Versionstamp::new(version).to_string();
        wait_for(archive, |status| status.versionstamp.as_ref().is_some_and(|one| *one >= stamp))
    }

    fn restored(&self, target: &str, at: Option<When>) -> Result<(Restored, Entries)> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let name = format!("restored-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let file = self.folder.path().join(name);
        let options =
            RestoreOptions { target: target.to_owned(), file: file.clone(), at, range: None };
        let restored = restore(&options, &mut |_, _| true)?;
        let entries = entries_of(&file);
        std::fs::remove_file(&file).unwrap();
        Ok((restored, entries))
    }
}

fn wait_for(archive: &Archive, mut until: impl FnMut(&Status) -> bool) -> Status {
    let begun = Instant::now();
    loop {
        let status = archive.shared.status(false);
        if until(&status) {
            return status;
        }
        assert!(begun.elapsed() < PATIENCE, "{status:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn stop(archive: Archive) -> Status {
    archive.stop();
    archive.wait_ended();
    archive.status()
}

fn entries_in(snapshot: &mut dyn openkv_engines::Snapshot) -> Result<Entries> {
    let mut entries = Entries::new();
    let walk = Walk { start: &[], end: &[255], reverse: false, values: true };
    snapshot.walk(walk, &mut |seen| {
        let shown = (seen.row.stamp.version(), seen.row.value.to_vec(), seen.expire_at_ms);
        entries.insert(seen.row.key.to_vec(), shown);
        Step::Next
    })?;
    Ok(entries)
}

fn entries_of(file: &std::path::Path) -> Entries {
    let engine = SqliteEngine::open(file, false, PATIENCE).unwrap();
    let mut entries = Entries::new();
    let mut reader = engine.reader().unwrap();
    reader
        .read(-1, &mut |snapshot| {
            entries = entries_in(snapshot)?;
            Ok(())
        })
        .unwrap();
    entries
}

fn key(name: &str) -> Key {
    Key::from_encoded([&[2], name.as_bytes(), &[0]].concat())
}

fn set(name: &str, value: &str, end_ms: Option<i64>) -> Mutation {
    let value = EncodedValue { encoding: Encoding::Bytes, bytes: value.as_bytes().to_vec() };
    Mutation::Set { key: key(name), suffixed: false, value, expiry: end_ms.map(Time::At) }
}

/// A small generator: xorshift64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    /// Mutations of a few keys: values of all sizes, deletions and expiries.
    fn mutations(&mut self, now_ms: i64) -> Vec<Mutation> {
        let mut names: Vec<u64> = (0..1 + self.below(3)).map(|_| self.below(20)).collect();
        names.sort_unstable();
        names.dedup();
        let mutation = |name: u64| {
            let name = format!("k{name}");
            match self.below(8) {
                0 | 1 => Mutation::Delete { key: key(&name) },
                2 => {
                    let ahead = i64::try_from(self.below(500)).unwrap();
                    set(&name, "ends", Some(now_ms + ahead))
                }
                3 => set(&name, &"large".repeat(600), None),
                _ => set(&name, &self.below(1000).to_string(), None),
            }
        };
        names.into_iter().map(mutation).collect()
    }
}
