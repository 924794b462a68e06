//! When a leader takes a snapshot, merges objects of the log, and deletes what no reader needs any more.

use std::sync::Arc;
use std::thread::JoinHandle;

use super::Local;
use super::lead::{Lead, Role};
use super::merging::Merges;
use openkv_core::chain::Deletion;
use openkv_core::model::{BUCKET_SNAPSHOT_BYTES_MIN, Error, Result};

/// The snapshots of a process, and its thread for them while there is work.
#[derive(Default)]
pub(super) struct Snapshots {
    running: Option<Running>,
    rules: Rules,
    /// The next look at what may be deleted, by the clock of [`Lead`].
    look_ms: u64,
    /// A snapshot that has failed is tried again from then on, and so are copies of the log.
    upload_ms: u64,
    merge_ms: u64,
}

struct Running {
    thread: JoinHandle<Done>,
    /// The weight of the log for which a snapshot is taken; 0 without one.
    weight: u64,
}

/// The rules of deletion, the last object of the log that was deleted by them, and the copies of the log.
#[derive(Default)]
struct Rules {
    deletion: Deletion,
    deleted: Option<u64>,
    merges: Merges,
}

/// The rules come back from the thread that has used them.
struct Done {
    rules: Rules,
    /// Whether the snapshot was taken, if one was due, and the log copied.
    taken: bool,
    merged: bool,
}

impl Snapshots {
    /// Takes a snapshot when the log behind the last one is long, copies objects of the log when there are enough, and
    /// deletes what is not needed.
    pub(super) fn tend(&mut self, lead: &Arc<Lead>, local: &Arc<Local>) {
        let now_ms = lead.now_ms();
        self.take_back(lead, now_ms);
        let file_bytes = local.cache.file().metadata().map_or(0, |found| found.len());
        let most = (file_bytes / 2).max(BUCKET_SNAPSHOT_BYTES_MIN);
        let mut state = lead.state.lock();
        let Role::Leads(leading) = &state.role else { return };
        let (next, epoch) = (leading.window.position().next, leading.window.position().epoch);
        let is_due = state.weight >= most && now_ms >= self.upload_ms;
        let looks = is_due || now_ms >= self.look_ms;
        let merges = now_ms >= self.merge_ms && self.rules.merges.is_due(epoch, next);
        if self.running.is_some() || !(looks || merges) {
            return;
        }
        let weight = if is_due { std::mem::take(&mut state.weight) } else { 0 };
        drop(state);
        if looks {
            self.look_ms = now_ms + 4 * lead.lease_ms;
        }
        let mut rules = std::mem::take(&mut self.rules);
        let (of, local) = (lead.clone(), local.clone());
        let job = move || {
            let mut taken = true;
            if is_due {
                let uploaded = succeeds(local.cache.upload(&local.engine, &of.objects));
                taken = uploaded.is_some();
                if let Some(mark) = uploaded.flatten() {
                    rules.merges.contained(mark.number);
                }
            }
            if looks {
                succeeds(rules.delete(&of, next));
            }
            let goes_on = || !of.state.lock().closing;
            let run = |merges: &mut Merges| merges.run(&of.objects, (epoch, next), goes_on);
            let merged = !merges || succeeds(run(&mut rules.merges)).is_some();
            Done { rules, taken, merged }
        };
        match std::thread::Builder::new().name("openkv-snapshot".into()).spawn(job) {
            Ok(thread) => self.running = Some(Running { thread, weight }),
            Err(error) => {
                tracing::warn!(%error, "starting a thread for a snapshot");
                self.was_not_taken(lead, weight, now_ms);
            }
        }
    }

    fn take_back(&mut self, lead: &Lead, now_ms: u64) {
        let Some(Running { thread, weight }) =
            self.running.take_if(|running| running.thread.is_finished())
        else {
            return;
        };
        let (taken, merged) = match thread.join() {
            Ok(Done { rules, taken, merged }) => {
                self.rules = rules;
                (taken, merged)
            }
            Err(_) => (false, false),
        };
        if !merged {
            self.merge_ms = now_ms + lead.lease_ms;
        }
        match taken {
            // Counts from now on.
            true if weight > 0 => self.look_ms = 0,
            true => {}
            false => self.was_not_taken(lead, weight, now_ms),
        }
    }

    /// The log behind the last snapshot is as long as before.
    fn was_not_taken(&mut self, lead: &Lead, weight: u64, now_ms: u64) {
        lead.state.lock().weight += weight;
        self.upload_ms = now_ms + 4 * lead.lease_ms;
    }

    /// Waits for the work under way.
    pub(super) fn finish(&mut self) {
        if let Some(Running { thread, .. }) = self.running.take() {
            drop(thread.join());
        }
    }
}

impl Rules {
    fn delete(&mut self, lead: &Arc<Lead>, next: u64) -> Result<()> {
        let listed = lead.objects.snapshots()?;
        let (last, old) = self.deletion.look(&listed, next, lead.now_ms(), lead.lease_ms);
        let new = last.filter(|_| last > self.deleted);
        let of = lead.clone();
        lead.objects.delete(new, &old, move || !of.state.lock().closing)?;
        self.deleted = self.deleted.max(new);
        Ok(())
    }
}

fn succeeds<T>(done: Result<T>) -> Option<T> {
    let failed =
        |error: &Error| tracing::warn!(%error, "a snapshot of a database in an object store");
    done.inspect_err(failed).ok()
}
