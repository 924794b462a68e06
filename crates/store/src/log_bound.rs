//! The bound of the log that one reader may keep.
//!
//! The log of a file is not reset while a snapshot needs it. A snapshot that waits for a client can be old, so the log
//! of a busy file grew as long as a client wanted.
//! Invariant: such a snapshot begins while the log is shorter than its bound, and ends once the log has reached it. So
//! snapshots that begin one after the other make the log no longer than one of them does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::Store;
use super::write_queue::WriteQueue;
use openkv_core::model::{Error, LOG_LOOK_MS, Result, WAL_BYTES_MAX};
use openkv_engines::{Lengths, Maintenance};

/// The parts of a store from which the bound of a walk is made.
#[derive(Clone)]
pub(super) struct LogKeeper {
    whole: Arc<dyn Maintenance>,
    writes: Arc<WriteQueue>,
    readonly: bool,
}

/// The bound of one walk.
pub(super) struct LogBound {
    whole: Arc<dyn Maintenance>,
    /// The log reaches it only by commits that the walk keeps from being moved.
    bytes_max: u64,
    looked_at: Mutex<Instant>,
    /// Stays: the log may be reset once the walk has ended.
    reached: AtomicBool,
}

impl Store {
    pub(super) fn log_keeper(&self) -> LogKeeper {
        let (whole, writes) = (self.whole.clone(), self.writes.clone());
        LogKeeper { whole, writes, readonly: self.readonly }
    }
}

/// The most that a log may have while a walk goes on: as much as the file, as a copy of it would.
fn bytes_max(Lengths { file_bytes, .. }: Lengths) -> u64 {
    file_bytes.max(WAL_BYTES_MAX)
}

impl LogKeeper {
    /// The bound of a walk that begins now; `None` where a snapshot keeps no log. Empties a log that is too long
    /// already. `what` names the walk.
    ///
    /// # Errors
    /// `Unavailable` while another reader keeps such a log; `Closed`.
    pub(super) fn begin(self, what: &str) -> Result<Option<LogBound>> {
        let Some(lengths) = self.whole.lengths() else { return Ok(None) };
        let mut bytes_max = bytes_max(lengths);
        if self.readonly {
            // The log is its writer's, which only another process has.
            bytes_max += lengths.log_bytes;
        } else if lengths.log_bytes >= bytes_max {
            self.empty()?;
            let log_bytes = self.whole.lengths().map_or(0, |lengths| lengths.log_bytes);
            if log_bytes >= bytes_max {
                return Err(Error::unavailable(format!(
                    "{what}: the log of the file has {log_bytes} bytes (max {bytes_max}), and another reader keeps it \
                     from being moved into the file: try again later"
                )));
            }
        }
        let looked_at = Mutex::new(Instant::now());
        Ok(Some(LogBound {
            whole: self.whole,
            bytes_max,
            looked_at,
            reached: AtomicBool::new(false),
        }))
    }

    fn empty(&self) -> Result<()> {
        let (done, emptied) = channel();
        self.writes.run(Box::new(move |writer| {
            let _gone = done.send(writer.and_then(|writer| writer.empty_log()));
        }));
        emptied.recv().map_err(|_| Error::closed())?
    }
}

impl LogBound {
    /// Whether the log is shorter. Looks at it now and then.
    pub(super) fn lasts(&self) -> bool {
        if self.reached.load(Ordering::Relaxed) {
            return false;
        }
        let now = Instant::now();
        {
            let mut looked_at = self.looked_at.lock();
            if now.duration_since(*looked_at) < Duration::from_millis(LOG_LOOK_MS) {
                return true;
            }
            *looked_at = now;
        }
        let lasts = self.whole.lengths().is_none_or(|lengths| lengths.log_bytes < self.bytes_max);
        if !lasts {
            self.reached.store(true, Ordering::Relaxed);
        }
        lasts
    }

    /// The error of a walk, named `what`, that it has ended.
    pub(super) fn refusal(&self, what: &str) -> Error {
        Error::unavailable(format!(
            "{what}: ended, because the log of the file has reached {} bytes, the most that one reader may keep from \
             being moved into the file: take the data faster, or ask for less at a time",
            self.bytes_max
        ))
    }
}
