//! The reader thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::engine::{GoesOn, Reader, Snapshot};
use crate::metrics::Metrics;
use crate::model::{Env, Error, Kind, READER_HELD_MS_MAX, Result};

/// What is to be done with a snapshot. It is called once; an error means that there is none.
pub type ReadJob = Box<dyn FnOnce(Result<&mut dyn Snapshot>) + Send>;

/// How long an answer may get: asked, on the store's threads, while it comes to be.
pub trait Room: Send + Sync {
    /// Whether there is room for so many bytes of it.
    ///
    /// # Errors
    /// With which the read ends if there is not. `Unavailable`: it is worth another try later.
    fn holds(&self, bytes: usize) -> Result<()>;
}

/// A job on its way, and the clock that it is read by.
struct Sent {
    job: ReadJob,
    env: Arc<dyn Env>,
    /// Not before this time.
    at: Option<Instant>,
}

impl Sent {
    fn is_due(&self) -> bool {
        self.at.is_none_or(|at| at <= Instant::now())
    }
}

/// The way to the reader thread.
#[derive(Clone)]
pub(super) struct Reads(Arc<Mutex<Option<Sender<Sent>>>>);

impl Reads {
    pub(super) fn start(
        reader: impl Reader + 'static,
        metrics: Arc<Metrics>,
    ) -> Result<(Self, JoinHandle<()>)> {
        let (jobs, waiting) = channel();
        let thread = std::thread::Builder::new()
            .name("openkv-reader".into())
            .spawn(move || serve(reader, &waiting, &metrics))
            .map_err(|error| Error::new(Kind::Unavailable, error.to_string()))?;
        Ok((Self(Arc::new(Mutex::new(Some(jobs)))), thread))
    }

    /// Runs the job when those before it are done; at once, and without a snapshot, when closed.
    pub(super) fn send(&self, env: Arc<dyn Env>, job: ReadJob) {
        self.hand_over(Sent { job, env, at: None });
    }

    /// As [`Self::send`], after a while; on closing without a snapshot.
    pub(super) fn send_after(&self, wait: Duration, env: Arc<dyn Env>, job: ReadJob) {
        let at = (!wait.is_zero()).then(|| Instant::now() + wait);
        self.hand_over(Sent { job, env, at });
    }

    fn hand_over(&self, sent: Sent) {
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

fn serve(mut reader: impl Reader, waiting: &Receiver<Sent>, metrics: &Metrics) {
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
            // Else the log could not be begun anew for as long as reads follow each other.
            if held.elapsed() > Duration::from_millis(READER_HELD_MS_MAX) {
                reader.release();
                held = Instant::now();
            }
        }
        // A snapshot is kept only while jobs follow each other: a held one blocks checkpoints.
        reader.release();
        metrics.cached(reader.take_cache_looks());
    }
    for Sent { job, .. } in later {
        job(Err(Error::closed()));
    }
}

/// One of those that were to wait, if its time has come.
fn due(later: &mut Vec<Sent>) -> Option<Sent> {
    let place = later.iter().position(Sent::is_due)?;
    Some(later.swap_remove(place))
}

/// Waits for a job, or until one of those that were to wait is due; `None` when closed.
fn next(waiting: &Receiver<Sent>, later: &mut Vec<Sent>) -> Option<Sent> {
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

/// A job that panics is dropped, which its reply notices; the thread is there for all others, and
/// closing is the only end that `send` knows.
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

/// As [`answer`]; the calls of the job to its snapshot end when `goes_on` says so.
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
