//! The archivers of a server: starts and ends them, as `plan` decides, on a thread of its own.
//!
//! Duty: look at all databases at intervals; execute one step for each.
//! Invariant: what is left is archived before an archiver of a closed, dropped or changed database ends, or
//! after the next start: the log keeps it.
//! Never: wait for a target while a lock is held that requests need.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hyper::StatusCode;
use parking_lot::{Condvar, Mutex};
use uuid::Uuid;

use super::plan::{Archiver, DatabaseState, Step, step};
use crate::answer::Refusal;
use crate::archive::{Archive, ArchiveOptions, Status};
use crate::archive_policy::ArchivePolicy;
use crate::catalog::Catalog;
use crate::database::Database;
use crate::location::FileStamp;
use openkv_client::database::Database as Handle;
use openkv_client::open::{cannot, close};
use openkv_core::model::{
    ARCHIVE_BEGIN_MS_MAX, ARCHIVE_END_MS_MAX, ARCHIVE_FILE_LOOK_MS, ARCHIVE_PAUSE_MS_MAX,
    ARCHIVE_RETENTION_MS, ARCHIVE_SNAPSHOT_EVERY_MS, ARCHIVE_VISITS_MAX, ARCHIVES_LOOK_MS, Error,
    Kind, Result,
};
use openkv_store::Store;
use openkv_store::metrics::ArchiveFigures;

/// The target and options of an archiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) target: String,
    /// The target instead, if an earlier database of the name has that one.
    pub(super) otherwise: Option<String>,
    pub(super) snapshot_every_ms: i64,
    pub(super) retention_ms: i64,
}

/// The state of an archive in the admin API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Off,
    Idle,
    Starting,
    Waiting,
    Running,
    Failing,
}

impl State {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Idle => "idle",
            Self::Starting => "starting",
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Failing => "failing",
        }
    }
}

/// A running archiver.
struct Run {
    wanted: Wanted,
    /// The database, if it is open for the archiver alone.
    visit: Option<Arc<Store>>,
    is_stopping: bool,
    /// The file before the end of the archiver was requested.
    stamp: Option<FileStamp>,
    begun: Option<Receiver<Result<()>>>,
}

impl Drop for Run {
    fn drop(&mut self) {
        if let Some(store) = self.visit.take() {
            close(Handle::Store(store), || {});
        }
    }
}

/// The archiver of a database, running or ended.
#[derive(Default)]
struct Kept {
    archive: Option<Archive>,
    run: Option<Run>,
    /// Failures one after the other.
    failures: u32,
    retry_at: Option<Instant>,
    /// The file when everything in it was archived, and how.
    stamp: Option<(Wanted, FileStamp)>,
    /// When the file was last compared with that.
    looked: Option<Instant>,
}

/// The archivers of a server.
pub(crate) struct Archives {
    keeper: Arc<Keeper>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Keeper {
    catalog: Arc<Catalog>,
    /// The default of the server.
    default: Option<ArchivePolicy>,
    kept: Mutex<BTreeMap<Uuid, Kept>>,
    /// Whether a look at once is requested, and whether the end is.
    requested: Mutex<(bool, bool)>,
    changed: Condvar,
}

impl Archives {
    /// Starts the archivers. Waits a moment for that of a server's only file.
    ///
    /// # Errors
    /// Those of a target that cannot be used as it is: a person has to do something.
    pub(crate) fn start(catalog: &Arc<Catalog>, default: Option<ArchivePolicy>) -> Result<Self> {
        let to = default.as_ref().and_then(|policy| policy.to.as_deref());
        if let Some(folder) = to.filter(|to| !to.contains("://")).map(Path::new) {
            std::fs::create_dir_all(folder)
                .map_err(|error| cannot("create the folder of archives", folder, &error))?;
        }
        let keeper = Keeper {
            catalog: catalog.clone(),
            default,
            kept: Mutex::default(),
            requested: Mutex::default(),
            changed: Condvar::new(),
        };
        let archives = Self { keeper: Arc::new(keeper), thread: Mutex::default() };
        let policies = || catalog.all().iter().any(|database| database.archive_policy().is_some());
        if archives.keeper.default.is_some() || policies() {
            archives.keeper.look(Instant::now());
            archives.run();
        }
        if !catalog.is_folder()
            && let Some(Err(error)) = archives.keeper.first()
            && matches!(error.kind(), Kind::Invalid | Kind::Denied | Kind::Unsupported)
        {
            archives.close();
            return Err(Error::new(error.kind(), format!("archive: {}", error.message())));
        }
        Ok(archives)
    }

