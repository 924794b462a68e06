//! The connections of this process to one server, shared by all of its databases there.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::Notify;

use super::pooler;
use super::session::Session;
use super::url::Server;
use openkv_core::model::{Error, Kind, POSTGRES_CONNECTIONS_MAX, Result};

/// Pause between two attempts to connect.
const CONNECT_PAUSE: Duration = Duration::from_millis(50);

static POOLS: LazyLock<Mutex<HashMap<String, Weak<Pool>>>> = LazyLock::new(Mutex::default);

/// At most [`POSTGRES_CONNECTIONS_MAX`] connections.
pub(super) struct Pool {
    server: Server,
    sessions: Mutex<Sessions>,
    returned: Condvar,
    /// A caller waits for a connection, so a leader without work gives up its own.
    wanted: Notify,
    /// Whether the way to the server is known to be direct.
    checked: AtomicBool,
}

#[derive(Default)]
struct Sessions {
    idle: Vec<Session>,
    /// Idle and lent.
    open: usize,
    /// How many callers wait for one.
    waiting: usize,
}

impl Pool {
    /// The pool of a server.
    pub(super) fn of(server: &Server) -> Arc<Self> {
        let mut pools = POOLS.lock();
        pools.retain(|_, pool| pool.strong_count() > 0);
        if let Some(pool) = pools.get(server.identity()).and_then(Weak::upgrade) {
            return pool;
        }
        let pool = Arc::new(Self {
            server: server.clone(),
            sessions: Mutex::default(),
            returned: Condvar::new(),
            wanted: Notify::new(),
            checked: AtomicBool::new(false),
        });
        pools.insert(server.identity().to_owned(), Arc::downgrade(&pool));
        pool
    }

