//! Watches all files of the process with one watcher of the operating system and one thread.
//!
//! Invariant: checks of a file never overlap, and none starts after its registration was dropped.
//! The lock of the registrations is never held during a check or a call of the watcher, whose
//! thread takes it to announce.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::announcer::{Announced, Announcer};
use super::schedule::{Due, FileId, Schedule};
use crate::{ExternalWatchGuard, Refusal};
use openkv_core::model::{EXTERNAL_LINGER_MS, Error, Result};

/// Checks a file. It must not block, because all other files wait for it.
pub(super) type Look = Box<dyn FnMut() + Send>;

static SERVICE: LazyLock<Service> = LazyLock::new(Service::default);

thread_local! {
    /// Whether the current thread is that of the service.
    static SERVES: Cell<bool> = const { Cell::new(false) };
}

#[derive(Default)]
struct Service {
    registered: Mutex<Registered>,
    /// Notified of a new or dropped registration, and of an announcement.
    arrived: Condvar,
}

#[derive(Default)]
struct Registered {
    next_id: FileId,
    files: BTreeMap<FileId, Arc<File>>,
    /// The registrations of a path, oldest first.
    by_path: HashMap<PathBuf, Vec<FileId>>,
    /// Registrations that have not been checked yet.
    came: Vec<FileId>,
    /// Paths with changed registrations, and the registration that was dropped.
    altered: Vec<(PathBuf, Option<FileId>)>,
    announced: HashSet<PathBuf>,
    all_announced: bool,
    /// The refusals of the operating system, by path.
    refused: HashMap<PathBuf, Refusal>,
    /// Whether the thread runs.
    running: bool,
}

struct File {
    path: PathBuf,
    /// `None` after the registration was dropped.
    look: Mutex<Option<Look>>,
}

/// Watches a file until the registration is dropped; checks it once at the start.
///
/// # Errors
/// `Unavailable` if the thread cannot be started.
pub(super) fn register(path: PathBuf, look: Look) -> Result<Registration> {
    let mut registered = SERVICE.registered.lock();
    if !registered.running {
        let thread = std::thread::Builder::new().name("openkv-external".into()).spawn(serve);
        thread.map_err(|error| Error::unavailable(error.to_string()))?;
        registered.running = true;
    }
    registered.next_id += 1;
    let id = registered.next_id;
    let file = Arc::new(File { path: path.clone(), look: Mutex::new(Some(look)) });
    registered.files.insert(id, file.clone());
    registered.by_path.entry(path.clone()).or_default().push(id);
    registered.came.push(id);
    registered.altered.push((path, None));
    drop(registered);
    SERVICE.arrived.notify_one();
    Ok(Registration { id, file })
}

/// Ends the watch of a file when dropped. Waits for a check in progress, unless the check itself
/// drops it.
pub(super) struct Registration {
    id: FileId,
    file: Arc<File>,
}

impl ExternalWatchGuard for Registration {
    fn refusal(&self) -> Option<Refusal> {
        SERVICE.registered.lock().refused.get(&self.file.path).cloned()
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut registered = SERVICE.registered.lock();
        registered.files.remove(&self.id);
        if let Some(ids) = registered.by_path.get_mut(&self.file.path) {
            ids.retain(|id| *id != self.id);
            if ids.is_empty() {
                registered.by_path.remove(&self.file.path);
            }
        }
        registered.altered.push((self.file.path.clone(), Some(self.id)));
        drop(registered);
        SERVICE.arrived.notify_one();
        let look = match SERVES.get() {
            true => self.file.look.try_lock().and_then(|mut look| look.take()),
            false => self.file.look.lock().take(),
        };
        drop(look);
    }
}

fn serve() {
    SERVES.set(true);
    // A panic outside of a check is a bug of this file; the watches continue.
    while catch_unwind(|| SERVICE.run()).is_err() {
        tracing::error!("the watch for other processes met a panic; please report this");
        SERVICE.registered.lock().tell_all_again();
    }
}

fn tell(announced: Announced) {
    let mut registered = SERVICE.registered.lock();
    match announced {
        Announced::File(path) => {
            registered.announced.insert(path);
        }
        Announced::Anything => registered.all_announced = true,
    }
    drop(registered);
    SERVICE.arrived.notify_one();
}

/// The input of one round of the thread.
#[derive(Default)]
struct Round {
    /// Paths with the registration for which they are watched.
    altered: Vec<(PathBuf, Option<FileId>)>,
    left: Vec<FileId>,
    came: Vec<FileId>,
    announced: Vec<FileId>,
}

impl Registered {
    fn has_changed(&self) -> bool {
        !self.altered.is_empty() || !self.announced.is_empty() || self.all_announced
    }

    fn of_path(&self, path: &Path) -> &[FileId] {
        self.by_path.get(path).map_or(&[], Vec::as_slice)
    }

    fn take(&mut self) -> Round {
        let mut round = Round { came: std::mem::take(&mut self.came), ..Round::default() };
        for (path, left) in std::mem::take(&mut self.altered) {
            round.left.extend(left);
            let registration = self.of_path(&path).first().copied();
            round.altered.push((path, registration));
        }
        let announced = std::mem::take(&mut self.announced);
        if std::mem::take(&mut self.all_announced) {
            round.announced.extend(self.files.keys());
        } else {
            round.announced.extend(announced.iter().flat_map(|path| self.of_path(path)));
        }
        round
    }

    fn due(&self, due: Due) -> Vec<Arc<File>> {
        match due {
            Due::All => self.files.values().cloned().collect(),
            Due::Files(ids) => ids.iter().filter_map(|id| self.files.get(id)).cloned().collect(),
        }
    }

