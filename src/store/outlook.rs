//! What time will bring, as far as known: ended entries, dead messages to be purged, messages to be
//! claimed.
//!
//! What a file says is due may come to nothing, when it is damaged: it waits, or the writer thread
//! would do nothing else.

use std::collections::HashMap;

use super::queue::Consumers;
use crate::engine::{Agenda, Report, Work};
use crate::model::{AGENDA_REFRESH_MS, Claim, Error, FRUITLESS_PAUSE_MS, Kind};

/// When there is something to do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    at_ms: Option<i64>,
    /// When it was last tried in vain.
    tried_ms: i64,
    /// It has met damage: no other work may fail with it.
    damaged: bool,
}

impl Due {
    /// As far as known, in ms since the epoch.
    pub(super) const fn at(at_ms: Option<i64>) -> Self {
        Self { at_ms, tried_ms: i64::MIN, damaged: false }
    }

    /// When to try. What was tried in vain waits; what is due later does not.
    pub(super) fn next_ms(&self) -> Option<i64> {
        self.at_ms.map(|at| match at <= self.tried_ms {
            true => self.tried_ms + FRUITLESS_PAUSE_MS,
            false => at,
        })
    }

    pub(super) fn is_over(&self, now_ms: i64) -> bool {
        self.next_ms().is_some_and(|at| at <= now_ms)
    }

    /// Whether it may be done together with other work now.
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
        self.tried_ms = now_ms;
    }

    fn failed(&mut self, error: &Error, now_ms: i64) {
        self.tried_in_vain(now_ms);
        self.damaged |= error.kind() != Kind::Unavailable;
    }

    /// So many were found of what was due.
    fn found(&mut self, count: usize, now_ms: i64) {
        match count {
            0 => self.tried_in_vain(now_ms),
            _ => *self = Self::at(self.at_ms),
        }
    }

    /// There may be something else than what was tried.
    fn forget_tries(&mut self) {
        self.tried_ms = i64::MIN;
    }
}

/// What a transaction was to do that time had brought.
pub(super) struct Done<'a> {
    pub(super) claims: &'a [Claim],
    /// Ended entries were to be deleted.
    swept: bool,
    /// Dead messages were to be purged.
    purged: bool,
    /// The time for which it was carried out.
    now_ms: i64,
}

impl<'a> Done<'a> {
    pub(super) fn of(work: &Work, claims: &'a [Claim], now_ms: i64) -> Self {
        Self { claims, swept: work.sweep_max > 0, purged: work.purge_max > 0, now_ms }
    }
}

/// All that the writer thread has to do without being asked.
pub(super) struct Outlook {
    /// The earliest end of an entry.
    pub(super) expiry: Due,
    /// The earliest end of a dead message's retention.
    pub(super) purge: Due,
    /// When messages may be claimed, by queue.
    queues: HashMap<String, Due>,
    /// When to ask the engine for all three again.
    refresh_ms: i64,
}

impl Default for Outlook {
    fn default() -> Self {
        let now = Due::at(Some(0));
        Self { expiry: now, purge: now, queues: HashMap::new(), refresh_ms: 0 }
    }
}

impl Outlook {
    /// When there is something to do without anything arriving.
    pub(super) fn next_ms(&self, consumers: &Consumers) -> Option<i64> {
        let message = consumers.open_queues().filter_map(|queue| self.queue(queue).next_ms());
        let own = [self.expiry.next_ms(), self.purge.next_ms(), Some(self.refresh_ms)];
        message.chain(own.into_iter().flatten()).min()
    }

    /// When messages of a queue may be claimed: at once, if nobody has looked at it yet.
    pub(super) fn queue(&self, queue: &str) -> Due {
        self.queues.get(queue).copied().unwrap_or(Due::at(Some(0)))
    }

    /// Whether the engine is to be asked.
    pub(super) fn is_stale(&self, now_ms: i64) -> bool {
        self.refresh_ms <= now_ms
    }

    /// Anything may have changed.
    pub(super) fn ask_anew(&mut self) {
        self.refresh_ms = 0;
        self.queues
            .values_mut()
            .chain([&mut self.expiry, &mut self.purge])
            .for_each(Due::forget_tries);
    }

    /// Notes what the engine says.
    pub(super) fn set(&mut self, agenda: &Agenda, now_ms: i64) {
        self.expiry.at_ms = agenda.expiry_ms;
        self.purge.at_ms = agenda.purge_ms;
        self.refresh_ms = now_ms + AGENDA_REFRESH_MS;
    }

    /// Notes what the engine says of a queue.
    pub(super) fn set_queue(&mut self, queue: &str, at_ms: Option<i64>) {
        match self.queues.get_mut(queue) {
            Some(known) => known.at_ms = at_ms,
            None => drop(self.queues.insert(queue.to_owned(), Due::at(at_ms))),
        }
    }

    /// Forgets queues that nobody is interested in any more.
    pub(super) fn keep_queues(&mut self, queues: &[String]) {
        if self.queues.len() > queues.len() {
            self.queues.retain(|queue, _| queues.contains(queue));
        }
    }

    /// Learns from what a transaction did.
    pub(super) fn learn(&mut self, report: &Report, done: &Done<'_>) {
        let Done { claims, swept, purged, now_ms } = *done;
        let changed = report.queued || report.purge_ahead;
        if changed || !claims.is_empty() || swept || purged {
            // Something may be due earlier, what was due is locked or gone.
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
        if let Some(end_ms) = report.expiry_ms {
            self.expiry.no_later_than(end_ms);
        }
    }

    /// A queue of which no claim brought anything has been tried in vain.
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

    /// Learns that a transaction has failed.
    pub(super) fn failed(&mut self, done: &Done<'_>, error: &Error) {
        if done.swept {
            self.expiry.failed(error, done.now_ms);
        }
        if done.purged {
            self.purge.failed(error, done.now_ms);
        }
    }

    /// After a failure: nothing of it all, in any of these queues, before a pause is over.
    pub(super) fn back_off(&mut self, queues: &[String], now_ms: i64) {
        let at_ms = now_ms + FRUITLESS_PAUSE_MS;
        self.refresh_ms = at_ms;
        self.expiry.not_before(at_ms);
        self.purge.not_before(at_ms);
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
    use crate::model::Delivery;

    fn claim(queue: &str) -> Claim {
        Claim { queue: queue.to_owned(), max: 1, lock_ms: 1, lock: 1 }
    }

    #[test]
    fn what_came_to_nothing_waits_and_what_is_due_later_does_not() {
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
    fn only_a_queue_of_which_no_claim_brought_anything_waits() {
        let mut outlook = Outlook::default();
        ["a", "b"].iter().for_each(|queue| outlook.set_queue(queue, Some(0)));
        let claims = [claim("a"), claim("a"), claim("b")];
        let got = || Delivery { id: 1, lock: 1, attempts: 1, enqueued_ms: 0, value: Vec::new() };
        let report = Report { deliveries: vec![vec![got()], vec![], vec![]], ..Report::default() };
        let done = Done { claims: &claims, swept: false, purged: false, now_ms: 7 };
        outlook.learn(&report, &done);
        assert_eq!(outlook.queue("a").next_ms(), Some(0));
        assert_eq!(outlook.queue("b").next_ms(), Some(7 + FRUITLESS_PAUSE_MS));
        let put_back = Report { queued: true, ..Report::default() };
        outlook.learn(&put_back, &Done { claims: &[], ..done });
        assert_eq!(outlook.queue("b").next_ms(), Some(0));
    }
}
