//! A database in an object store: the rules on its leader. After each of them another process, which has no cache, finds
//! in the log what the leader has.

use super::*;
use crate::bucket::{BucketEngine, BucketOptions, LeadMode};
use crate::sqlite::SqliteEngine;
use openkv_core::model::{BEFORE_EXPIRY_MS, Step, Walk};

/// The objects, and the cache of the leader.
struct Compared(tempfile::TempDir);

impl Compared {
    fn open(&self, lead: LeadMode) -> BucketEngine {
        // Longer than any test.
        let url = format!("bucket+file://{}?lease=600s", self.0.path().join("objects").display());
        let cache = (lead != LeadMode::Never).then(|| self.0.path().join("cache"));
        let options = BucketOptions { url, cache, lead, eventual: false, advertise: None };
        BucketEngine::open(&options, &|| true).unwrap()
    }
}

impl Drop for Compared {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let file = self.0.path().join("cache/openkv-cache.sqlite3");
        let leader = SqliteEngine::open(&file, true, Duration::from_secs(5)).unwrap();
        let found = state(&self.open(LeadMode::Never));
        assert_eq!(found, state(&leader));
    }
}

fn fresh() -> (BucketEngine, Compared) {
    let compared = Compared(tempfile::tempdir().unwrap());
    (compared.open(LeadMode::Auto), compared)
}

/// Entries, indexes with their entries, queues without locks, and kept metrics, each as a line. Not dead letters: each
/// leader purges those whose retention is over.
fn state(engine: &impl Engine) -> Vec<String> {
    read(&mut engine.reader().unwrap(), BEFORE_EXPIRY_MS, |snapshot| {
        let mut lines = vec![format!("{:?}", snapshot.kept_metrics()?)];
        let walk = Walk { start: &[], end: &[0xff], reverse: false, values: true };
        snapshot.walk(walk, &mut |seen| {
            let (row, end) = (seen.row, seen.expire_at_ms);
            let value = row.value.get(..row.value.len().min(40));
            lines.push(format!("{:?} {:?} {value:?} {end:?}", row.key, row.stamp));
            Step::Next
        })?;
        lines.extend(snapshot.indexes(true)?.iter().map(|info| format!("{info:?}")));
        for index in snapshot.value_indexes()?.iter() {
            lines.push(format!("{:?}", index.info));
            // Nobody reads or changes a failed one.
            let end: &[u8] = if index.is_kept() { &[0xff] } else { &[] };
            snapshot.walk_index(index.info.id, (&[], end), false, &mut |entry| {
                lines.push(format!("{entry:?}"));
                true
            })?;
        }
        let mut queues = snapshot.queues()?;
        for queue in queues.names(1_000)? {
            let stats = queues.stats(&queue)?;
            let waiting = stats.pending + stats.delayed + stats.processing;
            lines.push(format!("{queue} {waiting} {}", stats.paused));
        }
        Ok(lines)
    })
}

rules_of_every_engine!(super::fresh());
rules_of_search!(super::fresh());
rules_of_value_indexes!(super::fresh());
rules_of_history!(super::fresh());

/// The counters were in the copy of the leader alone.
#[test]
fn kept_metrics_are_in_the_log() {
    let (engine, _keep) = fresh();
    let mut writer = engine.writer().unwrap();
    for at in 0..2_usize {
        let mut merge = |kept: Option<&str>| format!("{}{at}", kept.unwrap_or_default());
        writer.keep_metrics(&mut merge, soon()).unwrap();
    }
    let kept = read(&mut engine.reader().unwrap(), NOW, |snapshot| snapshot.kept_metrics());
    assert_eq!(kept.as_deref(), Some("01"));
}
