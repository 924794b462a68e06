//! The committed state in the model of PostgreSQL, and what transactions do to it.

use std::collections::BTreeMap;

use openkv::commit::{Base, Effects, Evaluation, OldRow, RowEffect, Ticket};
use openkv::layer::{Lead, Remembered};
use openkv::model::{
    AtomicWrite, Decision, Key, Result, Row, Seen, Step, Versionstamp, Walk, WriteRecord,
};
use uuid::Uuid;

use crate::postgres::Request;

/// A process that may lead, from its start to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ServerId(pub(crate) u64);

/// A batch in the history of the database.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Happened {
    pub(crate) server: ServerId,
    pub(crate) ticket: Ticket,
    pub(crate) epoch: u64,
    pub(crate) prev: u64,
    pub(crate) next: u64,
    pub(crate) now_ms: i64,
}

/// What a batch does.
#[derive(Clone)]
pub(crate) struct Change {
    pub(crate) rows: Vec<(Key, RowEffect)>,
    pub(crate) messages: i64,
    pub(crate) happened: Happened,
    /// Its writes with ids.
    pub(crate) records: Vec<WriteRecord>,
}

/// What a transaction does. All records of a transaction are one of the write-ahead log.
#[derive(Clone)]
pub(crate) enum Record {
    Batch(Change),
    Epoch { epoch: u64, owner: Option<ServerId>, clock_ms: i64 },
    HandedOver,
    Lease { server: ServerId, until_ms: i64 },
}

/// The committed state.
#[derive(Clone)]
pub(crate) struct Tables {
    pub(crate) epoch: u64,
    pub(crate) version: u64,
    pub(crate) clock_ms: i64,
    pub(crate) owner: Option<ServerId>,
    pub(crate) last_message: i64,
    pub(crate) entries: BTreeMap<Key, OldRow>,
    /// Where each epoch began.
    pub(crate) epochs: BTreeMap<u64, u64>,
    pub(crate) leases: BTreeMap<ServerId, i64>,
    pub(crate) history: Vec<Happened>,
    /// The writes with ids that have committed, each with its batch's place in the history.
    pub(crate) records: Vec<(usize, WriteRecord)>,
}

impl Tables {
    pub(crate) fn new() -> Self {
        Self {
            epoch: 1,
            version: 0,
            clock_ms: 0,
            owner: None,
            last_message: 0,
            entries: BTreeMap::new(),
            epochs: BTreeMap::new(),
            leases: BTreeMap::new(),
            history: Vec::new(),
            records: Vec::new(),
        }
    }

    /// Decides writes over the committed entries.
    pub(crate) fn decide(&self, writes: &[AtomicWrite], now_ms: i64) -> (Vec<Decision>, Effects) {
        let mut rows = Rows { tables: self, now_ms };
        let mut evaluation = Evaluation::new(&mut rows, self.version, now_ms);
        let decide = |write: &AtomicWrite| evaluation.decide(write.clone()).expect("decided");
        let decisions = writes.iter().map(decide).collect();
        (decisions, evaluation.into_effects())
    }

    /// Whether somebody else leads, and the lease has not ended.
    pub(crate) fn is_led_by_other(&self, server: ServerId, now_ms: i64) -> bool {
        let lives = |owner| self.leases.get(owner).is_some_and(|end| *end >= now_ms);
        self.owner.as_ref().is_some_and(|owner| *owner != server && lives(owner))
    }

    /// Whether the row fulfils the condition of a request, so that an UPDATE locks it.
    pub(crate) fn admits(&self, server: ServerId, request: &Request, now_ms: i64) -> bool {
        let own = self.owner == Some(server);
        match request {
            Request::Body(commit) => (self.epoch, self.version) == (commit.epoch, commit.prev),
            Request::Resolve { epoch, raises: true } => {
                // An answer to the same request may be lost.
                let start = self.epochs.get(&(epoch + 1));
                own && (self.epoch == *epoch || start == Some(&self.version))
            }
            Request::Acquire => !self.is_led_by_other(server, now_ms),
            Request::HandOver => own,
            Request::Resolve { raises: false, .. }
            | Request::Alone { .. }
            | Request::Look(..)
            | Request::End(_)
            | Request::Fetch(..)
            | Request::Renew => true,
        }
    }

