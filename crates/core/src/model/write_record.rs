//! What a leader remembers of a write with an id.

use super::{Attempt, Decision, Kind, WriteId};

/// A write with an id that is never decided again, and what its caller gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteRecord {
    /// Its id.
    pub id: WriteId,
    /// Its outcome.
    pub decision: Decision,
}

impl WriteRecord {
    /// The records of those writes that have an id and have committed, and of refused repetitions.
    pub fn of<'a>(
        attempts: impl IntoIterator<Item = Option<Attempt>>,
        decisions: impl IntoIterator<Item = &'a Decision>,
    ) -> Vec<Self> {
        let record = |(attempt, decision): (Option<Attempt>, &Decision)| {
            let Attempt { id, repeated } = attempt?;
            let is_final = match decision {
                Decision::Committed(_) | Decision::CommittedWith(..) => true,
                // It was not decided: the disk of the leader is full.
                Decision::Rejected(error) if error.kind() == Kind::Unavailable => false,
                Decision::CheckFailed(_) | Decision::NotUnique(_) | Decision::Rejected(_) => {
                    repeated
                }
                Decision::Deleted(_) => false,
            };
            is_final.then(|| Self { id, decision: decision.clone() })
        };
        attempts.into_iter().zip(decisions).filter_map(record).collect()
    }
}
