//! The state of an archiver, which its thread writes and its owner reads.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use serde::Serialize;

use super::names::shown;
use super::plan::Lost;
use openkv_core::model::Error;
use openkv_store::metrics::ArchiveFigures;

/// Reports that are kept until they are read.
const REPORTS_MAX: usize = 20;

/// The state of an archiver.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// `starting`, `waiting` for another archiver, `running`, `failing` or `stopped`.
    pub state: &'static str,
    /// The target in use; empty before it is known.
    pub target: String,
    /// How long ago it had everything, or began, in ms.
    pub lag_ms: u64,
    /// The last archived commit.
    pub versionstamp: Option<String>,
    /// The database had no later commit then, in ms since the epoch.
    pub complete_ms: Option<i64>,
    /// Objects written since the start, with those of snapshots.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Segments of the log in them.
    pub segments: u64,
    /// Snapshots among the objects.
    pub snapshots: u64,
    /// Attempts that have failed.
    pub failures: u64,
    /// The commit of the newest snapshot of this run.
    pub snapshot: Option<String>,
    /// When it was taken, in ms since the epoch.
    pub snapshot_ms: Option<i64>,
    /// How often the log no longer reached back to the archived commits.
    pub gaps: u64,
    /// Objects removed by the retention.
    pub pruned: u64,
    /// The last error, while it fails, or why it has stopped.
    pub error: Option<String>,
    /// Reports for an operator, the oldest first.
    pub reports: Vec<String>,
}

struct Inner {
    status: Status,
    version: Option<(u64, i64)>,
    /// When it had everything; before that, when it began.
    fresh: Instant,
    /// Whether a snapshot is under way.
    taking: bool,
    stopped: bool,
    ended: bool,
}

/// The state of an archiver, and whether it is to stop.
pub(super) struct ArchiverState {
    inner: Mutex<Inner>,
    changed: Condvar,
}

impl ArchiverState {
    /// The state of an archiver that begins, with the counts of one of the same database before it.
    pub(super) fn after(previous: Option<&Self>) -> Self {
        let (status, fresh) = match previous {
            None => (Status::default(), Instant::now()),
            Some(previous) => (previous.status(true), previous.inner.lock().fresh),
        };
        let status = Status { state: "starting", target: String::new(), ..status };
        let inner =
            Inner { status, version: None, fresh, taking: false, stopped: false, ended: false };
        Self { inner: Mutex::new(inner), changed: Condvar::new() }
    }

    /// The state; `take` removes the reports.
    pub(super) fn status(&self, take: bool) -> Status {
        let mut inner = self.inner.lock();
        let lag_ms = u64::try_from(inner.fresh.elapsed().as_millis()).unwrap_or(u64::MAX);
        let status = Status { lag_ms, ..inner.status.clone() };
        if take {
            inner.status.reports.clear();
        }
        status
    }

    /// The state for metrics; `None` once it has ended on request. `is_retried`: another one goes on after
    /// an error.
    pub(super) fn figures(&self, to: &str, is_retried: bool) -> Option<ArchiveFigures> {
        let Status {
            state,
            lag_ms,
            objects,
            bytes,
            snapshots,
            failures,
            gaps,
            pruned,
            versionstamp,
            snapshot_ms,
            error,
            target: _,
            complete_ms: _,
            segments: _,
            snapshot: _,
            reports: _,
        } = self.status(false);
        let has_ended = state == "stopped";
        (!has_ended || error.is_some()).then(|| ArchiveFigures {
            to: to.to_owned(),
            state: if has_ended && is_retried { "failing" } else { state },
            lag_ms: Some(lag_ms as f64),
            versionstamp,
            objects,
            bytes,
            snapshots,
            failures,
            gaps,
            pruned,
            snapshot_ms,
        })
    }

    /// Whether everything is archived, and no snapshot is under way.
    pub(super) fn is_settled(&self) -> bool {
        let inner = self.inner.lock();
        inner.version.is_some() && !inner.taking
    }

    pub(super) fn set_taking(&self, taking: bool) {
        self.inner.lock().taking = taking;
    }

