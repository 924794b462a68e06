//! Watches: a stream of states from the server. The client keeps the newest state until the next
//! call.
//!
//! Invariant: a state is reported if a versionstamp differs from the last reported state; a raw
//! watch reports every message. A new stream starts with a full state, so no state is repeated and
//! the last one is never missed.

use std::collections::HashMap;
use std::sync::Arc;

use hyper::body::Bytes;
use hyper::header::HeaderMap;
use parking_lot::{Mutex, MutexGuard};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use super::credentials::{Credentials, Grant};
use super::executor::{Needs, RequestExecutor};
use super::stream::{End, Follower, StreamRequest, follow};
use openkv_core::model::{
    Entry, Error, FRAMES_ANSWER_BYTES_MAX, Id, Key, Result, Versionstamp, WATCH_FRAME_BYTES_MAX,
    WATCH_SILENCE_MS_MAX, WatchReply,
};
use openkv_wire::connect::versions::Version;
use openkv_wire::connect::wire::watch::{WatchAnswer, read_answer, write_request};
use openkv_wire::protocol::extension::{FRAMES, WATCH};
use openkv_wire::protocol::state;

/// The watches of one handle.
#[derive(Default)]
pub(super) struct Watches(Mutex<Registry>);

#[derive(Default)]
struct Registry {
    last_id: Id,
    watches: HashMap<Id, Arc<Watch>>,
}

struct Watch {
    keys: Vec<Key>,
    raw: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The task that reads the stream; started by the first call.
    task: Option<AbortHandle>,
    /// The newest state; `None` before the first.
    newest: Option<Vec<Option<Entry>>>,
    /// Versionstamps of the last reported state.
    reported: Option<Stamps>,
    /// The stream uses frames.
    in_frames: bool,
    /// Messages have arrived since the last report.
    arrived: bool,
    reply: Option<WatchReply>,
    failure: Option<Error>,
}

/// The versionstamps that identify a state.
type Stamps = Vec<Option<Versionstamp>>;

impl State {
    /// The versionstamps of the newest state.
    fn stamps(&self) -> Option<Stamps> {
        let newest = self.newest.as_ref()?;
        Some(newest.iter().map(|entry| entry.as_ref().map(|entry| entry.stamp)).collect())
    }
}

impl Watches {
    pub(super) fn add(&self, keys: Vec<Key>, raw: bool) -> Id {
        let mut registry = self.0.lock();
        registry.last_id += 1;
        let id = registry.last_id;
        registry.watches.insert(id, Arc::new(Watch { keys, raw, state: Mutex::default() }));
        id
    }

    pub(super) fn next(
        &self,
        id: Id,
        reply: WatchReply,
        executor: &Arc<RequestExecutor>,
        runtime: &Handle,
    ) {
        let watch = self.0.lock().watches.get(&id).cloned();
        let Some(watch) = watch else { return reply(Ok(None)) };
        {
            let mut state = watch.state.lock();
            state.reply = Some(reply);
            if state.task.is_none() {
                let follow = follow(executor.clone(), watch.clone());
                state.task = Some(runtime.spawn(follow).abort_handle());
            }
        }
        watch.tell();
    }

    pub(super) fn cancel(&self, id: Id) {
        let watch = self.0.lock().watches.remove(&id);
        if let Some(watch) = watch {
            watch.cancel();
        }
    }
}

impl Drop for Watches {
    fn drop(&mut self) {
        for watch in self.0.get_mut().watches.values() {
            watch.cancel();
        }
    }
}

impl Watch {
    fn cancel(&self) {
        let mut state = self.state.lock();
        let (task, reply) = (state.task.take(), state.reply.take());
        drop(state);
        if let Some(task) = task {
            task.abort();
        }
        if let Some(reply) = reply {
            reply(Ok(None));
        }
    }

