//! Work that takes long, on a thread of its own.

use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::Mutex;

use openkv_core::model::Error;

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
