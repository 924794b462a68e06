//! The times at which the writer thread has work without a caller: expired entries to delete, dead
//! letters to purge, messages to claim.
//!
//! A damaged file may report work as due that finds nothing to do. Such work waits for a pause;
//! otherwise the writer thread would do nothing else. Work that fails waits longer after each
//! failure.

use std::collections::HashMap;

use super::health::Tries;
use super::queue::Consumers;
use openkv_core::model::{Claim, DEADLINES_REFRESH_MS, Error, FRUITLESS_PAUSE_MS, Kind};
use openkv_engines::{NextDeadlines, Report, Work};

/// The due time of some work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    at_ms: Option<i64>,
    /// The time of the last attempt that failed or found nothing.
    tried_ms: i64,
    /// The wait after that attempt.
    pause_ms: i64,
    /// Consecutive failed attempts.
    tries: Tries,
    /// The work met damage and runs alone, so that no other work fails with it.
    damaged: bool,
}

impl Due {
    /// The due time, if known, in ms since the epoch.
    pub(super) fn at(at_ms: Option<i64>) -> Self {
        let (tried_ms, pause_ms) = (i64::MIN, FRUITLESS_PAUSE_MS);
        Self { at_ms, tried_ms, pause_ms, tries: Tries::default(), damaged: false }
    }

    /// The time of the next attempt. Only work that was due at the last attempt waits for the
    /// pause.
    pub(super) fn next_ms(&self) -> Option<i64> {
        self.at_ms.map(|at| match at <= self.tried_ms {
            true => self.tried_ms + self.pause_ms,
            false => at,
        })
    }

    pub(super) fn is_over(&self, now_ms: i64) -> bool {
        self.next_ms().is_some_and(|at| at <= now_ms)
    }

    /// Whether the work may share a transaction now.
    pub(super) fn may_join(&self, now_ms: i64) -> bool {
        self.is_over(now_ms) && !self.damaged
    }

    fn no_later_than(&mut self, at_ms: i64) {
        self.at_ms = Some(self.at_ms.map_or(at_ms, |at| at.min(at_ms)));
    }

    fn not_before(&mut self, at_ms: i64) {
        self.at_ms = self.at_ms.map(|at| at.max(at_ms));
    }

    fn tried_in_vain(&mut self, now_ms: i64) {
        (self.tried_ms, self.pause_ms) = (now_ms, FRUITLESS_PAUSE_MS);
        self.tries = Tries::default();
    }

    fn failed(&mut self, error: &Error, now_ms: i64) {
        (self.tried_ms, self.pause_ms) = (now_ms, self.tries.failed_ms());
        self.damaged |= error.kind() != Kind::Unavailable;
    }

    /// Records how many items the work found.
    fn found(&mut self, count: usize, now_ms: i64) {
        match count {
            0 => self.tried_in_vain(now_ms),
            _ => *self = Self::at(self.at_ms),
        }
    }

    /// Forgets past attempts: other work may be due now.
    fn forget_tries(&mut self) {
        self.tried_ms = i64::MIN;
    }
}

/// The timed work of a transaction.
pub(super) struct Done {
    pub(super) claims: Vec<Claim>,
    /// It deletes expired entries.
    swept: bool,
    /// It purges dead letters.
    purged: bool,
    /// It makes the messages of schedules.
    fired: bool,
    /// The time for which the transaction runs.
    pub(super) now_ms: i64,
}

impl Done {
    pub(super) fn of(work: &Work, now_ms: i64) -> Self {
        let (swept, purged) = (work.sweep_max > 0, work.purge_max > 0);
        Self { claims: work.claims.clone(), swept, purged, fired: work.fires, now_ms }
    }
}

/// All due times of the writer thread.
pub(super) struct Timers {
    /// The earliest expiry of an entry.
    pub(super) expiry: Due,
    /// The earliest end of a dead letter's retention.
    pub(super) purge: Due,
    /// The earliest due time of a schedule.
    pub(super) schedules: Due,
    /// When to read it from the engine again.
    schedules_refresh_ms: i64,
    /// When messages may be claimed, by queue.
    queues: HashMap<String, Due>,
    /// When to read all three from the engine again.
    refresh_ms: i64,
}

