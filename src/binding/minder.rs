//! Ends the snapshots of lanes whose turn does not end: JavaScript is busy, or blocked, behind a read.
//! Held for long, a snapshot keeps the log from being begun anew, and the log grows with each commit
//! of any process.
//!
//! One thread for all lanes of the process. It looks at them now and then while any has an open
//! turn, and sleeps when none has.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::engine::Reader;
use crate::model::LANE_HELD_MS_MAX;

/// Looks without anything to do after which the minder sleeps.
const QUIET_LOOKS: u32 = 10;

/// A reader that is used by a lane's thread, and released by the minder.
pub(super) struct Minded {
    reader: Mutex<Box<dyn Reader>>,
    /// The number of the turn that is open; none has the number 0.
    turn: AtomicU64,
}

/// The readers of all lanes. Whoever releases one from elsewhere holds this lock meanwhile, so that a
/// lane that closes has its reader for itself.
static LANES: Mutex<Vec<Arc<Minded>>> = Mutex::new(Vec::new());
static WOKEN: Condvar = Condvar::new();
/// Whether the minder will look at all lanes without being told.
static AWAKE: AtomicBool = AtomicBool::new(false);
static STARTED: AtomicBool = AtomicBool::new(false);

impl Minded {
    pub(super) fn new(reader: Box<dyn Reader>) -> Arc<Self> {
        let minded = Arc::new(Self { reader: Mutex::new(reader), turn: AtomicU64::new(0) });
        LANES.lock().push(minded.clone());
        minded
    }

    pub(super) fn reader(&self) -> MutexGuard<'_, Box<dyn Reader>> {
        self.reader.lock()
    }

    /// A turn begins in which there will be reads.
    pub(super) fn begin_turn(&self, number: u64) {
        // In one order with the minder's look before it sleeps: it sees this, or is seen asleep here.
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

    /// The lane closes: from now on nobody else has the reader.
    pub(super) fn forget(self: &Arc<Self>) {
        LANES.lock().retain(|minded| !Arc::ptr_eq(minded, self));
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
    // Turns that were open at the last look, and those of them whose snapshots were released.
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
            // While a read goes on, it has the lock: it is looked at again.
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
        AWAKE.store(false, Ordering::SeqCst);
        if is_quiet(&open_turns(&lanes)) {
            WOKEN.wait(&mut lanes);
        }
        AWAKE.store(true, Ordering::SeqCst);
        quiet_looks = 0;
    }
}

/// A lane and the number of its turn.
type Turn = (*const Minded, u64);

/// The turns that are open.
fn open_turns(lanes: &[Arc<Minded>]) -> Vec<Turn> {
    lanes.iter().map(|minded| minded.turn()).filter(|(_, number)| *number != 0).collect()
}
