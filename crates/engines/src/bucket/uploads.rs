//! The creation of objects of the log, several at a time, each on a thread that waits for its answer.
//!
//! Invariant: each creation that has begun ends once, also if its thread panics.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::lead::{Lead, unknown};
use super::objects::{Object, Objects};
use crate::Wake;
use crate::objects::Created;
use openkv_core::chain::decode;
use openkv_core::model::{
    BUCKET_BATCHES_IN_FLIGHT_MAX, BUCKET_COMMIT_MS_MAX, BUCKET_LINGER_SAMPLES, BUCKET_RETRY_MS,
    BUCKET_UPLOAD_IDLE_MS, Error, Kind, Result,
};

/// Creates an object of the log until an object with its number is known.
///
/// # Errors
/// `OutcomeUnknown` if it may exist, or come into existence; after every other error nothing was created.
pub(super) fn create(objects: &Objects, number: u64, bytes: &[u8]) -> Result<Object> {
    let deadline = Instant::now() + Duration::from_millis(BUCKET_COMMIT_MS_MAX);
    // A request may have created it.
    let mut is_open = false;
    loop {
        let found = match objects.create(number, bytes) {
            Ok(Created::New) => {
                let (entry, _, digest) =
                    decode(bytes).map_err(|error| unknown(&Error::internal(error.to_string())))?;
                let bytes = bytes.len() as u64;
                return Ok(Object { entry, digest, content: Vec::new(), bytes });
            }
            Ok(Created::Exists) => {
                is_open = true;
                objects.fill(number, bytes)
            }
            Err(error) => Err(error),
        };
        match found {
            Ok(object) => return Ok(object),
            // The store would answer the same again.
            Err(error) if error.kind() == Kind::OutcomeUnknown => return Err(unknown(&error)),
            Err(error) if error.kind() == Kind::Denied => {
                return Err(if is_open { unknown(&error) } else { error });
            }
            Err(error) if Instant::now() >= deadline => return Err(unknown(&error)),
            Err(error) => tracing::warn!(%error, "creating an object of the log"),
        }
        is_open = true;
        std::thread::sleep(Duration::from_millis(BUCKET_RETRY_MS));
    }
}

/// A creation that has ended, with the errors of [`create`].
pub(super) struct Uploaded {
    pub(super) number: u64,
    pub(super) found: Result<Object>,
}

/// The creations of one leader.
pub(super) struct Uploads {
    lead: Arc<Lead>,
    line: Arc<Line>,
    times: Arc<Mutex<VecDeque<Duration>>>,
    wake: Arc<Mutex<Option<Wake>>>,
}

/// Threads and their work.
#[derive(Default)]
struct Line {
    jobs: Mutex<Jobs>,
    /// There is a job, or no more will come.
    arrived: Condvar,
    /// A job has ended.
    ended: Condvar,
}

#[derive(Default)]
struct Jobs {
    waiting: VecDeque<(u64, Vec<u8>)>,
    /// Jobs that have begun or wait.
    under_way: usize,
    ended: VecDeque<Uploaded>,
    threads: usize,
    /// Threads that wait for a job.
    idle: usize,
    closed: bool,
}

impl Uploads {
    pub(super) fn new(lead: Arc<Lead>) -> Self {
        Self { lead, line: Arc::default(), times: Arc::default(), wake: Arc::default() }
    }

    /// Calls `wake` after each creation.
    pub(super) fn on_ended(&self, wake: Wake) {
        *self.wake.lock() = Some(wake);
    }

    /// The shortest time that one of the last creations took; zero before the first one.
    pub(super) fn shortest(&self) -> Duration {
        self.times.lock().iter().min().copied().unwrap_or_default()
    }

    /// Wakes the leader, as the end of a creation does.
    pub(super) fn wake(&self) {
        wake(&self.wake);
    }

