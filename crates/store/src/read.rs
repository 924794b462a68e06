//! The threads that read: one for short reads, and some for reads that take long.
//!
//! Each kind has connections of its own, so that no point read waits for a search. A thread starts when
//! there is work and ends after some idle time, because each holds a connection. So a database without
//! work has none.
//! While the system starts no thread, that of the alarms reads.
//! Invariant: every job is called once, in the order of sending and on a current snapshot, or on what this process has of
//! the database if it was sent so; it gets an error if there is no reader or no store any more.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::alarm::{Alarm, Wakes};
use super::thread::{is_this, not_started};
use super::{Caller, MakeReader, Patience};
use crate::metrics::Metrics;
use openkv_core::model::{Env, Error, READER_HELD_MS_MAX, Result, STORE_THREAD_IDLE_MS};
use openkv_engines::{GoesOn, Reader, Snapshot};

/// A job for a snapshot, called once. It gets an error if there is no snapshot.
pub(super) type ReadJob = Box<dyn FnOnce(Result<&mut dyn Snapshot>) + Send>;

/// The bound of an answer's size. The store's threads check it while they build the answer.
pub trait Room: Send + Sync {
    /// Whether there is room for this many bytes of the answer.
    ///
    /// # Errors
    /// The error that ends the read if there is not. `Unavailable` means that a later try may
    /// succeed.
    fn holds(&self, bytes: usize) -> Result<()>;
}

/// A queued job.
struct QueuedRead {
    kind: ReadKind,
    job: ReadJob,
}

enum ReadKind {
    /// On a current snapshot.
    Short,
    /// The same, for a job that may take long, within bounds.
    Long(Arc<Patience>),
    /// On what this process has of the database.
    AtHand,
}

/// The threads for one kind of reads of a store.
pub(super) struct ReadThreads {
    name: &'static str,
    threads_max: usize,
    pool: Mutex<Pool>,
    arrived: Condvar,
    /// Set to the earliest of the delayed jobs while no thread serves.
    alarm: Alarm,
    make_reader: MakeReader,
    env: Arc<dyn Env>,
    metrics: Arc<Metrics>,
    myself: Weak<Self>,
}

#[derive(Default)]
struct Pool {
    waiting: VecDeque<QueuedRead>,
    /// Jobs with their earliest times.
    delayed: Vec<(Instant, ReadJob)>,
    /// Threads that take jobs.
    serving: usize,
    /// Threads of `serving` that wait for a job.
    idle: usize,
    /// All started threads that may still run.
    threads: Vec<JoinHandle<()>>,
    /// How often the end of the threads that wait for a job was requested.
    parkings: usize,
    is_closing: bool,
}

impl Pool {
    /// Queues the delayed jobs that are due. Returns the time of the next one.
    fn queue_due(&mut self) -> Option<Instant> {
        let now = Instant::now();
        for (_, job) in self.delayed.extract_if(.., |(at, _)| *at <= now) {
            self.waiting.push_back(QueuedRead { kind: ReadKind::Short, job });
        }
        self.next_due()
    }

    /// The time of the next delayed job, which may be over.
    fn next_due(&self) -> Option<Instant> {
        self.delayed.iter().map(|(at, _)| *at).min()
    }
}

impl Wakes for ReadThreads {
    fn wake(&self) {
        let mut pool = self.pool.lock();
        let next = pool.queue_due();
        if pool.waiting.is_empty() {
            self.alarm.set(next.filter(|_| pool.serving == 0));
        } else if pool.serving > 0 {
            self.serve_waiting(pool);
        } else if self.start(&mut pool).is_err() {
            pool.serving = 1;
            drop(pool);
            self.serve(Duration::ZERO);
        }
    }
}

impl ReadThreads {
    pub(super) fn new(
        (name, threads_max): (&'static str, usize),
        make_reader: MakeReader,
        env: Arc<dyn Env>,
        metrics: Arc<Metrics>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|myself: &Weak<Self>| {
            let (alarm, myself) = (Alarm::new(myself.clone()), myself.clone());
            let (pool, arrived) = (Mutex::default(), Condvar::new());
            Self { name, threads_max, pool, arrived, alarm, make_reader, env, metrics, myself }
        })
    }

