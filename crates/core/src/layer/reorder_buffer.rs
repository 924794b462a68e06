//! The sequence numbers of operations, and the batches of a leader in their order, each with how far it has
//! come. Answers leave at the front only, so none overtakes another.

use std::collections::VecDeque;
use std::ops::Range;

use super::evaluator::FetchedRows;
use super::events::{Commit, FetchId};
use super::index_entries::Points;
use super::write_ids::Screened;
use crate::commit::{IndexPoint, Report, Ticket, Work, can_speculate};
use crate::model::{AtomicWrite, Attempt, Error, Key};

/// Counts operations. The numbers are contiguous within an epoch.
#[derive(Debug, Default)]
pub(super) struct Sequencer {
    next: u64,
}

impl Sequencer {
    /// The numbers of the next `count` operations.
    pub(super) fn assign(&mut self, count: usize) -> Range<u64> {
        let first = self.next;
        self.next += count as u64;
        first..self.next
    }

    /// A new epoch counts from zero.
    pub(super) fn restart(&mut self) {
        self.next = 0;
    }
}

/// How far a batch has come.
pub(super) enum Stage {
    /// Its reads have not begun.
    Sequenced,
    /// It waits for its reads, or for the decisions of those before it.
    Reading(Reads),
    /// It may be sent.
    Decided(Box<Commit>, Report),
    /// It was sent. It takes the database from one version to another, or only confirms one.
    InFlight {
        /// The version after it; `None` if it only confirms the version before it.
        next: Option<u64>,
        report: Report,
    },
    /// It runs in a transaction of its own: the attempts of its writes, and those that are not decided.
    Alone { attempts: Vec<Option<Attempt>>, screened: Option<Screened> },
    /// It waits for those before it to be answered.
    Ended(Result<Report, Error>),
}

/// What a read of a batch has to return.
pub(super) enum ReadRequest {
    Keys(Vec<Key>),
    Points(Vec<IndexPoint>),
}

/// The entries that were read for a batch.
#[derive(Default)]
pub(super) struct Reads {
    /// Each read sees the commits up to this one.
    pub(super) floor: u64,
    pub(super) under_way: Vec<(FetchId, ReadRequest)>,
    pub(super) fetched: FetchedRows,
    pub(super) points: Points,
}

/// A batch.
pub(super) struct Slot {
    pub(super) ticket: Ticket,
    /// The transaction sequence numbers of its operations.
    pub(super) numbers: Range<u64>,
    pub(super) work: Work,
    /// Whether it must run in a transaction of its own.
    pub(super) alone: bool,
    pub(super) bytes: usize,
    pub(super) stage: Stage,
}

impl Slot {
    pub(super) fn new(ticket: Ticket, numbers: Range<u64>, work: Work) -> Self {
        let bytes = work.writes.iter().map(AtomicWrite::size_bytes).sum();
        let alone = !can_speculate(&work);
        Self { ticket, numbers, work, alone, bytes, stage: Stage::Sequenced }
    }
}

/// The batches that are not answered, in order.
#[derive(Default)]
pub(super) struct ReorderBuffer {
    pub(super) slots: VecDeque<Slot>,
    bytes: usize,
    writes: usize,
}

impl ReorderBuffer {
    pub(super) fn push(&mut self, slot: Slot) {
        self.bytes += slot.bytes;
        self.writes += slot.work.writes.len();
        self.slots.push_back(slot);
    }

    /// Takes the batch at the front, if it has ended.
    pub(super) fn pop_ended(&mut self) -> Option<(Ticket, Result<Report, Error>)> {
        let ended = matches!(self.slots.front()?.stage, Stage::Ended(_));
        let slot = if ended { self.slots.pop_front()? } else { return None };
        self.bytes -= slot.bytes;
        self.writes = self.writes.saturating_sub(slot.numbers.clone().count());
        match slot.stage {
            Stage::Ended(result) => Some((slot.ticket, result)),
            _ => None,
        }
    }

    /// Bytes and number of the writes in it.
    pub(super) fn waiting(&self) -> (usize, usize) {
        (self.bytes, self.writes)
    }

    pub(super) fn find(&mut self, ticket: Ticket) -> Option<&mut Slot> {
        self.slots.iter_mut().find(|slot| slot.ticket == ticket)
    }

    pub(super) fn in_flight(&self) -> usize {
        let sent = |slot: &&Slot| matches!(slot.stage, Stage::InFlight { .. });
        self.slots.iter().filter(sent).count()
    }

    /// The batch that waits for a read, and the request of that read, which is no longer under way.
    pub(super) fn end_read(&mut self, fetch: FetchId) -> Option<(&mut Slot, ReadRequest)> {
        for slot in &mut self.slots {
            let Stage::Reading(reads) = &mut slot.stage else { continue };
            if let Some(at) = reads.under_way.iter().position(|(id, _)| *id == fetch) {
                let (_, request) = reads.under_way.swap_remove(at);
                return Some((slot, request));
            }
        }
        None
    }

    /// Every read under way, or waiting to be used, sees the commits up to this one.
    pub(super) fn floor(&self) -> Option<u64> {
        let floors = self.slots.iter().filter_map(|slot| match &slot.stage {
            Stage::Reading(reads) => Some(reads.floor),
            _ => None,
        });
        floors.min()
    }
}