    /// Starts the thread, if it does not run.
    fn run(&self) {
        let mut thread = self.thread.lock();
        if thread.is_some() {
            return;
        }
        let keeper = self.keeper.clone();
        let work = move || {
            while !keeper.pause(Duration::from_millis(ARCHIVES_LOOK_MS)) {
                keeper.look(Instant::now());
            }
        };
        match std::thread::Builder::new().name("openkv-archives".into()).spawn(work) {
            Ok(started) => *thread = Some(started),
            Err(error) => tracing::error!(%error, "starting the thread openkv-archives"),
        }
    }

    /// Looks at all databases at once: a policy has changed.
    pub(crate) fn look_soon(&self) {
        self.run();
        self.keeper.requested.lock().0 = true;
        self.keeper.changed.notify_all();
    }

    /// Ends the archiver of a database that is dropped. It archives what is left, for a bounded time.
    pub(crate) fn end(&self, database: &Database) {
        let mut kept = self.keeper.kept.lock().remove(&database.id).unwrap_or_default();
        let Some(wanted) = self.wanted(database) else { return };
        if kept.run.is_none() {
            // It may have commits that no look has come to yet.
            match database.visit_store() {
                Ok(store) => kept.start(database, store, wanted, true),
                Err(error) => {
                    tracing::warn!(%error, database = %database.name, "opening a database to archive it");
                }
            }
        }
        let Some(archive) = &kept.archive else { return };
        archive.stop();
        let has_ended = archive.wait_ended_until(deadline());
        if !has_ended || archive.status().error.is_some() {
            tracing::warn!(database = %database.name, "dropped before its last commits were archived");
        }
    }

    /// Ends all archivers. They archive what is left, for a bounded time.
    pub(crate) fn close(&self) {
        self.keeper.requested.lock().1 = true;
        self.keeper.changed.notify_all();
        if let Some(thread) = self.thread.lock().take()
            && thread.join().is_err()
        {
            tracing::error!("the thread openkv-archives ended by a panic; please report this");
        }
        let kept = std::mem::take(&mut *self.keeper.kept.lock());
        let archives = || kept.values().filter_map(|kept| kept.archive.as_ref());
        archives().for_each(Archive::stop);
        let deadline = deadline();
        let late = archives().filter(|archive| !archive.wait_ended_until(deadline)).count();
        if late > 0 {
            tracing::warn!(
                late,
                "archivers were not done: what is left is archived after the next start"
            );
        }
    }

    /// Refuses a policy that the database cannot have.
    pub(crate) fn allows(
        &self,
        database: &Database,
        policy: &ArchivePolicy,
    ) -> Result<(), Refusal> {
        database.allows_archive()?;
        let Some(to) = &policy.to else { return Ok(()) };
        let all = self.keeper.catalog.all();
        let other = all.iter().find(|other| {
            other.id != database.id && self.wanted(other).is_some_and(|wanted| wanted.target == *to)
        });
        let Some(other) = other else { return Ok(()) };
        let text = format!(
            "to: the database '{}' is archived there; a target is for one database.",
            other.name
        );
        Err(Refusal::new(StatusCode::CONFLICT, text))
    }

    pub(super) fn wanted(&self, database: &Database) -> Option<Wanted> {
        self.keeper.wanted(database)
    }

    /// The state of the archive of a database, and what its archiver says.
    pub(super) fn state(&self, database: &Database) -> (State, Option<Status>) {
        let kept = self.keeper.kept.lock();
        let Some(kept) = kept.get(&database.id) else { return (State::Starting, None) };
        let status = kept.archive.as_ref().map(Archive::status);
        let state = match (&status, &kept.run) {
            (None, _) => State::Starting,
            (Some(status), Some(_)) => match status.state {
                "running" => State::Running,
                "waiting" => State::Waiting,
                "starting" => State::Starting,
                "stopped" if status.error.is_none() => State::Running,
                _ => State::Failing,
            },
            (Some(status), None) if status.error.is_none() => State::Idle,
            (Some(_), None) => State::Failing,
        };
        (state, status)
    }