    /// Runs the job. If the store is closed, the job runs at once, without a snapshot.
    pub(super) fn send(&self, job: ReadJob) {
        self.queue(QueuedRead { kind: ReadKind::Short, job });
    }

    /// As [`Self::send`], for a job that does not need a current snapshot.
    pub(super) fn send_at_hand(&self, job: ReadJob) {
        self.queue(QueuedRead { kind: ReadKind::AtHand, job });
    }

    /// As [`Self::send`], for a job whose calls to its snapshot fail when its bounds end.
    pub(super) fn send_within(&self, patience: Arc<Patience>, job: ReadJob) {
        self.queue(QueuedRead { kind: ReadKind::Long(patience), job });
    }

    /// As [`Self::send`], after a wait. On closing, the job runs without a snapshot.
    pub(super) fn send_after(&self, wait: Duration, job: ReadJob) {
        let mut pool = self.pool.lock();
        if wait.is_zero() || pool.is_closing {
            drop(pool);
            return self.send(job);
        }
        pool.delayed.push((Instant::now() + wait, job));
        if pool.serving == 0 {
            self.alarm.set(pool.next_due());
        } else {
            self.arrived.notify_one();
        }
    }

    /// Runs `step` until it returns a result, each time on a new snapshot and behind the jobs that
    /// wait by then.
    pub(super) fn send_steps<T>(
        self: &Arc<Self>,
        patience: Arc<Patience>,
        caller: impl Caller<T>,
        mut step: impl FnMut(&mut dyn Snapshot, &Patience) -> Result<Option<T>> + Send + 'static,
    ) {
        let (here, bounds) = (self.clone(), patience.clone());
        let job: ReadJob = Box::new(move |snapshot| {
            let snapshot = bounds.check().and(snapshot);
            match snapshot.and_then(|snapshot| step(snapshot, &bounds)).transpose() {
                Some(result) => caller.end(result),
                None => here.send_steps(bounds, caller, step),
            }
        });
        self.send_within(patience, job);
    }

    /// Ends the threads, whose connections are closed with them, if all of them wait for a job. Returns whether
    /// they do.
    pub(super) fn park(&self) -> bool {
        let Some(mut pool) = self.pool.try_lock() else { return false };
        let waits = pool.idle == pool.serving && pool.waiting.is_empty();
        if waits {
            pool.parkings += 1;
            self.arrived.notify_all();
        }
        waits
    }

    /// Takes no more jobs. Returns the threads that may still run; they complete what waits.
    pub(super) fn close(&self) -> Vec<JoinHandle<()>> {
        let mut pool = self.pool.lock();
        pool.is_closing = true;
        self.arrived.notify_all();
        let delayed = std::mem::take(&mut pool.delayed);
        let threads = std::mem::take(&mut pool.threads);
        drop(pool);
        delayed.into_iter().for_each(|(_, job)| job(Err(Error::closed())));
        threads
    }

    fn queue(&self, sent: QueuedRead) {
        let mut pool = self.pool.lock();
        if pool.is_closing {
            drop(pool);
            return (sent.job)(Err(Error::closed()));
        }
        pool.waiting.push_back(sent);
        self.serve_waiting(pool);
    }

    /// Wakes or starts a thread for a job that waits.
    fn serve_waiting(&self, mut pool: MutexGuard<'_, Pool>) {
        if pool.idle >= pool.waiting.len() {
            self.arrived.notify_one();
            return;
        }
        if pool.serving == self.threads_max {
            return;
        }
        let Err(error) = self.start(&mut pool) else { return };
        tracing::warn!(%error, "starting a thread that reads");
        if pool.serving == 0 {
            self.alarm.set(Some(Instant::now()));
        }
    }

    fn start(&self, pool: &mut Pool) -> Result<()> {
        let Some(here) = self.myself.upgrade() else { return Ok(()) };
        let thread = std::thread::Builder::new()
            .name(self.name.into())
            .spawn(move || here.serve(Duration::from_millis(STORE_THREAD_IDLE_MS)))
            .map_err(|error| not_started(self.name, &error))?;
        pool.threads.push(thread);
        pool.serving += 1;
        self.alarm.set(None);
        Ok(())
    }

