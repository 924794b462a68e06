//! What a process knows of a database that other processes use too, on a server.

/// The part of a process in a shared database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sharing {
    /// Commits that the process has not looked at yet; `None` if it does not look for commits of others.
    pub lag_commits: Option<u64>,
    /// Its figures as the leader; `None` before it begins to lead.
    pub leader: Option<LeaderFigures>,
}

/// The counts and the present state of a process as the leader of a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeaderFigures {
    /// Whether it leads now.
    pub leading: bool,
    /// The epoch of its last lead.
    pub epoch: u64,
    /// Batches that it may have in flight at present.
    pub depth: u64,
    /// Batches in flight.
    pub in_flight: u64,
    /// Writes without an answer.
    pub waiting_writes: u64,
    /// Bytes of these.
    pub waiting_bytes: u64,
    /// Its counts so far.
    pub counts: LeaderCounts,
}

/// The counts of a process as the leader of a database, over all its leads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeaderCounts {
    /// Epochs that it has begun.
    pub epochs: u64,
    /// Batches that it has sent; one that is sent again counts again.
    pub batches_begun: u64,
    /// Writes in these.
    pub writes: u64,
    /// Batches that are durable, or that the database has confirmed.
    pub batches_durable: u64,
    /// Decisions that were discarded, because a batch before them has failed or its outcome was open.
    pub decisions_discarded: u64,
    /// Writes that were refused, because too many waited.
    pub writes_refused: u64,
}
