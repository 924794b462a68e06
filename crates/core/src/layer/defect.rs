//! Defects that tests plant, to show that the simulation finds them, and the rules that they break.

use crate::model::WriteRecord;

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

/// The defect that a layer has, if any.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Planted(Option<Defect>);

/// The fate of a batch without a commit once it is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Uncommitted {
    /// The database confirms that its decision was made on the newest state.
    Confirmed,
    /// It has its answer in its turn.
    Answered,
    /// It has its answer before those in front of it.
    AnsweredEarly,
}

impl Planted {
    #[cfg(feature = "defects")]
    pub(super) fn new(defect: Option<Defect>) -> Self {
        Self(defect)
    }

    pub(super) fn is(self, defect: Defect) -> bool {
        cfg!(feature = "defects") && self.0 == Some(defect)
    }

    pub(super) fn uncommitted(self) -> Uncommitted {
        match self.0.filter(|defect| self.is(*defect)) {
            Some(Defect::EarlyRefusals) => Uncommitted::AnsweredEarly,
            Some(Defect::UnconfirmedRefusals) => Uncommitted::Answered,
            Some(_) | None => Uncommitted::Confirmed,
        }
    }

    /// Those of the records of a batch that are stored with it: all of them.
    pub(super) fn stored(self, mut records: Vec<WriteRecord>) -> Vec<WriteRecord> {
        if self.is(Defect::ForgottenRefusals) {
            records.retain(|record| !record.decision.is_refused());
        }
        records
    }
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
