//! A listener: its queue, its credits and the renewal of its locks.

use std::collections::HashMap;
use std::sync::Arc;

use openkv_core::model::{
    Ack, ConsumeOptions, Deliver, Delivery, Dispatched, Id, LockLost, REMOTE_AHEAD_MESSAGES,
    Renewal,
};

/// A consumer that gets messages while it has credits.
pub(super) struct Listener {
    pub(super) id: Id,
    pub(super) options: ConsumeOptions,
    pub(super) deliver: Arc<Deliver>,
    credits: Credits,
    stage: Stage,
}

/// The life cycle of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It takes messages.
    Open,
    /// It takes no more messages. Its handlers still run and keep their locks.
    Stopped,
    /// Its owner is gone. Its messages may still be settled until their locks end, at this time in
    /// ms, but no lock is renewed.
    Gone(i64),
}

enum Credits {
    Local(Local),
    Remote(Remote),
}

/// The handlers run in this process. They settle by number, and the store renews their locks.
struct Local {
    free: usize,
    /// The interval of lock renewals, and the time of the next one.
    renewal_ms: i64,
    renew_at_ms: i64,
    /// By delivery number.
    handling: HashMap<i64, Handled>,
    /// Notified of each lock that is lost.
    lock_lost: Option<LockLost>,
}

/// A message in a handler.
struct Handled {
    message: i64,
    /// The lock that it was claimed under.
    lock: i64,
    /// Another consumer may have the message.
    lost: bool,
    /// Its credit is returned already.
    credited: bool,
}

/// The handlers run behind a connection. The remote consumer settles messages and renews locks
/// itself, because this process does not know whether its handlers run. All counts are totals.
struct Remote {
    /// Credits granted. A repeated or smaller total has no effect.
    granted: u64,
    /// Messages delivered.
    dispatched: u64,
    /// Delivered messages that the connection has sent.
    sent: u64,
    /// Most unused credits at one time.
    most: u64,
}

impl Remote {
    fn free(&self) -> u64 {
        let unsent = self.dispatched.saturating_sub(self.sent);
        let ahead = REMOTE_AHEAD_MESSAGES.saturating_sub(unsent);
        self.granted.saturating_sub(self.dispatched).min(ahead)
    }
}

impl Listener {
    pub(super) fn local(
        id: Id,
        options: ConsumeOptions,
        deliver: Deliver,
        free: usize,
        renewal_ms: i64,
    ) -> Self {
        let (handling, lock_lost) = (HashMap::new(), None);
        let local = Local { free, renewal_ms, renew_at_ms: 0, handling, lock_lost };
        let credits = Credits::Local(local);
        Self { id, options, deliver: Arc::new(deliver), credits, stage: Stage::Open }
    }

    /// `granted` credits at first, at most `most` at one time.
    pub(super) fn remote(
        id: Id,
        options: ConsumeOptions,
        deliver: Deliver,
        granted: u64,
        most: u64,
    ) -> Self {
        let credits =
            Credits::Remote(Remote { granted: granted.min(most), dispatched: 0, sent: 0, most });
        Self { id, options, deliver: Arc::new(deliver), credits, stage: Stage::Open }
    }

    /// Takes no more messages; running handlers continue. Returns whether it was open.
    pub(super) fn stop(&mut self) -> bool {
        let was_open = self.is_open();
        if was_open {
            self.stage = Stage::Stopped;
        }
        was_open
    }

    /// Takes no more messages and renews no more locks. Returns whether it was open.
    pub(super) fn leave(&mut self, now_ms: i64) -> bool {
        let was_open = self.is_open();
        if !matches!(self.stage, Stage::Gone(_)) {
            self.stage = Stage::Gone(now_ms + self.options.lock_ms);
        }
        was_open
    }

    fn renews(&self) -> bool {
        !matches!(self.stage, Stage::Gone(_))
    }

    pub(super) fn is_open(&self) -> bool {
        self.stage == Stage::Open
    }

    /// Whether it takes no more messages, and none of its messages can still be settled.
    pub(super) fn is_finished(&self, now_ms: i64) -> bool {
        match (&self.credits, self.stage) {
            (_, Stage::Open) => false,
            (Credits::Remote(_), _) => true,
            (Credits::Local(_), Stage::Gone(over_ms)) if over_ms <= now_ms => true,
            (Credits::Local(local), _) => local.handling.is_empty(),
        }
    }

    /// The number of messages that it can take now.
    pub(super) fn free(&self) -> usize {
        match &self.credits {
            _ if !self.is_open() => 0,
            Credits::Local(local) => local.free,
            Credits::Remote(remote) => usize::try_from(remote.free()).unwrap_or(usize::MAX),
        }
    }

