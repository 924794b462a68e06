//! The archiver: follows the log of a store on a thread of its own.
//!
//! Duty: execute what `plan::next` decides, renew the ownership, apply the retention.
//! Invariant: an object is written in the order of the chain; one whose write has failed is written again with
//! the same bytes before anything else.
//! Never: keep the store open; go on after another archiver has taken over.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::catalog::{self, Catalog, Damaged, Snapshots};
use super::ending;
use super::manifest::{Archived, Manifest};
use super::names::{MANIFEST, SegmentsName, Timeline};
use super::object::{Commit, Content, Hash, Segments, Source};
use super::ownership::{Claimant, Failure, Ownership};
use super::plan::{End, Every, Next, Position, Resume, next, resume};
use super::prune;
use super::snapshot::{Take, Taken};
use super::source::{in_snapshot, log_of, source_of, turn_on};
use super::status::ArchiverState;
use super::target::{self, Created, Target};
use super::{ArchiveOptions, closed};
use openkv_client::database::Database;
use openkv_client::open::close;
use openkv_core::model::{ARCHIVE_RENEW_MS, Error, Kind, LOG_READ_BYTES, LogState, Origin, Result};
use openkv_store::Store;

/// An object that is being written.
struct Pending {
    name: SegmentsName,
    bytes: Vec<u8>,
    digest: Hash,
    last: u64,
    segments: u64,
}

/// An archiver that owns its target.
pub(super) struct Archiver {
    store: Weak<Store>,
    options: ArchiveOptions,
    target: Target,
    shared: Arc<ArchiverState>,
    ownership: Ownership,
    timeline: Timeline,
    position: Position,
    /// The object that the next one continues.
    previous: Hash,
    /// The last commit whose segments were looked for.
    looked: u64,
    pending: Option<Pending>,
    /// A snapshot that is taken beside the log.
    taking: Option<std::thread::JoinHandle<Result<Taken>>>,
}

/// A store that is closed as a handle's share is, when the archiver was its last user.
struct Open(Option<Arc<Store>>);

impl Open {
    fn of(store: &Weak<Store>) -> Result<Self> {
        store.upgrade().map(|store| Self(Some(store))).ok_or_else(closed)
    }

    fn store(&self) -> Result<&Store> {
        self.0.as_deref().ok_or_else(closed)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(store) = self.0.take() {
            close(Database::Store(store), || {});
        }
    }
}

impl Archiver {
    /// Turns the log on, claims the target, and finds the end of its archive.
    ///
    /// # Errors
    /// As [`Ownership::claim`]; `Unsupported` for a database without a log.
    pub(super) fn begin(
        store: &Arc<Store>,
        options: ArchiveOptions,
        shared: Arc<ArchiverState>,
        id: String,
    ) -> Result<Self> {
        let target = target::open(&options.target, true)?;
        let log = match log_of(store)? {
            LogState { log: Some(_), .. } => log_of(store)?,
            LogState { log: None, .. } => {
                turn_on(store)?;
                log_of(store)?
            }
        };
        let origin = log.log.map(|log| log.origin).ok_or_else(|| {
            Error::unavailable("the replication log was turned off while the archiver began")
        })?;
        let target = match &options.otherwise {
            Some(otherwise) if is_of_another(&target, origin)? => target::open(otherwise, true)?,
            _ => target,
        };
        shared.set_target(target.name());
        let lease = Duration::from_millis(options.lease_ms);
        let who = Claimant { id, host: host(), lease };
        let mut wait = |pause| {
            shared.tell_waiting();
            !shared.wait(pause)
        };
        let ownership = Ownership::claim(&target, origin, &who, &mut wait)?;
        let mut archiver = Self {
            store: Arc::downgrade(store),
            options,
            target,
            shared,
            ownership,
            timeline: Timeline(0),
            position: Position { origin, last: 0, snapshot: None },
            previous: Hash([0; 32]),
            looked: 0,
            pending: None,
            taking: None,
        };
        archiver.find_end(store).map_err(|failure| failure.error().clone())?;
        Ok(archiver)
    }

