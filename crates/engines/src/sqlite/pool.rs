//! The files of this process that have connections: at most so many at a time.
//!
//! Duty: count the files with connections. Beyond the bound, or without free descriptors, park those that were
//! used least recently: their stores close the connections, and the next call opens them again.
//! Invariant: parking closes only connections that no call uses. A file whose commits are watched is not parked.
//! Never: wait for a call. While more files than the bound have work under way, more have connections.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use openkv_core::model::{
    DATABASE_DESCRIPTORS, DESCRIPTORS_PAUSE_MS, DESCRIPTORS_PAUSE_MS_MAX,
    OPEN_DATABASES_DEFAULT_MAX, OPEN_DATABASES_MIN, PARKED_AT_ONCE, Result,
};

use crate::Park;

static POOL: LazyLock<Pool> = LazyLock::new(|| Pool {
    files: Mutex::default(),
    now: AtomicU64::new(0),
    max: AtomicUsize::new(default_max(descriptors_max())),
});

struct Pool {
    files: Mutex<Files>,
    /// Grows with each connection that is opened.
    now: AtomicU64,
    max: AtomicUsize,
}

#[derive(Default)]
struct Files {
    last_number: u64,
    /// The files with connections, by their last known use and number.
    order: BTreeMap<(u64, u64), Weak<PooledFile>>,
    counted: HashMap<u64, Counted>,
    /// How many of them are leaving.
    leaving: usize,
}

struct Counted {
    connections: usize,
    /// Connections because of which the file is not parked.
    pins: usize,
    /// Its key in the order.
    key: (u64, u64),
    /// It was parked: its last connections are being closed.
    is_leaving: bool,
}

/// An open database file, with connections or without.
pub(super) struct PooledFile {
    number: u64,
    /// The time of its last use, by [`Pool::now`].
    used: AtomicU64,
    was_parked: AtomicBool,
    park: Mutex<Option<Park>>,
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SeatFor {
    /// Calls: parking may close it.
    Calls,
    /// The watch for commits of other processes: it keeps the file from being parked.
    Watch,
}

/// The place of a connection; dropped after it.
pub(super) struct Seat {
    file: Arc<PooledFile>,
    of: SeatFor,
}

/// Sets the most databases in files that this process keeps open, and parks those beyond.
pub fn set_open_max(max: usize) {
    POOL.max.store(max.max(1), Ordering::Relaxed);
    POOL.shrink(None);
}

/// As many as the descriptors of a process suffice for, if other things have a quarter of them.
fn default_max(descriptors: usize) -> usize {
    let most = descriptors / 4 * 3 / DATABASE_DESCRIPTORS;
    most.clamp(OPEN_DATABASES_MIN, OPEN_DATABASES_DEFAULT_MAX)
}

/// The limit of descriptors of this process.
fn descriptors_max() -> usize {
    #[cfg(unix)]
    {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: `limit` has room for the answer.
        if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } == 0 {
            return usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX);
        }
    }
    usize::MAX
}

/// How often no descriptor was left for a file.
fn refused() -> u64 {
    #[cfg(unix)]
    return super::locks::refused();
    #[cfg(not(unix))]
    0
}

/// Opens something, and again after parking other files if no descriptor was left, for at most this long.
pub(super) fn with_descriptors<T>(
    file: &PooledFile,
    most: Duration,
    mut open: impl FnMut() -> Result<T>,
) -> Result<T> {
    let since = Instant::now();
    let mut pause = Duration::from_millis(DESCRIPTORS_PAUSE_MS);
    loop {
        let before = refused();
        let opened = open();
        if opened.is_ok() || refused() == before {
            return opened;
        }
        POOL.make_room(file);
        if since.elapsed() >= most {
            return open();
        }
        // Threads that read close their connections themselves, and files that are being opened cannot be parked yet.
        std::thread::sleep(pause);
        pause = (2 * pause).min(Duration::from_millis(DESCRIPTORS_PAUSE_MS_MAX));
    }
}

impl Pool {
    /// Parks files while more than the bound have connections, but not this one.
    fn shrink(&self, except: Option<u64>) {
        loop {
            let max = self.max.load(Ordering::Relaxed);
            let file = {
                let mut files = self.files.lock();
                if files.order.len() - files.leaving <= max {
                    return;
                }
                files.least_used(except, self.now.load(Ordering::Relaxed))
            };
            let Some(file) = file else { return };
            self.park(&file);
        }
    }

    /// Parks some files, however many are open.
    fn make_room(&self, except: &PooledFile) {
        let mut parked = 0;
        while parked < PARKED_AT_ONCE {
            let now = self.now.load(Ordering::Relaxed);
            let file = self.files.lock().least_used(Some(except.number), now);
            let Some(file) = file else { break };
            parked += usize::from(self.park(&file));
        }
    }

    fn park(&self, file: &PooledFile) -> bool {
        let park = file.park.lock();
        let is_parked = park.as_ref().is_some_and(|park| park());
        if is_parked {
            file.was_parked.store(true, Ordering::Relaxed);
            self.files.lock().set_leaving(file.number, true);
        }
        is_parked
    }
}

