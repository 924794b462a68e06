//! Follows a database that this process has open itself: a thread reads its log, and hands it to the
//! follower as a server would.
//!
//! Invariant: a follower costs the memory of a few pages of a copy, or of one batch of segments. Its thread
//! alone waits for the followed database.

use std::collections::VecDeque;
use std::mem::take;
use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::follower::LogTaker;
use crate::remote::{LogFollower, Tasks};
use openkv_core::model::{
    COPY_MS_MAX, CopiedEntry, CopiedIndexes, EncodedValue, Error, FOLLOW_LINGER_MS,
    FOLLOW_PAUSE_MS_MAX, FOLLOW_PAUSE_MS_MIN, Followed, Id, Key, Kind, Result, Seen,
};
use openkv_store::{LogRead, Room, Store, TransferPage, TransferPiece};
use openkv_wire::protocol::follow::FollowMessage;

/// Pages of a copy that wait for the follower.
const PAGES_MAX: usize = 2;

/// A call when the follower has looked for indexes.
type Looked = Box<dyn FnOnce() + Send>;

/// Follows until it is dropped or ended.
pub(super) struct StoreFollowing {
    signal: Arc<Signal>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Signal {
    state: Mutex<Requests>,
    changed: Condvar,
}

/// The requests to the thread.
#[derive(Default)]
struct Requests {
    stops: bool,
    /// Look for new commits.
    grown: bool,
    /// Look for changed indexes.
    looks: VecDeque<Looked>,
}

impl StoreFollowing {
    /// Starts to follow.
    ///
    /// # Errors
    /// `Unavailable` if no thread can be started.
    pub(super) fn start(
        source: Arc<Store>,
        taker: Arc<LogTaker>,
        prefixes: Vec<Key>,
        beat: Duration,
        tasks: Tasks,
    ) -> Result<Self> {
        let signal = Arc::<Signal>::default();
        let ours = signal.clone();
        let thread = std::thread::Builder::new()
            .name("openkv-follow".into())
            .spawn(move || {
                let mut follower = Follower { source, taker, prefixes, beat, tasks, signal: ours };
                follower.run();
                follower.signal.end();
            })
            .map_err(|error| Error::unavailable(error.to_string()))?;
        Ok(Self { signal, thread: Some(thread) })
    }

    /// Calls `then` when the follower has the indexes that the followed database has now, or cannot get them.
    pub(super) fn look(&self, then: Looked) {
        let mut state = self.signal.state.lock();
        if state.stops {
            drop(state);
            return then();
        }
        state.looks.push_back(then);
        drop(state);
        self.signal.changed.notify_all();
    }
}

impl StoreFollowing {
    /// Ends, and waits for the end.
    pub(super) fn end(mut self) {
        self.signal.end();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread of a replica ended by a panic; please report this");
        }
    }
}

/// Waits for nothing: it may be dropped on a thread for which the other one waits.
impl Drop for StoreFollowing {
    fn drop(&mut self) {
        self.signal.end();
    }
}

impl Signal {
    /// Ends the thread, and all waits for it.
    fn end(&self) {
        let mut state = self.state.lock();
        state.stops = true;
        let looks = take(&mut state.looks);
        drop(state);
        self.changed.notify_all();
        looks.into_iter().for_each(|looked| looked());
    }

    fn stops(&self) -> bool {
        self.state.lock().stops
    }

    /// Takes what there is to do.
    fn take(&self) -> VecDeque<Looked> {
        let mut state = self.state.lock();
        state.grown = false;
        take(&mut state.looks)
    }

    /// Waits for work, at most until this time.
    fn wait_until(&self, until: Instant) {
        let mut state = self.state.lock();
        while !state.stops && !state.grown && state.looks.is_empty() {
            if self.changed.wait_until(&mut state, until).timed_out() {
                return;
            }
        }
    }

    /// Waits so long, unless the thread is to end. Answers those who wait for a look.
    fn pause(&self, pause: Duration) {
        let until = Instant::now() + pause;
        let mut state = self.state.lock();
        let looks = take(&mut state.looks);
        while !state.stops && !self.changed.wait_until(&mut state, until).timed_out() {}
        drop(state);
        looks.into_iter().for_each(|looked| looked());
    }
}

/// The signals of the followed database, until it is dropped.
struct Tail {
    source: Weak<Store>,
    id: Id,
}

impl Tail {
    fn of(source: &Arc<Store>, signal: &Arc<Signal>) -> Self {
        let signal = signal.clone();
        let id = source.log_tail(Box::new(move || {
            signal.state.lock().grown = true;
            signal.changed.notify_all();
        }));
        Self { source: Arc::downgrade(source), id }
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        if let Some(source) = self.source.upgrade() {
            source.log_tail_end(self.id);
        }
    }
}

/// The thread.
struct Follower {
    source: Arc<Store>,
    taker: Arc<LogTaker>,
    prefixes: Vec<Key>,
    beat: Duration,
    tasks: Tasks,
    signal: Arc<Signal>,
}

