//! Puts a commit that a transaction of the local file decides into the log before the file has it. Nothing else is in
//! flight.
//!
//! Invariant: a commit is published exactly if it is in the chain. If that cannot be found out, its outcome is
//! unknown to its caller, and the process reads the log before it leads again.

use std::collections::VecDeque;
use std::sync::Arc;

use super::cache::encode;
use super::lead::{Lead, Role};
use super::uploads::create;
use crate::sqlite::publisher::Publisher;
use openkv_core::chain::{Position, Step};
use openkv_core::model::{BUCKET_OBJECT_BYTES_MIN, Error, LogSegment, Result, Segment};

/// The batch of a transaction of the file, which is alone in flight.
const TICKET: u64 = 0;

pub(super) struct LogPublisher {
    lead: Arc<Lead>,
    database: [u8; 16],
}

impl LogPublisher {
    pub(super) fn new(lead: Arc<Lead>, database: [u8; 16]) -> Self {
        Self { lead, database }
    }

    /// The position after the batch.
    fn put(&self, commit: &Segment) -> Result<Position> {
        let lead = &self.lead;
        let versions = (commit.first - 1, commit.last);
        let (first, mut steps): (_, VecDeque<_>) = {
            let mut state = lead.state.lock();
            let Role::Leads(leading) = &mut state.role else { return Err(lead.refusal(&state)) };
            if leading.window.position().version != versions.0 {
                return Err(lead.behind(&mut state));
            }
            state.publishing = true;
            let Role::Leads(leading) = &mut state.role else { return Err(Error::closed()) };
            let first = leading.window.position().next;
            (first, leading.window.submit(TICKET, versions, content_of(commit)).into())
        };
        let mut weight = 0;
        let outcome = loop {
            match steps.pop_front() {
                Some(Step::Create { number: at, bytes }) => match create(&lead.objects, at, &bytes)
                {
                    Ok(object) => {
                        weight += object.bytes.max(BUCKET_OBJECT_BYTES_MIN);
                        if let Role::Leads(leading) = &mut lead.state.lock().role {
                            steps.extend(leading.window.filled(object.entry, object.digest));
                        }
                    }
                    Err(error) => break Err(error),
                },
                Some(Step::Answer(_)) => break lead.may_answer(first),
                Some(Step::Lost(_)) => break Err(lead.lost(first)),
                None => break Err(Error::internal("a batch in flight without a next step")),
            }
        };
        let mut state = lead.state.lock();
        state.weight += weight;
        let position = match &state.role {
            Role::Leads(leading) => leading.window.position(),
            Role::Reads(_) | Role::Rests(_) => Position::default(),
        };
        drop(state);
        lead.published(outcome.is_err());
        outcome.map(|()| position)
    }
}

impl Publisher for LogPublisher {
    fn publish(&mut self, mut commit: Segment) -> Result<Vec<u8>> {
        commit.at_ms = self.lead.at_ms(commit.at_ms);
        self.put(&commit).map(|position| encode(&self.database, &position, commit.at_ms))
    }

    fn behind(&mut self) {
        self.lead.follows_again(&mut self.lead.state.lock());
    }
}

/// The content of a batch: its time, and its changes as the replication log has them.
pub(super) fn content_of(commit: &Segment) -> Vec<u8> {
    let mut content = commit.at_ms.to_le_bytes().to_vec();
    content.extend_from_slice(&commit.changes);
    content
}

/// The segment of a batch.
pub(super) fn segment_of(versions: (u64, u64), content: &[u8]) -> Result<LogSegment<'_>> {
    let (at_ms, changes) = content
        .split_first_chunk()
        .ok_or_else(|| Error::corrupt("an object of the log has a batch without content"))?;
    let (first, last) = (versions.0 + 1, versions.1);
    Ok(LogSegment { first, last, at_ms: i64::from_le_bytes(*at_ms), changes })
}
