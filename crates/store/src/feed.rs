//! Change feeds: every committed change in a range of keys, in order.
//!
//! A caller pulls a feed like a watch: each call gets one batch, read from the log that the engine
//! keeps with the commits. A feed holds only its position, the commit up to which it has reported
//! everything, so a slow caller costs nothing here. A commit in the range marks the feed. A commit
//! outside the range advances the position of a feed that is up to date, so that a long wait does
//! not fall behind the log. After an external commit of unknown keys, a feed with a waiting call
//! reads; a feed without one only peeks, that is, it checks for changes without reading them.

mod batch;
mod opening;

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;

use super::health::{Health, Tries, may_pass};
use super::read::{ReadJob, ReadThreads, Room};
use openkv_core::model::{Batch, Env, Error, FeedReply, Id, Key, KeyRange, Result};
use openkv_engines::{ExternalCommits, Snapshot};

pub use opening::OpenedReply;

/// All feeds of a store.
pub(super) struct Feeds {
    registry: Mutex<Registry>,
    reads: Arc<ReadThreads>,
    env: Arc<dyn Env>,
    health: Arc<Health>,
    myself: Weak<Feeds>,
}

#[derive(Default)]
struct Registry {
    next_id: Id,
    feeds: HashMap<Id, Feed>,
    /// Why no change arrives any more.
    failure: Option<Error>,
}

struct Feed {
    range: Arc<KeyRange>,
    progress: FeedProgress,
    state: State,
    unread: Unread,
    /// A peek is running.
    peeking: bool,
    /// The bound of a batch, if there is one.
    room: Option<Arc<dyn Room>>,
    /// Consecutive failed reads.
    tries: Tries,
}

/// Whether there are changes after a feed's position, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Unread {
    /// There are none.
    None,
    /// There may be some: the range of a commit is unknown, or the feed may have reported it.
    Perhaps,
    /// There is a change to report.
    Some,
}

impl Feed {
    /// Records that there are at least these changes.
    fn heard(&mut self, unread: Unread) {
        self.unread = self.unread.max(unread);
    }

    fn is_at(&self, version: u64) -> bool {
        matches!(self.progress, FeedProgress::At(position) if position == version)
    }

    fn is_past(&self, version: u64) -> bool {
        matches!(self.progress, FeedProgress::At(position) if position > version)
    }

    fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle)
    }
}

/// How far a feed has reported changes.
enum FeedProgress {
    /// The feed is being opened, to continue after this commit if one is given.
    Opening(Option<u64>),
    /// Everything up to this commit is reported.
    At(u64),
    /// The feed could not be opened.
    Failed(Error),
}

impl FeedProgress {
    /// Whether the position is known and differs from `after`.
    fn has_left(&self, after: u64) -> bool {
        matches!(self, Self::At(position) if *position != after)
    }
}

enum State {
    /// No call waits.
    Idle,
    /// A call waits for changes.
    Waiting(FeedReply),
    /// A read is running.
    Reading,
}