    /// Checks once that connections reach the server itself.
    pub(super) fn check(&self) -> Result<()> {
        if !self.checked.load(Ordering::Relaxed) {
            pooler::refuse(&self.server)?;
            self.checked.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// The server that it connects to.
    pub(super) fn server(&self) -> &Server {
        &self.server
    }

    /// Lends a connection. Waits for one until the deadline.
    ///
    /// # Errors
    /// `Unavailable` at the deadline, and if the server does not accept; `Denied`.
    pub(super) fn lend(self: &Arc<Self>, deadline: Instant) -> Result<Lent> {
        loop {
            let (session, place) = self.take(deadline)?;
            if let Some(session) = session {
                return Ok(Lent { session, place });
            }
            match Session::connect(&self.server) {
                Ok(session) => return Ok(Lent { session, place }),
                // The server may be starting, or a standby may be about to take its place.
                Err(error) if error.kind() == Kind::Unavailable && Instant::now() < deadline => {
                    tracing::debug!(%error, "connecting to PostgreSQL again");
                    drop(place);
                    std::thread::sleep(CONNECT_PAUSE);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The place of a connection that the caller opens itself. Waits for one until the deadline.
    ///
    /// # Errors
    /// `Unavailable` at the deadline.
    pub(super) fn reserve(self: &Arc<Self>, deadline: Instant) -> Result<Place> {
        let (session, place) = self.take(deadline)?;
        drop(session);
        Ok(place)
    }

    /// The place of a connection, if one is free that no caller waits for, and the idle connection that
    /// had it. The caller must drop that on a thread that may block.
    pub(super) fn try_reserve(self: &Arc<Self>) -> Option<(Place, Option<Session>)> {
        let mut sessions = self.sessions.lock();
        if sessions.waiting > 0 {
            return None;
        }
        let idle = sessions.idle.pop();
        if idle.is_none() {
            if sessions.open == POSTGRES_CONNECTIONS_MAX {
                return None;
            }
            sessions.open += 1;
        }
        drop(sessions);
        Some((Place(self.clone()), idle))
    }

    /// Returns once a caller waits for a connection.
    pub(super) async fn is_wanted(&self) {
        let wanted = self.wanted.notified();
        if self.sessions.lock().waiting == 0 {
            wanted.await;
        }
    }

    /// Whether a caller waits for a connection.
    pub(super) fn has_waiting(&self) -> bool {
        self.sessions.lock().waiting > 0
    }

    /// Wakes the caller that has waited longest, if there is a place for it. One that came behind another
    /// caller that was woken, but had not run yet, has missed the signal of its own place.
    fn wake_next(&self, sessions: &Sessions) {
        let has_place = !sessions.idle.is_empty() || sessions.open < POSTGRES_CONNECTIONS_MAX;
        if sessions.waiting > 0 && has_place {
            self.returned.notify_one();
        }
    }

    /// An idle connection, or the place of a new one. A caller waits behind those that wait already:
    /// otherwise busy leaders pass places to each other, and the others get none.
    fn take(self: &Arc<Self>, deadline: Instant) -> Result<(Option<Session>, Place)> {
        let mut sessions = self.sessions.lock();
        let mut is_next = sessions.waiting == 0;
        loop {
            if is_next && let Some(session) = sessions.idle.pop() {
                let place = Place(self.clone());
                if session.is_closed() {
                    MutexGuard::unlocked(&mut sessions, || drop(place));
                    continue;
                }
                self.wake_next(&sessions);
                return Ok((Some(session), place));
            }
            if is_next && sessions.open < POSTGRES_CONNECTIONS_MAX {
                sessions.open += 1;
                self.wake_next(&sessions);
                return Ok((None, Place(self.clone())));
            }
            sessions.waiting += 1;
            self.wanted.notify_waiters();
            let waited = self.returned.wait_until(&mut sessions, deadline);
            sessions.waiting -= 1;
            is_next = true;
            if waited.timed_out() {
                self.wake_next(&sessions);
                let why = format!(
                    "all {POSTGRES_CONNECTIONS_MAX} connections of this process to PostgreSQL are \
                     in use; call again, or raise busyTimeout"
                );
                return Err(Error::new(Kind::Unavailable, why));
            }
        }
    }
}

/// A lent connection. It is closed when it is dropped, so that no open transaction stays on it.
pub(super) struct Lent {
    pub(super) session: Session,
    place: Place,
}

impl Lent {
    /// How long a transaction on it may wait for this process, in ms.
    pub(super) fn idle_ms(&self) -> u64 {
        self.place.0.server.idle_ms()
    }

    /// Returns the connection for others. It must have no open transaction.
    pub(super) fn give_back(self) {
        let Self { session, place } = self;
        if !session.is_closed() {
            let mut sessions = place.0.sessions.lock();
            sessions.idle.push(session);
            // Its place counts again.
            sessions.open += 1;
        }
    }
}

/// One of the open connections of a pool.
pub(super) struct Place(Arc<Pool>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.sessions.lock().open -= 1;
        self.0.returned.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(30)
    }

    /// Two busy leaders once passed a place to each other while a third waited until its deadline.
    #[test]
    fn a_place_goes_to_the_caller_that_waits_for_it() {
        let (server, _) = Server::parse("postgres://localhost/none?kv=pool").unwrap();
        let pool = Pool::of(&server);
        let reserved = (0..POSTGRES_CONNECTIONS_MAX).map(|_| pool.reserve(soon()).unwrap());
        let mut places: Vec<Place> = reserved.collect();
        for _ in 0..100 {
            let waiter = pool.clone();
            let waiting = std::thread::spawn(move || waiter.reserve(soon()));
            while pool.sessions.lock().waiting == 0 {
                std::thread::yield_now();
            }
            places.pop();
            assert!(pool.try_reserve().is_none());
            assert!(pool.reserve(Instant::now()).is_err());
            places.push(waiting.join().unwrap().unwrap());
        }
        places.clear();
        assert!(pool.try_reserve().is_some());
    }

    #[test]
    fn every_caller_that_waits_gets_a_place() {
        let (server, _) = Server::parse("postgres://localhost/none?kv=pool").unwrap();
        let pool = Pool::of(&server);
        let callers = (0..4 * POSTGRES_CONNECTIONS_MAX).map(|_| {
            let pool = pool.clone();
            std::thread::spawn(move || (0..200).all(|_| pool.reserve(soon()).is_ok()))
        });
        let callers: Vec<_> = callers.collect();
        assert!(callers.into_iter().all(|caller| caller.join().unwrap()));
        let sessions = pool.sessions.lock();
        assert_eq!((sessions.open, sessions.waiting), (0, 0));
    }
}
