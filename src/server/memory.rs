//! Bounds the memory of requests, their answers and pieces of streams.
//!
//! Invariant: short bodies are bounded by the number of running requests. A longer one takes its
//! bytes from its database's share and from the server's before or while it is built, and returns
//! them when its last byte is dropped. A request never waits for memory while it holds some, so
//! waiting requests cannot deadlock.

use std::sync::Arc;
use std::time::Duration;

use hyper::body::Bytes;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::answer::Refusal;
use crate::call::too_large;
use crate::model::{
    DATABASE_MEMORY_BYTES_MAX, DATABASE_REQUESTS_MAX, Error, MEMORY_WAIT_MS_MAX, Result,
    SERVER_MEMORY_BYTES_MAX, SERVER_REQUESTS_MAX, SHORT_BYTES_MAX,
};
use crate::store::Room;

/// The unit of the shares.
const UNIT_BYTES: usize = 1024;

/// Capacity of the server and of one database.
struct Shares {
    requests: Semaphore,
    units: Arc<Semaphore>,
}

impl Shares {
    fn new(requests: usize, bytes: usize) -> Arc<Self> {
        let (requests, units) = (Semaphore::new(requests), Semaphore::new(bytes / UNIT_BYTES));
        Arc::new(Self { requests, units: Arc::new(units) })
    }
}

/// The server's memory. Each database has a share of it.
#[derive(Clone)]
pub(super) struct ServerMemory(Arc<Shares>);

impl ServerMemory {
    pub(super) fn new() -> Self {
        Self(Shares::new(SERVER_REQUESTS_MAX, SERVER_MEMORY_BYTES_MAX))
    }

    /// A database's share, so that no database can take everything.
    pub(super) fn share(&self) -> Arc<Memory> {
        let own = Shares::new(DATABASE_REQUESTS_MAX, DATABASE_MEMORY_BYTES_MAX);
        Arc::new(Memory { own, server: self.0.clone() })
    }
}

/// A database's memory.
pub(super) struct Memory {
    own: Arc<Shares>,
    server: Arc<Shares>,
}

/// Permits taken from both shares.
struct Permits {
    own: OwnedSemaphorePermit,
    server: OwnedSemaphorePermit,
}

impl Permits {
    /// Takes `count` units of both, if they are free now.
    fn now(own: &Arc<Semaphore>, server: &Arc<Semaphore>, count: usize) -> Option<Self> {
        let count = u32::try_from(count).ok()?;
        let own = own.clone().try_acquire_many_owned(count).ok()?;
        let server = server.clone().try_acquire_many_owned(count).ok()?;
        Some(Self { own, server })
    }

    /// Takes `count` units of both, in the order of requests.
    async fn wait(own: &Arc<Semaphore>, server: &Arc<Semaphore>, count: usize) -> Option<Self> {
        let count = u32::try_from(count).ok()?;
        let own = own.clone().acquire_many_owned(count).await.ok()?;
        let server = server.clone().acquire_many_owned(count).await.ok()?;
        Some(Self { own, server })
    }

    fn count(&self) -> usize {
        self.own.num_permits()
    }

    fn join(&mut self, more: Self) {
        self.own.merge(more.own);
        self.server.merge(more.server);
    }

    fn split(&mut self, count: usize) -> Option<Self> {
        let count = count.min(self.count());
        Some(Self { own: self.own.split(count)?, server: self.server.split(count)? })
    }
}

/// The permit of a running request. Their number is bounded.
pub(super) struct RequestPermit(Arc<Memory>);

impl Drop for RequestPermit {
    fn drop(&mut self) {
        self.0.server.requests.add_permits(1);
        self.0.own.requests.add_permits(1);
    }
}

impl Memory {
    /// Waits for a permit for one more request, in the order of requests.
    pub(super) async fn permit(self: &Arc<Self>) -> Result<RequestPermit, Refusal> {
        let (own, server) = (&self.own.requests, &self.server.requests);
        let now = own.try_acquire().ok().and_then(|own| Some((own, server.try_acquire().ok()?)));
        let (own, server) = match now {
            Some(both) => both,
            None => {
                let both =
                    async { Some((own.acquire().await.ok()?, server.acquire().await.ok()?)) };
                let wait = Duration::from_millis(MEMORY_WAIT_MS_MAX);
                timeout(wait, both).await.ok().flatten().ok_or_else(busy)?
            }
        };
        own.forget();
        server.forget();
        Ok(RequestPermit(self.clone()))
    }