impl Follower {
    fn run(&mut self) {
        let least = Duration::from_millis(FOLLOW_PAUSE_MS_MIN);
        let mut pause = least;
        while !self.signal.stops() {
            let begun = Instant::now();
            self.tasks.wait_for(self.taker.ready());
            let Err(error) = self.follow() else { return };
            if self.signal.stops() {
                return;
            }
            match error.kind() {
                Kind::Unavailable | Kind::Closed | Kind::OutcomeUnknown => {
                    self.taker.ended(error.message());
                }
                _ => return self.taker.fail(error),
            }
            let most = Duration::from_millis(FOLLOW_PAUSE_MS_MAX);
            pause = if begun.elapsed() > most { least } else { most.min(2 * pause) };
            self.signal.pause(pause);
        }
    }

    /// Hands a message to the follower.
    fn tell(&self, message: FollowMessage) -> Result<()> {
        self.tasks.wait_for(self.taker.follow(message))
    }

    /// Follows until its signal stops it.
    fn follow(&self) -> Result<()> {
        self.source.begin_log()?;
        let _tail = Tail::of(&self.source, &self.signal);
        let mut place = self.taker.place()?;
        let mut why = "the replica is new";
        let mut indexes: Option<CopiedIndexes> = None;
        let mut beat_at = Instant::now();
        loop {
            if self.signal.stops() {
                return Ok(());
            }
            let Some(from) = &mut place else {
                place = Some(self.copy(why)?);
                continue;
            };
            let looks = self.signal.take();
            let beats = Instant::now() >= beat_at;
            if beats || !looks.is_empty() {
                let found = answer_of(|reply| self.source.copied_indexes(true, reply));
                let sent = found.and_then(|found| self.tell_indexes(&mut indexes, found));
                looks.into_iter().for_each(|looked| looked());
                sent?;
            }
            let read = answer_of(|reply| {
                self.source.read_log(from.clone(), Arc::new(OneBatch), reply);
            })?;
            match read {
                LogRead::Copy(reason) => (why, place) = (reason, None),
                LogRead::Segments { version, newest, segments } => {
                    let moved = version != from.version;
                    from.advance(version, &segments);
                    if moved || beats {
                        self.tell(FollowMessage::Changes { version, newest, segments })?;
                        beat_at = Instant::now() + self.beat;
                    }
                    if newest {
                        self.signal.wait_until(beat_at);
                        // Gathers the commits that follow at once.
                        std::thread::sleep(Duration::from_millis(FOLLOW_LINGER_MS));
                    }
                }
            }
        }
    }

    /// Hands over a copy of one snapshot. Returns its place.
    fn copy(&self, why: &str) -> Result<Followed> {
        let (pieces, rest) = sync_channel(PAGES_MAX);
        let (signal, most) = (self.signal.clone(), Duration::from_millis(COPY_MS_MAX));
        let wanted = Arc::new(move || !signal.stops());
        let patience = self.source.patience("the copy for a replica", most, Some(wanted));
        let send = move |piece: Piece| pieces.send(piece).is_ok();
        self.source.transfer(self.prefixes.clone(), patience, send);
        let mut place = None;
        for piece in rest {
            match piece {
                Piece::Begins(found) => {
                    place = Some(found.clone());
                    self.tell(FollowMessage::CopyBegins(why.to_owned(), found))?;
                }
                Piece::Page(page) => self.tell(FollowMessage::Entries(page.entries))?,
                Piece::Ends => {
                    self.tell(FollowMessage::CopyEnds)?;
                    return place.ok_or_else(|| Error::internal("a copy without a place"));
                }
                Piece::Failed(error) => return Err(error),
            }
        }
        Err(Error::unavailable("the copy was interrupted"))
    }

    fn tell_indexes(
        &self,
        known: &mut Option<CopiedIndexes>,
        indexes: CopiedIndexes,
    ) -> Result<()> {
        if known.as_ref() == Some(&indexes) {
            return Ok(());
        }
        *known = Some(indexes.clone());
        self.tell(FollowMessage::Indexes(indexes))
    }
}

/// Waits for the answer of a store.
fn answer_of<T: Send + 'static>(
    request: impl FnOnce(Box<dyn FnOnce(Result<T>) + Send>),
) -> Result<T> {
    let (reply, answer) = channel();
    request(Box::new(move |result| drop(reply.send(result))));
    answer.recv().unwrap_or_else(|_| Err(Error::closed()))
}

/// The memory of one batch of segments, which the store bounds itself.
struct OneBatch;

impl Room for OneBatch {
    fn holds(&self, _bytes: usize) -> Result<()> {
        Ok(())
    }
}

type Piece = TransferPiece<EntriesPage>;

/// Entries as the follower takes them.
#[derive(Default)]
struct EntriesPage {
    entries: Vec<CopiedEntry>,
    bytes: usize,
}

impl TransferPage for EntriesPage {
    fn push(&mut self, Seen { row, expire_at_ms }: &Seen<'_>) {
        self.bytes += row.key.len() + row.value.len();
        self.entries.push(CopiedEntry {
            key: Key::from_encoded(row.key.to_vec()),
            version: row.stamp.version(),
            value: EncodedValue { encoding: row.encoding, bytes: row.value.to_vec() },
            expire_at_ms: *expire_at_ms,
        });
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}
