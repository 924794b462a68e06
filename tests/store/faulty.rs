//! An engine that does what a test tells it: waits, fails or panics before a call goes through.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use openkv::engine::{
    Agenda, Backup, Checkpoint, Custody, Engine, Foreign, ForeignWatch, GoesOn, Indexer, Ordered,
    Reader, Report, Snapshot, Vacuumed, Work, Writer,
};
use openkv::model::{DeadOrder, IndexChoice, IndexInfo, IndexSpec, Result};

type Before<T> = Box<dyn Fn(usize, &T) -> Result<()> + Send + Sync>;

/// What happens around the calls; each is told how many there were before.
pub(crate) struct Plan {
    pub(crate) before_apply: Before<Work>,
    pub(crate) after_apply: Before<Report>,
    pub(crate) before_agenda: Before<()>,
    pub(crate) before_read: Before<()>,
    pub(crate) before_reader: Before<()>,
    pub(crate) before_foreign: Before<()>,
    pub(crate) applies: AtomicUsize,
    pub(crate) agendas: AtomicUsize,
    pub(crate) reads: AtomicUsize,
    pub(crate) readers: AtomicUsize,
    pub(crate) foreign: AtomicUsize,
    /// Of those, how many have not ended.
    pub(crate) foreign_open: AtomicUsize,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            before_apply: Box::new(|_, _| Ok(())),
            after_apply: Box::new(|_, _| Ok(())),
            before_agenda: Box::new(|_, ()| Ok(())),
            before_read: Box::new(|_, ()| Ok(())),
            before_reader: Box::new(|_, ()| Ok(())),
            before_foreign: Box::new(|_, ()| Ok(())),
            applies: 0.into(),
            agendas: 0.into(),
            reads: 0.into(),
            readers: 0.into(),
            foreign: 0.into(),
            foreign_open: 0.into(),
        }
    }
}

impl Plan {
    /// Calls of the writer so far.
    pub(crate) fn calls(&self) -> usize {
        self.applies.load(Ordering::SeqCst) + self.agendas.load(Ordering::SeqCst)
    }
}

/// An engine with a plan.
pub(crate) struct Faulty<E>(pub(crate) E, pub(crate) Arc<Plan>);

impl<E: Engine> Custody for Faulty<E> {
    fn backup(&self, to: &Path, step: &mut dyn FnMut(u64, u64) -> bool) -> Result<Backup> {
        self.0.backup(to, step)
    }

    fn check(&self, findings_max: usize) -> Result<Vec<String>> {
        self.0.check(findings_max)
    }
}

impl<E: Engine> Engine for Faulty<E> {
    type Reader = Faulty<E::Reader>;
    type Writer = Faulty<E::Writer>;

    fn reader(&self) -> Result<Self::Reader> {
        (self.1.before_reader)(self.1.readers.fetch_add(1, Ordering::SeqCst), &())?;
        Ok(Faulty(self.0.reader()?, self.1.clone()))
    }

    fn writer(&self) -> Result<Self::Writer> {
        Ok(Faulty(self.0.writer()?, self.1.clone()))
    }

    fn watch_foreign(&self, wake: Box<dyn Fn() + Send>) -> Result<Option<ForeignWatch>> {
        (self.1.before_foreign)(self.1.foreign.fetch_add(1, Ordering::SeqCst), &())?;
        let watch = self.0.watch_foreign(wake)?;
        self.1.foreign_open.fetch_add(1, Ordering::SeqCst);
        Ok(Some(ForeignWatch::new(Open { plan: self.1.clone(), _watch: watch })))
    }
}

/// Counted until it is dropped.
struct Open {
    plan: Arc<Plan>,
    _watch: Option<ForeignWatch>,
}

impl Foreign for Open {}

impl Drop for Open {
    fn drop(&mut self) {
        self.plan.foreign_open.fetch_sub(1, Ordering::SeqCst);
    }
}

impl<R: Reader> Reader for Faulty<R> {
    fn read(
        &mut self,
        now_ms: i64,
        job: &mut dyn FnMut(&mut dyn Snapshot) -> Result<()>,
    ) -> Result<()> {
        (self.1.before_read)(self.1.reads.fetch_add(1, Ordering::SeqCst), &())?;
        self.0.read(now_ms, job)
    }

    fn read_while(
        &mut self,
        now_ms: i64,
        goes_on: &GoesOn,
        job: &mut dyn FnMut(&mut dyn Snapshot) -> Result<()>,
    ) -> Result<()> {
        (self.1.before_read)(self.1.reads.fetch_add(1, Ordering::SeqCst), &())?;
        self.0.read_while(now_ms, goes_on, job)
    }

    fn release(&mut self) {
        self.0.release();
    }
}

impl<W: Writer> Indexer for Faulty<W> {
    fn create_index(&mut self, spec: &IndexSpec, deadline: Instant) -> Result<IndexInfo> {
        self.0.create_index(spec, deadline)
    }

    fn drop_index(&mut self, choice: &IndexChoice, deadline: Instant) -> Result<bool> {
        self.0.drop_index(choice, deadline)
    }

    fn build_indexes(&mut self, now_ms: i64, deadline: Instant) -> Result<bool> {
        self.0.build_indexes(now_ms, deadline)
    }
}

impl<W: Writer> Writer for Faulty<W> {
    fn apply(&mut self, work: Work, now_ms: i64, deadline: Instant) -> Result<Report> {
        let count = self.1.applies.fetch_add(1, Ordering::SeqCst);
        (self.1.before_apply)(count, &work)?;
        let report = self.0.apply(work, now_ms, deadline)?;
        (self.1.after_apply)(count, &report)?;
        Ok(report)
    }

    fn log_changes(&mut self, deadline: Instant) -> Result<u64> {
        self.0.log_changes(deadline)
    }

    fn agenda(&mut self) -> Result<Agenda> {
        (self.1.before_agenda)(self.1.agendas.fetch_add(1, Ordering::SeqCst), &())?;
        self.0.agenda()
    }

    fn message_agenda(&mut self, queue: &str) -> Result<Option<i64>> {
        self.0.message_agenda(queue)
    }

    fn queue_depth(&mut self, queue: &str) -> Result<u64> {
        self.0.queue_depth(queue)
    }

    fn order_dead(
        &mut self,
        queue: &str,
        order: &DeadOrder,
        now_ms: i64,
        deadline: Instant,
    ) -> Result<Ordered> {
        self.0.order_dead(queue, order, now_ms, deadline)
    }

    fn vacuum(&mut self, deadline: Instant) -> Result<Vacuumed> {
        self.0.vacuum(deadline)
    }

    fn checkpoint(&mut self) -> Result<Checkpoint> {
        self.0.checkpoint()
    }
}
