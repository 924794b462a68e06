//! The async runtime of all remote databases of a process. It runs while one of them is open.

use std::future::Future;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle, Runtime};

use openkv_core::model::{Error, Result};

/// Keeps the runtime running.
pub(super) struct SharedRuntime {
    pub(super) handle: Handle,
    /// Taken by the end.
    runtime: Option<Runtime>,
}

/// Runs tasks on the runtime of remote databases, which runs while this is held.
#[derive(Clone)]
pub struct Tasks(pub(super) Arc<SharedRuntime>);

impl Tasks {
    /// Starts the runtime, if it does not run.
    ///
    /// # Errors
    /// `Unavailable` if the system has no thread for it.
    pub fn start() -> Result<Self> {
        shared().map(Self)
    }

    /// Runs a task.
    pub fn run(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.spawn(task);
    }

    /// Waits for a future on this thread, which must not be one of the runtime.
    pub fn wait_for<T>(&self, future: impl Future<Output = T>) -> T {
        self.0.handle.block_on(future)
    }
}

static RUNTIME: Mutex<Weak<SharedRuntime>> = Mutex::new(Weak::new());

/// The runtime, started on first use.
pub(super) fn shared() -> Result<Arc<SharedRuntime>> {
    let mut place = RUNTIME.lock();
    if let Some(there) = place.upgrade() {
        return Ok(there);
    }
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("openkv-remote")
        .enable_all()
        .build()
        .map_err(|error| Error::unavailable(format!("no runtime: {error}")))?;
    let handle = runtime.handle().clone();
    let shared = Arc::new(SharedRuntime { handle, runtime: Some(runtime) });
    *place = Arc::downgrade(&shared);
    Ok(shared)
}

impl SharedRuntime {
    /// Runs a task, which keeps the runtime running.
    pub(super) fn spawn(self: &Arc<Self>, task: impl Future<Output = ()> + Send + 'static) {
        let keep = self.clone();
        self.handle.spawn(async move {
            task.await;
            drop(keep);
        });
    }
}

impl Drop for SharedRuntime {
    fn drop(&mut self) {
        // The last task may drop it, and a task cannot wait for its own end.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
