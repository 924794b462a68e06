//! Bounds the memory of requests, their answers and pieces of streams.
//!
//! Invariant: short bodies are bounded by the number of running requests. A longer one takes its
//! bytes from its database's share and from the server's before or while it is built, and returns
//! them when its last byte is dropped. No database takes more than it leaves free for the others, and no connection
//! more requests than it leaves free for the others of its database. A request never waits for memory while it holds
//! some, so waiting requests cannot deadlock.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hyper::body::Bytes;
use hyper::http::request::Parts;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::answer::Refusal;
use openkv_core::model::{
    DATABASE_MEMORY_BYTES_MAX, DATABASE_REQUESTS_MAX, Error, MEMORY_WAIT_MS_MAX, Result,
    SERVER_MEMORY_BYTES_MAX, SERVER_REQUESTS_MAX, SHORT_BYTES_MAX,
};
use openkv_store::Room;
use openkv_store::call::too_large;

/// The unit of the shares.
const UNIT_BYTES: usize = 1024;

/// A supply that the databases of a server share: requests, or units of memory.
struct Supply {
    max: usize,
    taken: Mutex<usize>,
    /// Notified when some of it is returned.
    returned: Notify,
}

/// A database's share of a supply. A database takes no more than it leaves free: one that takes all
/// it can leaves half, two leave a third, so that each further one finds some.
struct Share {
    supply: Arc<Supply>,
    max: usize,
    /// Changed only under the lock of the supply.
    taken: AtomicUsize,
    waiting: AtomicUsize,
    /// Held by the first of those that wait.
    turn: tokio::sync::Mutex<()>,
}

impl Supply {
    fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, taken: Mutex::new(0), returned: Notify::new() })
    }

    fn share(self: &Arc<Self>, max: usize) -> Arc<Share> {
        Arc::new(Share {
            supply: self.clone(),
            max,
            taken: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            turn: tokio::sync::Mutex::new(()),
        })
    }
}

impl Share {
    /// Whether the share may be `after` while all shares together are `all_after`.
    fn allows(&self, after: usize, all_after: usize) -> bool {
        let left = self.supply.max.checked_sub(all_after);
        after <= self.max && left.is_some_and(|left| after <= left)
    }

    /// How much more the share can have while the others keep theirs.
    fn left(&self) -> usize {
        let all = *self.supply.taken.lock();
        let taken = self.taken.load(Ordering::Relaxed);
        // The share grows while it is at most what it leaves of the supply.
        let growth = self.supply.max.saturating_sub(all).saturating_sub(taken) / 2;
        self.max.saturating_sub(taken).min(growth)
    }

    fn take(self: &Arc<Self>, count: usize) -> Option<Permits> {
        let mut all = self.supply.taken.lock();
        let (after, all_after) = (self.taken.load(Ordering::Relaxed) + count, *all + count);
        if !self.allows(after, all_after) {
            return None;
        }
        *all = all_after;
        self.taken.store(after, Ordering::Relaxed);
        Some(Permits { share: self.clone(), count })
    }

    /// Takes `count`, if it is free now and no earlier request of the database waits.
    fn now(self: &Arc<Self>, count: usize) -> Option<Permits> {
        if self.waiting.load(Ordering::Acquire) > 0 { None } else { self.take(count) }
    }

    /// Takes `count`, in the order of the database's requests. `None` after the longest wait.
    async fn wait(self: &Arc<Self>, count: usize) -> Option<Permits> {
        let _waiting = Waiting::new(&self.waiting);
        let granted = async {
            let _turn = self.turn.lock().await;
            self.until(|| self.take(count)).await
        };
        timeout(Duration::from_millis(MEMORY_WAIT_MS_MAX), granted).await.ok()
    }

    /// Tries now and whenever something is returned.
    async fn until<T>(&self, mut attempt: impl FnMut() -> Option<T>) -> T {
        loop {
            let returned = self.supply.returned.notified();
            tokio::pin!(returned);
            returned.as_mut().enable();
            if let Some(done) = attempt() {
                return done;
            }
            returned.await;
        }
    }
}