    /// Assigns it a message, under a number that no other delivery has.
    pub(super) fn hand(&mut self, number: i64, delivery: Delivery, now_ms: i64) -> Dispatched {
        match &mut self.credits {
            Credits::Local(local) => {
                if local.handling.is_empty() {
                    local.renew_at_ms = now_ms + local.renewal_ms;
                }
                local.free = local.free.saturating_sub(1);
                let (message, lock) = (delivery.id, delivery.lock);
                local
                    .handling
                    .insert(number, Handled { message, lock, lost: false, credited: false });
            }
            Credits::Remote(remote) => remote.dispatched += 1,
        }
        Dispatched { number, delivery }
    }

    /// Returns the credit of a delivery, with its message and lock if it was under way here.
    pub(super) fn settle(&mut self, number: i64) -> Option<(i64, i64)> {
        let Credits::Local(local) = &mut self.credits else { return None };
        let Handled { message, lock, lost: _, credited } = local.handling.remove(&number)?;
        local.free += usize::from(!credited);
        Some((message, lock))
    }

    /// Returns the credit of a message that a write is about to acknowledge, so that the same transaction can
    /// claim the next one. JavaScript lets that one wait until the handler has ended, also if the write does
    /// not commit.
    pub(super) fn acknowledging(&mut self, ack: Ack) {
        let Credits::Local(local) = &mut self.credits else { return };
        let is_it = |of: &&mut Handled| of.message == ack.id && of.lock == ack.lock;
        if let Some(handled) = local.handling.values_mut().find(is_it)
            && !handled.credited
        {
            handled.credited = true;
            local.free += 1;
        }
    }

    /// Sets the receiver of lost locks.
    pub(super) fn on_lock_lost(&mut self, on_lost: LockLost) {
        if let Credits::Local(local) = &mut self.credits {
            local.lock_lost = Some(on_lost);
        }
    }

    /// Renews the locks that are lost no more. The numbers of their messages, with the receiver.
    pub(super) fn lost(&mut self, renewals: &[Renewal]) -> Option<(LockLost, Vec<i64>)> {
        let Credits::Local(local) = &mut self.credits else { return None };
        let is_of = |handled: &Handled| {
            renewals.iter().any(|of| of.id == handled.message && of.lock == handled.lock)
        };
        let mut numbers = Vec::new();
        for (number, handled) in &mut local.handling {
            if !handled.lost && is_of(handled) {
                handled.lost = true;
                numbers.push(*number);
            }
        }
        let on_lost = local.lock_lost.clone()?;
        (!numbers.is_empty()).then_some((on_lost, numbers))
    }

    /// Sets the total of granted credits.
    pub(super) fn grant(&mut self, granted: u64) {
        if let Credits::Remote(remote) = &mut self.credits {
            remote.granted = granted.min(remote.dispatched + remote.most).max(remote.granted);
        }
    }

    /// Records that the connection has sent this number of messages. `returned` ones will not be
    /// sent.
    pub(super) fn sent(&mut self, sent: u64, returned: u64) {
        if let Credits::Remote(remote) = &mut self.credits {
            remote.dispatched = remote.dispatched.saturating_sub(returned);
            remote.sent = (remote.sent + sent).min(remote.dispatched);
        }
    }

    /// The time of the next lock renewal.
    pub(super) fn renew_at_ms(&self) -> Option<i64> {
        match &self.credits {
            Credits::Local(local) if self.renews() => {
                let renews = local.handling.values().any(|handled| !handled.lost);
                renews.then_some(local.renew_at_ms)
            }
            Credits::Local(_) | Credits::Remote(_) => None,
        }
    }

    /// After a failed renewal: the next transaction retries it.
    pub(super) fn renew_again(&mut self) {
        if let Credits::Local(local) = &mut self.credits {
            local.renew_at_ms = 0;
        }
    }