    /// Answers a waiting call, if there is something to report.
    fn tell(&self) {
        let mut state = self.state.lock();
        let answer = match (&state.failure, &state.newest) {
            (Some(failure), _) => Err(failure.clone()),
            (None, Some(newest)) => {
                let stamps = state.stamps();
                let is_unreported = state.reported != stamps || self.raw && state.arrived;
                if !is_unreported || state.reply.is_none() {
                    return;
                }
                let newest = newest.clone();
                state.reported = stamps;
                state.arrived = false;
                Ok(Some(newest))
            }
            (None, None) => return,
        };
        let reply = state.reply.take();
        drop(state);
        if let Some(reply) = reply {
            reply(answer);
        }
    }
}

impl Watch {
    /// Takes a message in frames, which always has all keys.
    fn take_frame(&self, message: &[u8]) -> Result<bool, End> {
        let reported = state::read_message(message, self.keys.len()).map_err(End::Final)?;
        let held = reported.map_err(End::Final)?.into_iter();
        let entries = held.map(|held| held.map(|(stamp, value)| Entry { stamp, value }));
        let mut state = self.state.lock();
        let before = state.stamps();
        state.newest = Some(entries.collect());
        Ok(self.taken(state, before))
    }

    /// Records a received state. Returns whether it differs from the one before.
    fn taken(&self, mut state: MutexGuard<'_, State>, before: Option<Stamps>) -> bool {
        state.arrived = true;
        let differs = state.stamps() != before;
        drop(state);
        self.tell();
        differs
    }
}

impl Follower for Watch {
    fn request(&self, credentials: &Credentials, grant: &Grant) -> Result<StreamRequest> {
        let in_frames = grant.offers(FRAMES);
        self.state.lock().in_frames = in_frames;
        if in_frames {
            return Ok(StreamRequest {
                headers: HeaderMap::new(),
                of_source: false,
                path: WATCH,
                body: Bytes::from(state::write_request(&self.keys, self.raw)),
                needs: Some(Needs { extension: FRAMES, what: "watches of many keys" }),
                frame_bytes_max: FRAMES_ANSWER_BYTES_MAX,
                silence_ms_max: WATCH_SILENCE_MS_MAX,
            });
        }
        if grant.version < Version::V3 {
            let why = format!(
                "{} speaks version {} of KV Connect; watching needs version 3",
                credentials.shown(),
                grant.version.number()
            );
            return Err(Error::unsupported(why));
        }
        Ok(StreamRequest {
            headers: HeaderMap::new(),
            of_source: false,
            path: "watch",
            body: Bytes::from(write_request(&self.keys)),
            needs: None,
            frame_bytes_max: WATCH_FRAME_BYTES_MAX,
            silence_ms_max: WATCH_SILENCE_MS_MAX,
        })
    }

    async fn take(&self, message: Vec<u8>, is_first: bool) -> Result<bool, End> {
        if self.state.lock().in_frames {
            return self.take_frame(&message);
        }
        let malformed = |why: &str| {
            let why = format!("a watch's message is not KV Connect: {why}");
            End::Final(Error::corrupt(why))
        };
        let answer = read_answer(&message, self.keys.len()).map_err(|e| malformed(e.message()))?;
        let WatchAnswer::State(changes) = answer else {
            let why = "Reads are disabled for this database";
            return Err(End::Refused(Error::unavailable(why)));
        };
        let mut state = self.state.lock();
        let before = state.stamps();
        let mut entries = state.newest.take().filter(|_| !is_first).unwrap_or_default();
        entries.resize(self.keys.len(), None);
        for ((place, change), key) in entries.iter_mut().zip(changes).zip(&self.keys) {
            match change {
                Some(Some(found)) if found.key != *key => {
                    return Err(malformed("it is about another key"));
                }
                Some(found) => {
                    *place = found.map(|found| Entry { stamp: found.stamp, value: found.value });
                }
                None if is_first => return Err(malformed("the first message lacks a key")),
                None => {}
            }
        }
        state.newest = Some(entries);
        Ok(self.taken(state, before))
    }

    fn fail(&self, error: Error) {
        self.state.lock().failure = Some(error);
        self.tell();
    }
}