    pub(crate) fn apply(&mut self, record: Record) {
        match record {
            Record::Batch(Change { rows, messages, happened, records }) => {
                for (key, effect) in rows {
                    match effect {
                        RowEffect::Removed => drop(self.entries.remove(&key)),
                        RowEffect::Stored(new) => {
                            let (version, value, expire_at_ms) =
                                (new.version, new.value, new.expire_at_ms);
                            self.entries.insert(key, OldRow { version, value, expire_at_ms });
                        }
                        RowEffect::ExpirySet { expire_at_ms, .. } => {
                            if let Some(row) = self.entries.get_mut(&key) {
                                row.expire_at_ms = expire_at_ms;
                            }
                        }
                    }
                }
                self.version = happened.next;
                self.clock_ms = self.clock_ms.max(happened.now_ms);
                self.last_message += messages;
                let place = self.history.len();
                self.records.extend(records.into_iter().map(|record| (place, record)));
                self.history.push(happened);
            }
            Record::Epoch { epoch, owner, clock_ms } => {
                self.epoch = epoch;
                self.owner = owner;
                self.clock_ms = self.clock_ms.max(clock_ms);
                self.epochs.insert(epoch, self.version);
            }
            Record::HandedOver => self.owner = None,
            Record::Lease { server, until_ms } => drop(self.leases.insert(server, until_ms)),
        }
    }

    pub(crate) fn lead(&self) -> Lead {
        Lead {
            epoch: self.epoch,
            version: self.version,
            clock_ms: self.clock_ms,
            last_message: self.last_message,
            ..Lead::default()
        }
    }
}

impl Tables {
    /// The writes with ids that have committed at this time or later.
    pub(crate) fn remembered(&self, from_ms: i64) -> Remembered {
        let timed =
            |(place, record): &(usize, WriteRecord)| (self.history[*place].now_ms, record.clone());
        let records = self.records.iter().map(timed).filter(|(at_ms, _)| *at_ms >= from_ms);
        Remembered { from_ms, records: records.collect() }
    }
}

/// The entries of the database, for a transaction that decides for itself.
struct Rows<'t> {
    tables: &'t Tables,
    now_ms: i64,
}

impl Rows<'_> {
    fn alive(&self, row: &OldRow) -> bool {
        row.expire_at_ms.is_none_or(|end| end > self.now_ms)
    }
}

impl Base for Rows<'_> {
    fn version(&mut self, key: &Key) -> Result<Option<u64>> {
        Ok(self.row(key)?.map(|row| row.version))
    }

    fn row(&mut self, key: &Key) -> Result<Option<OldRow>> {
        Ok(self.tables.entries.get(key).filter(|row| self.alive(row)).cloned())
    }

    fn walk(&mut self, walk: Walk<'_>, visit: &mut dyn FnMut(Seen<'_>) -> Step) -> Result<()> {
        for (key, row) in &self.tables.entries {
            let inside = key.as_bytes() >= walk.start && key.as_bytes() < walk.end;
            if inside && self.alive(row) {
                let OldRow { version, value, expire_at_ms } = row;
                let (stamp, encoding) = (Versionstamp::new(*version), value.encoding);
                let row = Row { key: key.as_bytes(), stamp, encoding, value: &value.bytes };
                if visit(Seen { row, expire_at_ms: *expire_at_ms }) == Step::Stop {
                    break;
                }
            }
        }
        Ok(())
    }

    fn last_uuid(&mut self) -> Result<Option<Uuid>> {
        Ok(None)
    }
}