    /// The figures of the archiver of a database that is not open.
    pub(crate) fn figures(&self, database: &Database) -> Option<ArchiveFigures> {
        self.wanted(database)?;
        let (state, status) = self.state(database);
        let is_followed = state != State::Idle;
        let status = status.unwrap_or_default();
        Some(ArchiveFigures {
            to: String::new(),
            state: state.name(),
            lag_ms: is_followed.then_some(status.lag_ms as f64),
            versionstamp: status.versionstamp,
            objects: status.objects,
            bytes: status.bytes,
            snapshots: status.snapshots,
            failures: status.failures,
            gaps: status.gaps,
            pruned: status.pruned,
            snapshot_ms: status.snapshot_ms,
        })
    }
}

fn deadline() -> Instant {
    Instant::now() + Duration::from_millis(ARCHIVE_END_MS_MAX)
}

impl Keeper {
    /// Waits; returns whether it is to end.
    fn pause(&self, longest: Duration) -> bool {
        let mut requested = self.requested.lock();
        if *requested == (false, false) {
            self.changed.wait_for(&mut requested, longest);
        }
        requested.0 = false;
        requested.1
    }

    fn wanted(&self, database: &Database) -> Option<Wanted> {
        database.allows_archive().ok()?;
        let own = database.archive_policy();
        let policy = own.as_ref().or(self.default.as_ref())?;
        let to = policy.to.clone()?;
        let (target, otherwise) = match (&own, database.name.as_str()) {
            (Some(_), _) | (None, "") => (to, None),
            (None, name) => {
                // An earlier database of the name may have left its archive.
                let later = format!("{name}.{}", database.id);
                (below(&to, name), Some(below(&to, &later)))
            }
        };
        Some(Wanted {
            target,
            otherwise,
            snapshot_every_ms: policy.snapshot_every_ms.unwrap_or(ARCHIVE_SNAPSHOT_EVERY_MS),
            retention_ms: policy.retention_ms.unwrap_or(ARCHIVE_RETENTION_MS),
        })
    }

    /// The first answer of the archiver of the only database.
    fn first(&self) -> Option<Result<()>> {
        let begun = self.kept.lock().values_mut().next()?.run.as_mut()?.begun.take()?;
        begun.recv_timeout(Duration::from_millis(ARCHIVE_BEGIN_MS_MAX)).ok()
    }

    /// One step for each database.
    fn look(&self, now: Instant) {
        let databases = self.catalog.all();
        let mut visits = Vec::new();
        let mut kept = self.kept.lock();
        kept.retain(|id, kept| self.catalog.by_id(*id).is_some() || !kept.leave());
        let open = kept.values().filter(|kept| kept.is_visit()).count();
        let mut left = ARCHIVE_VISITS_MAX.saturating_sub(open);
        for database in &databases {
            let wanted = self.wanted(database);
            if wanted.is_none() && !kept.contains_key(&database.id) {
                continue;
            }
            let of = kept.entry(database.id).or_default();
            match of.step(database, wanted.as_ref(), left, now) {
                Step::Nothing => {}
                Step::Note => of.note(database, now),
                Step::Stop => of.stop(database),
                Step::Stay => {
                    if let Some(store) = of.run.as_mut().and_then(|run| run.visit.take()) {
                        close(Handle::Store(store), || {});
                    }
                }
                Step::Follow => {
                    if let (Some(store), Some(wanted)) = (database.open_store(), wanted) {
                        of.start(database, store, wanted, false);
                    }
                }
                Step::Visit => {
                    left -= 1;
                    visits.extend(wanted.map(|wanted| (database.clone(), wanted)));
                }
            }
        }
        drop(kept);
        for (database, wanted) in visits {
            // Waits for the disk.
            let opened = database.visit_store();
            let mut kept = self.kept.lock();
            let of = kept.entry(database.id).or_default();
            match opened {
                Ok(store) => of.start(&database, store, wanted, true),
                Err(error) => {
                    tracing::warn!(%error, database = %database.name, "opening a database to archive it");
                    of.fail(now);
                }
            }
        }
    }
}

/// A place below a target.
fn below(to: &str, name: &str) -> String {
    if to.contains("://") {
        format!("{}/{name}", to.trim_end_matches('/'))
    } else {
        Path::new(to).join(name).to_string_lossy().into_owned()
    }
}

impl Kept {
    fn is_visit(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.visit.is_some())
    }

