//! Maintenance of the database: statistics, checkpoint, vacuum, backup, integrity check.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::write_queue::WriteQueue;
use super::{Caller, CallerLiveness, Patience, Scan, Store, on_thread};
use openkv_core::model::{Backup, Checkpoint, Result, Stats, Vacuumed};
use openkv_engines::Maintenance;

impl Store {
    /// How large it is, by what this process has of it.
    pub fn stats_at_hand(&self, caller: impl Caller<Stats>) {
        self.read_at_hand(caller, |snapshot, _| snapshot.stats());
    }

    /// How large the database is. With `count` also the number of entries, by a count within these
    /// bounds.
    pub fn stats(&self, count: Option<Arc<Patience>>, caller: impl Caller<(Stats, Option<u64>)>) {
        let Some(patience) = count else {
            return self.read(None, caller, |snapshot, _| Ok((snapshot.stats()?, None)));
        };
        let (mut stats, mut counted) = (None, Scan::all().counted());
        self.long.send_steps(patience, caller, move |snapshot, patience| {
            let stats = match stats {
                Some(stats) => stats,
                None => *stats.insert(snapshot.stats()?),
            };
            Ok(counted(snapshot, patience)?.map(|entries| (stats, Some(entries))))
        });
    }

    /// Moves commits from the log into the file, as far as readers allow it.
    pub fn checkpoint(&self, reply: impl FnOnce(Result<Checkpoint>) + Send + 'static) {
        self.on_writer(|writer| writer.checkpoint(), reply);
    }

    /// Gives the free pages of the database back, while `wanted` holds; other writes come between two steps. `busy`
    /// bounds the wait of each step for other processes.
    pub fn vacuum(
        &self,
        busy: Duration,
        wanted: CallerLiveness,
        reply: impl FnOnce(Result<Vacuumed>) + Send + 'static,
    ) {
        vacuum_from(self.writes.clone(), None, (busy, wanted), reply);
    }

    /// Copies a snapshot into a new file and verifies the copy, on a thread of its own. `step` gets
    /// the pages copied and all pages, and ends the work by answering `false`.
    pub fn backup(
        &self,
        to: PathBuf,
        mut step: impl FnMut(u64, u64) -> bool + Send + 'static,
        reply: impl FnOnce(Result<Backup>) + Send + 'static,
    ) {
        let copy = move |whole: &dyn Maintenance| whole.backup(&to, &mut step);
        self.on_own_thread("openkv-backup", copy, reply);
    }

    /// Checks the integrity of everything, on a thread of its own and while `wanted` holds. The
    /// result is at most `findings_max` findings.
    pub fn check(
        &self,
        findings_max: usize,
        wanted: CallerLiveness,
        reply: impl FnOnce(Result<Vec<String>>) + Send + 'static,
    ) {
        let check = move |whole: &dyn Maintenance| whole.check(findings_max, &wanted);
        self.on_own_thread("openkv-check", check, reply);
    }

    /// Its time grows with the database, and it does not keep the store open.
    fn on_own_thread<T>(
        &self,
        name: &str,
        work: impl FnOnce(&dyn Maintenance) -> Result<T> + Send + 'static,
        reply: impl FnOnce(Result<T>) + Send + 'static,
    ) {
        let whole = self.whole.clone();
        on_thread(name, reply, move |reply| reply(work(&*whole)), |reply, error| reply(Err(error)));
    }
}

/// The steps of a vacuum. `before`: what the steps up to now have done. Pages that become free meanwhile are left to the next
/// vacuum, so that it ends.
fn vacuum_from(
    writes: Arc<WriteQueue>,
    before: Option<Vacuumed>,
    (busy, wanted): (Duration, CallerLiveness),
    reply: impl FnOnce(Result<Vacuumed>) + Send + 'static,
) {
    let queue = writes.clone();
    writes.run(Box::new(move |writer| {
        let step = writer.and_then(|writer| writer.vacuum(Instant::now() + busy, &wanted));
        let done = step.map(|step| match before {
            None => step,
            Some(before) => Vacuumed {
                before_bytes: before.before_bytes,
                steps_left: step.steps_left.min(before.steps_left - 1),
                ..step
            },
        });
        match done {
            Ok(done) if done.steps_left > 0 => {
                vacuum_from(queue, Some(done), (busy, wanted), reply);
            }
            done => reply(done),
        }
    }));
}