    /// Finds the end of the archive of this history, or begins a history.
    fn find_end(&mut self, store: &Store) -> Result<(), Failure> {
        let origin = self.position.origin;
        let Some(timeline) = self.ownership.manifest().timeline_of(origin) else {
            return self.begin_timeline();
        };
        self.timeline = timeline;
        let Snapshots { sound: snapshots, damaged } =
            catalog::snapshots_of(&self.target, timeline)?;
        let oldest = snapshots.first().map_or(0, |found| found.snapshot.name.version);
        let removed = &mut |text: &str, error: &Error| {
            self.shared.report(format!(
                "the last object of the archive, {text}, is damaged ({error}): it is written again from the log"
            ));
        };
        let last = ending::last(&self.target, timeline, oldest, removed)?;
        let end = End {
            snapshots: &snapshots.iter().map(|found| found.snapshot).collect::<Vec<_>>(),
            last: last.as_ref().map(|found| found.last),
            seen: self.ownership.manifest().archived.map_or(0, |archived| archived.version.0),
        };
        let decided = resume(end, source_of(store, end)?);
        let newest = snapshots.last().map(|found| (found.snapshot.name.version, found.taken_ms));
        // One that cannot be read is replaced at once, and not when the next one is due.
        let is_damaged = damaged
            .last()
            .is_some_and(|one| newest.is_none_or(|(version, _)| version < one.name.version));
        let newest = newest.map(|(version, ms)| (version, if is_damaged { i64::MIN } else { ms }));
        for Damaged { error, .. } in &damaged {
            let again = if is_damaged { "a new snapshot is taken" } else { "a later one is sound" };
            self.shared.report(format!("{}: {again}", error.message()));
        }
        match decided {
            Resume::NewTimeline => return self.begin_timeline(),
            Resume::Segments => {
                let last = last.ok_or_else(|| Error::internal("an end without an object"))?;
                (self.position.last, self.previous) = (last.last.version, last.digest);
                self.position.snapshot = newest;
            }
            Resume::Snapshot(version, lost) => {
                let found = snapshots.iter().find(|found| found.snapshot.name.version == version);
                let found = found.ok_or_else(|| Error::internal("an end without a snapshot"))?;
                (self.position.last, self.previous) = (version, found.stored.digest);
                self.position.snapshot = newest;
                lost.iter().for_each(|lost| self.shared.gap(*lost));
            }
            Resume::Take(lost) => {
                self.position.last = lost.map_or(0, |lost| lost.archived);
                lost.iter().for_each(|lost| self.shared.gap(*lost));
            }
        }
        Ok(())
    }

    fn begin_timeline(&mut self) -> Result<(), Failure> {
        let origin = self.position.origin;
        let is_first = self.ownership.manifest().timelines.is_empty();
        self.timeline = self.ownership.begin_timeline(origin, self.now_ms()?)?;
        self.position = Position { origin, last: 0, snapshot: None };
        (self.looked, self.pending) = (0, None);
        if !is_first {
            self.shared.report(
                "the database is another copy than the archived one, as after a restore: a new history begins in \
                 the archive, with a snapshot"
                    .to_owned(),
            );
        }
        Ok(())
    }

    fn now_ms(&self) -> Result<i64> {
        Ok(Open::of(&self.store)?.store()?.now_ms())
    }

    /// Works until it is stopped, the store is closed or another archiver has taken over. Releases the
    /// target.
    ///
    /// # Errors
    /// The reason for its end, unless the end was requested.
    pub(super) fn run(mut self) -> Result<()> {
        let mut failures = 0;
        let ended = loop {
            match self.work() {
                Ok(()) => failures = 0,
                Err(Failure::Ends(error)) => break Err(error),
                Err(Failure::Again(error)) if error.kind() == Kind::Closed => break Ok(()),
                Err(Failure::Again(error)) => {
                    failures += 1;
                    self.shared.failing(&error);
                }
            }
            let look = Duration::from_millis(self.options.look_ms);
            let pause = look.saturating_mul(1 << failures.min(10));
            let longest = Duration::from_millis(openkv_core::model::ARCHIVE_PAUSE_MS_MAX);
            if self.shared.wait(pause.min(longest.max(look))) {
                break Ok(());
            }
        };
        let ended = ended.and_then(|()| self.end());
        // A snapshot under way notices the stop.
        self.shared.stop();
        if let Some(taking) = self.taking.take() {
            drop(taking.join());
        }
        ended
    }