/// One that waits.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The running requests of one connection, an extension of each of its requests. A connection has no more than it
/// leaves free for the others of a database: one whose client takes no answers does not keep theirs waiting.
#[derive(Default)]
pub(super) struct ConnectionRequests {
    running: AtomicUsize,
    waiting: AtomicUsize,
    /// Held by the first of those that wait.
    turn: tokio::sync::Mutex<()>,
}

impl ConnectionRequests {
    /// Whether the connection may have one more request of a share.
    fn allows(&self, share: &Share) -> bool {
        let running = self.running.load(Ordering::Relaxed);
        running == 0 || running < share.left()
    }
}

/// The server's memory. Each database has a share of it.
#[derive(Clone)]
pub(super) struct ServerMemory {
    requests: Arc<Supply>,
    units: Arc<Supply>,
}

impl ServerMemory {
    pub(super) fn new() -> Self {
        let units = Supply::new(SERVER_MEMORY_BYTES_MAX / UNIT_BYTES);
        Self { requests: Supply::new(SERVER_REQUESTS_MAX), units }
    }

    /// A database's share, so that no database can take everything.
    pub(super) fn share(&self) -> Arc<Memory> {
        let units = self.units.share(DATABASE_MEMORY_BYTES_MAX / UNIT_BYTES);
        Arc::new(Memory { requests: self.requests.share(DATABASE_REQUESTS_MAX), units })
    }
}

/// A database's memory.
pub(super) struct Memory {
    requests: Arc<Share>,
    units: Arc<Share>,
}

/// A part of a share. Dropping it returns it.
struct Permits {
    share: Arc<Share>,
    count: usize,
}

impl Permits {
    fn join(&mut self, mut more: Self) {
        self.count += std::mem::take(&mut more.count);
    }

    fn split(&mut self, count: usize) -> Option<Self> {
        let count = count.min(self.count);
        self.count -= count;
        (count > 0).then(|| Self { share: self.share.clone(), count })
    }
}

impl Drop for Permits {
    fn drop(&mut self) {
        if self.count == 0 {
            return;
        }
        let mut all = self.share.supply.taken.lock();
        *all -= self.count;
        self.share.taken.fetch_sub(self.count, Ordering::Relaxed);
        drop(all);
        self.share.supply.returned.notify_waiters();
    }
}

/// The permit of a running request. Their number is bounded.
pub(super) struct RequestPermit {
    // Before the permits, whose end wakes up those that wait.
    _running: Running,
    _permits: Permits,
}

