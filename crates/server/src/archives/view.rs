//! The archive of a database, for the admin API.

use serde::Serialize;

use super::keeper::{Archives, State, Wanted};
use crate::database::Database;
use openkv_core::model::Result;
use openkv_wire::connect::time::to_rfc3339;

/// The archive of a database.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ArchiveView {
    /// `policy` of the database, `server` by its default, or `none`.
    by: &'static str,
    /// The target in use; null without an archive.
    to: Option<String>,
    snapshot_every_ms: Option<i64>,
    retention_ms: Option<i64>,
    /// `off`, `idle`, `starting`, `waiting`, `running` or `failing`.
    state: &'static str,
    versionstamp: Option<String>,
    complete_at: Option<String>,
    lag_ms: Option<u64>,
    objects: u64,
    bytes: u64,
    snapshots: u64,
    snapshot: Option<String>,
    snapshot_at: Option<String>,
    failures: u64,
    gaps: u64,
    pruned: u64,
    error: Option<String>,
}

/// The archive of a database, as it is now.
///
/// # Errors
/// None: builds without archives have some.
pub(crate) fn view(archives: &Archives, database: &Database) -> Result<ArchiveView> {
    let wanted = archives.wanted(database);
    let by = match (database.archive_policy(), &wanted) {
        (Some(_), _) => "policy",
        (None, Some(_)) => "server",
        (None, None) => "none",
    };
    let (state, status) = archives.state(database);
    let state = if wanted.is_none() { State::Off } else { state };
    let status = status.unwrap_or_default();
    let to = Some(status.target).filter(|target| !target.is_empty() && state != State::Off);
    let is_followed = !matches!(state, State::Off | State::Idle);
    let of = |value: fn(&Wanted) -> i64| wanted.as_ref().map(value);
    Ok(ArchiveView {
        by,
        to: to.or_else(|| wanted.as_ref().map(|wanted| wanted.target.clone())),
        snapshot_every_ms: of(|wanted| wanted.snapshot_every_ms),
        retention_ms: of(|wanted| wanted.retention_ms),
        state: state.name(),
        versionstamp: status.versionstamp,
        complete_at: status.complete_ms.map(to_rfc3339),
        lag_ms: is_followed.then_some(status.lag_ms),
        objects: status.objects,
        bytes: status.bytes,
        snapshots: status.snapshots,
        snapshot: status.snapshot,
        snapshot_at: status.snapshot_ms.map(to_rfc3339),
        failures: status.failures,
        gaps: status.gaps,
        pruned: status.pruned,
        error: status.error,
    })
}