    /// A claim for at most `bytes_max` bytes. It holds nothing yet.
    pub(super) fn claim(self: &Arc<Self>, bytes_max: usize) -> Arc<Claim> {
        let state = Mutex::new(State { taken: None, lacked: false });
        Arc::new(Claim { memory: self.clone(), bytes_max, state })
    }
}

/// Memory that a body takes while it is built. A short body takes none.
pub(super) struct Claim {
    memory: Arc<Memory>,
    bytes_max: usize,
    state: Mutex<State>,
}

struct State {
    taken: Option<Permits>,
    /// The last attempt had too little memory.
    lacked: bool,
}

fn units(bytes: usize) -> usize {
    if bytes <= SHORT_BYTES_MAX { 0 } else { bytes.div_ceil(UNIT_BYTES) }
}

/// The result of an attempt to build an answer, which takes memory of the claim as it grows. An
/// attempt with too little is repeated once the claim has its maximum. A macro, because futures of
/// async closures are not `Send` for all lifetimes.
macro_rules! attempt {
    ($claim:expr, $attempt:expr) => {
        loop {
            if let Err(refusal) = $claim.begin_attempt().await {
                break Err(refusal);
            }
            let done = $attempt;
            if $claim.stands(&done) {
                break Ok(done);
            }
        }
    };
}

pub(super) use attempt;

impl Claim {
    /// Whether an attempt had too little memory since the last wait. Then another attempt after
    /// [`Claim::wait`] may succeed.
    pub(super) fn has_lacked(&self) -> bool {
        self.state.lock().lacked
    }

    /// Waits for the memory of this many bytes. Returns its present memory before.
    pub(super) async fn wait(&self, bytes: usize) -> Result<(), Refusal> {
        let count = units(bytes);
        *self.state.lock() = State { taken: None, lacked: true };
        let (own, server) = (&self.memory.own.units, &self.memory.server.units);
        let wait = Duration::from_millis(MEMORY_WAIT_MS_MAX);
        let taken = match count {
            0 => None,
            _ => match timeout(wait, Permits::wait(own, server, count)).await {
                Ok(taken) => taken,
                Err(_) => return Err(busy().into()),
            },
        };
        *self.state.lock() = State { taken, lacked: false };
        Ok(())
    }

    /// As [`Claim::wait`], for the claim's maximum.
    async fn wait_for_all(&self) -> Result<(), Refusal> {
        self.wait(self.bytes_max).await
    }

    /// Starts an attempt to build an answer. If the last one had too little memory, waits for the
    /// claim's maximum.
    pub(super) async fn begin_attempt(&self) -> Result<(), Refusal> {
        if self.has_lacked() { self.wait_for_all().await } else { Ok(()) }
    }

    /// Whether the result of an attempt is final. If not, it had too little memory.
    pub(super) fn stands<T, E>(&self, done: &Result<T, E>) -> bool {
        done.is_ok() || !self.has_lacked()
    }

    /// Returns the memory beyond this many bytes.
    pub(super) fn shrink(&self, bytes: usize) {
        let mut state = self.state.lock();
        let kept = state.taken.as_mut().and_then(|taken| taken.split(units(bytes)));
        state.taken = kept;
    }

    /// The finished body. It holds its memory until it is dropped.
    pub(super) fn bytes(&self, vec: Vec<u8>) -> Bytes {
        let count = units(vec.len());
        let taken = match count {
            0 => None,
            _ => self.state.lock().taken.as_mut().and_then(|taken| taken.split(count)),
        };
        match taken {
            Some(taken) => Bytes::from_owner(Counted { vec, _taken: taken }),
            None => vec.into(),
        }
    }
}