    fn has_ended(&self) -> bool {
        self.archive.as_ref().is_none_or(|archive| archive.wait_ended_until(Instant::now()))
    }

    fn step(
        &mut self,
        database: &Database,
        wanted: Option<&Wanted>,
        visits_left: usize,
        now: Instant,
    ) -> Step {
        let archiver = match &self.run {
            None => Archiver::None,
            Some(_) if self.has_ended() => Archiver::Ended,
            Some(run) => Archiver::Runs {
                is_same: wanted == Some(&run.wanted),
                is_visit: run.visit.is_some(),
                is_settled: self.archive.as_ref().is_some_and(Archive::is_settled),
                is_stopping: run.is_stopping,
            },
        };
        let is_open = database.open_store().is_some();
        let is_idle = archiver == Archiver::None && !is_open;
        let has_changed = is_idle && self.has_changed(database, wanted, now);
        let seen = DatabaseState {
            is_wanted: wanted.is_some(),
            is_open,
            has_changed,
            is_due: self.retry_at.is_none_or(|at| now >= at),
            visits_left,
        };
        step(seen, archiver)
    }

    /// Whether the file may have commits that are not archived.
    fn has_changed(&mut self, database: &Database, wanted: Option<&Wanted>, now: Instant) -> bool {
        let Some((how, stamp)) = &self.stamp else { return true };
        if wanted != Some(how) {
            return true;
        }
        let pause = Duration::from_millis(ARCHIVE_FILE_LOOK_MS);
        if self.looked.is_some_and(|looked| now.duration_since(looked) < pause) {
            return false;
        }
        self.looked = Some(now);
        database.file_stamp().as_ref() != Some(stamp)
    }

    fn start(&mut self, database: &Database, store: Arc<Store>, wanted: Wanted, is_visit: bool) {
        let beside = database.file().map(|file| {
            let mut name = file.as_os_str().to_owned();
            name.push("-archive");
            name.into()
        });
        let Some(beside) = beside else { return };
        let options = ArchiveOptions {
            snapshot_every_ms: wanted.snapshot_every_ms,
            retention_ms: wanted.retention_ms,
            otherwise: wanted.otherwise.clone(),
            is_private: true,
            ..ArchiveOptions::new(wanted.target.clone(), beside)
        };
        let (sender, begun) = channel();
        let visit = is_visit.then(|| store.clone());
        let answer = move |begun: Result<()>| drop(sender.send(begun));
        let archive = Archive::start_after(self.archive.as_ref(), store, options, answer);
        self.archive = Some(archive);
        self.run = Some(Run { wanted, visit, is_stopping: false, stamp: None, begun: Some(begun) });
    }

    fn stop(&mut self, database: &Database) {
        let (Some(archive), Some(run)) = (&self.archive, &mut self.run) else { return };
        run.is_stopping = true;
        // What is committed later changes it again.
        run.stamp = database.file_stamp();
        archive.stop();
    }

    /// Notes how the archiver has ended.
    fn note(&mut self, database: &Database, now: Instant) {
        let Some(run) = self.run.take() else { return };
        let error = self.archive.as_ref().and_then(|archive| archive.status().error);
        match error {
            None => {
                (self.failures, self.retry_at) = (0, None);
                self.looked = Some(now);
                self.stamp = run.stamp.clone().map(|stamp| (run.wanted.clone(), stamp));
            }
            Some(error) => {
                tracing::warn!(error, database = %database.name, to = run.wanted.target, "archiving; it is tried again");
                self.fail(now);
            }
        }
    }

    /// The next attempt comes after a pause, which grows.
    fn fail(&mut self, now: Instant) {
        let pause = (1000 << self.failures.min(10)).min(ARCHIVE_PAUSE_MS_MAX);
        self.failures += 1;
        self.retry_at = Some(now + Duration::from_millis(pause));
        self.stamp = None;
    }

    /// The database is gone: asks the archiver to end; returns whether it has.
    fn leave(&mut self) -> bool {
        let Some(run) = &mut self.run else { return true };
        run.is_stopping = true;
        self.archive.as_ref().is_none_or(|archive| {
            archive.stop();
            archive.wait_ended_until(Instant::now())
        })
    }
}
