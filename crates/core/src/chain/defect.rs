//! Defects that tests plant, to show that the simulation finds them, and the rules that they break.

/// A defect of a leader or a reader of a chain. Only the feature `defects` can plant one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainDefect {
    /// A batch is answered when its object is sent.
    AnswersWhenSent,
    /// A batch is answered when its own object exists, whatever is before it.
    AnswersOutOfOrder,
    /// A batch is answered although another object has its number.
    AcknowledgesVoid,
    /// A leader goes on behind the fence of another one.
    IgnoresFence,
    /// A lease counts from the end of a renewal.
    LeaseFromEnd,
    /// Commits and reads are answered after half a lease.
    AnswersWithoutLease,
    /// The lead is taken before a whole lease was silent.
    ClaimsEarly,
    /// A reader takes a deleted object for the end of the log.
    TrustsAbsence,
    /// Objects are deleted as soon as a snapshot has them.
    DeletesEarly,
    /// Objects are deleted that no snapshot has.
    DeletesUncontained,
    /// A process goes on from a cache that is no beginning of the chain.
    KeepsDivergedCache,
    /// Effects are visible before their object exists.
    AppliesEarly,
    /// A reader goes on behind a number without an object.
    AppliesBehindGap,
    /// A batch behind an object that may still come is refused.
    RefusesOpen,
    /// A repeated write with an id commits again under another leader.
    ForgetsIds,
    /// Objects are merged that were sent, and may not be in the log.
    MergesUnconfirmed,
}

impl ChainDefect {
    /// Every defect.
    pub const ALL: [Self; 16] = [
        Self::AnswersWhenSent,
        Self::AnswersOutOfOrder,
        Self::AcknowledgesVoid,
        Self::IgnoresFence,
        Self::LeaseFromEnd,
        Self::AnswersWithoutLease,
        Self::ClaimsEarly,
        Self::TrustsAbsence,
        Self::DeletesEarly,
        Self::DeletesUncontained,
        Self::KeepsDivergedCache,
        Self::AppliesEarly,
        Self::AppliesBehindGap,
        Self::RefusesOpen,
        Self::ForgetsIds,
        Self::MergesUnconfirmed,
    ];
}

/// The defect that is planted, if any.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Planted(Option<ChainDefect>);

impl Planted {
    #[cfg(feature = "defects")]
    pub(super) fn new(defect: Option<ChainDefect>) -> Self {
        Self(defect)
    }

    pub(super) fn is(self, defect: ChainDefect) -> bool {
        cfg!(feature = "defects") && self.0 == Some(defect)
    }
}