/// One running request of a connection.
struct Running(Arc<ConnectionRequests>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Memory {
    /// Waits for a permit for the request with this head, in the order of the requests of its connection, and of the
    /// connections of the database.
    pub(super) async fn permit(self: &Arc<Self>, head: &Parts) -> Result<RequestPermit, Refusal> {
        let of = head.extensions.get::<Arc<ConnectionRequests>>().cloned().unwrap_or_default();
        self.permit_of(of).await
    }

    async fn permit_of(
        self: &Arc<Self>,
        of: Arc<ConnectionRequests>,
    ) -> Result<RequestPermit, Refusal> {
        let is_next = of.waiting.load(Ordering::Acquire) == 0 && of.allows(&self.requests);
        let taken = match is_next.then(|| self.requests.now(1)).flatten() {
            Some(taken) => Some(taken),
            None => {
                let _waiting = Waiting::new(&of.waiting);
                let wait = Duration::from_millis(MEMORY_WAIT_MS_MAX);
                let granted = async {
                    let _turn = of.turn.lock().await;
                    self.requests.until(|| of.allows(&self.requests).then_some(())).await;
                    self.requests.wait(1).await
                };
                timeout(wait, granted).await.ok().flatten()
            }
        };
        let taken = taken.ok_or_else(busy)?;
        of.running.fetch_add(1, Ordering::Relaxed);
        Ok(RequestPermit { _running: Running(of), _permits: taken })
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
        let taken = match count {
            0 => None,
            _ => Some(self.memory.units.wait(count).await.ok_or_else(busy)?),
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
        let has = state.taken.as_ref().map_or(0, |taken| taken.count);
        let wanted = units(bytes).saturating_sub(has);
        if wanted == 0 {
            return Ok(());
        }
        let Some(more) = self.memory.units.now(wanted) else {
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
    use openkv_core::model::Kind;

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
        assert_eq!(memory.units.taken.load(Ordering::Relaxed), 0);
        assert_eq!(*memory.units.supply.taken.lock(), 0);
    }

    /// Two databases, whose clients took no answers, held all requests of the server: a third one
    /// waited for 10 s and was refused.
    #[tokio::test(start_paused = true)]
    async fn no_database_takes_more_than_it_leaves_free() {
        let server = ServerMemory::new();
        let greedy: Vec<_> = (0..5).map(|_| server.share()).collect();
        let mut permits = Vec::new();
        for memory in &greedy {
            while let Some(permit) = memory.requests.now(1) {
                permits.push(permit);
            }
        }
        let taken = |memory: &Arc<Memory>| memory.requests.taken.load(Ordering::Relaxed);
        assert_eq!(greedy.iter().map(taken).collect::<Vec<_>>(), [512, 256, 128, 64, 32]);
        assert!(greedy[0].permit_of(Arc::default()).await.is_err());
        let modest = server.share();
        let held = modest.permit_of(Arc::default()).await.ok().unwrap();
        let claim = modest.claim(usize::MAX);
        assert!(claim.holds(100 * MIB).is_ok());
        // The first that waits goes on as soon as its database holds less.
        let (permit, ()) =
            tokio::join!(greedy[0].permit_of(Arc::default()), async { permits.truncate(300) });
        assert!(permit.is_ok());
        drop((held, permits, permit));
        assert_eq!(*modest.requests.supply.taken.lock(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn shares_bound_the_memory_of_each_database_and_of_the_server() {
        let server = ServerMemory::new();
        let all: Vec<_> = (0..5).map(|_| server.share().claim(usize::MAX)).collect();
        let [first @ .., fourth, fifth] = all.as_slice() else { panic!("five") };
        for claim in first {
            assert!(claim.holds(DATABASE_MEMORY_BYTES_MAX).is_ok());
            assert!(claim.holds(DATABASE_MEMORY_BYTES_MAX + UNIT_BYTES).is_err());
        }
        assert!(fourth.holds(64 * MIB + UNIT_BYTES).is_err() && fourth.holds(64 * MIB).is_ok());
        assert!(fifth.holds(32 * MIB + UNIT_BYTES).is_err() && fifth.holds(32 * MIB).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn requests_of_a_database_are_admitted_in_their_order() {
        let memory = ServerMemory::new().share();
        let mut permits: Vec<_> =
            (0..DATABASE_REQUESTS_MAX).map(|_| memory.requests.now(1)).collect();
        assert!(permits.iter().all(Option::is_some) && memory.requests.now(1).is_none());
        let waits = memory.permit_of(Arc::default());
        tokio::pin!(waits);
        let soon = Duration::from_millis(1);
        assert!(timeout(soon, waits.as_mut()).await.is_err());
        permits.truncate(1);
        assert!(memory.requests.now(1).is_none(), "an earlier one waits");
        assert!(waits.await.is_ok());
        assert!(memory.requests.now(1).is_some());
    }

    /// A connection with a window of 0 kept all places of its database, until it was closed. Its token's other
    /// connections waited.
    #[tokio::test(start_paused = true)]
    async fn a_connection_leaves_places_to_the_others_of_its_database() {
        let memory = ServerMemory::new().share();
        let soon = Duration::from_millis(1);
        let mut all = Vec::new();
        let mut counts = Vec::new();
        for of in (0..4).map(|_| Arc::<ConnectionRequests>::default()) {
            while let Ok(Ok(permit)) = timeout(soon, memory.permit_of(of.clone())).await {
                all.push(permit);
            }
            counts.push(of.running.load(Ordering::Relaxed));
        }
        assert_eq!(counts, [256, 128, 64, 32]);
        // The request that waits keeps none of another connection waiting, and goes on once there is room.
        let greedy = all[0]._running.0.clone();
        let waits = memory.permit_of(greedy);
        tokio::pin!(waits);
        assert!(timeout(soon, waits.as_mut()).await.is_err());
        assert!(memory.permit_of(Arc::default()).await.is_ok());
        all.truncate(200);
        assert!(waits.await.is_ok());
        all.clear();
        assert_eq!(*memory.requests.supply.taken.lock(), 0);
    }
}
