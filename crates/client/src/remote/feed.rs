//! Change feeds: a stream of batches from the server. The client buffers one batch until the next
//! call.
//!
//! Invariant: a stream resumes after the versionstamp of the last received message, and messages
//! are handed over in order. So no change is lost, repeated or reordered. A feed without `since`
//! has no versionstamp until the server reports where it was opened. So later writes of the handle
//! wait for that report, for a bounded time ([`opened`]).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Bytes;
use hyper::header::HeaderMap;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch as flag};
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};

use super::credentials::{Credentials, Grant};
use super::executor::{Needs, RequestExecutor};
use super::stream::{End, Follower, StreamRequest, follow};
use openkv_core::model::{
    Batch, Error, FEED_FRAME_BYTES_MAX, FeedReply, Id, KeyRange, Kind, Result, Versionstamp,
    WATCH_SILENCE_MS_MAX,
};
use openkv_wire::protocol::extension::{FEED, FEEDS};
use openkv_wire::protocol::feed::{FeedMessage, read_message, write_request};

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
    /// Notified when the buffered batch is handed over.
    taken: Notify,
    /// True once the server knows the feed's start, or no write waits for that any more.
    opened: flag::Sender<bool>,
}

#[derive(Default)]
struct State {
    /// The task that reads the stream.
    task: Option<AbortHandle>,
    /// Everything up to here was received.
    place: Option<Versionstamp>,
    /// The buffered batch.
    next: Option<Batch>,
    reply: Option<FeedReply>,
    failure: Option<Error>,
}

impl Feeds {
    /// Starts a feed.
    pub(super) fn add(
        &self,
        range: KeyRange,
        since: Option<Versionstamp>,
        executor: &Arc<RequestExecutor>,
        runtime: &Handle,
    ) -> Id {
        let feed = Arc::new(Feed {
            range,
            state: Mutex::new(State { place: since, ..State::default() }),
            taken: Notify::new(),
            opened: flag::Sender::new(since.is_some()),
        });
        let task = runtime.spawn(follow(executor.clone(), feed.clone()));
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
        feed.state.lock().reply = Some(reply);
        feed.tell();
    }

    pub(super) fn cancel(&self, id: Id) {
        let feed = self.0.lock().feeds.remove(&id);
        if let Some(feed) = feed {
            feed.cancel();
        }
    }

    /// The feeds that the server may not know yet.
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

/// Waits until the server knows the feeds started before, at most for half of the call's timeout.
/// Returns an executor for the remaining time.
pub(super) async fn opened(
    executor: Arc<RequestExecutor>,
    opening: Vec<Arc<Feed>>,
) -> Arc<RequestExecutor> {
    if opening.is_empty() {
        return executor;
    }
    let begun = Instant::now();
    for feed in opening {
        let mut opened = feed.opened.subscribe();
        let waited = tokio::select! {
            waited = timeout_at(begun + executor.timeout / 2, opened.wait_for(|opened| *opened)) => waited,
            () = executor.cancelled() => break,
        };
        if waited.is_err() {
            // Only the first write waits.
            feed.opened.send_replace(true);
        }
    }
    Arc::new(executor.later_by(begun.elapsed()))
}

impl Feed {
    fn cancel(&self) {
        let mut state = self.state.lock();
        let (task, reply) = (state.task.take(), state.reply.take());
        drop(state);
        if let Some(task) = task {
            task.abort();
        }
        self.opened.send_replace(true);
        if let Some(reply) = reply {
            reply(Ok(None));
        }
    }

    /// Answers a waiting call, if there is a batch or an end.
    fn tell(&self) {
        let mut state = self.state.lock();
        if state.reply.is_none() {
            return;
        }
        let answer = match (state.next.take(), &state.failure) {
            (Some(batch), _) => Ok(Some(batch)),
            (None, Some(failure)) => Err(failure.clone()),
            (None, None) => return,
        };
        let reply = state.reply.take();
        drop(state);
        self.taken.notify_one();
        if let Some(reply) = reply {
            reply(answer);
        }
    }
}

impl Follower for Feed {
    fn request(&self, _: &Credentials, _: &Grant) -> Result<StreamRequest> {
        let place = self.state.lock().place;
        Ok(StreamRequest {
            headers: HeaderMap::new(),
            of_source: false,
            path: FEED,
            body: Bytes::from(write_request(&self.range, place)),
            needs: Some(Needs { extension: FEEDS, what: "change feeds (watch over a selector)" }),
            frame_bytes_max: FEED_FRAME_BYTES_MAX,
            silence_ms_max: WATCH_SILENCE_MS_MAX,
        })
    }

    /// Waits until the buffer is empty.
    async fn ready(&self) {
        while self.state.lock().next.is_some() {
            self.taken.notified().await;
        }
    }

    async fn take(&self, message: Vec<u8>, _is_first: bool) -> Result<bool, End> {
        self.ready().await;
        let place = self.state.lock().place;
        let position = read_message(&message, &self.range, place).map_err(End::Final)?;
        let (position, changes) = match position {
            FeedMessage::Changes(position, changes) => (position, changes),
            FeedMessage::Ended(error) => {
                let passing = matches!(error.kind(), Kind::Unavailable | Kind::Closed);
                let again = || End::Again(error.message().to_owned(), Duration::ZERO);
                return Err(if passing { again() } else { End::Final(error) });
            }
        };
        {
            let mut state = self.state.lock();
            state.place = Some(position);
            if !changes.is_empty() {
                state.next = Some(Batch { changes, version: position.version() });
            }
        }
        self.opened.send_replace(true);
        self.tell();
        Ok(place != Some(position))
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