    /// Begins to create an object.
    pub(super) fn begin(&self, number: u64, bytes: Vec<u8>) {
        let mut jobs = self.line.jobs.lock();
        jobs.under_way += 1;
        jobs.waiting.push_back((number, bytes));
        if jobs.idle >= jobs.waiting.len() {
            self.line.arrived.notify_one();
        } else if jobs.threads < BUCKET_BATCHES_IN_FLIGHT_MAX {
            let (lead, line, wake) = (self.lead.clone(), self.line.clone(), self.wake.clone());
            let times = self.times.clone();
            let work = move || line.work(&lead.objects, &times, &wake);
            match std::thread::Builder::new().name("openkv-upload".into()).spawn(work) {
                Ok(_) => jobs.threads += 1,
                // Another thread takes the job.
                Err(error) if jobs.threads > 0 => tracing::warn!(%error, "a thread for uploads"),
                Err(error) => {
                    jobs.waiting.pop_back();
                    jobs.under_way -= 1;
                    let found = Err(Error::unavailable(format!("a thread for uploads: {error}")));
                    jobs.ended.push_back(Uploaded { number, found });
                    drop(jobs);
                    self.wake();
                }
            }
        }
    }

    /// A creation that has ended.
    pub(super) fn next(&self) -> Option<Uploaded> {
        self.line.jobs.lock().ended.pop_front()
    }

    /// As [`Uploads::next`], waits for one that is under way.
    pub(super) fn wait_for_next(&self) -> Option<Uploaded> {
        let mut jobs = self.line.jobs.lock();
        loop {
            if let Some(ended) = jobs.ended.pop_front() {
                return Some(ended);
            }
            if jobs.under_way == 0 {
                return None;
            }
            self.line.ended.wait(&mut jobs);
        }
    }

    /// Drops what waits. The leader does not learn of the ends of creations that are under way.
    pub(super) fn forget(&mut self) {
        std::mem::take(&mut self.line).close();
    }
}

impl Drop for Uploads {
    fn drop(&mut self) {
        self.line.close();
    }
}

impl Line {
    fn close(&self) {
        let mut jobs = self.jobs.lock();
        jobs.closed = true;
        jobs.waiting.clear();
        drop(jobs);
        self.arrived.notify_all();
    }

    fn work(
        &self,
        objects: &Objects,
        times: &Mutex<VecDeque<Duration>>,
        wake_leader: &Mutex<Option<Wake>>,
    ) {
        while let Some((number, bytes)) = self.next_job() {
            let panicked = || Err(unknown(&Error::internal("the thread of an upload panicked")));
            let mut job = Job { line: self, wake: wake_leader, number, found: panicked() };
            let begun = Instant::now();
            job.found = create(objects, number, &bytes);
            if job.found.is_ok() {
                let mut times = times.lock();
                if times.len() == BUCKET_LINGER_SAMPLES {
                    times.pop_front();
                }
                times.push_back(begun.elapsed());
            }
        }
    }

    /// Waits for a job; the thread ends without one.
    fn next_job(&self) -> Option<(u64, Vec<u8>)> {
        let mut jobs = self.jobs.lock();
        let until = Instant::now() + Duration::from_millis(BUCKET_UPLOAD_IDLE_MS);
        jobs.idle += 1;
        let mut is_late = false;
        while jobs.waiting.is_empty() && !jobs.closed && !is_late {
            is_late = self.arrived.wait_until(&mut jobs, until).timed_out();
        }
        jobs.idle -= 1;
        let job = jobs.waiting.pop_front();
        if job.is_none() {
            jobs.threads -= 1;
        }
        job
    }
}

/// A creation on its thread; it ends when this is dropped.
struct Job<'l> {
    line: &'l Line,
    wake: &'l Mutex<Option<Wake>>,
    number: u64,
    found: Result<Object>,
}

impl Drop for Job<'_> {
    fn drop(&mut self) {
        let mut jobs = self.line.jobs.lock();
        if std::thread::panicking() {
            jobs.threads -= 1;
        }
        jobs.under_way -= 1;
        let found = std::mem::replace(&mut self.found, Err(Error::closed()));
        jobs.ended.push_back(Uploaded { number: self.number, found });
        let wakes = !jobs.closed;
        drop(jobs);
        self.line.ended.notify_all();
        if wakes {
            wake(self.wake);
        }
    }
}

fn wake(leader: &Mutex<Option<Wake>>) {
    if let Some(wake) = &*leader.lock() {
        wake();
    }
}
