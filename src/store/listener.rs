//! A listener: what it asks for, how many messages it can be dealt, and how its locks go on.

use std::collections::HashMap;
use std::sync::Arc;

use super::Id;
use super::queue::{Deliver, Handed, Wish};
use crate::model::{Delivery, ELSEWHERE_AHEAD_MESSAGES, Renewal};

/// A consumer that is dealt messages for as long as it has free places.
pub(super) struct Listener {
    pub(super) id: Id,
    pub(super) wish: Wish,
    pub(super) deliver: Arc<Deliver>,
    places: Places,
    stage: Stage,
}

/// How far a listener is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It takes messages.
    Open,
    /// It takes no more. What it handles is still being handled, and keeps its locks.
    Stopped,
    /// Whoever had it is gone. What it handled may still be settled until its locks are over, at this
    /// time in ms, but nobody says that it is being handled.
    Gone(i64),
}

enum Places {
    Here(Here),
    Elsewhere(Elsewhere),
}

/// The handlers run in this process: they settle by number, and locks go on while they run.
struct Here {
    free: usize,
    /// How often locks are renewed, and when the next time is.
    renewal_ms: i64,
    renew_at_ms: i64,
    /// Delivery number → message and the lock it was claimed under.
    handling: HashMap<i64, (i64, i64)>,
}

/// The handlers run behind a connection. Messages are settled and locks renewed by who has them, so
/// that nothing here says that they are still alive. All counts are from the beginning.
struct Elsewhere {
    /// Places that were given; what is told twice, or late, changes nothing.
    granted: u64,
    /// Messages that were dealt.
    dealt: u64,
    /// Those of them that the connection has taken.
    sent: u64,
    /// Most free places at one time.
    most: u64,
}

impl Elsewhere {
    fn free(&self) -> u64 {
        let unsent = self.dealt.saturating_sub(self.sent);
        let ahead = ELSEWHERE_AHEAD_MESSAGES.saturating_sub(unsent);
        self.granted.saturating_sub(self.dealt).min(ahead)
    }
}

impl Listener {
    pub(super) fn here(id: Id, wish: Wish, deliver: Deliver, free: usize, renewal_ms: i64) -> Self {
        let handling = HashMap::new();
        let places = Places::Here(Here { free, renewal_ms, renew_at_ms: 0, handling });
        Self { id, wish, deliver: Arc::new(deliver), places, stage: Stage::Open }
    }

    /// `granted` free places at first, `most` at one time.
    pub(super) fn elsewhere(id: Id, wish: Wish, deliver: Deliver, granted: u64, most: u64) -> Self {
        let places =
            Places::Elsewhere(Elsewhere { granted: granted.min(most), dealt: 0, sent: 0, most });
        Self { id, wish, deliver: Arc::new(deliver), places, stage: Stage::Open }
    }

    /// Takes no more, and goes on with what it has. Whether it took messages until now.
    pub(super) fn stop(&mut self) -> bool {
        let was_open = self.is_open();
        if was_open {
            self.stage = Stage::Stopped;
        }
        was_open
    }

    /// Takes no more, and renews no more. Whether it took messages until now.
    pub(super) fn leave(&mut self, now_ms: i64) -> bool {
        let was_open = self.is_open();
        if !matches!(self.stage, Stage::Gone(_)) {
            self.stage = Stage::Gone(now_ms + self.wish.lock_ms);
        }
        was_open
    }

    fn renews(&self) -> bool {
        !matches!(self.stage, Stage::Gone(_))
    }

    pub(super) fn is_open(&self) -> bool {
        self.stage == Stage::Open
    }

    /// It takes no more, and nothing of it is still to be settled, or can be.
    pub(super) fn is_finished(&self, now_ms: i64) -> bool {
        match (&self.places, self.stage) {
            (_, Stage::Open) => false,
            (Places::Elsewhere(_), _) => true,
            (Places::Here(_), Stage::Gone(over_ms)) if over_ms <= now_ms => true,
            (Places::Here(here), _) => here.handling.is_empty(),
        }
    }

    /// How many messages it can be dealt now.
    pub(super) fn free(&self) -> usize {
        match &self.places {
            _ if !self.is_open() => 0,
            Places::Here(here) => here.free,
            Places::Elsewhere(there) => usize::try_from(there.free()).unwrap_or(usize::MAX),
        }
    }

    /// Deals it a message, under a number that no other delivery has.
    pub(super) fn hand(&mut self, number: i64, delivery: Delivery, now_ms: i64) -> Handed {
        match &mut self.places {
            Places::Here(here) => {
                if here.handling.is_empty() {
                    here.renew_at_ms = now_ms + here.renewal_ms;
                }
                here.free = here.free.saturating_sub(1);
                here.handling.insert(number, (delivery.id, delivery.lock));
            }
            Places::Elsewhere(there) => there.dealt += 1,
        }
        Handed { number, delivery }
    }

