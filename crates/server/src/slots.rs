//! Decides which connections a server keeps at its maximum.
//!
//! Duty: one slot for each connection, up to a maximum; at the maximum a new connection takes the
//! slot of the oldest connection that has never shown a valid token.
//! Invariant: a connection that has shown a valid token keeps its slot until it ends.
//! Never: a look at a token. The code that authorizes a request calls [`mark_authenticated`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hyper::http::request::Parts;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// The slots of a server.
pub(super) struct Slots {
    permits: Arc<Semaphore>,
    anonymous: Mutex<Anonymous>,
}

/// Connections without a valid token so far, by order of arrival. Sending evicts one.
#[derive(Default)]
struct Anonymous {
    arrivals: u64,
    by_arrival: BTreeMap<u64, oneshot::Sender<()>>,
}

/// The slot of one connection. Dropping it gives the slot back.
pub(super) struct Slot {
    slots: Arc<Slots>,
    arrival: u64,
    authenticated: AtomicBool,
    /// `None` only for a closed semaphore, which never happens.
    _permit: Option<OwnedSemaphorePermit>,
}

/// Resolves to `Ok` when its connection must end for another one.
pub(super) type Eviction = oneshot::Receiver<()>;

impl Slots {
    pub(super) fn new(connections_max: usize) -> Arc<Self> {
        let permits = Arc::new(Semaphore::new(connections_max.min(Semaphore::MAX_PERMITS)));
        Arc::new(Self { permits, anonymous: Mutex::default() })
    }

    /// A slot for a new connection. Evicts the oldest anonymous connection if all are taken; waits
    /// for a connection to end if none is anonymous.
    pub(super) async fn take(self: &Arc<Self>) -> (Arc<Slot>, Eviction) {
        let permit = match self.permits.clone().try_acquire_owned() {
            Ok(permit) => Some(permit),
            Err(_) => {
                self.evict_oldest();
                self.permits.clone().acquire_owned().await.ok()
            }
        };
        let (evict, eviction) = oneshot::channel();
        let arrival = {
            let mut anonymous = self.anonymous.lock();
            anonymous.arrivals += 1;
            let arrival = anonymous.arrivals;
            anonymous.by_arrival.insert(arrival, evict);
            arrival
        };
        let authenticated = AtomicBool::new(false);
        let slot = Slot { slots: self.clone(), arrival, authenticated, _permit: permit };
        (Arc::new(slot), eviction)
    }

    fn evict_oldest(&self) {
        let oldest = self.anonymous.lock().by_arrival.pop_first();
        if let Some((_, evict)) = oldest {
            let _ended_meanwhile = evict.send(());
        }
    }

    fn forget(&self, arrival: u64) {
        self.anonymous.lock().by_arrival.remove(&arrival);
    }
}

impl Slot {
    pub(super) fn is_authenticated(&self) -> bool {
        self.authenticated.load(Ordering::Relaxed)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.forget(self.arrival);
    }
}

/// Exempts the connection of a request with a valid token from eviction.
pub(super) fn mark_authenticated(head: &Parts) {
    // Requests of an authenticated connection carry no slot.
    if let Some(slot) = head.extensions.get::<Arc<Slot>>()
        && !slot.authenticated.swap(true, Ordering::Relaxed)
    {
        slot.slots.forget(slot.arrival);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    fn authenticate(slot: &Arc<Slot>) {
        let (mut head, ()) = hyper::Request::new(()).into_parts();
        head.extensions.insert(slot.clone());
        mark_authenticated(&head);
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_anonymous_connection_gives_its_slot_to_a_new_one() {
        let slots = Slots::new(3);
        let (first, mut first_evicted) = slots.take().await;
        let (second, second_evicted) = slots.take().await;
        let (_third, mut third_evicted) = slots.take().await;
        authenticate(&first);
        let evicted = tokio::spawn(async move {
            second_evicted.await.unwrap();
            drop(second);
        });
        let (_fourth, _) = slots.take().await;
        evicted.await.unwrap();
        assert!(first_evicted.try_recv().is_err(), "it has shown a token");
        assert!(third_evicted.try_recv().is_err(), "it is younger");
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_connection_waits_while_all_are_authenticated() {
        let slots = Slots::new(1);
        let (first, mut evicted) = slots.take().await;
        authenticate(&first);
        let second = slots.take();
        tokio::pin!(second);
        assert!(timeout(Duration::from_secs(60), second.as_mut()).await.is_err());
        assert!(evicted.try_recv().is_err());
        drop(first);
        second.await;
    }
}
