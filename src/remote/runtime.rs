//! The runtime of everything remote: one for a process, there while a database elsewhere is open.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::model::{Error, Kind, Result};

/// Keeps the runtime there.
pub(super) struct Shared(Option<Runtime>);

static RUNTIME: Mutex<Weak<Shared>> = Mutex::new(Weak::new());

/// The runtime, started by the first who asks.
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
    /// The way to it.
    pub(super) fn handle(&self) -> Result<&Handle> {
        self.0.as_ref().map(Runtime::handle).ok_or_else(Error::closed)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // By the last task perhaps, which cannot wait for its own end.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
