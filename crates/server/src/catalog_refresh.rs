//! Reads the catalog that servers share again, before a request is refused.
//!
//! Invariant: what another server has allowed before a request came, this one does not refuse. However many
//! requests would be refused, refreshes begin [`CATALOG_REFRESH_MS_MIN`] apart, one after the other.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until, timeout};

use openkv_core::model::{CATALOG_REFRESH_MS_MIN, CATALOG_REFRESH_WAIT_MS_MAX, Error, Result};

/// Reads the changes of the catalog. It waits for the database server.
type ReadChanges = Arc<dyn Fn() -> Result<()> + Send + Sync>;

/// The refreshes of a server.
#[derive(Default)]
pub(super) struct CatalogRefresh {
    read: OnceLock<ReadChanges>,
    /// Held during a refresh.
    last: Arc<Mutex<Option<Ended>>>,
}

/// A refresh that has ended.
#[derive(Clone)]
struct Ended {
    begun: Instant,
    outcome: Result<()>,
}

impl CatalogRefresh {
    /// Sets how the catalog is read. Before that a refresh does nothing.
    pub(super) fn read_by(&self, read: ReadChanges) {
        let _first = self.read.set(read);
    }

    /// Refreshes the catalog: it has what was in it when this was called.
    ///
    /// # Errors
    /// Errors of the database server; `Unavailable` if it takes too long.
    pub(super) async fn refresh(&self) -> Result<()> {
        let Some(read) = self.read.get() else { return Ok(()) };
        let most = Duration::from_millis(CATALOG_REFRESH_WAIT_MS_MAX);
        timeout(most, self.once(read.clone())).await.map_err(|_| {
            Error::unavailable("the list of databases and tokens cannot be read at present")
        })?
    }

    /// Waits for the end of a refresh that has begun since the call. Calls share it.
    async fn once(&self, read: ReadChanges) -> Result<()> {
        let called = Instant::now();
        let mut last = self.last.clone().lock_owned().await;
        if let Some(Ended { begun, outcome }) = &*last {
            if *begun >= called {
                return outcome.clone();
            }
            sleep_until(*begun + Duration::from_millis(CATALOG_REFRESH_MS_MIN)).await;
        }
        // It goes on, and holds the place, when its caller has gone.
        let refreshing = tokio::task::spawn_blocking(move || {
            let begun = Instant::now();
            let outcome = read();
            *last = Some(Ended { begun, outcome: outcome.clone() });
            outcome
        });
        refreshing
            .await
            .unwrap_or_else(|_| Err(Error::internal("a refresh of the catalog panicked")))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Runs calls at the same time; answers their outcomes and the number of refreshes.
    async fn refreshed(calls: usize, outcome: Result<()>) -> (Vec<Result<()>>, usize) {
        let (catalog, count) = (Arc::<CatalogRefresh>::default(), Arc::<AtomicUsize>::default());
        let calls: Vec<_> = (0..calls)
            .map(|_| {
                let (catalog, count, outcome) = (catalog.clone(), count.clone(), outcome.clone());
                tokio::spawn(async move {
                    let counted = move || {
                        count.fetch_add(1, Ordering::SeqCst);
                        outcome.clone()
                    };
                    catalog.once(Arc::new(counted)).await
                })
            })
            .collect();
        let mut outcomes = Vec::new();
        for call in calls {
            outcomes.push(call.await.unwrap());
        }
        (outcomes, count.load(Ordering::SeqCst))
    }

    /// Requests with wrong tokens must not load the database server: they share refreshes.
    #[tokio::test]
    async fn calls_at_the_same_time_share_refreshes() {
        let (outcomes, count) = refreshed(500, Ok(())).await;
        assert!(outcomes.iter().all(Result::is_ok));
        assert!(count <= 3, "{count}");
    }

    #[tokio::test]
    async fn a_refresh_that_fails_fails_for_all_that_have_waited_for_it() {
        let down = Error::unavailable("down");
        let (outcomes, count) = refreshed(50, Err(down.clone())).await;
        assert!(outcomes.iter().all(|outcome| outcome.as_ref() == Err(&down)));
        assert!(count <= 3, "{count}");
    }

    #[tokio::test]
    async fn a_later_call_has_a_refresh_of_its_own_after_a_pause() {
        let catalog = CatalogRefresh::default();
        let begun = Instant::now();
        for _ in 0..3 {
            catalog.once(Arc::new(|| Ok(()))).await.unwrap();
        }
        assert!(begun.elapsed() >= Duration::from_millis(2 * CATALOG_REFRESH_MS_MIN));
    }
}
