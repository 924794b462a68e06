//! An engine that follows a test's plan: it waits, fails or panics before a call goes through, or
//! keeps batches under way.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use openkv::engine::{
    DeadLettersChanged, Engine, ExternalCommits, ExternalWatch, ExternalWatchGuard, GoesOn,
    Indexer, Maintenance, NextDeadlines, Progress, Reader, Report, Snapshot, TellExternal, Ticket,
    Wake, Work, Writer,
};
use openkv::model::{
    Backup, Capabilities, Checkpoint, DeadLetterChange, IndexChoice, IndexInfo, IndexRequest,
    MessageDeletion, Origin, QueueChange, QueueChanged, Result, Vacuumed,
};

use crate::pipeline::Pipeline;

type Before<T> = Box<dyn Fn(usize, &T) -> Result<()> + Send + Sync>;

/// Callbacks around the calls. Each gets the number of earlier calls.
pub(crate) struct Plan {
    pub(crate) before_apply: Before<Work>,
    pub(crate) after_apply: Before<Report>,
    pub(crate) before_deadlines: Before<()>,
    pub(crate) before_read: Before<()>,
    pub(crate) before_reader: Before<()>,
    pub(crate) before_external: Before<()>,
    pub(crate) applies: AtomicUsize,
    pub(crate) deadlines: AtomicUsize,
    pub(crate) reads: AtomicUsize,
    pub(crate) readers: AtomicUsize,
    pub(crate) external: AtomicUsize,
    /// Those of them that have not ended.
    pub(crate) external_open: AtomicUsize,
    /// Tells the store of external commits, while it watches for them.
    pub(crate) tell: Mutex<Option<Arc<Mutex<TellExternal>>>>,
    /// The batches under way.
    pub(crate) pipeline: Arc<Pipeline>,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            before_apply: Box::new(|_, _| Ok(())),
            after_apply: Box::new(|_, _| Ok(())),
            before_deadlines: Box::new(|_, ()| Ok(())),
            before_read: Box::new(|_, ()| Ok(())),
            before_reader: Box::new(|_, ()| Ok(())),
            before_external: Box::new(|_, ()| Ok(())),
            applies: 0.into(),
            deadlines: 0.into(),
            reads: 0.into(),
            readers: 0.into(),
            external: 0.into(),
            external_open: 0.into(),
            tell: Mutex::default(),
            pipeline: Arc::default(),
        }
    }
}

impl Plan {
    /// Calls of the writer so far.
    pub(crate) fn calls(&self) -> usize {
        self.applies.load(Ordering::SeqCst) + self.deadlines.load(Ordering::SeqCst)
    }

    /// Tells the store of external commits.
    pub(crate) fn tell(&self, commits: &ExternalCommits) {
        let tell = self.tell.lock().expect("no panic").clone().expect("watched");
        tell.lock().expect("no panic")(commits);
    }
}

/// An engine with a plan.
pub(crate) struct Faulty<E>(pub(crate) E, pub(crate) Arc<Plan>);

impl<E: Engine> Maintenance for Faulty<E> {
    fn backup(&self, to: &Path, step: &mut dyn FnMut(u64, u64) -> bool) -> Result<Backup> {
        self.0.backup(to, step)
    }

    fn check(&self, findings_max: usize, goes_on: &GoesOn) -> Result<Vec<String>> {
        self.0.check(findings_max, goes_on)
    }
}

impl<E: Engine> Engine for Faulty<E> {
    type Reader = Faulty<E::Reader>;
    type Writer = Faulty<E::Writer>;

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn reader(&self) -> Result<Self::Reader> {
        (self.1.before_reader)(self.1.readers.fetch_add(1, Ordering::SeqCst), &())?;
        Ok(Faulty(self.0.reader()?, self.1.clone()))
    }

    fn writer(&self) -> Result<Self::Writer> {
        Ok(Faulty(self.0.writer()?, self.1.clone()))
    }

    fn watch_external(&self, tell: TellExternal) -> Result<Option<ExternalWatch>> {
        (self.1.before_external)(self.1.external.fetch_add(1, Ordering::SeqCst), &())?;
        let tell = Arc::new(Mutex::new(tell));
        let engines = tell.clone();
        let tell_of_engine = move |commits: &_| engines.lock().expect("no panic")(commits);
        let watch = self.0.watch_external(Box::new(tell_of_engine))?;
        *self.1.tell.lock().expect("no panic") = Some(tell);
        self.1.external_open.fetch_add(1, Ordering::SeqCst);
        Ok(Some(ExternalWatch::new(Open { plan: self.1.clone(), _watch: watch })))
    }
}

/// Counted until it is dropped.
struct Open {
    plan: Arc<Plan>,
    _watch: Option<ExternalWatch>,
}

