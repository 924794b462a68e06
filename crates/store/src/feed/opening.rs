//! Feeds as callers open, pull and end them.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::Feeds;
use crate::{Room, Store};
use openkv_core::model::{Error, FeedReply, Id, KeyRange, Result};
use openkv_engines::{Snapshot, Writer};

/// Gets the commit after which a new feed is complete.
pub type OpenedReply = Box<dyn FnOnce(Result<u64>) + Send>;

impl Store {
    /// Starts a change feed of a range: all commits that are submitted later and, with `since`, all
    /// commits after it. It answers only calls of [`Store::feed_next`]. `room` bounds a batch; one
    /// without room is an error, after which the caller may ask again. `busy` bounds the wait for
    /// other processes while the file begins to log changes. The reply gets the commit after which
    /// the feed is complete.
    pub fn feed(
        &self,
        range: KeyRange,
        since: Option<u64>,
        room: Option<Arc<dyn Room>>,
        busy: Duration,
        reply: OpenedReply,
    ) -> Id {
        let id = self.feeds.add(range, since, room);
        let feeds = Arc::downgrade(&self.feeds);
        let opening = Opening { feeds, id, since, reply: Some(reply) };
        self.feed_start(busy, move |last| opening.answer(last));
        self.watches.external().hold();
        id
    }

    /// Makes the file log its changes, if it does not. The reply gets the last commit: a feed that
    /// continues after it has every change from then on. `busy` bounds the wait for other processes.
    pub fn feed_start(&self, busy: Duration, reply: impl FnOnce(Result<u64>) + Send + 'static) {
        if self.readonly {
            self.read(None, reply, |snapshot, _| last_logged(snapshot));
        } else {
            let (origin, now_ms) = (self.new_origin(), self.env.now_ms());
            let turn_on = move |writer: &mut dyn Writer| {
                writer.log_changes(origin, now_ms, Instant::now() + busy)
            };
            self.on_writer(turn_on, reply);
        }
    }

    /// Asks a feed for its next changes. The reply gets `None` when the feed is cancelled. A second
    /// call drops the first reply unanswered.
    pub fn feed_next(&self, id: Id, reply: FeedReply) {
        self.feeds.next(id, reply);
    }

    /// Whether a feed has not ended.
    pub fn has_feed(&self, id: Id) -> bool {
        self.feeds.has(id)
    }

    /// The commit up to which a waiting feed has reported every change. `None` if the feed may have
    /// more to report, or has no waiting call.
    pub fn feed_position(&self, id: Id) -> Option<u64> {
        self.feeds.position(id)
    }

    /// Ends a feed. A waiting reply gets `None`.
    pub fn feed_cancel(&self, id: Id) {
        if self.feeds.cancel(id) {
            self.watches.external().release();
        }
    }
}

/// A feed that a thread of the store is opening. Dropping it unanswered fails the feed.
struct Opening {
    feeds: Weak<Feeds>,
    id: Id,
    since: Option<u64>,
    /// `None` once it is answered.
    reply: Option<OpenedReply>,
}

impl Opening {
    /// Completes the opening: `last` is the last commit before changes are logged.
    fn answer(mut self, last: Result<u64>) {
        self.tell(last);
    }

    fn tell(&mut self, last: Result<u64>) {
        let Some(reply) = self.reply.take() else { return };
        reply(last.clone().map(|last| self.since.unwrap_or(last)));
        if let Some(feeds) = self.feeds.upgrade() {
            feeds.opened(self.id, last);
        }
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        self.tell(Err(Error::internal("the thread that opens the feed has ended by a panic")));
    }
}

/// The last commit, for a read-only store, which cannot start the log.
fn last_logged(snapshot: &mut dyn Snapshot) -> Result<u64> {
    let state = snapshot.feed_state()?;
    if state.on {
        return Ok(state.version);
    }
    let reason = "the file does not log changes, and cannot be made to with readonly: true; \
                  open a feed on a handle that writes, or open it with log: true there";
    Err(Error::denied(reason))
}
