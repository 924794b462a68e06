//! The batches of a leader that are not in the chain yet.
//!
//! Each batch has a slot, the number at which its object is created. A slot that an object of another process
//! has taken is void for the batch, and for all batches behind it, whose versions do not lead on any more.
//! They move to new slots, in order. The slots that they leave still have to be filled, because the chain
//! ends at the first number without an object.

use std::collections::VecDeque;

use super::defect::{ChainDefect, Planted};
use super::object::{Digest, Entry, EntryKind, encode};
use super::position::{Position, Standing};

/// What the driver of a leader does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Create this object, as often as it takes until an object with this number exists; then tell
    /// [`Window::filled`] which one it is.
    Create {
        /// Its number.
        number: u64,
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// The batch is in the chain.
    Answer(u64),
    /// Another leader has begun an epoch. These batches, which have no answer, are not in the chain and
    /// never will be.
    Lost(Vec<u64>),
}

/// The batches of a leader, and the end of the chain as far as it is known.
pub struct Window {
    position: Position,
    slots: VecDeque<Slot>,
    is_lost: bool,
    planted: Planted,
}

struct Slot {
    entry: Entry,
    digest: Digest,
    /// `None` once the batch has moved to another slot.
    batch: Option<Batch>,
    /// The object with this number.
    found: Option<(Entry, Digest)>,
}

struct Batch {
    ticket: u64,
    versions: (u64, u64),
    content: Vec<u8>,
}

impl Window {
    /// Of a leader whose fence is the last object before `position`.
    #[must_use]
    pub fn new(position: Position) -> Self {
        let (slots, planted) = (VecDeque::new(), Planted::default());
        Self { position, slots, is_lost: false, planted }
    }

    /// As [`Window::new`], with a defect.
    #[cfg(feature = "defects")]
    #[must_use]
    pub fn with_defect(position: Position, defect: Option<ChainDefect>) -> Self {
        Self { planted: Planted::new(defect), ..Self::new(position) }
    }

    /// The end of the chain, as far as it is known: everything before it is answered.
    #[must_use]
    pub fn position(&self) -> Position {
        self.position
    }

    /// Batches without an answer.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.slots.iter().filter(|slot| slot.batch.is_some()).count()
    }

    /// Adds a batch behind all others. `versions`: before and after it.
    pub fn submit(&mut self, ticket: u64, versions: (u64, u64), content: Vec<u8>) -> Vec<Step> {
        let mut steps = Vec::new();
        match self.is_lost {
            true => steps.push(Step::Lost(vec![ticket])),
            false => self.place(Batch { ticket, versions, content }, &mut steps),
        }
        steps
    }

    fn place(&mut self, batch: Batch, steps: &mut Vec<Step>) {
        let last = self.slots.back();
        let number = last.map_or(self.position.next, |slot| slot.entry.number + 1);
        let previous = last.map_or(self.position.digest, |slot| slot.digest);
        let (before, after) = batch.versions;
        let kind = EntryKind::Batch { before, after };
        let entry = Entry { number, epoch: self.position.epoch, previous, kind };
        let (bytes, digest) = encode(&entry, &batch.content);
        if self.planted.is(ChainDefect::AnswersWhenSent) {
            steps.push(Step::Answer(batch.ticket));
        }
        self.slots.push_back(Slot { entry, digest, batch: Some(batch), found: None });
        steps.push(Step::Create { number, bytes });
    }

    /// The object with this number is known: the own one, or that of another process.
    pub fn filled(&mut self, found: Entry, digest: Digest) -> Vec<Step> {
        let mut steps = Vec::new();
        let Some(at) = self.slots.iter().position(|slot| slot.entry.number == found.number) else {
            return steps;
        };
        let Some(slot) = self.slots.get_mut(at) else { return steps };
        slot.found = Some((found, digest));
        let is_own = slot.digest == digest;
        if is_own && self.planted.is(ChainDefect::AnswersOutOfOrder) {
            steps.extend(slot.batch.take().map(|batch| Step::Answer(batch.ticket)));
        }
        let ends_lead = found.kind == EntryKind::Fence && found.epoch > self.position.epoch;
        // What is at a number that its batch has left makes no difference to the batches behind it.
        let has_batch = slot.batch.is_some();
        if !is_own && has_batch && !ends_lead && !self.planted.is(ChainDefect::AcknowledgesVoid) {
            let moving: Vec<_> =
                self.slots.range_mut(at..).filter_map(|slot| slot.batch.take()).collect();
            self.move_behind(moving, at, &mut steps);
        }
        self.advance(&mut steps);
        steps
    }

    /// Gives batches new slots. The first one follows what is valid before the slot `at`.
    fn move_behind(&mut self, moving: Vec<Batch>, at: usize, steps: &mut Vec<Step>) {
        let valid = self.slots.range(..at).rev().find(|slot| slot.batch.is_some());
        let mut previous = valid.map_or(self.position.digest, |slot| slot.digest);
        let epoch = self.position.epoch;
        for batch in moving {
            let next = self.slots.back().map_or(self.position.next, |slot| slot.entry.number + 1);
            let (before, after) = batch.versions;
            let kind = EntryKind::Batch { before, after };
            let entry = Entry { number: next, epoch, previous, kind };
            let (bytes, digest) = encode(&entry, &batch.content);
            previous = digest;
            self.slots.push_back(Slot { entry, digest, batch: Some(batch), found: None });
            steps.push(Step::Create { number: next, bytes });
        }
    }

    /// Judges the objects at the front, as a reader does.
    fn advance(&mut self, steps: &mut Vec<Step>) {
        while let Some((found, digest)) = self.slots.front().and_then(|slot| slot.found) {
            let Some(slot) = self.slots.pop_front() else { return };
            let standing = self.position.take(&found, digest);
            match (standing, slot.batch) {
                (Standing::Batch, Some(batch)) => steps.push(Step::Answer(batch.ticket)),
                (Standing::Void, Some(batch))
                    if self.planted.is(ChainDefect::AcknowledgesVoid)
                        || self.planted.is(ChainDefect::IgnoresFence) =>
                {
                    steps.push(Step::Answer(batch.ticket));
                }
                (Standing::Fence, _) if self.planted.is(ChainDefect::IgnoresFence) => {}
                (Standing::Void, None) => {}
                (Standing::Batch, None) if self.planted.is(ChainDefect::AnswersOutOfOrder) => {}
                (Standing::Fence | Standing::Batch, batch) => {
                    self.is_lost = true;
                    let left = self.slots.drain(..).filter_map(|slot| slot.batch);
                    let tickets = batch.into_iter().chain(left).map(|batch| batch.ticket);
                    return steps.push(Step::Lost(tickets.collect()));
                }
                // Not reached without a defect: a batch has left the slot that another object took.
                (Standing::Void, Some(batch)) => self.place(batch, steps),
            }
        }
    }
}
