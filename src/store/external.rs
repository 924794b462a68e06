//! Learning of other processes' commits, as long as somebody wants to.
//!
//! The engine's watch is begun when the first holder comes. While it cannot be begun it is tried
//! again and again, and the commit counter is read in between: nobody is deaf meanwhile. Where
//! that fails too, callers are told after a bound.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::health::{Health, Part, Tries};
use super::read::Reads;
use crate::engine::{ForeignWatch, Refusal, Snapshot};
use crate::model::{BACKGROUND_POLL_MS, Env, Error, Kind, Result};

/// What can be done about other processes.
pub(super) struct Means {
    /// Begins the engine's watch.
    pub(super) begin: Box<dyn Fn() -> Result<Option<ForeignWatch>> + Send + Sync>,
    /// Others may have committed.
    pub(super) wake: Box<dyn Fn() + Send + Sync>,
    /// Nobody can know any more whether others have committed.
    pub(super) lost: Box<dyn Fn(&Error) + Send + Sync>,
}

pub(super) struct External {
    state: Mutex<State>,
    reads: Reads,
    env: Arc<dyn Env>,
    health: Arc<Health>,
    means: Means,
    myself: Weak<External>,
}

#[derive(Default)]
struct State {
    /// Watches, feeds and listeners that want to know.
    holders: usize,
    watch: Option<ForeignWatch>,
    /// A look after it all is on its way to the reader thread.
    tended: bool,
    closed: bool,
    beginning: Tries,
    begin_at: Option<Instant>,
    polling: Tries,
    /// The commit counter at the last poll.
    polled: Option<u64>,
}

impl State {
    fn is_wanted(&self) -> bool {
        self.holders > 0 && self.watch.is_none() && !self.closed
    }

    /// Nothing has failed.
    fn forget(&mut self) {
        (self.beginning, self.polling) = (Tries::default(), Tries::default());
        (self.begin_at, self.polled) = (None, None);
    }
}

impl External {
    pub(super) fn new(
        reads: Reads,
        env: Arc<dyn Env>,
        health: Arc<Health>,
        means: Means,
    ) -> Arc<Self> {
        Arc::new_cyclic(|myself| Self {
            state: Mutex::default(),
            reads,
            env,
            health,
            means,
            myself: myself.clone(),
        })
    }

    /// Somebody wants to know of other processes' commits.
    pub(super) fn hold(&self) {
        let mut state = self.state.lock();
        state.holders += 1;
        // Beginning is the reader thread's to do, not the caller's.
        let first = state.holders == 1 && !std::mem::replace(&mut state.tended, true);
        drop(state);
        if first {
            self.tend_after(Duration::ZERO);
        }
    }

    /// One who wanted to know no longer does.
    pub(super) fn release(&self) {
        let mut state = self.state.lock();
        state.holders = state.holders.saturating_sub(1);
        let unused = if state.holders == 0 { state.watch.take() } else { None };
        drop(state);
        if let Some(unused) = unused {
            // Ending it waits for a look that is under way: again not the caller's to do.
            self.reads.send(self.env.clone(), Box::new(move |_snapshot| drop(unused)));
        }
    }

    /// Ends everything.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        let watch = state.watch.take();
        drop(state);
        drop(watch);
    }

    /// Why the operating system does not announce writes to the file, if it refuses to.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        self.state.lock().watch.as_ref().and_then(ForeignWatch::refusal)
    }

    fn tend_after(&self, wait: Duration) {
        let myself = self.myself.clone();
        let tend = Box::new(move |snapshot: Result<&mut dyn Snapshot>| {
            if let Some(external) = myself.upgrade() {
                external.tend(snapshot);
            }
        });
        self.reads.send_after(wait, self.env.clone(), tend);
    }

    /// On the reader thread: begins the watch, or does without.
    fn tend(&self, snapshot: Result<&mut dyn Snapshot>) {
        let now = Instant::now();
        let due = {
            let mut state = self.state.lock();
            state.tended = false;
            if !state.is_wanted() {
                state.forget();
                drop(state);
                self.health.works(Part::ExternalCommits);
                return;
            }
            state.begin_at.is_none_or(|at| at <= now)
        };
        if due && self.begin(now) {
            return;
        }
        self.poll(snapshot, now);
        let again = !std::mem::replace(&mut self.state.lock().tended, true);
        if again {
            self.tend_after(Duration::from_millis(BACKGROUND_POLL_MS));
        }
    }

    /// Whoever wanted it reads after this, on this same thread, so that there is nobody to wake for
    /// what was committed meanwhile; the watch itself wakes once when it begins.
    fn begin(&self, now: Instant) -> bool {
        let begun = (self.means.begin)();
        self.health.note(Part::ExternalCommits, &begun, self.env.now_ms());
        let mut state = self.state.lock();
        match begun {
            Ok(mut watch) => {
                state.forget();
                // Beginning takes a moment, in which all who wanted it may have gone.
                if state.is_wanted() {
                    std::mem::swap(&mut state.watch, &mut watch);
                }
                drop(state);
                drop(watch);
                true
            }
            Err(error) => {
                if state.begin_at.is_none() {
                    tracing::error!(%error, "watching for other processes; polling instead");
                }
                let pause = state.beginning.failed(now);
                state.begin_at = Some(now + pause);
                false
            }
        }
    }

    fn poll(&self, snapshot: Result<&mut dyn Snapshot>, now: Instant) {
        let version = snapshot.and_then(|snapshot| Ok(snapshot.feed().state()?.version));
        let mut state = self.state.lock();
        match version {
            Ok(version) => {
                state.polling = Tries::default();
                let news = state.polled.replace(version) != Some(version);
                drop(state);
                if news {
                    (self.means.wake)();
                }
            }
            Err(error) => {
                state.polling.failed(now);
                let lost = state.polling.is_lost(now);
                drop(state);
                if lost {
                    (self.means.lost)(&lost_by(&error));
                }
            }
        }
    }
}

/// What callers are told.
fn lost_by(error: &Error) -> Error {
    let what = "other processes' commits cannot be noticed, and are tried for again; call again";
    Error::new(Kind::Unavailable, format!("{what}: {}", error.message()))
}
