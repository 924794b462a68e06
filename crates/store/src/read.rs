//! The reader thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::metrics::Metrics;
use openkv_core::model::{Env, Error, READER_HELD_MS_MAX, Result};
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

/// A queued job, its clock and its earliest time.
struct ScheduledRead {
    job: ReadJob,
    env: Arc<dyn Env>,
    /// The earliest time of the job.
    at: Option<Instant>,
}

impl ScheduledRead {
    fn is_due(&self) -> bool {
        self.at.is_none_or(|at| at <= Instant::now())
    }
}

/// The queue of the reader thread.
#[derive(Clone)]
pub(super) struct Reads(Arc<Mutex<Option<Sender<ScheduledRead>>>>);

impl Reads {
    pub(super) fn start(
        reader: impl Reader + 'static,
        metrics: Arc<Metrics>,
    ) -> Result<(Self, JoinHandle<()>)> {
        let (jobs, waiting) = channel();
        let thread = std::thread::Builder::new()
            .name("openkv-reader".into())
            .spawn(move || serve(reader, &waiting, &metrics))
            .map_err(|error| Error::unavailable(error.to_string()))?;
        Ok((Self(Arc::new(Mutex::new(Some(jobs)))), thread))
    }

    /// Runs the job after those before it. If the queue is closed, the job runs at once, without a
    /// snapshot.
    pub(super) fn send(&self, env: Arc<dyn Env>, job: ReadJob) {
        self.hand_over(ScheduledRead { job, env, at: None });
    }

    /// As [`Self::send`], after a wait. On closing, the job runs without a snapshot.
    pub(super) fn send_after(&self, wait: Duration, env: Arc<dyn Env>, job: ReadJob) {
        let at = (!wait.is_zero()).then(|| Instant::now() + wait);
        self.hand_over(ScheduledRead { job, env, at });
    }

    fn hand_over(&self, sent: ScheduledRead) {
        let jobs = self.0.lock().clone();
        let unsent = match jobs {
            Some(jobs) => jobs.send(sent).err().map(|unsent| unsent.0.job),
            None => Some(sent.job),
        };
        if let Some(job) = unsent {
            job(Err(Error::closed()));
        }
    }

    pub(super) fn close(&self) {
        self.0.lock().take();
    }
}

fn serve(mut reader: impl Reader, waiting: &Receiver<ScheduledRead>, metrics: &Metrics) {
    let mut later = Vec::new();
    while let Some(first) = next(waiting, &mut later) {
        let mut next = Some(first);
        let mut held = Instant::now();
        while let Some(sent) = next {
            if sent.is_due() {
                serve_one(&mut reader, sent.env.now_ms(), sent.job);
            } else {
                later.push(sent);
            }
            next = due(&mut later).or_else(|| waiting.try_recv().ok());
            // An old snapshot would keep the WAL from restarting while reads follow each other.
            if held.elapsed() > Duration::from_millis(READER_HELD_MS_MAX) {
                reader.release();
                held = Instant::now();
            }
        }
        // A snapshot is kept only between consecutive jobs, because an open one blocks checkpoints.
        reader.release();
        metrics.cached(reader.take_cache_counts());
    }
    for ScheduledRead { job, .. } in later {
        job(Err(Error::closed()));
    }
}

/// One of the delayed jobs that are due.
fn due(later: &mut Vec<ScheduledRead>) -> Option<ScheduledRead> {
    let place = later.iter().position(ScheduledRead::is_due)?;
    Some(later.swap_remove(place))
}

/// Waits for a job, or until a delayed one is due; `None` when closed.
fn next(
    waiting: &Receiver<ScheduledRead>,
    later: &mut Vec<ScheduledRead>,
) -> Option<ScheduledRead> {
    loop {
        if let Some(sent) = due(later) {
            return Some(sent);
        }
        let Some(at) = later.iter().filter_map(|sent| sent.at).min() else {
            return waiting.recv().ok();
        };
        match waiting.recv_timeout(at.saturating_duration_since(Instant::now())) {
            Ok(sent) => return Some(sent),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
}

/// Runs one job. A job that panics is dropped, and its reply detects that. The thread continues,
/// because `send` expects it to end only on closing.
fn serve_one(reader: &mut impl Reader, now_ms: i64, job: ReadJob) {
    let answered = catch_unwind(AssertUnwindSafe(|| answer(reader, now_ms, job)));
    if answered.is_err() {
        tracing::error!("a read ended by a panic; please report this");
        reader.release();
    }
}

/// Runs a job on a current snapshot of a reader.
pub(super) fn answer(reader: &mut (impl Reader + ?Sized), now_ms: i64, job: ReadJob) {
    answer_while(reader, now_ms, None, job);
}

/// As [`answer`]; the job's calls to its snapshot fail once `goes_on` returns `false`.
pub(super) fn answer_while(
    reader: &mut (impl Reader + ?Sized),
    now_ms: i64,
    goes_on: Option<&GoesOn>,
    job: ReadJob,
) {
    let mut job = Some(job);
    let run = &mut |snapshot: &mut dyn Snapshot| {
        if let Some(job) = job.take() {
            job(Ok(snapshot));
        }
        Ok(())
    };
    let read = match goes_on {
        Some(goes_on) => reader.read_while(now_ms, goes_on, run),
        None => reader.read(now_ms, run),
    };
    if let (Err(error), Some(job)) = (read, job) {
        job(Err(error));
    }
}
