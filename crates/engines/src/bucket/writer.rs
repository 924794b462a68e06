//! The writer: that of a leader, and of the local file.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::MutexGuard;

use super::Local;
use super::lead::Lead;
use super::leader::Leader;
use crate::sqlite::SqliteWriter;
use crate::{
    DeadLettersChanged, GoesOn, NextDeadlines, Progress, Report, Ticket, Wake, Work, Writer,
};
use openkv_core::model::{
    Checkpoint, DeadLetterChange, Error, LogSegment, LogSettings, MessageDeletion, Origin,
    QueueChange, QueueChanged, Result, Vacuumed,
};

/// The writer of a database in an object store.
pub struct BucketWriter {
    pub(super) local: Arc<Local>,
    pub(super) lead: Arc<Lead>,
    leader: Leader,
}

impl BucketWriter {
    pub(super) fn new(local: Arc<Local>, lead: Arc<Lead>) -> Self {
        let leader = Leader::new(lead.clone(), local.clone());
        Self { local, lead, leader }
    }

    /// The writer of the file, once this process leads. Nothing is under way.
    pub(super) fn leading(&mut self, deadline: Instant) -> Result<MutexGuard<'_, SqliteWriter>> {
        self.leader.forget();
        self.lead.lead_by(deadline, true)?;
        Ok(self.local.writer.lock())
    }

    pub(super) fn leads(&self) -> bool {
        self.lead.leads()
    }
}

impl Writer for BucketWriter {
    fn begin(&mut self, work: Work, now_ms: i64, deadline: Instant) -> Result<Progress> {
        self.leader.begin(work, now_ms, deadline)
    }

    fn has_room(&self) -> bool {
        self.leader.has_room()
    }

    fn lingers(&self, since: Instant, writes: usize) -> Duration {
        self.leader.lingers(since, writes)
    }

    fn ended(&mut self) -> Option<(Ticket, Result<Report>)> {
        self.leader.ended()
    }

    fn on_ended(&mut self, wake: Wake) {
        self.leader.on_ended(wake);
    }

    fn log_changes(&mut self, origin: Origin, now_ms: i64, deadline: Instant) -> Result<u64> {
        // The feed of the local copy: each process has its own.
        self.local.writer.lock().log_changes(origin, now_ms, deadline)
    }

    fn set_log(
        &mut self,
        settings: &LogSettings,
        origin: Origin,
        now_ms: i64,
        deadline: Instant,
    ) -> Result<u64> {
        self.local.writer.lock().set_log(settings, origin, now_ms, deadline)
    }

    fn replay(&mut self, _segment: LogSegment<'_>, _deadline: Instant) -> Result<Report> {
        Err(Error::unsupported("a database in an object store repeats only its own log"))
    }

    fn keep_metrics(
        &mut self,
        merge: &mut dyn FnMut(Option<&str>) -> String,
        deadline: Instant,
    ) -> Result<()> {
        self.leading(deadline)?.keep_metrics(merge, deadline)
    }

    fn next_deadlines(&mut self) -> Result<NextDeadlines> {
        match self.leads() {
            true => self.local.writer.lock().next_deadlines(),
            false => Ok(NextDeadlines::default()),
        }
    }

    fn next_message_ms(&mut self, queue: &str) -> Result<Option<i64>> {
        match self.leads() {
            true => self.local.writer.lock().next_message_ms(queue),
            false => Ok(None),
        }
    }

    fn queue_depth(&mut self, queue: &str) -> Result<u64> {
        self.local.writer.lock().queue_depth(queue)
    }

    fn change_dead_letters(
        &mut self,
        queue: &str,
        change: &DeadLetterChange,
        now_ms: i64,
        deadline: Instant,
    ) -> Result<DeadLettersChanged> {
        self.leading(deadline)?.change_dead_letters(queue, change, now_ms, deadline)
    }

    fn delete_message(
        &mut self,
        queue: &str,
        id: i64,
        now_ms: i64,
        deadline: Instant,
    ) -> Result<MessageDeletion> {
        self.leading(deadline)?.delete_message(queue, id, now_ms, deadline)
    }

    fn bound_times(&mut self, queue: &str, now_ms: i64, deadline: Instant) -> Result<()> {
        match self.leads() {
            true => self.local.writer.lock().bound_times(queue, now_ms, deadline),
            false => Ok(()),
        }
    }

    fn change_queue(
        &mut self,
        queue: &str,
        change: QueueChange,
        now_ms: i64,
        deadline: Instant,
    ) -> Result<QueueChanged> {
        self.leading(deadline)?.change_queue(queue, change, now_ms, deadline)
    }

    fn checkpoint(&mut self) -> Result<Checkpoint> {
        self.local.writer.lock().checkpoint()
    }

    fn empty_log(&mut self) -> Result<()> {
        self.local.writer.lock().empty_log()
    }

    fn vacuum(&mut self, deadline: Instant, goes_on: &GoesOn) -> Result<Vacuumed> {
        self.local.writer.lock().vacuum(deadline, goes_on)
    }
}
