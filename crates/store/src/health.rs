//! Records which background parts of a store fail, and when they retry.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use openkv_core::model::{
    BACKGROUND_FAILING_MS_MAX, BACKGROUND_PAUSE_MS, BACKGROUND_PAUSE_MS_MAX, Error, Kind,
};

openkv_core::named! {
    /// A background part of a store.
    pub enum Part {
        /// Detection of external commits.
        ExternalCommits = "externalCommits",
        /// Notifications of the operating system about writes to the file; without them the file is
        /// polled.
        Announcements = "announcements",
        /// Reading the states of watches and the batches of change feeds.
        Streams = "streams",
        /// Reading due times from the file: messages, expiries, indexes to build.
        Agenda = "agenda",
        /// Deleting expired entries, and dead letters after their retention.
        Sweep = "sweep",
        /// Building search indexes.
        Indexes = "indexes",
    }
}

/// A background part that fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failing {
    /// The part.
    pub part: Part,
    /// The error of the last attempt.
    pub error: Error,
    /// Start of the failure, in ms since the epoch.
    pub since_ms: i64,
}

/// The failing parts of a store.
#[derive(Default)]
pub(super) struct Health(Mutex<BTreeMap<Part, (Error, i64)>>);

impl Health {
    /// Records a failed attempt.
    pub(super) fn failed(&self, part: Part, error: &Error, now_ms: i64) {
        self.0.lock().entry(part).or_insert_with(|| (error.clone(), now_ms)).0 = error.clone();
    }

    /// Records success, or that the part has no work.
    pub(super) fn works(&self, part: Part) {
        self.0.lock().remove(&part);
    }

    /// As [`Self::failed`] or [`Self::works`], by the outcome.
    pub(super) fn note<T>(&self, part: Part, done: &Result<T, Error>, now_ms: i64) {
        match done {
            Ok(_) => self.works(part),
            Err(error) => self.failed(part, error, now_ms),
        }
    }

    /// Records a failed read of a stream. Returns the wait before the next one; `None` if reads have failed
    /// for so long that the caller gets the error.
    pub(super) fn stream_failed(
        &self,
        tries: &mut Tries,
        error: &Error,
        now_ms: i64,
    ) -> Option<Duration> {
        let now = Instant::now();
        self.failed(Part::Streams, error, now_ms);
        let pause = tries.failed(now);
        if !tries.is_lost(now) {
            return Some(pause);
        }
        self.stream_works(tries);
        None
    }

    /// Records a read of a stream that did not fail, or the end of the stream.
    pub(super) fn stream_works(&self, tries: &mut Tries) {
        if std::mem::take(tries).since.is_some() {
            self.works(Part::Streams);
        }
    }

    /// The failing parts, in order.
    pub(super) fn failing(&self) -> Vec<Failing> {
        let failing = |(part, (error, since_ms)): (&Part, &(Error, i64))| Failing {
            part: *part,
            error: error.clone(),
            since_ms: *since_ms,
        };
        self.0.lock().iter().map(failing).collect()
    }
}

/// The wait after this number of consecutive failures.
fn pause(failures: u32) -> Duration {
    let doubled = BACKGROUND_PAUSE_MS.saturating_mul(1 << failures.saturating_sub(1).min(16));
    Duration::from_millis(doubled.min(BACKGROUND_PAUSE_MS_MAX))
}

/// Consecutive failed attempts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tries {
    failures: u32,
    since: Option<Instant>,
}

impl Tries {
    /// Records a failure. Returns the wait before the next attempt.
    pub(super) fn failed(&mut self, now: Instant) -> Duration {
        self.failures = self.failures.saturating_add(1);
        self.since.get_or_insert(now);
        pause(self.failures)
    }

    /// As [`Self::failed`] at this moment, in ms.
    pub(super) fn failed_ms(&mut self) -> i64 {
        i64::try_from(self.failed(Instant::now()).as_millis()).unwrap_or(i64::MAX)
    }

    /// Whether attempts have failed for so long that callers get the error.
    pub(super) fn is_lost(&self, now: Instant) -> bool {
        let most = Duration::from_millis(BACKGROUND_FAILING_MS_MAX);
        self.since.is_some_and(|since| now.saturating_duration_since(since) >= most)
    }
}

/// Whether another attempt may succeed after this error.
pub(super) fn may_pass(error: &Error) -> bool {
    error.kind() == Kind::Unavailable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_bound() {
        assert_eq!(pause(1), Duration::from_millis(BACKGROUND_PAUSE_MS));
        assert_eq!(pause(2), Duration::from_millis(BACKGROUND_PAUSE_MS * 2));
        assert_eq!(pause(u32::MAX), Duration::from_millis(BACKGROUND_PAUSE_MS_MAX));
    }

    #[test]
    fn callers_get_the_error_after_a_time_of_failures() {
        let start = Instant::now();
        let most = Duration::from_millis(BACKGROUND_FAILING_MS_MAX);
        let mut tries = Tries::default();
        assert!(!tries.is_lost(start + most));
        tries.failed(start);
        tries.failed(start + most / 2);
        assert!(!tries.is_lost(start + most - Duration::from_millis(1)));
        assert!(tries.is_lost(start + most));
    }

    #[test]
    fn a_failing_part_has_its_first_time_and_last_error() {
        let health = Health::default();
        let error = |text: &str| Error::unavailable(text);
        health.failed(Part::Sweep, &error("first"), 5);
        health.failed(Part::Sweep, &error("last"), 9);
        let failing = Failing { part: Part::Sweep, error: error("last"), since_ms: 5 };
        assert_eq!(health.failing(), [failing]);
        health.note(Part::Sweep, &Ok(()), 10);
        assert_eq!(health.failing(), []);
    }
}