    pub(super) fn set_target(&self, name: &str) {
        name.clone_into(&mut self.inner.lock().status.target);
    }

    /// Waits; returns whether the archiver is to stop.
    pub(super) fn wait(&self, pause: Duration) -> bool {
        let mut inner = self.inner.lock();
        if !inner.stopped {
            self.changed.wait_for(&mut inner, pause);
        }
        inner.stopped
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.inner.lock().stopped
    }

    pub(super) fn stop(&self) {
        self.inner.lock().stopped = true;
        self.changed.notify_all();
    }

    /// Waits until the archiver has ended.
    pub(super) fn wait_ended(&self) {
        let mut inner = self.inner.lock();
        while !inner.ended {
            self.changed.wait(&mut inner);
        }
    }

    /// Waits until the archiver has ended, at most until then; returns whether it has.
    pub(super) fn wait_ended_until(&self, deadline: Instant) -> bool {
        let mut inner = self.inner.lock();
        while !inner.ended && !self.changed.wait_until(&mut inner, deadline).timed_out() {}
        inner.ended
    }

    pub(super) fn tell_waiting(&self) {
        self.inner.lock().status.state = "waiting";
    }

    pub(super) fn began(&self) {
        let mut inner = self.inner.lock();
        inner.status.state = "running";
        // That of an attempt before.
        inner.status.error = None;
    }

    pub(super) fn ended(&self, error: Option<&Error>) {
        let mut inner = self.inner.lock();
        inner.status.state = "stopped";
        inner.status.error = error.map(|error| error.message().to_owned());
        inner.status.failures += u64::from(error.is_some());
        inner.ended = true;
        drop(inner);
        self.changed.notify_all();
    }

    pub(super) fn failing(&self, error: &Error) {
        tracing::warn!(%error, "archiving");
        let mut inner = self.inner.lock();
        inner.status.state = "failing";
        inner.status.failures += 1;
        inner.status.error = Some(error.message().to_owned());
    }

    pub(super) fn report(&self, text: String) {
        tracing::warn!("{text}");
        let mut inner = self.inner.lock();
        if inner.status.reports.len() >= REPORTS_MAX {
            inner.status.reports.remove(0);
        }
        inner.status.reports.push(text);
    }

    pub(super) fn gap(&self, lost: Lost) {
        self.inner.lock().status.gaps += 1;
        let (archived, complete) = (shown(lost.archived), shown(lost.complete));
        self.report(format!(
            "the replication log begins after the commit {complete}, and the archive ends with {archived}: the \
             commits between are lost for restores; the archive goes on from a later snapshot. A larger log.maxBytes or log.retention \
             of the database bridges longer pauses of the archiver"
        ));
    }

    pub(super) fn wrote(&self, bytes: u64, segments: u64, last: u64) {
        let mut inner = self.inner.lock();
        inner.status.objects += 1;
        inner.status.bytes += bytes;
        inner.status.segments += segments;
        inner.status.versionstamp = Some(shown(last));
    }

    pub(super) fn took(&self, version: u64, taken_ms: i64, bytes: u64) {
        let mut inner = self.inner.lock();
        inner.status.objects += 1;
        inner.status.snapshots += 1;
        inner.status.bytes += bytes;
        inner.status.snapshot = Some(shown(version));
        inner.status.snapshot_ms = Some(taken_ms);
    }

    pub(super) fn pruned(&self, objects: u64) {
        self.inner.lock().status.pruned += objects;
    }

    /// Everything up to a commit is archived; there is no later one at this time.
    pub(super) fn complete(&self, version: u64, now_ms: i64) {
        let mut inner = self.inner.lock();
        inner.version = Some((version, now_ms));
        inner.fresh = Instant::now();
        inner.status.versionstamp = Some(shown(version));
        inner.status.complete_ms = Some(now_ms);
        inner.status.state = "running";
        inner.status.error = None;
    }

    pub(super) fn completed(&self) -> Option<(u64, i64)> {
        self.inner.lock().version
    }
}