    /// Takes jobs until none came for this time.
    fn serve(&self, idle: Duration) {
        let mut reader = None;
        let mut held = Instant::now();
        while let Some(sent) = self.next(&mut reader, &mut held, idle) {
            self.carry_out(sent, &mut reader);
        }
        // Closed before nothing joins the thread any more; what is left of one ends with it.
        drop(reader);
        self.pool.lock().threads.retain(|thread| !is_this(thread));
    }

    /// The next job; `None` after the idle time, or when closed. `held`: since when the reader may have its
    /// snapshot.
    fn next(
        &self,
        reader: &mut Option<Box<dyn Reader>>,
        held: &mut Instant,
        idle: Duration,
    ) -> Option<QueuedRead> {
        let sent = {
            let mut pool = self.pool.lock();
            pool.queue_due();
            pool.waiting.pop_front()
        };
        // A snapshot is kept only between consecutive jobs, and not for long, because an open one blocks
        // checkpoints and keeps the WAL from restarting.
        if sent.is_none() || held.elapsed() > Duration::from_millis(READER_HELD_MS_MAX) {
            if let Some(reader) = reader {
                reader.release();
                self.metrics.cached(reader.take_cache_counts());
            }
            *held = Instant::now();
        }
        if sent.is_some() {
            return sent;
        }
        let end = Instant::now() + idle;
        let mut pool = self.pool.lock();
        let parkings = pool.parkings;
        loop {
            let next_due = pool.queue_due();
            if let Some(sent) = pool.waiting.pop_front() {
                *held = Instant::now();
                return Some(sent);
            }
            if pool.is_closing || pool.parkings != parkings || Instant::now() >= end {
                pool.serving -= 1;
                self.alarm.set(next_due.filter(|_| pool.serving == 0));
                return None;
            }
            pool.idle += 1;
            self.arrived.wait_until(&mut pool, next_due.map_or(end, |at| at.min(end)));
            pool.idle -= 1;
        }
    }

    /// Runs one job. A job that panics is dropped, and its reply detects that.
    fn carry_out(&self, QueuedRead { kind, job }: QueuedRead, kept: &mut Option<Box<dyn Reader>>) {
        let reader = match kept {
            Some(reader) => reader,
            None => match (self.make_reader)() {
                Ok(reader) => kept.insert(reader),
                Err(error) => return job(Err(error)),
            },
        };
        let answered =
            catch_unwind(AssertUnwindSafe(|| run(reader.as_mut(), self.env.now_ms(), &kind, job)));
        if answered.is_err() {
            tracing::error!("a read ended by a panic; please report this");
        }
        let is_over = matches!(&kind, ReadKind::Long(patience) if !patience.lasts());
        if answered.is_err() || is_over {
            reader.release();
        }
    }
}

/// Runs a job on a current snapshot of a reader.
pub(super) fn answer(reader: &mut (impl Reader + ?Sized), now_ms: i64, job: ReadJob) {
    run(reader, now_ms, &ReadKind::Short, job);
}

/// Calls of a long job to its snapshot fail once its bounds end.
fn run(reader: &mut (impl Reader + ?Sized), now_ms: i64, kind: &ReadKind, job: ReadJob) {
    let mut job = Some(job);
    let run = &mut |snapshot: &mut dyn Snapshot| {
        if let Some(job) = job.take() {
            job(Ok(snapshot));
        }
        Ok(())
    };
    let read = match kind {
        ReadKind::Short => reader.read(now_ms, run),
        ReadKind::Long(patience) => {
            let patience = patience.clone();
            let goes_on: GoesOn = Arc::new(move || patience.lasts());
            reader.read_while(now_ms, &goes_on, run)
        }
        ReadKind::AtHand => reader.read_at_hand(now_ms, run),
    };
    if let (Err(error), Some(job)) = (read, job) {
        job(Err(error));
    }
}
