//! What a leader remembers of a write with an id.

use super::{Decision, WriteId};

/// A write with an id that has committed, and what its caller gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteRecord {
    /// Its id.
    pub id: WriteId,
    /// Its outcome.
    pub decision: Decision,
}

impl WriteRecord {
    /// The records of those writes that have an id and have committed.
    pub fn of<'a>(
        ids: impl IntoIterator<Item = Option<WriteId>>,
        decisions: impl IntoIterator<Item = &'a Decision>,
    ) -> Vec<Self> {
        let both = ids.into_iter().zip(decisions);
        let record = |(id, decision): (Option<WriteId>, &Decision)| match decision {
            Decision::Committed(_) | Decision::CommittedWith(..) => {
                id.map(|id| Self { id, decision: decision.clone() })
            }
            Decision::Deleted(_) | Decision::CheckFailed(_) | Decision::Rejected(_) => None,
        };
        both.filter_map(record).collect()
    }
}