    /// Archives what is left, and releases the target.
    fn end(&mut self) -> Result<()> {
        let done = match self.archive_log() {
            Err(Failure::Again(error)) if error.kind() == Kind::Closed => Ok(()),
            done => done,
        };
        let archived = self.archived();
        let released = self.ownership.hold().and_then(|()| self.ownership.release(archived));
        done.and(released).map_err(|failure| failure.error().clone())
    }

    /// One look: everything that is to do now.
    fn work(&mut self) -> Result<(), Failure> {
        self.finish_taking()?;
        self.archive_log()?;
        if self
            .ownership
            .is_due(Duration::from_millis(ARCHIVE_RENEW_MS.min(self.options.lease_ms / 4)))
        {
            let archived = self.archived();
            self.ownership.renew(archived)?;
        }
        Ok(())
    }

    fn archive_log(&mut self) -> Result<(), Failure> {
        loop {
            self.write_pending()?;
            let open = Open::of(&self.store)?;
            let store = open.store()?;
            let now_ms = store.now_ms();
            match self.look(store, now_ms)? {
                Next::TurnOn => {
                    turn_on(store)?;
                    self.shared.report(
                        "the replication log was off, and is on again: it stays on while an archiver runs"
                            .to_owned(),
                    );
                }
                Next::NewTimeline => {
                    if let Some(extent) = log_of(store)?.log {
                        self.position.origin = extent.origin;
                    }
                    self.begin_timeline()?;
                }
                Next::Lost(lost) => {
                    self.shared.gap(lost);
                    self.position.snapshot = None;
                }
                // Also in a last look: an archive without a snapshot restores nothing.
                Next::Begin => {
                    let take = self.take(now_ms);
                    self.ownership.hold()?;
                    let taken = take.run(store, &|| true)?;
                    self.position.last = taken.name.version;
                    self.previous = taken.digest;
                    self.keep_snapshot(&taken);
                }
                Next::Segments => {}
                Next::Snapshot => self.begin_taking(now_ms)?,
                Next::Idle => {
                    self.shared.complete(self.looked.max(self.position.last), now_ms);
                    return Ok(());
                }
            }
        }
    }