impl Files {
    /// The file that was used least recently and may be parked, each at most once until the time goes on.
    fn least_used(&mut self, except: Option<u64>, now: u64) -> Option<Arc<PooledFile>> {
        // Those that were used since their place in the order, and those that stay, move behind.
        for _ in 0..self.order.len() {
            let ((used, number), file) = self.order.pop_first()?;
            let (Some(counted), Some(found)) = (self.counted.get_mut(&number), file.upgrade())
            else {
                continue;
            };
            let last = found.used.load(Ordering::Relaxed);
            let stays = counted.pins > 0 || counted.is_leaving || except == Some(number);
            let is_tried = used > now;
            counted.key = (if stays || is_tried || last <= used { now + 1 } else { last }, number);
            self.order.insert(counted.key, file);
            if is_tried {
                return None;
            }
            if !stays && last <= used {
                return Some(found);
            }
        }
        None
    }

    fn set_leaving(&mut self, number: u64, is_leaving: bool) {
        let Some(counted) = self.counted.get_mut(&number) else { return };
        if counted.is_leaving != is_leaving {
            counted.is_leaving = is_leaving;
            self.leaving = if is_leaving { self.leaving + 1 } else { self.leaving - 1 };
        }
    }
}

impl PooledFile {
    pub(super) fn new() -> Arc<Self> {
        let number = {
            let mut files = POOL.files.lock();
            files.last_number += 1;
            files.last_number
        };
        let (used, was_parked) = (AtomicU64::new(0), AtomicBool::new(false));
        Arc::new(Self { number, used, was_parked, park: Mutex::new(None) })
    }

    /// A place for one more connection. Parks other files if there are too many. Returns also whether the file
    /// had no connection.
    pub(super) fn seat(self: &Arc<Self>, of: SeatFor) -> (Seat, bool) {
        let now = POOL.now.fetch_add(1, Ordering::Relaxed) + 1;
        self.used.store(now, Ordering::Relaxed);
        let is_first = {
            let mut files = POOL.files.lock();
            files.set_leaving(self.number, false);
            let key = (now, self.number);
            let none = || Counted { connections: 0, pins: 0, key, is_leaving: false };
            let counted = files.counted.entry(self.number).or_insert_with(none);
            counted.connections += 1;
            counted.pins += usize::from(of == SeatFor::Watch);
            let is_first = counted.connections == 1;
            if is_first {
                files.order.insert(key, Arc::downgrade(self));
            }
            is_first
        };
        POOL.shrink(Some(self.number));
        (Seat { file: self.clone(), of }, is_first)
    }

    /// Sets how its connections are closed; `None`: it is not parked any more. Waits for a parking that runs.
    pub(super) fn set_park(&self, park: Option<Park>) {
        *self.park.lock() = park;
    }

    /// Whether parking has left a log beside it.
    pub(super) fn was_parked(&self) -> bool {
        self.was_parked.load(Ordering::Relaxed)
    }
}

impl Seat {
    /// The connection is used.
    pub(super) fn touch(&self) {
        self.file.used.store(POOL.now.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut files = POOL.files.lock();
        let number = self.file.number;
        let Some(counted) = files.counted.get_mut(&number) else { return };
        counted.connections -= 1;
        counted.pins -= usize::from(self.of == SeatFor::Watch);
        if counted.connections == 0 {
            let key = counted.key;
            files.set_leaving(number, false);
            files.counted.remove(&number);
            files.order.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_bound_leaves_a_quarter_of_the_descriptors() {
        assert_eq!(default_max(1024), 109);
        assert_eq!(default_max(64), OPEN_DATABASES_MIN);
        assert_eq!(default_max(usize::MAX), OPEN_DATABASES_DEFAULT_MAX);
    }

    /// A file in an order of its own.
    fn file(files: &mut Files, number: u64, used: u64) -> Arc<PooledFile> {
        let (used_at, was_parked) = (AtomicU64::new(used), AtomicBool::new(false));
        let file =
            Arc::new(PooledFile { number, used: used_at, was_parked, park: Mutex::new(None) });
        let key = (used, number);
        let counted = Counted { connections: 1, pins: 0, key, is_leaving: false };
        files.counted.insert(number, counted);
        files.order.insert(key, Arc::downgrade(&file));
        file
    }

    #[test]
    fn the_least_recently_used_is_chosen_and_each_once() {
        let mut files = Files::default();
        let kept: Vec<_> = (1..=5).map(|number| file(&mut files, number, number)).collect();
        kept[0].used.store(9, Ordering::Relaxed);
        files.counted.get_mut(&2).unwrap().pins = 1;
        let mut chosen = Vec::new();
        while let Some(file) = files.least_used(Some(3), 9) {
            chosen.push(file.number);
            assert!(chosen.len() < 10);
        }
        assert_eq!(chosen, [4, 5, 1]);
        assert_eq!(files.order.len(), 5);
        // The time goes on: they can be tried again.
        assert_eq!(files.least_used(None, 10).map(|file| file.number), Some(1));
    }
}