    /// Frees the place of a delivery: its message and lock, if it was under way here.
    pub(super) fn settle(&mut self, number: i64) -> Option<(i64, i64)> {
        let Places::Here(here) = &mut self.places else { return None };
        let held = here.handling.remove(&number)?;
        here.free += 1;
        Some(held)
    }

    /// So many places have been given since the beginning.
    pub(super) fn grant(&mut self, granted: u64) {
        if let Places::Elsewhere(there) = &mut self.places {
            there.granted = granted.min(there.dealt + there.most).max(there.granted);
        }
    }

    /// The connection has taken so many messages; those that were returned never were dealt.
    pub(super) fn sent(&mut self, sent: u64, returned: u64) {
        if let Places::Elsewhere(there) = &mut self.places {
            there.dealt = there.dealt.saturating_sub(returned);
            there.sent = (there.sent + sent).min(there.dealt);
        }
    }

    /// When its locks are to be renewed.
    pub(super) fn renew_at_ms(&self) -> Option<i64> {
        match &self.places {
            Places::Here(here) if self.renews() && !here.handling.is_empty() => {
                Some(here.renew_at_ms)
            }
            _ => None,
        }
    }

    /// Its locks could not be renewed: the next transaction is to try again.
    pub(super) fn renew_again(&mut self) {
        if let Places::Here(here) = &mut self.places {
            here.renew_at_ms = 0;
        }
    }

    /// Locks that are to be renewed now.
    pub(super) fn renewals(&mut self, now_ms: i64) -> Vec<Renewal> {
        let lock_ms = self.wish.lock_ms;
        let renews = self.renews();
        match &mut self.places {
            Places::Here(here) if renews && here.renew_at_ms <= now_ms => {
                here.renew_at_ms = now_ms + here.renewal_ms;
                let held = here.handling.values();
                held.map(|(id, lock)| Renewal { id: *id, lock: *lock, lock_ms }).collect()
            }
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(id: i64) -> Delivery {
        Delivery { id, lock: 1, attempts: 1, enqueued_ms: 0, value: Vec::new() }
    }

    fn elsewhere(granted: u64, most: u64) -> Listener {
        let wish = Wish { queue: "mail".into(), lock_ms: 100 };
        Listener::elsewhere(1, wish, Box::new(|hand| hand), granted, most)
    }

    #[test]
    fn places_elsewhere_are_counted_from_the_beginning() {
        let mut listener = elsewhere(2, 3);
        assert_eq!(listener.free(), 2);
        for id in 0..2 {
            listener.hand(id, delivery(id), 0);
        }
        assert_eq!(listener.free(), 0);
        assert_eq!(listener.settle(0), None, "who has it says so otherwise");
        // One was settled; it is told twice, and an older word comes late.
        for granted in [3, 3, 1] {
            listener.grant(granted);
            assert_eq!(listener.free(), 1, "{granted}");
        }
        listener.grant(u64::MAX);
        assert_eq!(listener.free(), 3, "never more than it has asked for");
        assert!(listener.renewals(i64::MAX).is_empty() && listener.renew_at_ms().is_none());
        listener.leave(0);
        assert!(listener.is_finished(0) && listener.free() == 0);
    }

    /// Nobody settles what a worker had that was terminated.
    #[test]
    fn who_has_left_is_finished_when_its_locks_are_over() {
        let wish = Wish { queue: "mail".into(), lock_ms: 100 };
        let mut listener = Listener::here(1, wish, Box::new(|hand| hand), 2, 30);
        listener.hand(1, delivery(1), 0);
        listener.stop();
        assert!(!listener.is_finished(1000), "its locks go on");
        listener.leave(1000);
        listener.leave(1050);
        assert!(listener.renewals(i64::MAX).is_empty() && !listener.is_finished(1099));
        assert!(listener.is_finished(1100));
    }

    #[test]
    fn a_connection_that_takes_nothing_is_dealt_little() {
        let most = ELSEWHERE_AHEAD_MESSAGES * 3;
        let mut listener = elsewhere(most, most);
        let deal = |listener: &mut Listener| {
            let free = listener.free();
            (0..free as i64).for_each(|id| drop(listener.hand(id, delivery(id), 0)));
            free as u64
        };
        assert_eq!(deal(&mut listener), ELSEWHERE_AHEAD_MESSAGES);
        assert_eq!(deal(&mut listener), 0);
        listener.sent(4, 1);
        assert_eq!(deal(&mut listener), 5, "four have gone, one was put back");
    }
}
