//! Ends the snapshots of lanes in turns that last long, because JavaScript is busy or blocked after a
//! read. While a snapshot is held, the log cannot restart and grows with each commit of any process.
//! It also closes the readers of lanes without a turn for some time.
//!
//! One thread serves all lanes of the process. It checks them at intervals while a turn is open, once
//! more after the last one, and sleeps otherwise.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::engine::Reader;
use crate::model::{LANE_HELD_MS_MAX, STORE_THREAD_IDLE_MS};
use crate::store::ParkedLane;

/// Checks without work after which the thread sleeps.
const QUIET_LOOKS: u32 = 10;

/// A reader that a lane's thread uses and the snapshot timeout may release.
pub(super) struct TimedReader {
    reader: Mutex<Box<dyn Reader>>,
    /// The number of the turn that is open; none has the number 0.
    turn: AtomicU64,
    /// Whether a turn has begun since the reader was last closed or looked at for that.
    is_used: AtomicBool,
}

/// The readers of all lanes. The snapshot_timeout holds this lock while it releases one, so that a lane that
/// closes has exclusive use of its reader.
static LANES: Mutex<Vec<Arc<TimedReader>>> = Mutex::new(Vec::new());
static WOKEN: Condvar = Condvar::new();
/// Whether the snapshot timeout checks the lanes without being woken.
static AWAKE: AtomicBool = AtomicBool::new(false);
static STARTED: AtomicBool = AtomicBool::new(false);

impl TimedReader {
    pub(super) fn new(reader: Box<dyn Reader>) -> Arc<Self> {
        let (turn, is_used) = (AtomicU64::new(0), AtomicBool::new(false));
        let minded = Arc::new(Self { reader: Mutex::new(reader), turn, is_used });
        LANES.lock().push(minded.clone());
        minded
    }

    pub(super) fn reader(&self) -> MutexGuard<'_, Box<dyn Reader>> {
        self.reader.lock()
    }

    /// Begins a turn with reads.
    pub(super) fn begin_turn(&self, number: u64) {
        // Sequentially consistent with the check of the snapshot timeout before it sleeps: either the snapshot timeout
        // detects this turn, or this thread detects that the snapshot timeout sleeps.
        self.is_used.store(true, Ordering::Relaxed);
        self.turn.swap(number, Ordering::SeqCst);
        if !AWAKE.load(Ordering::SeqCst) {
            wake();
        }
    }

    fn turn(&self) -> Turn {
        (std::ptr::from_ref(self), self.turn.load(Ordering::SeqCst))
    }

    pub(super) fn end_turn(&self) {
        self.turn.store(0, Ordering::Release);
        self.reader.lock().release();
    }

    /// Removes the reader of a closing lane from the snapshot timeout.
    pub(super) fn forget(self: &Arc<Self>) {
        LANES.lock().retain(|minded| !Arc::ptr_eq(minded, self));
    }
}

impl ParkedLane for TimedReader {
    fn park(&self) -> bool {
        self.reader.try_lock().map(|mut reader| reader.rest()).is_some()
    }
}

fn wake() {
    let _lanes = LANES.lock();
    AWAKE.store(true, Ordering::SeqCst);
    if STARTED.swap(true, Ordering::SeqCst) {
        WOKEN.notify_one();
    } else if let Err(error) = std::thread::Builder::new().name("openkv-lanes".into()).spawn(mind) {
        // The next turn tries again; the end of each turn releases its snapshot in any case.
        tracing::warn!(%error, "starting the thread that releases snapshots");
        STARTED.store(false, Ordering::SeqCst);
        AWAKE.store(false, Ordering::SeqCst);
    }
}

fn mind() {
    // Turns that were open at the last check, and those of them whose snapshots were released.
    let mut seen: Vec<Turn> = Vec::new();
    let mut released: Vec<Turn> = Vec::new();
    let mut quiet_looks = 0;
    loop {
        std::thread::sleep(Duration::from_millis(LANE_HELD_MS_MAX));
        let mut lanes = LANES.lock();
        let open = open_turns(&lanes);
        released.retain(|turn| open.contains(turn));
        for minded in lanes.iter() {
            let turn = minded.turn();
            // A running read has the lock; the next check tries again.
            if seen.contains(&turn)
                && !released.contains(&turn)
                && let Some(mut reader) = minded.reader.try_lock()
            {
                reader.release();
                released.push(turn);
            }
        }
        let is_quiet = |open: &[Turn]| open.iter().all(|turn| released.contains(turn));
        quiet_looks = if is_quiet(&open) { quiet_looks + 1 } else { 0 };
        seen = open;
        if quiet_looks < QUIET_LOOKS {
            continue;
        }
        let mut is_any_open = true;
        loop {
            AWAKE.store(false, Ordering::SeqCst);
            if !is_quiet(&open_turns(&lanes)) {
                break;
            }
            let idle = Duration::from_millis(STORE_THREAD_IDLE_MS);
            if !is_any_open {
                WOKEN.wait(&mut lanes);
                break;
            }
            if !WOKEN.wait_for(&mut lanes, idle).timed_out() {
                break;
            }
            is_any_open = rest_unused(&lanes);
        }
        AWAKE.store(true, Ordering::SeqCst);
        quiet_looks = 0;
    }
}

/// Closes the readers without a turn since the last call. Returns whether there are others.
fn rest_unused(lanes: &[Arc<TimedReader>]) -> bool {
    let mut is_any_used = false;
    for lane in lanes {
        if lane.is_used.swap(false, Ordering::Relaxed) {
            is_any_used = true;
        } else if let Some(mut reader) = lane.reader.try_lock() {
            reader.rest();
        }
    }
    is_any_used
}

/// A lane and the number of its turn.
type Turn = (*const TimedReader, u64);

/// The turns that are open.
fn open_turns(lanes: &[Arc<TimedReader>]) -> Vec<Turn> {
    lanes.iter().map(|minded| minded.turn()).filter(|(_, number)| *number != 0).collect()
}
