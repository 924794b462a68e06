//! Detects external commits while a watch, a feed or a listener is open.
//!
//! The first holder starts the engine's watch. If the watch cannot start, the store retries it and
//! polls the commit counter meanwhile. If polling fails too, callers get an error after a bounded
//! time.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::health::{Health, Part, Tries};
use super::read::ReadThreads;
use openkv_core::model::{BACKGROUND_POLL_MS, Env, Error, Result};
use openkv_engines::{ExternalWatch, Refusal, Snapshot};

/// The callbacks for external commits.
pub(super) struct Callbacks {
    /// Starts the engine's watch.
    pub(super) begin: Box<dyn Fn() -> Result<Option<ExternalWatch>> + Send + Sync>,
    /// Called when an external commit may have happened.
    pub(super) wake: Box<dyn Fn() + Send + Sync>,
    /// Called when external commits cannot be detected any more.
    pub(super) lost: Box<dyn Fn(&Error) + Send + Sync>,
}

pub(super) struct External {
    state: Mutex<State>,
    reads: Arc<ReadThreads>,
    env: Arc<dyn Env>,
    health: Arc<Health>,
    callbacks: Callbacks,
    myself: Weak<External>,
}

#[derive(Default)]
struct State {
    /// The open watches, feeds and listeners.
    holders: usize,
    watch: Option<ExternalWatch>,
    /// A call of `tend` is queued on the reader thread.
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

    /// Forgets all failures.
    fn forget(&mut self) {
        (self.beginning, self.polling) = (Tries::default(), Tries::default());
        (self.begin_at, self.polled) = (None, None);
    }
}

impl External {
    pub(super) fn new(
        reads: Arc<ReadThreads>,
        env: Arc<dyn Env>,
        health: Arc<Health>,
        callbacks: Callbacks,
    ) -> Arc<Self> {
        Arc::new_cyclic(|myself| Self {
            state: Mutex::default(),
            reads,
            env,
            health,
            callbacks,
            myself: myself.clone(),
        })
    }

    /// Adds a holder.
    pub(super) fn hold(&self) {
        let mut state = self.state.lock();
        state.holders += 1;
        // The reader thread starts the watch, so that the caller does not wait for it.
        let first = state.holders == 1 && !std::mem::replace(&mut state.tended, true);
        drop(state);
        if first {
            self.tend_after(Duration::ZERO);
        }
    }

    /// Removes a holder.
    pub(super) fn release(&self) {
        let mut state = self.state.lock();
        state.holders = state.holders.saturating_sub(1);
        let unused = if state.holders == 0 { state.watch.take() } else { None };
        drop(state);
        if let Some(unused) = unused {
            // Dropping the watch waits for a running check, so the reader thread does it.
            self.reads.send(Box::new(move |_snapshot| drop(unused)));
        }
    }

    /// Ends the watch for good.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        let watch = state.watch.take();
        drop(state);
        drop(watch);
    }

    /// Why the operating system does not announce writes to the file, if it refuses to.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        self.state.lock().watch.as_ref().and_then(ExternalWatch::refusal)
    }

    fn tend_after(&self, wait: Duration) {
        let myself = self.myself.clone();
        let tend = Box::new(move |snapshot: Result<&mut dyn Snapshot>| {
            if let Some(external) = myself.upgrade() {
                external.tend(snapshot);
            }
        });
        self.reads.send_after(wait, tend);
    }

    /// Starts the watch on the reader thread, or polls if the watch cannot start.
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

    /// Starts the watch. Holders read after this call on the same thread, so no commit before it
    /// needs a wake-up. The watch itself wakes all holders once when it starts.
    fn begin(&self, now: Instant) -> bool {
        let begun = (self.callbacks.begin)();
        self.health.note(Part::ExternalCommits, &begun, self.env.now_ms());
        let mut state = self.state.lock();
        match begun {
            Ok(mut watch) => {
                state.forget();
                // The last holder may have gone while the watch started.
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
        let version = snapshot.and_then(|snapshot| Ok(snapshot.feed_state()?.version));
        let mut state = self.state.lock();
        match version {
            Ok(version) => {
                state.polling = Tries::default();
                let has_changed = state.polled.replace(version) != Some(version);
                drop(state);
                if has_changed {
                    (self.callbacks.wake)();
                }
            }
            Err(error) => {
                state.polling.failed(now);
                let lost = state.polling.is_lost(now);
                drop(state);
                if lost {
                    (self.callbacks.lost)(&lost_by(&error));
                }
            }
        }
    }
}

/// The error for callers.
fn lost_by(error: &Error) -> Error {
    let what = "commits of other processes cannot be detected at present; call again";
    Error::unavailable(format!("{what}: {}", error.message()))
}
