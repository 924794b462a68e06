//! Feeds: every committed change in a range of keys, in order.
//!
//! A feed is pulled like a watch: one batch for each question, read from the log that the engine
//! keeps with the commits. What it has told is a position, the commit up to which it has told
//! everything; so a slow reader costs nothing here. A commit in the range marks the feed; one
//! elsewhere moves the position of a feed that had nothing left to tell, so that waiting for long
//! loses nothing.

mod batch;

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::Id;
use super::read::{ReadJob, Reads};
pub use batch::Batch;

use crate::engine::{Report, Snapshot};
use crate::model::{Env, Error, Key, KeyRange, Kind, Result};

/// Gets the next batch; `None` when the feed has ended.
pub type FeedReply = Box<dyn FnOnce(Result<Option<Batch>>) + Send>;

/// Gets the commit after which an opened feed tells everything.
pub type OpenedReply = Box<dyn FnOnce(Result<u64>) + Send>;

/// The last commit, for a store that cannot have changes logged itself.
pub(super) fn last_logged(snapshot: &mut dyn Snapshot) -> Result<u64> {
    let state = snapshot.feed().state()?;
    if state.on {
        return Ok(state.version);
    }
    let reason = "the file does not log changes yet, and cannot be made to with readonly: true; \
                  open a feed once on a handle that writes";
    Err(Error::new(Kind::Denied, reason))
}

/// All feeds of a store.
pub(super) struct Feeds {
    registry: Mutex<Registry>,
    reads: Reads,
    env: Arc<dyn Env>,
    myself: Weak<Feeds>,
}

#[derive(Default)]
struct Registry {
    next_id: Id,
    feeds: HashMap<Id, Feed>,
}

struct Feed {
    range: Arc<KeyRange>,
    place: Place,
    state: State,
    /// There may be something after the position.
    dirty: bool,
}

/// What a feed has told.
enum Place {
    /// It is being opened, to go on after this commit if there is one.
    Opening(Option<u64>),
    /// Everything up to this commit.
    At(u64),
    /// It could not be opened.
    Failed(Error),
}

impl Place {
    /// Whether it is a commit, and another one.
    fn has_left(&self, after: u64) -> bool {
        matches!(self, Self::At(position) if *position != after)
    }
}

enum State {
    /// Nobody asks.
    Idle,
    /// Asked, and nothing to say yet.
    Asked(FeedReply),
    /// Somebody is looking.
    Reading,
}

impl Feeds {
    pub(super) fn new(reads: Reads, env: Arc<dyn Env>) -> Arc<Self> {
        Arc::new_cyclic(|myself| Self {
            registry: Mutex::default(),
            reads,
            env,
            myself: myself.clone(),
        })
    }

    /// A feed that says nothing before [`Self::opened`].
    pub(super) fn add(&self, range: KeyRange, since: Option<u64>) -> Id {
        let mut registry = self.registry.lock();
        registry.next_id += 1;
        let id = registry.next_id;
        let (range, place) = (Arc::new(range), Place::Opening(since));
        registry.feeds.insert(id, Feed { range, place, state: State::Idle, dirty: false });
        id
    }

    /// All later changes are logged; this was the last commit.
    pub(super) fn opened(&self, id: Id, last: Result<u64>) {
        let mut registry = self.registry.lock();
        let Some(feed) = registry.feeds.get_mut(&id) else { return };
        let opened_at = last.as_ref().ok().copied();
        feed.place = match (&feed.place, last) {
            (Place::Opening(since), Ok(last)) => Place::At(since.unwrap_or(last)),
            (_, Ok(_)) => return,
            (_, Err(error)) => Place::Failed(error),
        };
        // Without `since` there is nothing after the last commit yet, unless somebody has told of
        // another process meanwhile: then one that nobody asks is not marked before that is known.
        let told = std::mem::take(&mut feed.dirty);
        let peek = if told { self.peek(id, feed) } else { None };
        let behind = !matches!(feed.place, Place::At(at) if Some(at) == opened_at);
        feed.dirty = behind || (told && peek.is_none());
        let look = peek.or_else(|| if feed.dirty { self.look(id, feed) } else { None });
        drop(registry);
        self.send(look);
    }

    pub(super) fn len(&self) -> usize {
        self.registry.lock().feeds.len()
    }

    /// The commit up to which a feed that waits has nothing left to tell.
    pub(super) fn position(&self, id: Id) -> Option<u64> {
        match self.registry.lock().feeds.get(&id) {
            Some(Feed { place: Place::At(at), state: State::Asked(_), dirty: false, .. }) => {
                Some(*at)
            }
            _ => None,
        }
    }

    pub(super) fn next(&self, id: Id, reply: FeedReply) {
        let mut registry = self.registry.lock();
        let Some(feed) = registry.feeds.get_mut(&id) else {
            drop(registry);
            reply(Ok(None));
            return;
        };
        feed.state = State::Asked(reply);
        let look = if feed.dirty { self.look(id, feed) } else { None };
        drop(registry);
        self.send(look);
    }

    /// Whether there was such a feed.
    pub(super) fn cancel(&self, id: Id) -> bool {
        let removed = self.registry.lock().feeds.remove(&id);
        let was_there = removed.is_some();
        if let Some(Feed { state: State::Asked(reply), .. }) = removed {
            reply(Ok(None));
        }
        was_there
    }

