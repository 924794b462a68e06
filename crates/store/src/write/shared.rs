//! The state of the writer, shared by the writer thread and callers that commit immediately.
//!
//! Duty: whose turn it is, how the thread waits and when it ends, and what a panic ends.
//! Invariant: the thread holds the lock of the state while it works, and releases it while it waits. A caller
//! only tries that lock, so it waits for nobody; the thread waits at most for the commit of one caller. The
//! lock is taken before that of the write queue, never while that one is held. At most one thread serves. It
//! ends after some idle time, and the next arrival or the alarm of the write queue starts another. While the
//! system starts none, the thread of the alarms serves.
//! Never: a decision about work.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

use super::super::rested_memory;
use super::super::thread::{is_this, not_started};
use super::super::write_queue::{Waiting, WriteQueue, WriterStart};
use super::WriterThread;
use openkv_core::model::{Result, STORE_THREAD_IDLE_MS};
use openkv_engines::Writer;

/// The place of the state.
pub(super) struct WriterState<W> {
    pub(super) write_queue: Arc<WriteQueue>,
    /// `None` once the store is closed, and after a panic.
    pub(super) state: Mutex<Option<WriterThread<W>>>,
    /// The started threads that may still run.
    threads: Mutex<Vec<JoinHandle<()>>>,
    myself: Weak<Self>,
}

impl<W: Writer + 'static> WriterState<W> {
    pub(super) fn new(write_queue: Arc<WriteQueue>, state: WriterThread<W>) -> Arc<Self> {
        Arc::new_cyclic(|myself: &Weak<Self>| {
            write_queue.set_writer(myself.clone());
            let (state, threads) = (Mutex::new(Some(state)), Mutex::default());
            Self { write_queue, state, threads, myself: myself.clone() }
        })
    }

    /// Finds on this thread what is due, and starts the writer thread only if something is by now.
    pub(super) fn look(&self) -> Result<()> {
        let mut place = self.state.lock();
        let Some(state) = &mut *place else { return Ok(()) };
        let seen = self.write_queue.arrivals.load(Ordering::SeqCst);
        let until = catch_unwind(AssertUnwindSafe(|| state.first_look()));
        drop(place);
        // The thread meets a panic again.
        match until {
            Ok(Rest::Arrival) if self.write_queue.leave(seen, None) => Ok(()),
            Ok(Rest::For(time)) if self.leave_for(seen, time) => Ok(()),
            _ => self.start(),
        }
    }

    /// Leaves until the next arrival, at most for this time, unless that is over.
    fn leave_for(&self, seen: usize, time: Duration) -> bool {
        !time.is_zero() && self.write_queue.leave(seen, Instant::now().checked_add(time))
    }

    /// Completes accepted work and closes the engine's writer. Returns the threads that still do that.
    pub(super) fn end(&self) -> Vec<JoinHandle<()>> {
        if self.write_queue.close() {
            serve(self, Duration::ZERO);
        }
        std::mem::take(&mut *self.threads.lock())
    }
}

impl<W: Writer + 'static> WriterStart for WriterState<W> {
    fn start(&self) -> Result<()> {
        let Some(here) = self.myself.upgrade() else { return Ok(()) };
        let name = "openkv-writer";
        let idle = Duration::from_millis(STORE_THREAD_IDLE_MS);
        // Locked until the thread is in it.
        let mut threads = self.threads.lock();
        let run = move || {
            serve(&here, idle);
            // What is left of a thread that nothing joins ends with it.
            here.threads.lock().retain(|thread| !is_this(thread));
        };
        let thread = std::thread::Builder::new().name(name.into()).spawn(run);
        let thread = thread.map_err(|error| not_started(name, &error))?;
        threads.push(thread);
        Ok(())
    }

    fn serve_here(&self) {
        serve(self, Duration::ZERO);
    }
}

/// The result of a round of the thread.
pub(super) enum Round<'q> {
    /// Some work; there may be more.
    Worked,
    /// Nothing: it waits. The queue stays locked until it does, so that no arrival is missed.
    Rests(MutexGuard<'q, Waiting>, Rest),
    /// It closed the store.
    Over,
}

/// How the thread waits.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rest {
    /// It spins for a moment, until the number of arrivals differs from this one.
    Spin(usize),
    /// It sleeps until something arrives.
    Arrival,
    /// It sleeps until something arrives, at most for this time.
    For(Duration),
}

/// How a wait has ended.
enum Waited {
    /// The thread has spun, and something arrived meanwhile or not.
    Spun { arrived: bool },
    /// There may be work.
    Over,
    /// Nothing arrived for long. `seen`: the number of arrivals before the wait; `until`: the time of the next work.
    Idle { seen: usize, until: Option<Instant> },
}

impl Rest {
    /// The wait from now on until the next work.
    pub(super) fn until(next_ms: Option<i64>, now_ms: i64) -> Self {
        next_ms.map_or(Self::Arrival, |at| {
            Self::For(Duration::from_millis(u64::try_from(at - now_ms).unwrap_or(0)))
        })
    }

    fn wait(
        self,
        write_queue: &WriteQueue,
        mut waiting: MutexGuard<'_, Waiting>,
        idle: Duration,
    ) -> Waited {
        let (time, until) = match self {
            Self::Spin(seen) => {
                drop(waiting);
                return Waited::Spun { arrived: write_queue.spin(seen) };
            }
            Self::Arrival => (idle, None),
            Self::For(time) => (time.min(idle), Instant::now().checked_add(time)),
        };
        let seen = write_queue.arrivals.load(Ordering::SeqCst);
        let is_idle = write_queue.arrived.wait_for(&mut waiting, time).timed_out() && time == idle;
        if is_idle { Waited::Idle { seen, until } } else { Waited::Over }
    }
}

/// The writer thread. It ends after `idle` without work, and leaves the state for the next one. Once the store is
/// closed, and after a panic, it drops the state, and with it the engine's writer, which rolls its transaction back.
fn serve<W: Writer>(shared: &WriterState<W>, idle: Duration) {
    let write_queue = &*shared.write_queue;
    let mut place = shared.state.lock();
    while let Some(state) = &mut *place {
        match catch_unwind(AssertUnwindSafe(|| state.round(write_queue))) {
            Ok(Round::Worked) => {}
            Ok(Round::Rests(waiting, rest)) => {
                drop(place);
                let waited = rest.wait(write_queue, waiting, idle);
                place = shared.state.lock();
                let Some(state) = &mut *place else { return };
                match waited {
                    Waited::Spun { arrived } => state.spin.ended(arrived),
                    Waited::Over => {}
                    Waited::Idle { seen, until } => {
                        state.reader = None;
                        state.writer.rest();
                        rested_memory::one_rests();
                        if write_queue.leave(seen, until) {
                            return;
                        }
                    }
                }
            }
            Ok(Round::Over) => *place = None,
            Err(_) => {
                *place = None;
                drop(place);
                tracing::error!("the writer thread ended by a panic; please report this");
                return write_queue.fail();
            }
        }
    }
}
