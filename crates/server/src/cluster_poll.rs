//! The cluster poll: reads what the other servers have changed, at intervals and at each refresh
//! ([`super::catalog_refresh`]).
//!
//! Invariant: every change of the shared catalog, as a revoked token, reaches the requests of this
//! server within [`Membership::poll_interval`] and the time of a trip to the place that they share.

use std::sync::{Arc, Weak};

use super::catalog::Catalog;
use super::membership::Membership;
use openkv_core::model::{Error, Result};

/// Polls at once, and then at intervals until the server ends.
///
/// # Errors
/// Errors of the place; `Unavailable` if the thread cannot start.
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
    while members.wait(members.poll_interval()) {
        let Some(catalog) = catalog.upgrade() else { return };
        match poll(members, &catalog) {
            Ok(()) => fails = false,
            Err(error) if !std::mem::replace(&mut fails, true) => {
                tracing::warn!(%error, "asking for what other servers have changed");
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
    if !members.properties().polls_leaders {
        catalog.tend_leads();
    }
    if changes.catalog { catalog.refresh() } else { Ok(()) }
}
