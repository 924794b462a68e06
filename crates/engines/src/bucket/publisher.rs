//! Puts the commits of the local file into the log before the file has them.
//!
//! Invariant: a commit is published exactly if it is in the chain. If that cannot be found out, its outcome is
//! unknown to its caller, and the process reads the log before it leads again.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::cache::encode;
use super::lead::{Lead, Role};
use super::objects::Object;
use crate::objects::Created;
use crate::sqlite::publisher::Publisher;
use openkv_core::chain::{Position, Step, decode};
use openkv_core::model::{
    BUCKET_COMMIT_MS_MAX, BUCKET_OBJECT_BYTES_MIN, BUCKET_RETRY_MS, Error, Kind, LogSegment,
    Result, Segment,
};

/// The only batch that this driver has in flight.
const TICKET: u64 = 0;

pub(super) struct LogPublisher {
    lead: Arc<Lead>,
    database: [u8; 16],
}

impl LogPublisher {
    pub(super) fn new(lead: Arc<Lead>, database: [u8; 16]) -> Self {
        Self { lead, database }
    }

    /// Creates the object of the log until an object with its number is known.
    ///
    /// # Errors
    /// `Denied` if the store has refused the first request, so that nothing is created; otherwise `OutcomeUnknown`.
    fn create(&self, number: u64, bytes: &[u8]) -> Result<Object> {
        let objects = &self.lead.objects;
        let deadline = Instant::now() + Duration::from_millis(BUCKET_COMMIT_MS_MAX);
        // A request may have created it.
        let mut is_open = false;
        loop {
            let found = match objects.create(number, bytes) {
                Ok(Created::New) => {
                    let own = decode(bytes).map_err(|error| Error::internal(error.to_string()))?;
                    let (entry, _, digest) = own;
                    let bytes = bytes.len() as u64;
                    return Ok(Object { entry, digest, content: Vec::new(), bytes });
                }
                Ok(Created::Exists) => {
                    is_open = true;
                    objects.fill(number, bytes)
                }
                Err(error) => Err(error),
            };
            match found {
                Ok(object) => return Ok(object),
                // The store would answer the same again.
                Err(error) if error.kind() == Kind::Denied => {
                    return Err(if is_open { unknown(&error) } else { error });
                }
                Err(error) if Instant::now() >= deadline => return Err(unknown(&error)),
                Err(error) => tracing::warn!(%error, "creating an object of the log"),
            }
            is_open = true;
            std::thread::sleep(Duration::from_millis(BUCKET_RETRY_MS));
        }
    }

    /// The position after the batch.
    fn put(&self, commit: Segment) -> Result<Position> {
        let lead = &self.lead;
        let versions = (commit.first - 1, commit.last);
        let (first, mut steps): (_, VecDeque<_>) = {
            let mut state = lead.state.lock();
            let Role::Leads(leading) = &mut state.role else { return Err(lead.refusal(&state)) };
            if leading.window.position().version != versions.0 {
                // A commit has not reached the file: it is read from the log.
                lead.follows_again(&mut state);
                return Err(Error::unavailable(
                    "the local copy is behind the log, and reads it now; try again",
                ));
            }
            state.publishing = true;
            let Role::Leads(leading) = &mut state.role else { return Err(Error::closed()) };
            let first = leading.window.position().next;
            (first, leading.window.submit(TICKET, versions, content_of(&commit)).into())
        };
        let mut weight = 0;
        let outcome = loop {
            match steps.pop_front() {
                Some(Step::Create { number: at, bytes }) => match self.create(at, &bytes) {
                    Ok(object) => {
                        weight += object.bytes.max(BUCKET_OBJECT_BYTES_MIN);
                        if let Role::Leads(leading) = &mut lead.state.lock().role {
                            steps.extend(leading.window.filled(object.entry, object.digest));
                        }
                    }
                    Err(error) => break Err(error),
                },
                Some(Step::Answer(_)) => break Ok(()),
                Some(Step::Lost(_)) => break self.lost(first),
                None => break Err(Error::internal("a batch in flight without a next step")),
            }
        };
        self.end(first, weight, outcome)
    }

    /// The error of a batch that is behind the fence of another leader.
    fn lost(&self, first: u64) -> Result<()> {
        self.is_whole_from(first)?;
        let what = "another process has taken the lead, and nothing of this commit has happened: write there";
        Err(Error::unavailable(what))
    }

    /// Passes if no object from this number on was deleted: no snapshot contains it. Otherwise late writes may be at
    /// such numbers, and what this process has found there says nothing.
    fn is_whole_from(&self, number: u64) -> Result<()> {
        match self.lead.objects.snapshots() {
            Ok(marks) if marks.last().is_none_or(|mark| mark.number < number) => Ok(()),
            Ok(_) => Err(unknown(&Error::unavailable("another process leads by now"))),
            Err(error) => Err(unknown(&error)),
        }
    }

    /// Answers while the lease lasts. Without it, a number may have been free because its object was deleted. `first`:
    /// the end of the log before the batch.
    fn end(&self, first: u64, weight: u64, mut outcome: Result<()>) -> Result<Position> {
        let lead = &self.lead;
        let deadline = Instant::now() + Duration::from_millis(BUCKET_COMMIT_MS_MAX);
        let mut state = lead.state.lock();
        state.weight += weight;
        while outcome.is_ok() {
            let Role::Leads(leading) = &state.role else { break };
            if !leading.deposed && leading.tenure.may_answer(lead.now_ms()) {
                break;
            }
            let late = Instant::now() >= deadline;
            if leading.deposed || late {
                drop(state);
                outcome = self.is_whole_from(first);
                state = lead.state.lock();
                break;
            }
            lead.want(&mut state);
            lead.changed.wait_until(&mut state, deadline);
        }
        state.publishing = false;
        let position = match &state.role {
            Role::Leads(leading) => leading.window.position(),
            Role::Reads(_) | Role::Rests(_) => Position::default(),
        };
        let is_over = !matches!(&state.role, Role::Leads(leading) if !leading.deposed);
        if outcome.is_err() || is_over {
            lead.follows_again(&mut state);
        }
        lead.changed.notify_all();
        outcome.map(|()| position)
    }
}

impl Publisher for LogPublisher {
    fn publish(&mut self, commit: Segment) -> Result<Vec<u8>> {
        self.put(commit).map(|position| encode(&self.database, &position))
    }

    fn behind(&mut self) {
        self.lead.follows_again(&mut self.lead.state.lock());
    }
}

fn unknown(error: &Error) -> Error {
    let what = "it is not known whether the commit has reached the object store";
    Error::new(Kind::OutcomeUnknown, format!("{what}: {}", error.message()))
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
