//! The cluster poll: reads what the other servers have changed, every [`CLUSTER_POLL_MS`] and at each refresh
//! ([`super::catalog_refresh`]).
//!
//! Invariant: every change of the shared catalog, as a revoked token, reaches the requests of this
//! server within [`CLUSTER_POLL_MS`] and the time of a trip to the database server.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::catalog::Catalog;
use super::membership::Membership;
use openkv_core::model::{CLUSTER_POLL_MS, Error, Result};

/// Polls at once, and then at intervals until the server ends.
///
/// # Errors
/// Errors of the database server; `Unavailable` if the thread cannot start.
pub(super) fn follow(members: &Arc<Membership>, catalog: &Arc<Catalog>) -> Result<()> {
    poll(members, catalog)?;
    let (with, of) = (Arc::downgrade(members), Arc::downgrade(catalog));
    members.catalog.read_by(Arc::new(move || match (with.upgrade(), of.upgrade()) {
        (Some(members), Some(catalog)) => poll(&members, &catalog),
        _ => Ok(()),
    }));
    let (members, catalog) = (members.clone(), Arc::downgrade(catalog));
    let thread = std::thread::Builder::new().name("openkv-cluster".into());
    let spawned = thread.spawn(move || poll_at_intervals(&members, &catalog));
    spawned.map(drop).map_err(|error| Error::unavailable(error.to_string()))
}

fn poll_at_intervals(members: &Membership, catalog: &Weak<Catalog>) {
    let mut fails = false;
    while members.wait(Duration::from_millis(CLUSTER_POLL_MS)) {
        let Some(catalog) = catalog.upgrade() else { return };
        match poll(members, &catalog) {
            Ok(()) => fails = false,
            Err(error) if !std::mem::replace(&mut fails, true) => {
                tracing::warn!(%error, "asking PostgreSQL about the other servers");
            }
            Err(_) => {}
        }
    }
}

fn poll(members: &Membership, catalog: &Catalog) -> Result<()> {
    let changes = members.poll()?;
    for name in &changes.led_by_others {
        catalog.leader_changed(name);
    }
    if changes.catalog { catalog.refresh() } else { Ok(()) }
}