impl Default for Timers {
    fn default() -> Self {
        let now = Due::at(Some(0));
        Self {
            expiry: now,
            purge: now,
            schedules: Due::at(None),
            schedules_refresh_ms: 0,
            queues: HashMap::new(),
            refresh_ms: 0,
        }
    }
}

impl Timers {
    /// The earliest due time.
    pub(super) fn next_ms(&self, consumers: &Consumers) -> Option<i64> {
        let message = consumers.open_queues().filter_map(|queue| self.queue(queue).next_ms());
        let own = [
            self.expiry.next_ms(),
            self.purge.next_ms(),
            self.schedules.next_ms(),
            Some(self.refresh_ms),
        ];
        message.chain(own.into_iter().flatten()).min()
    }

    /// When messages of a queue may be claimed: at once for an unknown queue.
    pub(super) fn queue(&self, queue: &str) -> Due {
        self.queues.get(queue).copied().unwrap_or(Due::at(Some(0)))
    }

    /// Whether to read the due times from the engine.
    pub(super) fn is_stale(&self, now_ms: i64) -> bool {
        self.refresh_ms <= now_ms
    }

    /// Makes the due times stale, because anything may have changed.
    pub(super) fn ask_anew(&mut self) {
        (self.refresh_ms, self.schedules_refresh_ms) = (0, 0);
        self.queues
            .values_mut()
            .chain([&mut self.expiry, &mut self.purge, &mut self.schedules])
            .for_each(Due::forget_tries);
    }

    /// Records the engine's due times.
    pub(super) fn set(&mut self, deadlines: &NextDeadlines, now_ms: i64) {
        self.expiry.at_ms = deadlines.expiry_ms;
        self.purge.at_ms = deadlines.purge_ms;
        self.refresh_ms = now_ms + DEADLINES_REFRESH_MS;
    }

    /// Whether to read the due time of the schedules from the engine.
    pub(super) fn schedules_are_stale(&self, now_ms: i64) -> bool {
        self.schedules_refresh_ms <= now_ms
    }

    /// Records the engine's due time of the schedules.
    pub(super) fn set_schedules(&mut self, at_ms: Option<i64>, now_ms: i64) {
        self.schedules.at_ms = at_ms;
        self.schedules_refresh_ms = now_ms + DEADLINES_REFRESH_MS;
    }

    /// Records the engine's due time of a queue.
    pub(super) fn set_queue(&mut self, queue: &str, at_ms: Option<i64>) {
        match self.queues.get_mut(queue) {
            Some(known) => known.at_ms = at_ms,
            None => drop(self.queues.insert(queue.to_owned(), Due::at(at_ms))),
        }
    }

    /// Forgets queues without a consumer.
    pub(super) fn keep_queues(&mut self, queues: &[String]) {
        if self.queues.len() > queues.len() {
            self.queues.retain(|queue, _| queues.contains(queue));
        }
    }

    /// Updates the due times after a transaction.
    pub(super) fn learn(&mut self, report: &Report, done: &Done) {
        let Done { ref claims, swept, purged, fired, now_ms } = *done;
        let changed = report.queued || report.purge_ahead;
        if changed || !claims.is_empty() || swept || purged {
            // Some message may be due earlier, and the claimed ones are locked or gone.
            self.refresh_ms = self.refresh_ms.min(0);
        }
        if report.queued {
            self.queues.values_mut().for_each(Due::forget_tries);
        } else if report.lost == 0 {
            self.note_empty_claims(claims, report, now_ms);
        }
        if swept {
            self.expiry.at_ms = report.sweep_more.then_some(0);
            self.expiry.found(report.swept, now_ms);
        }
        if purged {
            self.purge.found(report.purged, now_ms);
        }
        if fired || report.scheduled {
            (self.refresh_ms, self.schedules_refresh_ms) = (0, 0);
        }
        if fired {
            self.schedules.found(report.fired, now_ms);
        } else if report.scheduled {
            self.schedules.forget_tries();
        }
        if let Some(end_ms) = report.expiry_ms {
            self.expiry.no_later_than(end_ms);
        }
    }

