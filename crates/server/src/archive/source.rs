//! What an archiver asks its database: the state of the log, and its segments in one snapshot.
//!
//! Never: two snapshots for one decision: between them the log can lose its oldest segments.

use std::time::Duration;

use super::plan::{End, Source};
use openkv_core::model::{Error, LogBounds, LogExtent, LogSettings, LogState, Result, Setting};
use openkv_engines::ReplicationLog;
use openkv_store::Store;

/// Longest wait for other processes when the log is turned on.
const BUSY: Duration = Duration::from_secs(10);

/// Reads the log in one snapshot.
pub(super) fn in_snapshot(
    store: &Store,
    read: &mut dyn FnMut(&mut dyn ReplicationLog) -> Result<()>,
) -> Result<()> {
    let mut reader = store.reader()?;
    reader.read(store.now_ms(), &mut |snapshot| read(&mut *snapshot.log()?))?;
    reader.release();
    Ok(())
}

/// The state of the database at the end of its archive.
pub(super) fn source_of(store: &Store, end: End<'_>) -> Result<Source> {
    let mut found = None;
    in_snapshot(store, &mut |log| {
        let LogState { version, log: extent } = log.state()?;
        let place = |log: &mut dyn ReplicationLog, version| log.at_commit(version);
        let last = end.last.map(|last| place(log, last.version)).transpose()?.flatten();
        let newest = end.snapshots.last().map(|newest| place(log, newest.name.version));
        let newest = newest.transpose()?.flatten();
        found = extent.map(|LogExtent { complete, .. }| Source { version, complete, last, newest });
        Ok(())
    })?;
    found.ok_or_else(|| {
        Error::unavailable("the replication log was turned off while the archiver began")
    })
}

pub(super) fn log_of(store: &Store) -> Result<LogState> {
    let mut found = None;
    in_snapshot(store, &mut |log| {
        found = Some(log.state()?);
        Ok(())
    })?;
    found.ok_or_else(|| Error::internal("a read without a snapshot"))
}

pub(super) fn turn_on(store: &Store) -> Result<()> {
    let log = Setting::On(LogBounds::default());
    let settings = LogSettings { log, ..LogSettings::default() };
    store.set_log(settings, BUSY)
}