    /// Tells feeds of a transaction of this process. Answers the looks that the writer thread may
    /// take itself: of those who wait and were up to date before it.
    pub(super) fn announce(&self, report: &Report) -> Vec<ReadJob> {
        let mut registry = self.registry.lock();
        let (before, after) = report.versions;
        if registry.feeds.is_empty() || before == after {
            return Vec::new();
        }
        let mut touched: Vec<&Key> = report.touched.iter().collect();
        touched.sort_unstable();
        let (mut own, mut others) = (Vec::new(), Vec::new());
        for (id, feed) in &mut registry.feeds {
            let up_to_date = matches!(feed.place, Place::At(position) if position == before);
            let first = touched.partition_point(|key| **key < feed.range.start);
            let hit = touched.get(first).is_some_and(|key| **key < feed.range.end);
            if !hit && !feed.dirty && up_to_date {
                feed.place = Place::At(after);
                continue;
            }
            feed.dirty = true;
            let looks = if up_to_date { &mut own } else { &mut others };
            looks.extend(self.look(*id, feed));
        }
        drop(registry);
        for look in others {
            self.send(Some(look));
        }
        own
    }

    /// Tells all feeds that anything may have been committed.
    pub(super) fn wake_all(&self) {
        let mut looks = Vec::new();
        for (id, feed) in &mut self.registry.lock().feeds {
            let peek = if feed.dirty { None } else { self.peek(*id, feed) };
            feed.dirty = peek.is_none();
            looks.extend(peek.or_else(|| self.look(*id, feed)));
        }
        for look in looks {
            self.send(Some(look));
        }
    }

    /// Ends everything.
    pub(super) fn close(&self) {
        let ids: Vec<Id> = self.registry.lock().feeds.keys().copied().collect();
        for id in ids {
            self.cancel(id);
        }
    }

    fn send(&self, look: Option<ReadJob>) {
        if let Some(look) = look {
            self.reads.send(self.env.clone(), look);
        }
    }

    /// What answers a feed that was asked. The registry is locked by the caller.
    fn look(&self, id: Id, feed: &mut Feed) -> Option<ReadJob> {
        let position = match &feed.place {
            Place::Opening(_) => return None,
            Place::At(position) => Ok(*position),
            Place::Failed(error) => Err(error.clone()),
        };
        let reply = match std::mem::replace(&mut feed.state, State::Reading) {
            State::Asked(reply) => reply,
            other => {
                feed.state = other;
                return None;
            }
        };
        feed.dirty = false;
        let (range, myself) = (feed.range.clone(), self.myself.clone());
        Some(Box::new(move |snapshot| {
            let after = position.as_ref().ok().copied();
            let told = position.and_then(|after| {
                snapshot.and_then(|snapshot| batch::next(snapshot, &range, after))
            });
            match myself.upgrade() {
                Some(feeds) => feeds.looked(id, after, told, reply),
                None => reply(Ok(None)),
            }
        }))
    }

    /// For a feed that nobody asks: whether anything happened in its range. If not, its position
    /// moves on, so that it is not taken for a slow one later.
    fn peek(&self, id: Id, feed: &Feed) -> Option<ReadJob> {
        let (State::Idle, Place::At(after)) = (&feed.state, &feed.place) else { return None };
        let (range, after, myself) = (feed.range.clone(), *after, self.myself.clone());
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
        let mut look = None;
        match quiet {
            Ok(Some(version)) => {
                if matches!(feed.place, Place::At(position) if position == after) {
                    feed.place = Place::At(version);
                }
            }
            // It has moved on meanwhile, and the log need not reach back to where it was.
            _ if feed.place.has_left(after) && matches!(feed.state, State::Idle) => {
                look = self.peek(id, feed);
            }
            Ok(None) | Err(_) => {
                feed.dirty = true;
                look = self.look(id, feed);
            }
        }
        drop(registry);
        self.send(look);
    }

    /// Somebody has looked for what came after a commit.
    fn looked(&self, id: Id, after: Option<u64>, told: Result<(Batch, bool)>, reply: FeedReply) {
        let mut registry = self.registry.lock();
        let answer = match (registry.feeds.get_mut(&id), told) {
            (None, _) => Ok(None),
            // It has moved on meanwhile, and the log need not reach back to where it was.
            (Some(feed), Err(_)) if after.is_some_and(|after| feed.place.has_left(after)) => {
                feed.state = State::Asked(reply);
                let look = self.look(id, feed);
                drop(registry);
                self.send(look);
                return;
            }
            (Some(feed), Err(error)) => {
                feed.state = State::Idle;
                // What could not be read is still to be told.
                feed.dirty = true;
                Err(error)
            }
            (Some(feed), Ok((batch, more))) => {
                // Commits elsewhere may have moved the position on while somebody looked.
                let moved = match feed.place {
                    Place::At(position) => position,
                    Place::Opening(_) | Place::Failed(_) => 0,
                };
                feed.place = Place::At(batch.version.max(moved));
                feed.dirty |= more;
                if batch.changes.is_empty() {
                    feed.state = State::Asked(reply);
                    let look = if feed.dirty { self.look(id, feed) } else { None };
                    drop(registry);
                    self.send(look);
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
