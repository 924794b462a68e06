//! The writer of a database: directly, one transaction for each batch, or as its leader.

use std::sync::Arc;
use std::time::Instant;

use super::Shared;
use super::cells::{Cells, first};
use super::direct::Direct;
use super::leader::Leader;
use super::queues;
use super::transaction::OpenTransaction;
use crate::{
    DeadLettersChanged, GoesOn, Indexer, NextDeadlines, Progress, Report, Ticket, Wake, Work,
    Writer,
};
use openkv_core::model::{
    Capabilities, Capability, Checkpoint, DeadLetterChange, Error, IndexChoice, IndexInfo,
    IndexRequest, LogSettings, MessageDeletion, Origin, QueueChange, QueueChanged, Result,
    Vacuumed, ValueIndexInfo, ValueIndexRequest,
};

/// The earliest expiry, and whether value indexes are being built or deleted.
const NEXT: &str = "\
SELECT (SELECT at_ms FROM openkv.expiries WHERE db = $1 ORDER BY at_ms LIMIT 1), \
EXISTS (SELECT FROM openkv.value_indexes WHERE db = $1 \
AND (dropped OR progress IS NOT NULL OR verified IS NOT NULL))";

/// Writes to a database.
pub struct PostgresWriter {
    direct: Direct,
    leader: Option<Leader>,
}

impl PostgresWriter {
    pub(super) fn new(shared: Arc<Shared>) -> Result<Self> {
        let leads = shared.lease.is_some();
        let leader = if leads { Some(Leader::start(shared.clone())?) } else { None };
        Ok(Self { direct: Direct::new(shared), leader })
    }

    fn read_number(&self, sql: &'static str) -> Result<Option<i64>> {
        let shared = &self.direct.shared;
        let rows = shared.query((sql, vec![&shared.db]))?;
        first("entries", &rows)
    }

    /// A transaction of its own, while nothing is under way. The leader does not know what it changes.
    fn exclusive(&mut self) -> &mut Direct {
        if let Some(leader) = &self.leader {
            leader.forget();
        }
        &mut self.direct
    }
}

impl Writer for PostgresWriter {
    fn begin(&mut self, work: Work, now_ms: i64, deadline: Instant) -> Result<Progress> {
        match &mut self.leader {
            Some(leader) => Ok(Progress::UnderWay(leader.submit(work, now_ms, deadline))),
            None => {
                let done = self.direct.carry_out(work, now_ms, deadline, None)?;
                Ok(Progress::Done(done.report))
            }
        }
    }

    fn has_room(&self) -> bool {
        self.leader.as_ref().is_none_or(Leader::has_room)
    }

    fn ended(&mut self) -> Option<(Ticket, Result<Report>)> {
        self.leader.as_mut()?.ended()
    }

    fn on_ended(&mut self, wake: Wake) {
        if let Some(leader) = &self.leader {
            leader.on_ended(wake);
        }
    }

    fn log_changes(&mut self, origin: Origin, now_ms: i64, deadline: Instant) -> Result<u64> {
        self.exclusive().log_changes(origin, now_ms, deadline)
    }

    fn set_log(
        &mut self,
        settings: &LogSettings,
        origin: Origin,
        now_ms: i64,
        deadline: Instant,
    ) -> Result<u64> {
        self.exclusive().set_log(settings, origin, now_ms, deadline)
    }

    fn next_deadlines(&mut self) -> Result<NextDeadlines> {
        let shared = &self.direct.shared;
        let rows = shared.query((NEXT, vec![&shared.db]))?;
        let row = rows.first().ok_or_else(|| Error::internal("a statement without an answer"))?;
        let cells = Cells::of("expiries", row);
        let (expiry_ms, building) = (cells.get(0)?, cells.get(1)?);
        let purge_ms = self.read_number(queues::EARLIEST_PURGE)?;
        Ok(NextDeadlines { expiry_ms, purge_ms, building })
    }

    fn next_message_ms(&mut self, queue: &str) -> Result<Option<i64>> {
        queues::next_message_ms(&self.direct.shared, queue)
    }

    fn queue_depth(&mut self, queue: &str) -> Result<u64> {
        queues::depth(&self.direct.shared, queue)
    }

    fn change_dead_letters(
        &mut self,
        queue: &str,
        change: &DeadLetterChange,
        now_ms: i64,
        deadline: Instant,
    ) -> Result<DeadLettersChanged> {
        self.exclusive().change_dead_letters(queue, change, now_ms, deadline)
    }

    fn change_queue(
        &mut self,
        queue: &str,
        change: QueueChange,
        now_ms: i64,
        deadline: Instant,
    ) -> Result<QueueChanged> {
        self.exclusive().change_queue(queue, change, now_ms, deadline)
    }

    fn delete_message(
        &mut self,
        queue: &str,
        id: i64,
        now_ms: i64,
        deadline: Instant,
    ) -> Result<MessageDeletion> {
        self.exclusive().delete_message(queue, id, now_ms, deadline)
    }

    fn checkpoint(&mut self) -> Result<Checkpoint> {
        Err(Capabilities::POSTGRES.refusal(Capability::Checkpoint))
    }

    fn vacuum(&mut self, _deadline: Instant, _goes_on: &GoesOn) -> Result<Vacuumed> {
        Err(Capabilities::POSTGRES.refusal(Capability::Vacuum))
    }
}

impl Indexer for PostgresWriter {
    fn create_index(&mut self, request: &IndexRequest, deadline: Instant) -> Result<IndexInfo> {
        self.direct.beside_leader(0, deadline, |open| open.create_index(request))
    }

    fn drop_index(&mut self, choice: &IndexChoice, deadline: Instant) -> Result<bool> {
        self.direct.beside_leader(0, deadline, |open| open.drop_index(choice))
    }

    fn create_value_index(
        &mut self,
        request: &ValueIndexRequest,
        deadline: Instant,
    ) -> Result<ValueIndexInfo> {
        self.direct.beside_leader(0, deadline, |open| open.create_value_index(request))
    }

    fn build_indexes(&mut self, now_ms: i64, deadline: Instant) -> Result<bool> {
        self.direct.beside_leader(now_ms, deadline, OpenTransaction::build_indexes)
    }
}
