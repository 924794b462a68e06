//! The state of the writer, shared by the writer thread and callers that commit immediately.
//!
//! Duty: whose turn it is, how the thread waits, and what a panic ends.
//! Invariant: the thread holds the lock of the state while it works, and releases it while it waits. A caller
//! only tries that lock, so it waits for nobody; the thread waits at most for the commit of one caller. The
//! lock is taken before that of the write queue, never while that one is held.
//! Never: a decision about work.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

use super::super::write_queue::{Waiting, WriteQueue};
use super::WriterThread;
use openkv_engines::Writer;

/// The place of the state.
pub(super) struct WriterState<W> {
    pub(super) write_queue: Arc<WriteQueue>,
    /// `None` after the end of the thread, and after a panic.
    pub(super) state: Mutex<Option<WriterThread<W>>>,
}

impl<W> WriterState<W> {
    pub(super) fn new(write_queue: Arc<WriteQueue>, state: WriterThread<W>) -> Self {
        Self { write_queue, state: Mutex::new(Some(state)) }
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

impl Rest {
    /// Returns whether something arrived, if the thread spun for it.
    fn wait(self, write_queue: &WriteQueue, mut waiting: MutexGuard<'_, Waiting>) -> Option<bool> {
        match self {
            Self::Spin(seen) => {
                drop(waiting);
                return Some(write_queue.spin(seen));
            }
            Self::Arrival => write_queue.arrived.wait(&mut waiting),
            Self::For(time) => drop(write_queue.arrived.wait_for(&mut waiting, time)),
        }
        None
    }
}

/// The writer thread. It drops the state at its end and after a panic, and with it the engine's writer, which
/// rolls its transaction back.
pub(super) fn serve<W: Writer>(shared: &WriterState<W>) {
    let write_queue = &*shared.write_queue;
    let mut place = shared.state.lock();
    while let Some(state) = &mut *place {
        match catch_unwind(AssertUnwindSafe(|| state.round(write_queue))) {
            Ok(Round::Worked) => {}
            Ok(Round::Rests(waiting, rest)) => {
                drop(place);
                let spun = rest.wait(write_queue, waiting);
                place = shared.state.lock();
                if let (Some(arrived), Some(state)) = (spun, &mut *place) {
                    state.spin.ended(arrived);
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
