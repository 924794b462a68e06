//! The lease of a process: while it is renewed, no other process leads the databases of this one.
//!
//! One row for all databases, so that renewals do not wait for the locks of their rows. The lease keeps
//! leaders from deposing each other; the epoch keeps the commits right if they do.

use std::sync::{Arc, LazyLock, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::pool::Pool;
use openkv_core::model::{Error, Kind, POSTGRES_LEASE_MS, POSTGRES_LEASE_RENEW_MS, Result};

const RENEW: &str = "\
INSERT INTO openkv.servers (id, name, lease_until) \
VALUES ($1, $2, clock_timestamp() + $3::int8 * interval '1 ms') \
ON CONFLICT (id) DO UPDATE SET lease_until = excluded.lease_until";

/// The row of this process, and those of processes that have not lived for long.
const RESIGN: &str = "\
DELETE FROM openkv.servers WHERE id = $1 OR lease_until < clock_timestamp() - interval '1 day'";

/// Bytes of the id of a lease.
const ID_BYTES: usize = 16;

/// The leases of this process.
static LEASES: LazyLock<Mutex<Leases>> = LazyLock::new(Mutex::default);

#[derive(Default)]
struct Leases {
    held: Vec<Weak<Lease>>,
    /// Whether the thread runs.
    runs: bool,
}

/// The lease of this process on one server, under one name.
pub(super) struct Lease {
    pool: Arc<Pool>,
    name: String,
    id: Vec<u8>,
    /// Whether the row is there, so that it is renewed.
    begun: Mutex<bool>,
}

impl Lease {
    /// The lease on a server, which begins with [`Lease::begin`].
    ///
    /// # Errors
    /// `Unavailable` without randomness.
    pub(super) fn of(pool: &Arc<Pool>, name: &str) -> Result<Arc<Self>> {
        let mut leases = LEASES.lock();
        let known = leases.held.iter().filter_map(Weak::upgrade);
        let mut known = known.filter(|lease| Arc::ptr_eq(&lease.pool, pool) && lease.name == name);
        if let Some(lease) = known.next() {
            return Ok(lease);
        }
        drop(known);
        let mut id = vec![0; ID_BYTES];
        getrandom::fill(&mut id)
            .map_err(|error| Error::new(Kind::Unavailable, error.to_string()))?;
        let (pool, name) = (pool.clone(), name.to_owned());
        let lease = Arc::new(Self { pool, name, id, begun: Mutex::new(false) });
        leases.held.push(Arc::downgrade(&lease));
        Ok(lease)
    }

    /// The id of its row.
    pub(super) fn id(&self) -> Vec<u8> {
        self.id.clone()
    }

    /// Makes sure that the lease is held and renewed.
    pub(super) fn begin(&self, deadline: Instant) -> Result<()> {
        self.renew(deadline)?;
        *self.begun.lock() = true;
        let mut leases = LEASES.lock();
        if !leases.runs {
            let thread = std::thread::Builder::new().name("openkv-lease".into());
            leases.runs = thread.spawn(renew_all).is_ok();
        }
        Ok(())
    }

    /// Renews it once.
    pub(super) fn renew(&self, deadline: Instant) -> Result<()> {
        let mut lent = self.pool.lend(deadline)?;
        let name = self.name.as_bytes();
        let renewed = lent.session.query((RENEW, vec![&self.id, &name, &POSTGRES_LEASE_MS]));
        lent.give_back();
        renewed.map(drop)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if !*self.begun.lock() {
            return;
        }
        let deadline = Instant::now() + Duration::from_millis(POSTGRES_LEASE_RENEW_MS);
        let resigned = self.pool.lend(deadline).and_then(|mut lent| {
            let resigned = lent.session.query((RESIGN, vec![&self.id]));
            lent.give_back();
            resigned
        });
        if let Err(error) = resigned {
            tracing::debug!(%error, "a lease ends by itself");
        }
    }
}

/// Renews all leases until there are none.
fn renew_all() {
    loop {
        std::thread::sleep(Duration::from_millis(POSTGRES_LEASE_RENEW_MS));
        let held: Vec<Arc<Lease>> = {
            let mut leases = LEASES.lock();
            leases.held.retain(|lease| lease.strong_count() > 0);
            if leases.held.is_empty() {
                leases.runs = false;
                return;
            }
            leases.held.iter().filter_map(Weak::upgrade).collect()
        };
        for lease in held.into_iter().filter(|lease| *lease.begun.lock()) {
            let deadline = Instant::now() + Duration::from_millis(POSTGRES_LEASE_RENEW_MS);
            if let Err(error) = lease.renew(deadline) {
                tracing::warn!(%error, "renewing the lease of a leader");
            }
        }
    }
}
