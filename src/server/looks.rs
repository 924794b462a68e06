//! Looks at the catalog that servers share, for requests that would be refused without.
//!
//! Invariant: what another server has allowed before a request came, this one does not refuse. However many
//! requests would be refused, looks begin [`CATALOG_LOOK_MS_MIN`] apart, one after the other.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until, timeout};

use crate::model::{CATALOG_LOOK_MS_MIN, CATALOG_LOOK_WAIT_MS_MAX, Error, Result};

/// Takes what is new in the catalog. Waits for the database server.
type Take = Arc<dyn Fn() -> Result<()> + Send + Sync>;

/// The looks of a server.
#[derive(Default)]
pub(super) struct Looks {
    take: OnceLock<Take>,
    /// Held during a look.
    last: Arc<Mutex<Option<Look>>>,
}

/// A look that has ended.
#[derive(Clone)]
struct Look {
    begun: Instant,
    outcome: Result<()>,
}

impl Looks {
    /// Says what a look is. Before that none is made.
    pub(super) fn are(&self, take: Take) {
        let _first = self.take.set(take);
    }

    /// Makes the catalog as new as the call.
    ///
    /// # Errors
    /// Errors of the database server; `Unavailable` if it takes too long.
    pub(super) async fn look(&self) -> Result<()> {
        let Some(take) = self.take.get() else { return Ok(()) };
        let most = Duration::from_millis(CATALOG_LOOK_WAIT_MS_MAX);
        timeout(most, self.once(take.clone())).await.map_err(|_| {
            Error::unavailable("the list of databases and tokens cannot be read at present")
        })?
    }

    /// Waits until there was a look that has begun since the call. Calls share it.
    async fn once(&self, take: Take) -> Result<()> {
        let asked = Instant::now();
        let mut last = self.last.clone().lock_owned().await;
        if let Some(Look { begun, outcome }) = &*last {
            if *begun >= asked {
                return outcome.clone();
            }
            sleep_until(*begun + Duration::from_millis(CATALOG_LOOK_MS_MIN)).await;
        }
        // It goes on, and holds the place, when its caller has gone.
        let looking = tokio::task::spawn_blocking(move || {
            let begun = Instant::now();
            let outcome = take();
            *last = Some(Look { begun, outcome: outcome.clone() });
            outcome
        });
        looking.await.unwrap_or_else(|_| Err(Error::internal("a look at the catalog panicked")))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Runs calls at the same time; answers their outcomes and the number of looks.
    async fn looked(calls: usize, outcome: Result<()>) -> (Vec<Result<()>>, usize) {
        let (looks, count) = (Arc::<Looks>::default(), Arc::<AtomicUsize>::default());
        let calls: Vec<_> = (0..calls)
            .map(|_| {
                let (looks, count, outcome) = (looks.clone(), count.clone(), outcome.clone());
                tokio::spawn(async move {
                    let counted = move || {
                        count.fetch_add(1, Ordering::SeqCst);
                        outcome.clone()
                    };
                    looks.once(Arc::new(counted)).await
                })
            })
            .collect();
        let mut outcomes = Vec::new();
        for call in calls {
            outcomes.push(call.await.unwrap());
        }
        (outcomes, count.load(Ordering::SeqCst))
    }

    /// Requests with wrong tokens must not load the database server: they share looks.
    #[tokio::test]
    async fn calls_at_the_same_time_share_looks() {
        let (outcomes, looks) = looked(500, Ok(())).await;
        assert!(outcomes.iter().all(Result::is_ok));
        assert!(looks <= 3, "{looks}");
    }

    #[tokio::test]
    async fn a_look_that_fails_fails_for_all_that_have_waited_for_it() {
        let down = Error::unavailable("down");
        let (outcomes, looks) = looked(50, Err(down.clone())).await;
        assert!(outcomes.iter().all(|outcome| outcome.as_ref() == Err(&down)));
        assert!(looks <= 3, "{looks}");
    }

    #[tokio::test]
    async fn a_later_call_has_a_look_of_its_own_after_a_pause() {
        let looks = Looks::default();
        let begun = Instant::now();
        for _ in 0..3 {
            looks.once(Arc::new(|| Ok(()))).await.unwrap();
        }
        assert!(begun.elapsed() >= Duration::from_millis(2 * CATALOG_LOOK_MS_MIN));
    }
}