    /// Registers everything again after a panic.
    fn tell_all_again(&mut self) {
        self.came = self.files.keys().copied().collect();
        self.altered = self.files.values().map(|file| (file.path.clone(), None)).collect();
    }
}

impl Service {
    /// Checks files until none has been registered for a while.
    fn run(&self) {
        let mut announcer = Announcer::new(tell);
        let mut schedule = Schedule::new(Instant::now());
        loop {
            let until = [Some(schedule.next()), announcer.retry_at()];
            let Some(round) = self.wait(until.into_iter().flatten().min()) else { return };
            let now = Instant::now();
            for (path, registration) in round.altered {
                announcer.follow(path, registration, now);
            }
            announcer.retry(now);
            if let Some(refused) = announcer.take_refused() {
                self.registered.lock().refused = refused;
            }
            round.left.into_iter().for_each(|file| schedule.left(file));
            // Taken after the announcements were enabled, so that no commit is missed.
            let now = Instant::now();
            round.came.into_iter().for_each(|file| schedule.came(file, now));
            round.announced.into_iter().for_each(|file| schedule.announced(file, now));
            let due = schedule.take(now, announcer.tick());
            let due = self.registered.lock().due(due);
            due.iter().for_each(|file| file.look());
        }
    }

    /// Waits for a change or until a time; `None` after a long time without files.
    fn wait(&self, until: Option<Instant>) -> Option<Round> {
        let mut registered = self.registered.lock();
        let leave_at = Instant::now() + Duration::from_millis(EXTERNAL_LINGER_MS);
        while !registered.has_changed() {
            let is_watching = !registered.files.is_empty();
            let at = if is_watching { until.unwrap_or(leave_at) } else { leave_at };
            if !self.arrived.wait_until(&mut registered, at).timed_out() {
                continue;
            }
            if is_watching {
                break;
            }
            if registered.files.is_empty() && !registered.has_changed() {
                registered.running = false;
                return None;
            }
        }
        Some(registered.take())
    }
}

impl File {
    fn look(&self) {
        let mut look = self.look.lock();
        let Some(looks) = look.as_mut() else { return };
        if catch_unwind(AssertUnwindSafe(looks)).is_err() {
            tracing::error!(path = %self.path.display(), "a look for other processes' commits met \
                             a panic; please report this");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// Guards against hanging.
    const HANG: Duration = Duration::from_secs(20);

    fn file(folder: &tempfile::TempDir, name: &str) -> PathBuf {
        let path = folder.path().join(name);
        std::fs::write(&path, "a").unwrap();
        path
    }

    fn telling(path: &Path) -> (Registration, Receiver<()>) {
        let (look, looked): (Sender<()>, _) = channel();
        let look = move || look.send(()).unwrap_or_default();
        (register(path.to_owned(), Box::new(look)).unwrap(), looked)
    }

    #[test]
    fn every_registration_is_checked_until_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = file(&folder, "wal");
        let (first, looks) = telling(&path);
        let (second, others) = telling(&path);
        looks.recv_timeout(HANG).unwrap();
        others.recv_timeout(HANG).unwrap();
        drop(first);
        // The registration drops its check, and so the sender.
        while looks.try_recv().is_ok() {}
        assert!(looks.recv_timeout(HANG).is_err());
        while others.try_recv().is_ok() {}
        std::fs::write(&path, "b").unwrap();
        others.recv_timeout(HANG).unwrap();
        drop(second);
    }

    #[test]
    fn a_panic_in_a_check_does_not_stop_other_files() {
        let folder = tempfile::tempdir().unwrap();
        let times = Arc::new(AtomicUsize::new(0));
        let looked = times.clone();
        let panics = move || {
            looked.fetch_add(1, Ordering::AcqRel);
            panic!("a look of a test");
        };
        let bad = register(file(&folder, "bad"), Box::new(panics)).unwrap();
        let (good, looks) = telling(&file(&folder, "good"));
        let deadline = Instant::now() + HANG;
        while times.load(Ordering::Acquire) < 2 && Instant::now() < deadline {
            looks.recv_timeout(HANG).unwrap();
        }
        assert!(times.load(Ordering::Acquire) >= 2);
        drop((bad, good));
    }

    #[test]
    fn a_check_can_drop_its_registration() {
        let folder = tempfile::tempdir().unwrap();
        let own: Arc<Mutex<Option<Registration>>> = Arc::default();
        let (ended, end) = channel();
        let held = own.clone();
        let look = move || {
            if held.lock().take().is_some() {
                ended.send(()).unwrap();
            }
        };
        let registration = register(file(&folder, "wal"), Box::new(look)).unwrap();
        *own.lock() = Some(registration);
        end.recv_timeout(HANG).unwrap();
        let (other, looks) = telling(&file(&folder, "other"));
        looks.recv_timeout(HANG).unwrap();
        drop(other);
    }

    #[test]
    fn dropping_a_registration_waits_for_its_check() {
        let folder = tempfile::tempdir().unwrap();
        let (begin, begun) = channel();
        let looking = Arc::new(AtomicUsize::new(0));
        let counted = looking.clone();
        let look = move || {
            counted.fetch_add(1, Ordering::AcqRel);
            begin.send(()).unwrap_or_default();
            std::thread::sleep(Duration::from_millis(50));
            counted.fetch_sub(1, Ordering::AcqRel);
        };
        let registration = register(file(&folder, "wal"), Box::new(look)).unwrap();
        begun.recv_timeout(HANG).unwrap();
        drop(registration);
        assert_eq!(looking.load(Ordering::Acquire), 0);
    }
}