    /// Pauses queues whose claims returned no message.
    fn note_empty_claims(&mut self, claims: &[Claim], report: &Report, now_ms: i64) {
        let brought = || claims.iter().zip(&report.deliveries).filter(|(_, got)| !got.is_empty());
        for claim in claims {
            if brought().all(|(other, _)| other.queue != claim.queue)
                && let Some(due) = self.queues.get_mut(&claim.queue)
            {
                due.tried_in_vain(now_ms);
            }
        }
    }

    /// Pauses the timed work of a failed transaction.
    pub(super) fn failed(&mut self, done: &Done, error: &Error) {
        if done.swept {
            self.expiry.failed(error, done.now_ms);
        }
        if done.purged {
            self.purge.failed(error, done.now_ms);
        }
        if done.fired {
            self.schedules.failed(error, done.now_ms);
        }
    }

    /// After a failure: no timed work, and none for these queues, before this time.
    pub(super) fn back_off(&mut self, queues: &[String], at_ms: i64) {
        self.refresh_ms = at_ms;
        self.expiry.not_before(at_ms);
        self.purge.not_before(at_ms);
        self.schedules.not_before(at_ms);
        for queue in queues {
            let mut due = self.queue(queue);
            due.not_before(at_ms);
            self.set_queue(queue, due.at_ms);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openkv_core::model::{BACKGROUND_PAUSE_MS, BACKGROUND_PAUSE_MS_MAX, Delivery};

    const FIRST_MS: i64 = BACKGROUND_PAUSE_MS as i64;

    fn claim(queue: &str) -> Claim {
        Claim { queue: queue.to_owned(), max: 1, lock_ms: 1, lock: 1 }
    }

    #[test]
    fn work_without_result_is_paused() {
        let mut due = Due::at(Some(5));
        due.tried_in_vain(10);
        assert_eq!(due.next_ms(), Some(10 + FRUITLESS_PAUSE_MS));
        due.at_ms = Some(11);
        assert_eq!(due.next_ms(), Some(11));
        due.at_ms = Some(10);
        due.forget_tries();
        assert_eq!(due.next_ms(), Some(10));
    }

    #[test]
    fn pauses_after_failures_double_up_to_a_bound() {
        let error = Error::unavailable("the disk is full");
        let mut due = Due::at(Some(5));
        let mut failed = || {
            due.failed(&error, 10);
            due.next_ms().unwrap() - 10
        };
        assert_eq!([failed(), failed(), failed()], [1, 2, 4].map(|times| times * FIRST_MS));
        let pauses: Vec<i64> = (0..20).map(|_| failed()).collect();
        assert_eq!(pauses.last(), Some(&(BACKGROUND_PAUSE_MS_MAX as i64)));
        due.found(1, 20);
        assert_eq!(due.next_ms(), Some(5));
        due.failed(&error, 20);
        assert_eq!(due.next_ms(), Some(20 + FIRST_MS));
    }

    #[test]
    fn only_queues_with_empty_claims_are_paused() {
        let mut timers = Timers::default();
        ["a", "b"].iter().for_each(|queue| timers.set_queue(queue, Some(0)));
        let claims = vec![claim("a"), claim("a"), claim("b")];
        let got = || Delivery {
            id: 1,
            lock: 1,
            attempts: 1,
            attempts_left: 0,
            enqueued_ms: 0,
            value: Vec::new(),
        };
        let report = Report { deliveries: vec![vec![got()], vec![], vec![]], ..Report::default() };
        let done = Done { claims, swept: false, purged: false, fired: false, now_ms: 7 };
        timers.learn(&report, &done);
        assert_eq!(timers.queue("a").next_ms(), Some(0));
        assert_eq!(timers.queue("b").next_ms(), Some(7 + FRUITLESS_PAUSE_MS));
        let put_back = Report { queued: true, ..Report::default() };
        timers.learn(&put_back, &Done { claims: Vec::new(), ..done });
        assert_eq!(timers.queue("b").next_ms(), Some(0));
    }
}
