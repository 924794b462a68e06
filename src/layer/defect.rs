//! Defects that tests plant, to show that the simulation finds them.

/// A defect of the layer. Only the feature `defects` can plant one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// A batch without a commit is answered as soon as it is decided.
    EarlyRefusals,
    /// A batch without a commit is not confirmed by the database.
    UnconfirmedRefusals,
    /// A batch is answered when it is sent.
    EarlyCommits,
    /// Effects leave the cache once they are durable, although a read under way may not see them.
    EarlyEviction,
    /// Effects of batches that have not happened stay in the cache.
    KeptEffects,
    /// A read from before a lost connection is used after it.
    StaleReads,
    /// After a lost connection every batch that was sent counts as durable.
    TrustingResolution,
    /// The clock of a new lead is ignored.
    OwnClock,
    /// A new lead does not know the ids of writes that have happened before it.
    ForgottenIds,
    /// The ids of writes that have not happened are known after a lost connection.
    KeptIds,
    /// The refusal of a repetition is not stored.
    ForgottenRefusals,
}

impl Defect {
    /// Every defect.
    pub const ALL: [Self; 11] = [
        Self::EarlyRefusals,
        Self::UnconfirmedRefusals,
        Self::EarlyCommits,
        Self::EarlyEviction,
        Self::KeptEffects,
        Self::StaleReads,
        Self::TrustingResolution,
        Self::OwnClock,
        Self::ForgottenIds,
        Self::KeptIds,
        Self::ForgottenRefusals,
    ];
}
