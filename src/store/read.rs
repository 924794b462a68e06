//! The reader thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use parking_lot::Mutex;

use crate::engine::{GoesOn, Reader, Snapshot};
use crate::metrics::Metrics;
use crate::model::{Env, Error, Kind, Result};

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
type Sent = (Arc<dyn Env>, ReadJob);

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
        let jobs = self.0.lock().clone();
        let unsent = match jobs {
            Some(jobs) => jobs.send((env, job)).err().map(|unsent| unsent.0.1),
            None => Some(job),
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
    while let Ok(first) = waiting.recv() {
        let mut next = Some(first);
        while let Some((env, job)) = next {
            // A job that panics is dropped, which its reply notices; the thread is there for all
            // others, and closing is the only end that `send` knows.
            let answered = catch_unwind(AssertUnwindSafe(|| {
                answer(&mut reader, env.now_ms(), job);
            }));
            if answered.is_err() {
                tracing::error!("a read ended by a panic; please report this");
                reader.release();
            }
            next = waiting.try_recv().ok();
        }
        // A snapshot is kept only while jobs follow each other: a held one blocks checkpoints.
        reader.release();
        metrics.cached(reader.take_cache_looks());
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
