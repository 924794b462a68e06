//! The threads for reads that take long: searches, counts, filtered lists.
//!
//! These threads have readers of their own, so that no point read waits for them. A thread starts
//! when there is work and ends after some idle time, because each holds a connection. Most stores
//! never start one.
//! Invariant: every job is called once, also if no thread or reader is available.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::read::{ReadJob, answer_while};
use super::{Caller, MakeReader, Patience};
use crate::metrics::Metrics;
use openkv_core::model::{Env, Error, LONG_READER_IDLE_MS, LONG_READERS_MAX, Result};
use openkv_engines::{GoesOn, Reader, Snapshot};

/// A queued job and its bounds.
struct QueuedRead {
    patience: Arc<Patience>,
    job: ReadJob,
}

pub(super) struct LongReads {
    pool: Mutex<Pool>,
    arrived: Condvar,
    make_reader: MakeReader,
    env: Arc<dyn Env>,
    metrics: Arc<Metrics>,
}

#[derive(Default)]
struct Pool {
    waiting: VecDeque<QueuedRead>,
    /// Threads that take jobs.
    serving: usize,
    /// Threads of `serving` that wait for a job.
    idle: usize,
    /// All started threads that may still run.
    threads: Vec<JoinHandle<()>>,
    closing: bool,
}

impl LongReads {
    pub(super) fn new(
        make_reader: MakeReader,
        env: Arc<dyn Env>,
        metrics: Arc<Metrics>,
    ) -> Arc<Self> {
        let (pool, arrived) = (Mutex::default(), Condvar::new());
        Arc::new(Self { pool, arrived, make_reader, env, metrics })
    }

    /// Runs the job on a thread for long reads. If the store is closed, the job runs at once,
    /// without a snapshot.
    pub(super) fn send(self: &Arc<Self>, patience: Arc<Patience>, job: ReadJob) {
        let mut pool = self.pool.lock();
        if pool.closing {
            drop(pool);
            return job(Err(Error::closed()));
        }
        pool.waiting.push_back(QueuedRead { patience, job });
        if pool.idle >= pool.waiting.len() {
            self.arrived.notify_one();
            return;
        }
        if pool.serving == LONG_READERS_MAX {
            return;
        }
        let Err(error) = self.start(&mut pool) else { return };
        tracing::warn!(%error, "starting a thread for long reads");
        if pool.serving == 0 {
            let refused = std::mem::take(&mut pool.waiting);
            drop(pool);
            refused.into_iter().for_each(|sent| (sent.job)(Err(error.clone())));
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
        self.send(patience, job);
    }

    fn start(self: &Arc<Self>, pool: &mut Pool) -> Result<()> {
        let here = self.clone();
        let thread = std::thread::Builder::new()
            .name("openkv-long".into())
            .spawn(move || here.serve())
            .map_err(|error| Error::unavailable(error.to_string()))?;
        pool.threads.retain(|thread| !thread.is_finished());
        pool.threads.push(thread);
        pool.serving += 1;
        Ok(())
    }

    /// Takes no more jobs. Returns the threads that may still run.
    pub(super) fn close(&self) -> Vec<JoinHandle<()>> {
        let mut pool = self.pool.lock();
        pool.closing = true;
        self.arrived.notify_all();
        std::mem::take(&mut pool.threads)
    }

    fn serve(&self) {
        let mut reader = None;
        while let Some(sent) = self.next(&mut reader) {
            self.carry_out(sent, &mut reader);
        }
    }

    /// The next job; `None` after the idle time, or when closed.
    fn next(&self, reader: &mut Option<Box<dyn Reader>>) -> Option<QueuedRead> {
        if let Some(sent) = self.pool.lock().waiting.pop_front() {
            return Some(sent);
        }
        // A snapshot is kept only between consecutive jobs, because an open one blocks checkpoints.
        if let Some(reader) = reader {
            reader.release();
            self.metrics.cached(reader.take_cache_counts());
        }
        let mut pool = self.pool.lock();
        let mut rested = false;
        loop {
            if let Some(sent) = pool.waiting.pop_front() {
                return Some(sent);
            }
            if pool.closing || rested {
                pool.serving -= 1;
                return None;
            }
            pool.idle += 1;
            let idle = Duration::from_millis(LONG_READER_IDLE_MS);
            rested = self.arrived.wait_for(&mut pool, idle).timed_out();
            pool.idle -= 1;
        }
    }

    fn carry_out(
        &self,
        QueuedRead { patience, job }: QueuedRead,
        kept: &mut Option<Box<dyn Reader>>,
    ) {
        let reader = match kept {
            Some(reader) => reader,
            None => match (self.make_reader)() {
                Ok(reader) => kept.insert(reader),
                Err(error) => return job(Err(error)),
            },
        };
        let asked = patience.clone();
        let goes_on: GoesOn = Arc::new(move || asked.lasts());
        // A job that panics is dropped; its reply detects that.
        let answered = catch_unwind(AssertUnwindSafe(|| {
            answer_while(reader.as_mut(), self.env.now_ms(), Some(&goes_on), job);
        }));
        if answered.is_err() {
            tracing::error!("a read ended by a panic; please report this");
        }
        if answered.is_err() || !patience.lasts() {
            reader.release();
        }
    }
}
