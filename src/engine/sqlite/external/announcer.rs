//! The operating system's announcements of writes to files: one watcher for all of them.
//!
//! What the operating system refuses (its instances, watches or descriptors are used up) is asked
//! for again, after ever longer pauses; meanwhile the files are polled.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use notify::{Event, EventHandler, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use super::schedule::{FileId, retry_delay, tick};
use crate::engine::Refusal;

/// How long further announcements are left to the operating system, which merges those that wait:
/// each of our own commits is several, and they must not cost as much as the commit.
const ANNOUNCEMENT_PAUSE: Duration = Duration::from_millis(2);

/// Announcements that come within this time after a pause were read together with the one before it.
const ANNOUNCEMENT_BATCH: Duration = Duration::from_micros(100);

/// What was announced.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Announced {
    File(PathBuf),
    /// The operating system has lost count.
    Anything,
}

/// The watcher, and the files that it has been told of.
pub(super) struct Announcer<Tell> {
    tell: Tell,
    watcher: Option<RecommendedWatcher>,
    /// The registration for which a file was told of. A new registration may mean a new file of the
    /// same name, so that it is told of again.
    announced: HashMap<PathBuf, FileId>,
    /// Files that the operating system has refused to announce.
    refused: HashMap<PathBuf, FileId>,
    /// Why, at its last try, and since when it refuses anything.
    refusal: Option<Refusal>,
    /// Something about this has changed.
    news: bool,
    refusals: u32,
    retry_at: Option<Instant>,
}

impl<Tell: Fn(Announced) + Clone + Send + 'static> Announcer<Tell> {
    pub(super) fn new(tell: Tell) -> Self {
        Self {
            tell,
            watcher: None,
            announced: HashMap::new(),
            refused: HashMap::new(),
            refusal: None,
            news: false,
            refusals: 0,
            retry_at: None,
        }
    }

    /// What is refused, if that has changed since the last call.
    pub(super) fn take_news(&mut self) -> Option<HashMap<PathBuf, Refusal>> {
        if !std::mem::take(&mut self.news) {
            return None;
        }
        if self.refused.is_empty() {
            self.refusal = None;
        }
        let refusal = self.refusal.iter();
        let refused = self.refused.keys();
        Some(
            refused
                .flat_map(|path| refusal.clone().map(|why| (path.clone(), why.clone())))
                .collect(),
        )
    }

    /// How long files may go without a look.
    pub(super) fn tick(&self) -> Duration {
        tick(cfg!(target_os = "linux") && self.refused.is_empty())
    }

    /// When to call [`Self::retry`].
    pub(super) fn retry_at(&self) -> Option<Instant> {
        self.retry_at
    }

    /// A file is watched on behalf of this registration, or of none any more.
    pub(super) fn follow(&mut self, path: PathBuf, registration: Option<FileId>, now: Instant) {
        self.news |= self.refused.remove(&path).is_some();
        if self.announced.get(&path).copied() == registration {
            return;
        }
        if self.announced.remove(&path).is_some() {
            // If the file is gone, so is the watch.
            let _ended = self.attempt(now, |watcher| watcher.unwatch(&path));
        }
        let Some(registration) = registration else { return };
        // While the operating system refuses, it is asked at the time of the next try only.
        if self.retry_at.is_some_and(|at| at > now) {
            self.refused.insert(path, registration);
            self.news = true;
        } else {
            self.add(path, registration, now);
        }
    }

    /// Asks again for what was refused, if it is time.
    pub(super) fn retry(&mut self, now: Instant) {
        if self.retry_at.is_none_or(|at| at > now) {
            return;
        }
        self.retry_at = None;
        self.news = true;
        let mut refused = std::mem::take(&mut self.refused).into_iter();
        for (path, registration) in refused.by_ref() {
            self.add(path, registration, now);
            if self.retry_at.is_some() {
                break;
            }
        }
        self.refused.extend(refused);
        if self.retry_at.is_none() {
            self.refusals = 0;
        }
    }

    fn add(&mut self, path: PathBuf, registration: FileId, now: Instant) {
        match self.attempt(now, |watcher| watcher.watch(&path, RecursiveMode::NonRecursive)) {
            Ok(()) => {
                self.announced.insert(path, registration);
            }
            Err(error) => {
                self.refuse(path, registration, &reason_of(error), now);
            }
        }
    }

    fn refuse(&mut self, path: PathBuf, registration: FileId, reason: &str, now: Instant) {
        if self.refusals == 0 {
            tracing::warn!(%reason, path = %path.display(), "no file notifications; polling");
        }
        self.refused.insert(path, registration);
        self.news = true;
        let reason = reason.to_owned();
        let since = self.refusal.as_ref().map_or(now, |refusal| refusal.since);
        self.refusal = Some(Refusal { reason, since });
        if self.retry_at.is_none_or(|at| at <= now) {
            self.refusals = self.refusals.saturating_add(1);
            self.retry_at = Some(now + retry_delay(self.refusals));
        }
    }

    /// `notify` panics where its thread could not be started, or has ended: then the watcher is
    /// given up, and the next try makes another.
    fn attempt(
        &mut self,
        now: Instant,
        work: impl FnOnce(&mut RecommendedWatcher) -> notify::Result<()>,
    ) -> notify::Result<()> {
        let mut watcher = match self.watcher.take() {
            Some(watcher) => watcher,
            None => notify::recommended_watcher(Paced::new(self.tell.clone()))?,
        };
        match catch_unwind(AssertUnwindSafe(|| work(&mut watcher))) {
            Ok(done) => {
                self.watcher = Some(watcher);
                done
            }
            Err(_panic) => {
                let _same_panic = catch_unwind(AssertUnwindSafe(|| drop(watcher)));
                let reason = "the file watcher's thread does not run";
                for (path, registration) in std::mem::take(&mut self.announced) {
                    self.refuse(path, registration, reason, now);
                }
                Err(notify::Error::generic(reason))
            }
        }
    }
}

