//! The input and the result of one transaction.

use std::time::Duration;

use crate::model::{AtomicWrite, Claim, Decision, Delivery, Enqueued, Key, Renewal, Settlement};

/// The input of one transaction.
#[derive(Clone, Debug, Default)]
pub struct Work {
    /// Writes, decided in this order.
    pub writes: Vec<AtomicWrite>,
    /// Ends of deliveries.
    pub settlements: Vec<Settlement>,
    /// Locks to extend.
    pub renewals: Vec<Renewal>,
    /// Messages to claim.
    pub claims: Vec<Claim>,
    /// Maximum number of expired entries to delete.
    pub sweep_max: usize,
    /// Maximum number of dead letters to purge.
    pub purge_max: usize,
    /// Whether schedules that are due make their messages.
    pub fires: bool,
    /// Whether the answer waits for the sync. An engine sets it if a lock of the claimed queues has
    /// expired, because the value of a dead message is then a commit for which no caller chose a
    /// durability.
    pub durable: bool,
    /// Randomness, for writes with placeholders.
    pub seed: u64,
}

impl Work {
    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
            && self.settlements.is_empty()
            && self.renewals.is_empty()
            && self.claims.is_empty()
            && self.sweep_max == 0
            && self.purge_max == 0
            && !self.fires
    }
}

/// Names a batch under way; its writer chooses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// The result of a transaction.
#[derive(Debug, Default)]
pub struct Report {
    /// One decision for each write, in order.
    pub decisions: Vec<Decision>,
    /// For each settlement, in order: whether its lock still held the message.
    pub settled: Vec<bool>,
    /// For each renewal, in order: whether its lock still held the message.
    pub renewed: Vec<bool>,
    /// The messages of each claim, in order.
    pub deliveries: Vec<Vec<Delivery>>,
    /// The last commit before it, and the last one in it.
    pub versions: (u64, u64),
    /// Keys whose entry changed.
    pub touched: Vec<Key>,
    /// Earliest expiry among the entries written here, in ms since the epoch.
    pub expiry_ms: Option<i64>,
    /// Whether a message became due earlier than before: enqueued or put back here.
    pub queued: bool,
    /// Whether a settlement put back messages of named queues. That counts as a commit, so that
    /// other processes notice it.
    pub put_back: bool,
    /// The number of deliveries that failed because their lock had expired.
    pub lost: usize,
    /// The number of expired entries that were deleted.
    pub swept: usize,
    /// Whether the sweep stopped at its maximum.
    pub sweep_more: bool,
    /// Its duration, without the wait for other processes and for the sync.
    pub worked: Duration,
    /// The number of dead letters that were purged.
    pub purged: usize,
    /// Whether a message died here whose retention ends later.
    pub purge_ahead: bool,
    /// The number of schedules that were due and are moved to their next due time.
    pub fired: usize,
    /// Whether schedules were set, removed or moved.
    pub scheduled: bool,
    /// The number of cache hits and misses.
    pub cache_looks: (u64, u64),
}

impl Report {
    /// Adds the result for the next message of a write, counted from 0.
    pub(super) fn enqueued(&mut self, write: usize, enqueued: Enqueued) {
        if let Some(decision) = self.decisions.get_mut(write) {
            decision.enqueued(enqueued);
        }
    }
}
