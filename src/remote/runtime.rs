//! The async runtime of all remote databases of a process. It runs while one of them is open.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::model::{Error, Kind, Result};

/// Keeps the runtime running.
pub(super) struct Shared(Option<Runtime>);

static RUNTIME: Mutex<Weak<Shared>> = Mutex::new(Weak::new());

/// The runtime, started on first use.
pub(super) fn shared() -> Result<Arc<Shared>> {
    let mut place = RUNTIME.lock();
    if let Some(there) = place.upgrade() {
        return Ok(there);
    }
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("openkv-remote")
        .enable_all()
        .build()
        .map_err(|error| Error::new(Kind::Unavailable, format!("no runtime: {error}")))?;
    let shared = Arc::new(Shared(Some(runtime)));
    *place = Arc::downgrade(&shared);
    Ok(shared)
}

impl Shared {
    /// Its handle.
    pub(super) fn handle(&self) -> Result<&Handle> {
        self.0.as_ref().map(Runtime::handle).ok_or_else(Error::closed)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // The last task may drop it, and a task cannot wait for its own end.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
