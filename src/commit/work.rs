//! What goes into one transaction, and what comes out of it.

use std::time::Duration;

use crate::model::{AtomicWrite, Claim, Decision, Delivery, Enqueued, Key, Renewal, Settlement};

/// Everything that goes into one transaction.
#[derive(Debug, Default)]
pub struct Work {
    /// Writes, decided in this order.
    pub writes: Vec<AtomicWrite>,
    /// Ends of deliveries.
    pub settlements: Vec<Settlement>,
    /// Locks to extend.
    pub renewals: Vec<Renewal>,
    /// Messages to hand out.
    pub claims: Vec<Claim>,
    /// Most expired entries to delete.
    pub sweep_max: usize,
    /// Most dead messages to delete whose retention is over.
    pub purge_max: usize,
    /// Whether the answer waits for the disk. An engine sets it if a lock of the claimed queues has
    /// expired, because the value of a dead message is then a commit for which no caller chose a
    /// durability.
    pub durable: bool,
    /// Randomness, for writes with placeholders.
    pub seed: u64,
}

impl Work {
    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
            && self.settlements.is_empty()
            && self.renewals.is_empty()
            && self.claims.is_empty()
            && self.sweep_max == 0
            && self.purge_max == 0
    }
}

/// What a transaction did.
#[derive(Debug, Default)]
pub struct Report {
    /// One decision a write, in order.
    pub decisions: Vec<Decision>,
    /// For each settlement, in order: whether its lock still held the message.
    pub settled: Vec<bool>,
    /// For each renewal, in order: whether its lock still held the message.
    pub renewed: Vec<bool>,
    /// Messages handed out for each claim, in order.
    pub deliveries: Vec<Vec<Delivery>>,
    /// The last commit before it, and its own last one.
    pub versions: (u64, u64),
    /// Keys whose entry changed.
    pub touched: Vec<Key>,
    /// Earliest expiry among the entries written here, in ms since the epoch.
    pub expiry_ms: Option<i64>,
    /// Whether messages became due earlier than before: enqueued here or put back.
    pub queued: bool,
    /// Whether a settlement put messages of named queues back: that counts as a commit, so that
    /// other processes look.
    pub put_back: bool,
    /// How many deliveries failed because their lock had expired.
    pub lost: usize,
    /// How many expired entries were deleted.
    pub swept: usize,
    /// Whether the sweep stopped at its bound.
    pub sweep_more: bool,
    /// How long it took, without the wait for its turn and for the disk.
    pub worked: Duration,
    /// How many dead messages were deleted whose retention was over.
    pub purged: usize,
    /// Whether a message died here that will have to be purged.
    pub purge_ahead: bool,
    /// How many pages were found in a cache, and how many were not.
    pub cache_looks: (u64, u64),
}

impl Report {
    /// Notes what became of the next message of a write, counted from 0.
    pub(super) fn enqueued(&mut self, write: usize, enqueued: Enqueued) {
        if let Some(decision) = self.decisions.get_mut(write) {
            decision.enqueued(enqueued);
        }
    }
}
