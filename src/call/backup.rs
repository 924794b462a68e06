//! Backups and integrity checks.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;

use super::Call;
use crate::codec::Malformed;
use crate::protocol::frame::{frame_of, push_copied};

/// Most findings of one integrity check.
const FINDINGS_MAX: usize = 100;

/// A frame that is too short.
const CUT: Malformed = Malformed::new("the frame is cut short", 0);

/// The progress of a copy, and whether to end it.
#[derive(Default)]
pub struct Progress {
    done: AtomicU64,
    all: AtomicU64,
    ended: AtomicBool,
}

impl Progress {
    /// Records the pages done and all pages; returns whether to go on.
    pub fn step(&self, done: u64, all: u64) -> bool {
        self.done.store(done, Ordering::Relaxed);
        self.all.store(all, Ordering::Relaxed);
        !self.ended.load(Ordering::Relaxed)
    }

    /// The pages done and all pages; 0 while unknown.
    pub fn pages(&self) -> [f64; 2] {
        [&self.done, &self.all].map(|pages| pages.load(Ordering::Relaxed) as f64)
    }

    /// Ends the copy at its next step.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

/// The name of a backup. JavaScript draws it at random, because its threads share no counter.
type Name = [u8; 8];

/// The backups that are under way.
static BACKUPS: LazyLock<Mutex<HashMap<Name, Arc<Progress>>>> = LazyLock::new(Mutex::default);

/// A backup's entry in the table, which is removed with it.
struct UnderWay(Name);

impl UnderWay {
    fn new(name: Name, progress: Arc<Progress>) -> Self {
        BACKUPS.lock().insert(name, progress);
        Self(name)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        BACKUPS.lock().remove(&self.0);
    }
}

/// Frame: name(8), path. Answer: f64 bytes, f64 entries, stamp, SHA-256 as 32 bytes.
pub(super) fn backup(frame: &[u8], Call { store, reply, .. }: Call) {
    let Some((&name, path)) = frame.split_first_chunk() else { return reply.bad(CUT) };
    let path = PathBuf::from(String::from_utf8_lossy(path).as_ref());
    let progress = Arc::<Progress>::default();
    let under_way = UnderWay::new(name, progress.clone());
    store.backup(
        path,
        move |done, all| progress.step(done, all),
        move |copied| {
            drop(under_way);
            reply.tell(copied.map(|copy| frame_of(|out| push_copied(out, &copy))));
        },
    );
}

/// Frame: name(8), u8 whether it is to end. Answer: f64 pages done, f64 pages in all.
pub(super) fn progress(frame: &[u8], Call { reply, .. }: Call) {
    let Some((name, &[end])) = frame.split_first_chunk() else { return reply.bad(CUT) };
    let progress = BACKUPS.lock().get(name).cloned().unwrap_or_default();
    if end != 0 {
        progress.end();
    }
    reply.good(progress.pages().map(f64::to_le_bytes).concat());
}

/// Answer: one finding a line.
pub(super) fn check(_frame: &[u8], Call { store, reply, .. }: Call) {
    let wanted = reply.still_wanted();
    store.check(FINDINGS_MAX, wanted, |findings| {
        reply.tell(findings.map(|findings| findings.join("\n").into_bytes()));
    });
}
