//! Work that takes long, on a thread of its own.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use openkv_core::model::{Error, STORE_THREAD_IDLE_MS};

/// Does `work` with `reply` on a thread of this name. If the system starts no thread, `refuse` gets the
/// reply and the error, which is `Unavailable`.
pub fn on_thread<R: Send + 'static>(
    name: &str,
    reply: R,
    work: impl FnOnce(R) + Send + 'static,
    refuse: impl FnOnce(R, Error),
) {
    // The work is dropped where its thread cannot be started; the reply must not be.
    let here = Arc::new(Mutex::new(Some(reply)));
    let there = here.clone();
    let run = move || {
        let reply = there.lock().take();
        reply.map(work);
    };
    if let Err(error) = std::thread::Builder::new().name(name.to_owned()).spawn(run)
        && let Some(reply) = here.lock().take()
    {
        refuse(reply, not_started(name, &error));
    }
}

/// The threads that open and close databases. No job waits behind another: a thread is started unless one is free,
/// and ends after `STORE_THREAD_IDLE_MS` without a job.
struct FileThreads {
    jobs: Mutex<FileJobs>,
    arrived: Condvar,
}

struct FileJobs {
    waiting: VecDeque<Box<dyn FnOnce() + Send>>,
    /// Threads that wait for a job.
    idle: usize,
}

static FILE_THREADS: FileThreads = FileThreads {
    jobs: Mutex::new(FileJobs { waiting: VecDeque::new(), idle: 0 }),
    arrived: Condvar::new(),
};

/// As [`on_thread`], on one of the threads that open and close databases.
pub fn on_file_thread<R: Send + 'static>(
    reply: R,
    work: impl FnOnce(R) + Send + 'static,
    refuse: impl FnOnce(R, Error),
) {
    let threads = &FILE_THREADS;
    let mut jobs = threads.jobs.lock();
    if jobs.idle > jobs.waiting.len() {
        jobs.waiting.push_back(Box::new(move || work(reply)));
        threads.arrived.notify_one();
        return;
    }
    drop(jobs);
    let serve = move |reply| {
        work(reply);
        threads.serve();
    };
    on_thread("openkv-files", reply, serve, refuse);
}

impl FileThreads {
    /// Takes jobs until none came for a while.
    fn serve(&self) {
        while let Some(job) = self.next() {
            job();
        }
    }

    fn next(&self) -> Option<Box<dyn FnOnce() + Send>> {
        let end = Instant::now() + Duration::from_millis(STORE_THREAD_IDLE_MS);
        let mut jobs = self.jobs.lock();
        jobs.idle += 1;
        while jobs.waiting.is_empty() && Instant::now() < end {
            self.arrived.wait_until(&mut jobs, end);
        }
        jobs.idle -= 1;
        jobs.waiting.pop_front()
    }
}

/// Whether it is the thread of the caller.
pub(super) fn is_this(thread: &JoinHandle<()>) -> bool {
    thread.thread().id() == std::thread::current().id()
}

/// The error of work whose thread the system does not start.
pub(super) fn not_started(name: &str, error: &std::io::Error) -> Error {
    Error::unavailable(format!(
        "the thread {name} cannot be started: {error}; try again later, or raise the limit of \
         threads of the process, its user or its container"
    ))
}