impl ExternalWatchGuard for Open {}

impl Drop for Open {
    fn drop(&mut self) {
        self.plan.external_open.fetch_sub(1, Ordering::SeqCst);
    }
}

impl<R: Reader> Reader for Faulty<R> {
    fn read_within(
        &mut self,
        now_ms: i64,
        goes_on: Option<&GoesOn>,
        job: &mut dyn FnMut(&mut dyn Snapshot) -> Result<()>,
    ) -> Result<()> {
        (self.1.before_read)(self.1.reads.fetch_add(1, Ordering::SeqCst), &())?;
        self.0.read_within(now_ms, goes_on, job)
    }

    fn release(&mut self) {
        self.0.release();
    }
}

impl<W: Writer> Indexer for Faulty<W> {
    fn create_index(&mut self, request: &IndexRequest, deadline: Instant) -> Result<IndexInfo> {
        self.1.pipeline.alone("create_index");
        self.0.create_index(request, deadline)
    }

    fn drop_index(&mut self, choice: &IndexChoice, deadline: Instant) -> Result<bool> {
        self.1.pipeline.alone("drop_index");
        self.0.drop_index(choice, deadline)
    }

    fn build_indexes(&mut self, now_ms: i64, deadline: Instant) -> Result<bool> {
        self.1.pipeline.alone("build_indexes");
        self.0.build_indexes(now_ms, deadline)
    }
}

impl<W: Writer> Writer for Faulty<W> {
    fn begin(&mut self, mut work: Work, now_ms: i64, deadline: Instant) -> Result<Progress> {
        let count = self.1.applies.fetch_add(1, Ordering::SeqCst);
        (self.1.before_apply)(count, &work)?;
        if let Some(ticket) = self.1.pipeline.begin(&mut work, now_ms) {
            return Ok(Progress::UnderWay(ticket));
        }
        let report = self.0.apply(work, now_ms, deadline)?;
        (self.1.after_apply)(count, &report)?;
        Ok(Progress::Done(report))
    }

    fn begin_at_once(&mut self, durable: bool) -> bool {
        self.0.begin_at_once(durable)
    }

    fn has_room(&self) -> bool {
        self.1.pipeline.has_room()
    }

    fn ended(&mut self) -> Option<(Ticket, Result<Report>)> {
        self.1.pipeline.ended(&mut self.0)
    }

    fn on_ended(&mut self, wake: Wake) {
        self.1.pipeline.on_ended(wake);
    }

    fn log_changes(&mut self, origin: Origin, now_ms: i64, deadline: Instant) -> Result<u64> {
        self.1.pipeline.alone("log_changes");
        self.0.log_changes(origin, now_ms, deadline)
    }

    fn next_deadlines(&mut self) -> Result<NextDeadlines> {
        self.1.pipeline.alone("next_deadlines");
        (self.1.before_deadlines)(self.1.deadlines.fetch_add(1, Ordering::SeqCst), &())?;
        self.0.next_deadlines()
    }

    fn next_message_ms(&mut self, queue: &str) -> Result<Option<i64>> {
        self.1.pipeline.alone("next_message_ms");
        self.0.next_message_ms(queue)
    }

    fn queue_depth(&mut self, queue: &str) -> Result<u64> {
        self.1.pipeline.alone("queue_depth");
        self.0.queue_depth(queue)
    }

    fn change_dead_letters(
        &mut self,
        queue: &str,
        change: &DeadLetterChange,
        now_ms: i64,
        deadline: Instant,
    ) -> Result<DeadLettersChanged> {
        self.1.pipeline.alone("change_dead_letters");
        self.0.change_dead_letters(queue, change, now_ms, deadline)
    }

    fn delete_message(
        &mut self,
        queue: &str,
        id: i64,
        now_ms: i64,
        deadline: Instant,
    ) -> Result<MessageDeletion> {
        self.1.pipeline.alone("delete_message");
        self.0.delete_message(queue, id, now_ms, deadline)
    }

    fn change_queue(
        &mut self,
        queue: &str,
        change: QueueChange,
        now_ms: i64,
        deadline: Instant,
    ) -> Result<QueueChanged> {
        self.1.pipeline.alone("change_queue");
        self.0.change_queue(queue, change, now_ms, deadline)
    }

    fn vacuum(&mut self, deadline: Instant, goes_on: &GoesOn) -> Result<Vacuumed> {
        self.1.pipeline.alone("vacuum");
        self.0.vacuum(deadline, goes_on)
    }

    fn checkpoint(&mut self) -> Result<Checkpoint> {
        self.1.pipeline.alone("checkpoint");
        self.0.checkpoint()
    }
}