impl Feeds {
    pub(super) fn new(
        reads: Arc<ReadThreads>,
        env: Arc<dyn Env>,
        health: Arc<Health>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|myself| Self {
            registry: Mutex::default(),
            reads,
            env,
            health,
            myself: myself.clone(),
        })
    }

    /// Adds a feed that reports nothing until its [`Opening`] is answered.
    pub(super) fn add(
        &self,
        range: KeyRange,
        since: Option<u64>,
        room: Option<Arc<dyn Room>>,
    ) -> Id {
        let mut registry = self.registry.lock();
        registry.next_id += 1;
        let id = registry.next_id;
        let (range, progress) = (Arc::new(range), FeedProgress::Opening(since));
        let (state, unread, tries) = (State::Idle, Unread::None, Tries::default());
        registry
            .feeds
            .insert(id, Feed { range, progress, state, unread, peeking: false, room, tries });
        id
    }

    /// Sets the position of a new feed. `last` is the last commit before changes are logged.
    fn opened(&self, id: Id, last: Result<u64>) {
        let mut registry = self.registry.lock();
        let Some(feed) = registry.feeds.get_mut(&id) else { return };
        let opened_at = last.as_ref().ok().copied();
        feed.progress = match (&feed.progress, last) {
            (FeedProgress::Opening(since), Ok(last)) => FeedProgress::At(since.unwrap_or(last)),
            (_, Ok(_)) => return,
            (_, Err(error)) => FeedProgress::Failed(error),
        };
        // Without `since` a new feed is up to date, unless a commit was announced meanwhile: that
        // commit may be before or after the opening.
        let up_to_date = opened_at.is_some_and(|at| feed.is_at(at)) && feed.unread == Unread::None;
        feed.unread = if up_to_date { Unread::None } else { Unread::Perhaps };
        let job = self.follow(id, feed);
        drop(registry);
        self.send(job);
    }

    pub(super) fn len(&self) -> usize {
        self.registry.lock().feeds.len()
    }

    fn has(&self, id: Id) -> bool {
        self.registry.lock().feeds.contains_key(&id)
    }

    /// The commit up to which a waiting feed is up to date.
    pub(super) fn position(&self, id: Id) -> Option<u64> {
        match self.registry.lock().feeds.get(&id) {
            Some(Feed {
                progress: FeedProgress::At(at), state: State::Waiting(_), unread, ..
            }) if *unread == Unread::None => Some(*at),
            _ => None,
        }
    }

    pub(super) fn next(&self, id: Id, reply: FeedReply) {
        let mut registry = self.registry.lock();
        let failure = registry.failure.clone();
        let Some(feed) = registry.feeds.get_mut(&id) else {
            drop(registry);
            reply(Ok(None));
            return;
        };
        if let Some(error) = failure {
            drop(registry);
            return reply(Err(error));
        }
        feed.state = State::Waiting(reply);
        if feed.peeking {
            // The peek may have found the change that this call asks for.
            feed.heard(Unread::Perhaps);
        }
        let job = self.follow(id, feed);
        drop(registry);
        self.send(job);
    }

    /// Removes a feed. Returns whether it existed.
    pub(super) fn cancel(&self, id: Id) -> bool {
        let removed = self.registry.lock().feeds.remove(&id);
        let Some(mut feed) = removed else { return false };
        self.health.stream_works(&mut feed.tries);
        if let State::Waiting(reply) = feed.state {
            reply(Ok(None));
        }
        true
    }

    /// Announces consecutive commits and the keys that they changed. Returns the reads that the
    /// writer thread may run itself: those of waiting feeds that were up to date before it.
    pub(super) fn announce(&self, touched: &[Key], versions: (u64, u64)) -> Vec<ReadJob> {
        let mut registry = self.registry.lock();
        let (before, after) = versions;
        if registry.feeds.is_empty() || before == after {
            return Vec::new();
        }
        let mut touched: Vec<&Key> = touched.iter().collect();
        touched.sort_unstable();
        let (mut own, mut others) = (Vec::new(), Vec::new());
        for (id, feed) in &mut registry.feeds {
            // A read may have reported the commit before its announcement.
            if matches!(feed.progress, FeedProgress::At(position) if position >= after) {
                continue;
            }
            let up_to_date = feed.is_at(before);
            let first = touched.partition_point(|key| **key < feed.range.start);
            let hit = touched.get(first).is_some_and(|key| **key < feed.range.end);
            if !hit && up_to_date {
                feed.progress = FeedProgress::At(after);
                continue;
            }
            // A running read may report the commit, and an earlier one has reported some of them.
            let is_certain = hit && feed.is_idle() && !feed.is_past(before);
            feed.heard(if is_certain { Unread::Some } else { Unread::Perhaps });
            let jobs = if up_to_date { &mut own } else { &mut others };
            jobs.extend(self.follow(*id, feed));
        }
        drop(registry);
        for job in others {
            self.send(Some(job));
        }
        own
    }

    /// Announces commits of other processes.
    pub(super) fn announce_external(&self, commits: &ExternalCommits) {
        match commits {
            ExternalCommits::Unknown => self.wake_all(),
            ExternalCommits::Known { versions, keys } => {
                for job in self.announce(keys, *versions) {
                    self.send(Some(job));
                }
            }
            ExternalCommits::Lost(error) => self.fail(error),
        }
    }

    /// Announces that any key may have changed.
    fn wake_all(&self) {
        let mut jobs = Vec::new();
        for (id, feed) in &mut self.registry.lock().feeds {
            feed.heard(Unread::Perhaps);
            jobs.extend(self.follow(*id, feed));
        }
        for job in jobs {
            self.send(Some(job));
        }
    }

    /// Fails all waiting calls: changes cannot be detected.
    pub(super) fn refuse_all(&self, error: &Error) {
        let mut replies = Vec::new();
        for feed in self.registry.lock().feeds.values_mut() {
            match std::mem::replace(&mut feed.state, State::Idle) {
                State::Waiting(reply) => {
                    feed.heard(Unread::Perhaps);
                    replies.push(reply);
                }
                other => feed.state = other,
            }
        }
        replies.into_iter().for_each(|reply| reply(Err(error.clone())));
    }

    /// As [`Self::refuse_all`], for good.
    pub(super) fn fail(&self, error: &Error) {
        self.registry.lock().failure = Some(error.clone());
        self.refuse_all(error);
    }

    /// Reads a feed again after a failure, if a call still waits.
    fn look_after(&self, id: Id, pause: Duration) {
        let myself = self.myself.clone();
        let again = Box::new(move |_snapshot: Result<&mut dyn Snapshot>| {
            let Some(feeds) = myself.upgrade() else { return };
            let mut registry = feeds.registry.lock();
            let job = registry.feeds.get_mut(&id).and_then(|feed| feeds.follow(id, feed));
            drop(registry);
            feeds.send(job);
        });
        self.reads.send_after(pause, again);
    }

    /// Removes all feeds.
    pub(super) fn close(&self) {
        let ids: Vec<Id> = self.registry.lock().feeds.keys().copied().collect();
        for id in ids {
            self.cancel(id);
        }
    }

    /// Must not hold the registry's lock: a closed reader runs the job at once.
    fn send(&self, job: Option<ReadJob>) {
        if let Some(job) = job {
            self.reads.send(job);
        }
    }

    /// The read or peek that a feed needs, if any. The caller holds the registry's lock.
    fn follow(&self, id: Id, feed: &mut Feed) -> Option<ReadJob> {
        match (&feed.state, feed.unread) {
            (State::Waiting(_), Unread::Perhaps | Unread::Some) => self.look(id, feed),
            (State::Idle, Unread::Perhaps) if !feed.peeking => self.peek(id, feed),
            _ => None,
        }
    }

    /// The read that answers a waiting call.
    fn look(&self, id: Id, feed: &mut Feed) -> Option<ReadJob> {
        let position = match &feed.progress {
            FeedProgress::Opening(_) => return None,
            FeedProgress::At(position) => Ok(*position),
            FeedProgress::Failed(error) => Err(error.clone()),
        };
        let reply = match std::mem::replace(&mut feed.state, State::Reading) {
            State::Waiting(reply) => reply,
            other => {
                feed.state = other;
                return None;
            }
        };
        (feed.unread, feed.peeking) = (Unread::None, false);
        let (range, myself) = (feed.range.clone(), self.myself.clone());
        let room = feed.room.clone();
        Some(Box::new(move |snapshot| {
            let after = position.as_ref().ok().copied();
            let next_batch = position.and_then(|after| {
                let next_batch = batch::next(snapshot?, &range, after)?;
                room.map_or(Ok(()), |room| room.holds(next_batch.0.size_bytes()))?;
                Ok(next_batch)
            });
            match myself.upgrade() {
                Some(feeds) => feeds.looked(id, after, next_batch, reply),
                None => reply(Ok(None)),
            }
        }))
    }

    /// Checks for changes in the range of a feed without a waiting call. If there are none, the
    /// position advances, so that the feed does not fall behind the log.
    fn peek(&self, id: Id, feed: &mut Feed) -> Option<ReadJob> {
        let FeedProgress::At(after) = feed.progress else { return None };
        (feed.unread, feed.peeking) = (Unread::None, true);
        let (range, myself) = (feed.range.clone(), self.myself.clone());
        Some(Box::new(move |snapshot| {
            let quiet = snapshot.and_then(|snapshot| batch::quiet(snapshot, &range, after));
            if let Some(feeds) = myself.upgrade() {
                feeds.peeked(id, after, quiet);
            }
        }))
    }

    fn peeked(&self, id: Id, after: u64, quiet: Result<Option<u64>>) {
        let mut registry = self.registry.lock();
        let Some(feed) = registry.feeds.get_mut(&id) else { return };
        feed.peeking = false;
        match quiet {
            Ok(Some(version)) if feed.is_at(after) => feed.progress = FeedProgress::At(version),
            Ok(Some(_)) => {}
            Ok(None) if feed.is_at(after) && feed.is_idle() => feed.heard(Unread::Some),
            // The position has advanced, or the read failed: the next commit starts another peek.
            Ok(None) | Err(_) => feed.heard(Unread::Perhaps),
        }
        let job = if feed.is_idle() { None } else { self.follow(id, feed) };
        drop(registry);
        self.send(job);
    }

    /// Completes a read of the changes after a commit.
    fn looked(
        &self,
        id: Id,
        after: Option<u64>,
        next_batch: Result<(Batch, bool)>,
        reply: FeedReply,
    ) {
        let mut registry = self.registry.lock();
        let failure = registry.failure.clone();
        let next_batch = next_batch.and_then(|found| failure.map_or(Ok(found), Err));
        let answer = match (registry.feeds.get_mut(&id), next_batch) {
            (None, _) => Ok(None),
            // The position has advanced meanwhile, and the log need not reach back to the old one.
            (Some(feed), Err(_)) if after.is_some_and(|after| feed.progress.has_left(after)) => {
                feed.state = State::Waiting(reply);
                let look = self.look(id, feed);
                drop(registry);
                self.send(look);
                return;
            }
            (Some(feed), Err(error)) => {
                // The changes are not reported yet.
                feed.heard(Unread::Perhaps);
                // The caller of a feed with bounded room, or of one that failed to open, asks again
                // itself.
                if may_pass(&error) && after.is_some() && feed.room.is_none() {
                    let now_ms = self.env.now_ms();
                    if let Some(pause) = self.health.stream_failed(&mut feed.tries, &error, now_ms)
                    {
                        feed.state = State::Waiting(reply);
                        drop(registry);
                        self.look_after(id, pause);
                        return;
                    }
                }
                feed.state = State::Idle;
                Err(error)
            }
            (Some(feed), Ok((batch, more))) => {
                self.health.stream_works(&mut feed.tries);
                // Other commits may have advanced the position during the read.
                let moved = match feed.progress {
                    FeedProgress::At(position) => position,
                    FeedProgress::Opening(_) | FeedProgress::Failed(_) => 0,
                };
                feed.progress = FeedProgress::At(batch.version.max(moved));
                if more {
                    feed.heard(Unread::Perhaps);
                }
                if batch.changes.is_empty() {
                    feed.state = State::Waiting(reply);
                    let job = self.follow(id, feed);
                    drop(registry);
                    self.send(job);
                    return;
                }
                feed.state = State::Idle;
                Ok(Some(batch))
            }
        };
        drop(registry);
        reply(answer);
    }
}
