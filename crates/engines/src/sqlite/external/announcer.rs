//! Notifications of the operating system about writes to files, by one watcher for all files.
//!
//! If the operating system refuses a watch (its instances, watches or descriptors are used up), the
//! request is repeated with growing pauses; meanwhile the files are polled.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use notify::{Event, EventHandler, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use super::schedule::{FileId, retry_delay, tick};
use crate::Refusal;

/// Pause after an announcement, in which the operating system merges further ones. Each commit of
/// this process causes several, which must not cost as much as the commit.
const ANNOUNCEMENT_PAUSE: Duration = Duration::from_millis(2);

/// An announcement this soon after a pause was read together with the one before it.
const ANNOUNCEMENT_BATCH: Duration = Duration::from_micros(100);

/// The subject of an announcement.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Announced {
    File(PathBuf),
    /// The operating system has dropped announcements.
    Anything,
}

/// The watcher, and the files that it watches.
pub(super) struct Announcer<Tell> {
    tell: Tell,
    watcher: Option<RecommendedWatcher>,
    /// The registration for which a file is watched. A new registration may be a new file of the
    /// same name, so it needs a new watch.
    announced: HashMap<PathBuf, FileId>,
    /// Files whose watch the operating system refuses.
    refused: HashMap<PathBuf, FileId>,
    /// The error of the last attempt, and the time of the first refusal.
    refusal: Option<Refusal>,
    /// Whether the refusals have changed since the last [`Self::take_refused`].
    has_changed: bool,
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
            has_changed: false,
            refusals: 0,
            retry_at: None,
        }
    }

    /// The refused files, if they have changed since the last call.
    pub(super) fn take_refused(&mut self) -> Option<HashMap<PathBuf, Refusal>> {
        if !std::mem::take(&mut self.has_changed) {
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

    /// The interval of polling.
    pub(super) fn tick(&self) -> Duration {
        tick(cfg!(target_os = "linux") && self.refused.is_empty())
    }

    /// The time at which to call [`Self::retry`].
    pub(super) fn retry_at(&self) -> Option<Instant> {
        self.retry_at
    }

    /// Watches a file for this registration; `None` ends the watch.
    pub(super) fn follow(&mut self, path: PathBuf, registration: Option<FileId>, now: Instant) {
        self.has_changed |= self.refused.remove(&path).is_some();
        if self.announced.get(&path).copied() == registration {
            return;
        }
        if self.announced.remove(&path).is_some() {
            // If the file is gone, its watch is gone too.
            let _ended = self.attempt(now, |watcher| watcher.unwatch(&path));
        }
        let Some(registration) = registration else { return };
        // While the operating system refuses, only [`Self::retry`] asks it.
        if self.retry_at.is_some_and(|at| at > now) {
            self.refused.insert(path, registration);
            self.has_changed = true;
        } else {
            self.add(path, registration, now);
        }
    }

    /// Repeats the refused requests, if it is time.
    pub(super) fn retry(&mut self, now: Instant) {
        if self.retry_at.is_none_or(|at| at > now) {
            return;
        }
        self.retry_at = None;
        self.has_changed = true;
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
        self.has_changed = true;
        let reason = reason.to_owned();
        let since = self.refusal.as_ref().map_or(now, |refusal| refusal.since);
        self.refusal = Some(Refusal { reason, since });
        if self.retry_at.is_none_or(|at| at <= now) {
            self.refusals = self.refusals.saturating_add(1);
            self.retry_at = Some(now + retry_delay(self.refusals));
        }
    }

    /// `notify` panics if its thread could not start or has ended. The watcher is dropped then, and
    /// the next attempt creates another.
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

/// The text without the path: a client of a server may read the text, but must not learn the path.
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

/// Forwards announcements, then pauses so that the operating system merges further ones. It pauses
/// once for all events that are read together: the watcher's thread also starts and ends watches.
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

/// The announcements of an event. Opening or closing a log, as each connection does, is not a
/// write.
fn announcements(event: notify::Result<Event>) -> Vec<Announced> {
    match event {
        Ok(event) if event.need_rescan() => vec![Announced::Anything],
        Ok(event) if matches!(event.kind, EventKind::Access(_)) => Vec::new(),
        Ok(event) => event.paths.into_iter().map(Announced::File).collect(),
        Err(_) => vec![Announced::Anything],
    }
}
