//! Backups and integrity checks.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;

use super::{Call, Reply};
use openkv_core::codec::Malformed;
use openkv_wire::protocol::frame::{frame_of, push_copied};

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

    /// Whether the copy is to end.
    pub fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
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
pub struct UnderWay {
    name: Name,
    progress: Arc<Progress>,
}

impl UnderWay {
    /// Its progress, and whether to end it.
    pub fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        BACKUPS.lock().remove(&self.name);
    }
}

/// Begins a backup: the path of its file, and its entry in the table. Frame: name(8), path.
///
/// # Errors
/// A frame that is too short.
pub fn begin_backup(frame: &[u8]) -> Result<(PathBuf, UnderWay), Malformed> {
    let (&name, path) = frame.split_first_chunk().ok_or(CUT)?;
    let path = PathBuf::from(String::from_utf8_lossy(path).as_ref());
    let progress = Arc::<Progress>::default();
    BACKUPS.lock().insert(name, progress.clone());
    Ok((path, UnderWay { name, progress }))
}

/// Frame: that of [`begin_backup`]. Answer: f64 bytes, f64 entries, stamp, SHA-256 as 32 bytes.
pub(super) fn backup(frame: &[u8], Call { store, reply, .. }: Call) {
    let (path, under_way) = match begin_backup(frame) {
        Ok(begun) => begun,
        Err(bug) => return reply.bad(bug),
    };
    let progress = under_way.progress().clone();
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
    backup_progress(frame, reply);
}

/// Answers the progress of a backup, and ends it if the frame says so.
pub fn backup_progress(frame: &[u8], reply: Reply) {
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
