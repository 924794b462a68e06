//! Restoring a backup, with its progress for JavaScript.

use std::path::Path;
use std::sync::Arc;

use napi::Result;
use napi_derive::napi;

use super::attachment;
use super::events::{Event, Reply};
use crate::call::Progress;
use crate::open::{promote as promote_file, restore};
use crate::protocol::frame::{frame_of, push_copied};

/// A running restoration.
#[napi]
pub struct Restore {
    progress: Arc<Progress>,
}

#[napi]
impl Restore {
    /// Starts a restoration, with absolute paths; REPLIED with the fields of a backup, or
    /// CALL_FAILED.
    #[napi(constructor, catch_unwind)]
    #[allow(clippy::new_without_default, reason = "called from JavaScript only")]
    pub fn new(attachment: u32, id: f64, from: String, to: String, replace: bool) -> Result<Self> {
        let events = attachment::find(attachment)?.events;
        let reply = Reply::new(events, id, Event::Replied, Event::CallFailed);
        let progress = Arc::<Progress>::default();
        let shared = progress.clone();
        reply.on_thread("openkv-restore", move |reply| {
            let mut step = |done, all| shared.step(done, all);
            let restored = restore(Path::new(&from), Path::new(&to), replace, &mut step);
            reply.tell(restored.map(|copy| Some(frame_of(|out| push_copied(out, &copy)))));
        });
        Ok(Self { progress })
    }

    /// The number of pages done, and of all pages (0 while unknown).
    #[napi(catch_unwind)]
    pub fn progress(&self) -> Vec<f64> {
        self.progress.pages().to_vec()
    }

    /// Cancels it; CALL_FAILED follows, unless it is already done.
    #[napi(catch_unwind)]
    pub fn cancel(&self) {
        self.progress.end();
    }
}

/// Makes the replica at an absolute path a database of its own; REPLIED or CALL_FAILED.
#[napi(catch_unwind)]
#[allow(clippy::needless_pass_by_value, reason = "JavaScript hands it over")]
pub fn promote(attachment: u32, id: f64, path: String) -> Result<()> {
    let events = attachment::find(attachment)?.events;
    let reply = Reply::new(events, id, Event::Replied, Event::CallFailed);
    reply.on_file_thread(move |reply| {
        reply.tell(promote_file(Path::new(&path)).map(|()| None));
    });
    Ok(())
}