/// Without the path: a client of a server may read the reason, but must not learn the path.
fn reason_of(mut error: notify::Error) -> String {
    error.paths.clear();
    error.to_string()
}

impl<Tell> Drop for Announcer<Tell> {
    fn drop(&mut self) {
        let watcher = self.watcher.take();
        let _no_thread = catch_unwind(AssertUnwindSafe(|| drop(watcher)));
    }
}

/// Passes on what matters, and then leaves the operating system alone for a moment. Once for all
/// events that are read together, however many files they are about: the watcher's thread also
/// begins and ends watches.
struct Paced<Tell> {
    tell: Tell,
    paused: Option<Instant>,
}

impl<Tell> Paced<Tell> {
    fn new(tell: Tell) -> Self {
        Self { tell, paused: None }
    }
}

impl<Tell: Fn(Announced) + Send + 'static> EventHandler for Paced<Tell> {
    fn handle_event(&mut self, event: notify::Result<Event>) {
        let announced = announcements(event);
        if announced.is_empty() {
            return;
        }
        announced.into_iter().for_each(&self.tell);
        if self.paused.is_none_or(|ended| ended.elapsed() > ANNOUNCEMENT_BATCH) {
            std::thread::sleep(ANNOUNCEMENT_PAUSE);
            self.paused = Some(Instant::now());
        }
    }
}

/// What an event says. Opening and closing a log, as each connection does, is not writing it.
fn announcements(event: notify::Result<Event>) -> Vec<Announced> {
    match event {
        Ok(event) if event.need_rescan() => vec![Announced::Anything],
        Ok(event) if matches!(event.kind, EventKind::Access(_)) => Vec::new(),
        Ok(event) => event.paths.into_iter().map(Announced::File).collect(),
        Err(_) => vec![Announced::Anything],
    }
}
