//! Change feeds: a stream of batches from the server, of which one is kept until somebody asks for it.
//!
//! Invariant: a stream is asked for anew with the versionstamp of the last message that was taken
//! in, which is handed over before any later one; so nothing is lost, told twice or out of order.
//! A feed without `since` has no such versionstamp before the server has told where it was opened:
//! so what the handle writes after asking for the feed waits for that, for a while ([`opened`]).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Bytes;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch as flag};
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};

use super::ask::Asker;
use super::credentials::{Credentials, Grant};
use super::extension::Needs;
use super::stream::{End, Follower, Wish, follow};
use crate::connect::extension::{FEED, FEEDS};
use crate::connect::feed::{FeedMessage, read_message, write_request};
use crate::model::{Error, FEED_FRAME_BYTES_MAX, KeyRange, Kind, Result, Versionstamp};
use crate::store::{Batch, FeedReply, Id};

/// The feeds of one handle.
#[derive(Default)]
pub(super) struct Feeds(Mutex<Registry>);

#[derive(Default)]
struct Registry {
    last_id: Id,
    feeds: HashMap<Id, Arc<Feed>>,
}

pub(super) struct Feed {
    range: KeyRange,
    state: Mutex<State>,
    /// The batch that was kept has been handed over.
    taken: Notify,
    /// The server knows from where on to tell, or nobody waits for that any more.
    opened: flag::Sender<bool>,
}

#[derive(Default)]
struct State {
    /// What follows the server.
    task: Option<AbortHandle>,
    /// Up to here everything has been taken in.
    place: Option<Versionstamp>,
    /// What nobody has asked for yet.
    next: Option<Batch>,
    asked: Option<FeedReply>,
    failure: Option<Error>,
}

impl Feeds {
    /// Begins to follow.
    pub(super) fn add(
        &self,
        range: KeyRange,
        since: Option<Versionstamp>,
        asker: &Arc<Asker>,
        runtime: &Handle,
    ) -> Id {
        let feed = Arc::new(Feed {
            range,
            state: Mutex::new(State { place: since, ..State::default() }),
            taken: Notify::new(),
            opened: flag::Sender::new(since.is_some()),
        });
        let task = runtime.spawn(follow(asker.clone(), feed.clone()));
        feed.state.lock().task = Some(task.abort_handle());
        let mut registry = self.0.lock();
        registry.last_id += 1;
        let id = registry.last_id;
        registry.feeds.insert(id, feed);
        id
    }

    pub(super) fn next(&self, id: Id, reply: FeedReply) {
        let feed = self.0.lock().feeds.get(&id).cloned();
        let Some(feed) = feed else { return reply(Ok(None)) };
        feed.state.lock().asked = Some(reply);
        feed.tell();
    }

    pub(super) fn cancel(&self, id: Id) {
        let feed = self.0.lock().feeds.remove(&id);
        if let Some(feed) = feed {
            feed.cancel();
        }
    }

    /// Those of which the server may not know yet.
    pub(super) fn opening(&self) -> Vec<Arc<Feed>> {
        let registry = self.0.lock();
        registry.feeds.values().filter(|feed| !*feed.opened.borrow()).cloned().collect()
    }
}

impl Drop for Feeds {
    fn drop(&mut self) {
        for feed in self.0.get_mut().feeds.values() {
            feed.cancel();
        }
    }
}

/// Waits until the server knows of feeds that were asked for before, but no longer than half of the
/// time that a call may take. Answers the way to the server for the rest of it.
pub(super) async fn opened(asker: Arc<Asker>, opening: Vec<Arc<Feed>>) -> Arc<Asker> {
    if opening.is_empty() {
        return asker;
    }
    let begun = Instant::now();
    for feed in opening {
        let mut opened = feed.opened.subscribe();
        let waited = tokio::select! {
            waited = timeout_at(begun + asker.timeout / 2, opened.wait_for(|opened| *opened)) => waited,
            () = asker.is_abandoned() => break,
        };
        if waited.is_err() {
            // Once is enough.
            feed.opened.send_replace(true);
        }
    }
    Arc::new(asker.later_by(begun.elapsed()))
}

impl Feed {
    fn cancel(&self) {
        let mut state = self.state.lock();
        let (task, asked) = (state.task.take(), state.asked.take());
        drop(state);
        if let Some(task) = task {
            task.abort();
        }
        self.opened.send_replace(true);
        if let Some(reply) = asked {
            reply(Ok(None));
        }
    }

    /// Answers who asks, if there is something to say.
    fn tell(&self) {
        let mut state = self.state.lock();
        if state.asked.is_none() {
            return;
        }
        let answer = match (state.next.take(), &state.failure) {
            (Some(batch), _) => Ok(Some(batch)),
            (None, Some(failure)) => Err(failure.clone()),
            (None, None) => return,
        };
        let asked = state.asked.take();
        drop(state);
        self.taken.notify_one();
        if let Some(reply) = asked {
            reply(answer);
        }
    }
}

impl Follower for Feed {
    fn wish(&self, _: &Credentials, _: &Grant) -> Result<Wish> {
        let place = self.state.lock().place;
        Ok(Wish {
            path: FEED,
            body: Bytes::from(write_request(&self.range, place)),
            needs: Some(Needs { extension: FEEDS, what: "change feeds (watch over a selector)" }),
            frame_bytes_max: FEED_FRAME_BYTES_MAX,
        })
    }

    /// Waits until nothing is kept: what comes then would only wait on the way.
    async fn ready(&self) {
        while self.state.lock().next.is_some() {
            self.taken.notified().await;
        }
    }

    async fn take(&self, message: Vec<u8>, _is_first: bool) -> Result<bool, End> {
        self.ready().await;
        let place = self.state.lock().place;
        let told = read_message(&message, &self.range, place).map_err(End::Final)?;
        let (told, changes) = match told {
            FeedMessage::Told(told, changes) => (told, changes),
            FeedMessage::Ended(error) => {
                let passing = matches!(error.kind(), Kind::Unavailable | Kind::Closed);
                let again = || End::Again(error.message().to_owned(), Duration::ZERO);
                return Err(if passing { again() } else { End::Final(error) });
            }
        };
        {
            let mut state = self.state.lock();
            state.place = Some(told);
            if !changes.is_empty() {
                state.next = Some(Batch { changes, version: told.version() });
            }
        }
        self.opened.send_replace(true);
        self.tell();
        Ok(place != Some(told))
    }

    fn refused(&self) {
        self.opened.send_replace(true);
    }

    fn fail(&self, error: Error) {
        self.state.lock().failure = Some(error);
        self.opened.send_replace(true);
        self.tell();
    }
}