    /// The locks that are due for renewal.
    pub(super) fn renewals(&mut self, now_ms: i64) -> Vec<Renewal> {
        let lock_ms = self.options.lock_ms;
        let renews = self.renews();
        match &mut self.credits {
            Credits::Local(local) if renews && local.renew_at_ms <= now_ms => {
                local.renew_at_ms = now_ms + local.renewal_ms;
                let held = local.handling.values().filter(|handled| !handled.lost);
                let renewal = |of: &Handled| Renewal { id: of.message, lock: of.lock, lock_ms };
                held.map(renewal).collect()
            }
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(id: i64) -> Delivery {
        Delivery { id, lock: 1, attempts: 1, attempts_left: 0, enqueued_ms: 0, value: Vec::new() }
    }

    fn remote(granted: u64, most: u64) -> Listener {
        let options = ConsumeOptions { queue: "mail".into(), lock_ms: 100 };
        Listener::remote(1, options, Box::new(|hand| hand), granted, most)
    }

    #[test]
    fn credits_of_a_remote_consumer_are_counted_from_the_beginning() {
        let mut listener = remote(2, 3);
        assert_eq!(listener.free(), 2);
        for id in 0..2 {
            listener.hand(id, delivery(id), 0);
        }
        assert_eq!(listener.free(), 0);
        assert_eq!(listener.settle(0), None, "a remote consumer settles by itself");
        // One message was settled. The total is reported twice, and an older one arrives late.
        for granted in [3, 3, 1] {
            listener.grant(granted);
            assert_eq!(listener.free(), 1, "{granted}");
        }
        listener.grant(u64::MAX);
        assert_eq!(listener.free(), 3, "never more credits than it requested");
        assert!(listener.renewals(i64::MAX).is_empty() && listener.renew_at_ms().is_none());
        listener.leave(0);
        assert!(listener.is_finished(0) && listener.free() == 0);
    }

    /// The messages of a terminated worker are never settled.
    #[test]
    fn a_listener_without_owner_is_finished_when_its_locks_end() {
        let options = ConsumeOptions { queue: "mail".into(), lock_ms: 100 };
        let mut listener = Listener::local(1, options, Box::new(|hand| hand), 2, 30);
        listener.hand(1, delivery(1), 0);
        listener.stop();
        assert!(!listener.is_finished(1000), "its locks go on");
        listener.leave(1000);
        listener.leave(1050);
        assert!(listener.renewals(i64::MAX).is_empty() && !listener.is_finished(1099));
        assert!(listener.is_finished(1100));
    }

    #[test]
    fn an_acknowledging_write_returns_the_credit_once() {
        let options = ConsumeOptions { queue: "mail".into(), lock_ms: 100 };
        let mut listener = Listener::local(1, options, Box::new(|hand| hand), 1, 30);
        listener.hand(1, delivery(5), 0);
        listener.acknowledging(Ack { id: 5, lock: 9 });
        assert_eq!(listener.free(), 0, "another delivery");
        for _repeated in 0..2 {
            listener.acknowledging(Ack { id: 5, lock: 1 });
            assert_eq!(listener.free(), 1);
        }
        listener.hand(2, delivery(6), 0);
        assert_eq!(listener.renewals(50).len(), 2, "its lock may be needed again");
        assert_eq!(listener.settle(1), Some((5, 1)));
        assert_eq!(listener.free(), 0);
        listener.settle(2);
        assert_eq!(listener.free(), 1);
    }

    #[test]
    fn a_lost_lock_is_reported_once_and_renewed_no_more() {
        let options = ConsumeOptions { queue: "mail".into(), lock_ms: 100 };
        let mut listener = Listener::local(1, options, Box::new(|hand| hand), 2, 30);
        listener.hand(1, delivery(1), 0);
        listener.hand(2, delivery(2), 0);
        let renewals = listener.renewals(50);
        assert_eq!(renewals.len(), 2);
        let lost: Vec<_> = renewals.into_iter().filter(|renewal| renewal.id == 2).collect();
        listener.on_lock_lost(std::sync::Arc::new(drop));
        let numbers = |listener: &mut Listener| listener.lost(&lost).map(|(_, numbers)| numbers);
        assert_eq!(numbers(&mut listener), Some(vec![2]));
        assert_eq!(numbers(&mut listener), None);
        let renewals = listener.renewals(100);
        assert_eq!(renewals.iter().map(|of| of.id).collect::<Vec<_>>(), [1]);
        listener.settle(1);
        assert_eq!((listener.renew_at_ms(), listener.free()), (None, 1));
        assert_eq!(listener.settle(2), Some((2, 1)), "its credit comes back with its handler");
        assert_eq!(listener.free(), 2);
    }

    #[test]
    fn a_connection_that_takes_nothing_gets_few_messages() {
        let most = REMOTE_AHEAD_MESSAGES * 3;
        let mut listener = remote(most, most);
        let dispatch = |listener: &mut Listener| {
            let free = listener.free();
            (0..free as i64).for_each(|id| drop(listener.hand(id, delivery(id), 0)));
            free as u64
        };
        assert_eq!(dispatch(&mut listener), REMOTE_AHEAD_MESSAGES);
        assert_eq!(dispatch(&mut listener), 0);
        listener.sent(4, 1);
        assert_eq!(dispatch(&mut listener), 5, "four were sent, one was put back");
    }
}