impl Room for Claim {
    fn holds(&self, bytes: usize) -> Result<()> {
        if bytes <= SHORT_BYTES_MAX {
            return Ok(());
        }
        if bytes > self.bytes_max {
            return Err(too_large(self.bytes_max));
        }
        let mut state = self.state.lock();
        let has = state.taken.as_ref().map_or(0, Permits::count);
        let wanted = units(bytes).saturating_sub(has);
        if wanted == 0 {
            return Ok(());
        }
        let (own, server) = (&self.memory.own.units, &self.memory.server.units);
        let Some(more) = Permits::now(own, server, wanted) else {
            state.lacked = true;
            return Err(busy());
        };
        match &mut state.taken {
            Some(taken) => taken.join(more),
            none => *none = Some(more),
        }
        Ok(())
    }
}

/// Bytes and their memory.
struct Counted {
    vec: Vec<u8>,
    _taken: Permits,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.vec
    }
}

fn busy() -> Error {
    let why = format!(
        "requests and answers that are under way take all memory there is for them (of a database \
         max {DATABASE_REQUESTS_MAX} and {DATABASE_MEMORY_BYTES_MAX} bytes); try later"
    );
    Error::unavailable(why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Kind;

    const MIB: usize = 1024 * 1024;

    #[test]
    fn a_short_body_takes_no_memory_and_one_that_is_too_long_is_refused() {
        let memory = ServerMemory::new().share();
        let claim = memory.claim(MIB);
        assert!(claim.holds(SHORT_BYTES_MAX).is_ok() && claim.state.lock().taken.is_none());
        assert!(claim.holds(MIB).is_ok());
        assert_eq!(claim.holds(MIB + 1).unwrap_err().kind(), Kind::Unsupported);
        assert!(!claim.has_lacked(), "no wait would help");
    }

    #[tokio::test(start_paused = true)]
    async fn dropped_bytes_return_their_memory_to_waiting_requests() {
        let memory = ServerMemory::new().share();
        let (one, two) = (memory.claim(usize::MAX), memory.claim(100 * MIB));
        assert!(one.holds(100 * MIB).is_ok());
        let bytes = one.bytes(vec![0; 60 * MIB]);
        one.shrink(0);
        assert!(two.holds(60 * MIB).is_ok());
        assert_eq!(two.holds(100 * MIB).unwrap_err().kind(), Kind::Unavailable);
        assert!(two.has_lacked());
        // It waits without its present memory, and only for a bounded time.
        assert!(two.wait_for_all().await.is_err());
        assert!(two.has_lacked() && two.state.lock().taken.is_none());
        let part = bytes.slice(..1);
        drop(bytes);
        let (waited, ()) = tokio::join!(two.wait_for_all(), async { drop(part) });
        assert!(waited.is_ok() && !two.has_lacked());
        assert!(two.holds(100 * MIB).is_ok());
        drop((one, two));
        let free_bytes = |shares: &Shares| shares.units.available_permits() * UNIT_BYTES;
        assert_eq!(free_bytes(&memory.own), DATABASE_MEMORY_BYTES_MAX);
        assert_eq!(free_bytes(&memory.server), SERVER_MEMORY_BYTES_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn shares_bound_each_database_and_the_server() {
        let server = ServerMemory::new();
        let all: Vec<_> = (0..5).map(|_| server.share().claim(usize::MAX)).collect();
        let [first @ .., last] = all.as_slice() else { panic!("five") };
        assert!(first.iter().all(|claim| claim.holds(DATABASE_MEMORY_BYTES_MAX).is_ok()));
        assert!(last.holds(SHORT_BYTES_MAX + 1).is_err());
        let (one, two, three) = (server.share(), server.share(), server.share());
        let mut permits = Vec::new();
        for memory in [&one, &two] {
            for _ in 0..DATABASE_REQUESTS_MAX {
                permits.push(memory.permit().await.ok().unwrap());
            }
        }
        assert!(one.permit().await.is_err() && three.permit().await.is_err());
        let (permit, ()) = tokio::join!(one.permit(), async { permits.truncate(1) });
        assert!(permit.is_ok());
    }
}