    /// Decides what is next, and reads segments in the same snapshot: between two snapshots the log can lose
    /// its oldest ones.
    fn look(&mut self, store: &Store, now_ms: i64) -> Result<Next> {
        // A last look does not begin what takes long.
        let taking = self.taking.is_some() || self.shared.is_stopped();
        let every = Every { snapshot_ms: self.options.snapshot_every_ms, taking };
        let (position, looked) = (self.position, self.looked);
        let mut seen = None;
        let (mut segments, mut full, mut failed) = (Segments::default(), false, None);
        in_snapshot(store, &mut |log| {
            let state = log.state()?;
            let decided = next(position, &state, looked, now_ms, every);
            seen = Some((decided, state.version));
            if decided != Next::Segments {
                return Ok(());
            }
            log.segments(position.last, &mut |segment| {
                failed = segments.push(segment).err();
                full = segments.len() >= LOG_READ_BYTES;
                !full && failed.is_none()
            })
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        let (decided, version) =
            seen.ok_or_else(|| Error::internal("a read without a snapshot"))?;
        if decided == Next::Idle || (decided == Next::Segments && !full) {
            self.looked = self.looked.max(version);
        }
        self.pending = self.object_of(segments)?;
        Ok(decided)
    }

    /// The object with the next segments, if there are any.
    fn object_of(&self, segments: Segments) -> Result<Option<Pending>> {
        let finished = segments.finish(self.source(), self.position.last, self.previous)?;
        let Some((bytes, head, digest)) = finished else { return Ok(None) };
        let Content::Segments { first, last, segments, .. } = head.content else {
            return Err(Error::internal("segments without commits"));
        };
        let (timeline, epoch) = (self.timeline, self.ownership.epoch());
        let name = SegmentsName { timeline, first: first.0, last: last.0, epoch };
        Ok(Some(Pending { name, bytes, digest, last: last.0, segments }))
    }

    fn write_pending(&mut self) -> Result<(), Failure> {
        let Some(pending) = &self.pending else { return Ok(()) };
        self.ownership.hold()?;
        let name = pending.name.to_string();
        if self.target.create(&name, pending.bytes.clone())? == Created::Exists {
            // The answer of an earlier attempt was lost.
            let there = self.target.get(&name)?;
            if *there != *pending.bytes {
                return Err(Failure::Ends(Error::corrupt(format!(
                    "the object {name} exists with other content: another program writes to {}; name another target",
                    self.target.name()
                ))));
            }
        }
        self.position.last = pending.last;
        self.previous = pending.digest;
        self.shared.wrote(pending.bytes.len() as u64, pending.segments, pending.last);
        self.pending = None;
        Ok(())
    }

    fn source(&self) -> Source {
        Source::new(self.position.origin, self.timeline.0, self.ownership.epoch())
    }

    fn take(&self, now_ms: i64) -> Take {
        Take {
            target: self.target.clone(),
            beside: self.options.beside.clone(),
            source: self.source(),
            now_ms,
        }
    }

    fn begin_taking(&mut self, now_ms: i64) -> Result<(), Failure> {
        self.ownership.hold()?;
        let (take, store, stop) = (self.take(now_ms), self.store.clone(), self.shared.clone());
        let work = move || {
            let open = Open::of(&store)?;
            take.run(open.store()?, &|| !stop.is_stopped())
        };
        let thread = std::thread::Builder::new().name("openkv-snapshot".into()).spawn(work);
        let thread = thread.map_err(|error| {
            Error::unavailable(format!("the thread openkv-snapshot cannot be started: {error}"))
        })?;
        self.taking = Some(thread);
        self.shared.set_taking(true);
        Ok(())
    }

    fn finish_taking(&mut self) -> Result<(), Failure> {
        if self.taking.as_ref().is_none_or(|taking| !taking.is_finished()) {
            return Ok(());
        }
        let Some(taking) = self.taking.take() else { return Ok(()) };
        self.shared.set_taking(false);
        let taken = taking.join().unwrap_or_else(|_| {
            Err(Error::internal("the thread openkv-snapshot ended by a panic"))
        })?;
        if taken.name.timeline == self.timeline {
            self.keep_snapshot(&taken);
        }
        self.ownership.hold()?;
        let removed = prune::by_retention(
            &Catalog::read(self.target.clone())?,
            self.now_ms()?.saturating_sub(self.options.retention_ms),
        )?;
        self.shared.pruned(removed.objects);
        Ok(())
    }

    fn keep_snapshot(&mut self, taken: &Taken) {
        // The clock may have been set back since.
        self.position.snapshot = Some((taken.name.version, taken.taken_ms));
        self.shared.took(taken.name.version, taken.taken_ms, taken.compressed);
    }

    fn archived(&self) -> Option<Archived> {
        let (version, complete_ms) = self.shared.completed()?;
        Some(Archived { version: Commit(version), complete_ms })
    }
}

/// Whether a target is the archive of another database.
fn is_of_another(target: &Target, origin: Origin) -> Result<bool> {
    let Some((bytes, _)) = target.versioned(MANIFEST)? else { return Ok(false) };
    Ok(Manifest::parse(&bytes)?.check_database(origin).is_err())
}

/// The machine and process, for messages.
fn host() -> String {
    format!("process {}", std::process::id())
}

/// Starts an archiver on a thread of its own. `begun` gets the outcome of the beginning; the archiver works
/// until [`ArchiverState::stop`], and `ended` gets its end.
pub(super) fn start(
    store: Arc<Store>,
    options: ArchiveOptions,
    shared: Arc<ArchiverState>,
    id: String,
    begun: impl FnOnce(Result<()>) + Send + 'static,
) {
    let work = move |begun: Box<dyn FnOnce(Result<()>) + Send>| {
        let archiver = Archiver::begin(&store, options, shared.clone(), id);
        close(Database::Store(store), || {});
        let archiver = match archiver {
            Ok(archiver) => archiver,
            Err(error) => {
                shared.ended(Some(&error));
                return begun(Err(error));
            }
        };
        shared.began();
        begun(Ok(()));
        let ended = archiver.run();
        shared.ended(ended.err().as_ref());
    };
    let begun: Box<dyn FnOnce(Result<()>) + Send> = Box::new(begun);
    openkv_store::on_thread("openkv-archive", begun, work, |begun, error| begun(Err(error)));
}
