//! Writers of several processes on one file: how one waits for the others.

use std::time::{Duration, Instant};

use super::statement::Statement;
use openkv_core::model::{KEPT_OUT_MS_MIN, Kind, LOCK_GRACE_MS, Result};

/// Range of the pause between two attempts to begin, in µs. It is short and random, so that many
/// processes share a busy file fairly; SQLite's own pauses grow to 100 ms and starve some of them.
const PAUSE_US: std::ops::Range<u64> = 100..1500;

/// In this time every waiting process tries to get the lock at least once.
pub(super) const TURN: Duration = Duration::from_micros(2 * PAUSE_US.end);

/// The waits of a writer for other processes.
pub(super) struct Contention {
    /// The time of the last long wait.
    waited: Option<Instant>,
    /// State of the random pauses; not zero.
    pauses: u64,
}

impl Contention {
    /// The number of the process makes its pauses differ from those of others.
    pub(super) fn new(process: u32) -> Self {
        Self { waited: None, pauses: u64::from(process) * 2 + 1 }
    }

    /// Begins a transaction by `begin`, waiting for other processes until the deadline. Returns the wait in ms.
    pub(super) fn begin(&mut self, begin: &mut Statement, deadline: Instant) -> Result<i64> {
        let mut refused_at = None;
        loop {
            match begin.execute() {
                Err(error) if error.kind() == Kind::Unavailable && Instant::now() < deadline => {
                    refused_at.get_or_insert_with(Instant::now);
                    std::thread::sleep(self.pause());
                }
                done => {
                    let waited = refused_at.map_or(Duration::ZERO, |at| at.elapsed());
                    if waited >= Duration::from_millis(KEPT_OUT_MS_MIN) {
                        self.waited = Some(Instant::now());
                    }
                    return done.map(|()| i64::try_from(waited.as_millis()).unwrap_or(0));
                }
            }
        }
    }

    /// Whether other processes have recently blocked the file for long. Then live consumers may not
    /// have been able to renew their locks: they wait for the file like this writer, and renew
    /// next.
    pub(super) fn were_kept_out(&self) -> bool {
        let grace = Duration::from_millis(LOCK_GRACE_MS.unsigned_abs());
        self.waited.is_some_and(|waited| waited.elapsed() < grace)
    }

    fn pause(&mut self) -> Duration {
        // xorshift64: random enough that processes do not retry in step.
        self.pauses ^= self.pauses << 13;
        self.pauses ^= self.pauses >> 7;
        self.pauses ^= self.pauses << 17;
        let span = PAUSE_US.end - PAUSE_US.start;
        Duration::from_micros(PAUSE_US.start + self.pauses % span)
    }
}
