//! Watches: a stream from the server, asked for anew whenever it ends, of which the newest state is
//! kept until somebody asks for it.
//!
//! Invariant: a state is told when it differs by a stamp from what was told last (a raw watch is
//! told of every message), so a new stream, which begins with everything, tells nothing twice, and
//! the last state is never missed: the new stream begins with it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};
use hyper::{StatusCode, Uri};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout};

use super::ask::{Asker, Stopped, stopped};
use super::backoff;
use super::credentials::Grant;
use super::transport::refusal;
use crate::connect::frames::Frames;
use crate::connect::versions::Version;
use crate::connect::wire::watch::{WatchAnswer, read_answer, write_request};
use crate::model::{Error, Key, Kind, Result, Versionstamp, WATCH_SILENCE_MS_MAX};
use crate::store::{Entry, Id, WatchReply};

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
    /// What follows the server; started by the first question.
    task: Option<AbortHandle>,
    /// The newest state; `None` before the first.
    newest: Option<Vec<Option<Entry>>>,
    /// Stamps of the state told last.
    told: Option<Vec<Option<Versionstamp>>>,
    /// Messages have come since something was told.
    news: bool,
    asked: Option<WatchReply>,
    failure: Option<Error>,
}

/// How following a stream ended.
enum End {
    /// Ask again, after this long at least.
    Again(String, Duration),
    /// The token was not accepted.
    Unauthorized(String),
    /// The endpoint does not read: another may.
    Disabled,
    Final(Error),
}

impl Watches {
    pub(super) fn add(&self, keys: Vec<Key>, raw: bool) -> Id {
        let mut registry = self.0.lock();
        registry.last_id += 1;
        let id = registry.last_id;
        registry.watches.insert(id, Arc::new(Watch { keys, raw, state: Mutex::default() }));
        id
    }

    pub(super) fn next(&self, id: Id, reply: WatchReply, asker: &Arc<Asker>, runtime: &Handle) {
        let watch = self.0.lock().watches.get(&id).cloned();
        let Some(watch) = watch else { return reply(Ok(None)) };
        {
            let mut state = watch.state.lock();
            state.asked = Some(reply);
            if state.task.is_none() {
                let follow = follow(asker.clone(), watch.clone());
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
        let (task, asked) = (state.task.take(), state.asked.take());
        drop(state);
        if let Some(task) = task {
            task.abort();
        }
        if let Some(reply) = asked {
            reply(Ok(None));
        }
    }

    /// Answers who asks, if there is something to say.
    fn tell(&self) {
        let mut state = self.state.lock();
        let answer = match (&state.failure, &state.newest) {
            (Some(failure), _) => Err(failure.clone()),
            (None, Some(newest)) => {
                let stamps: Vec<_> = newest.iter().map(|e| e.as_ref().map(|e| e.stamp)).collect();
                let differs = state.told.as_ref() != Some(&stamps);
                let is_news = differs || self.raw && state.news;
                if !is_news || state.asked.is_none() {
                    return;
                }
                let newest = newest.clone();
                state.told = Some(stamps);
                state.news = false;
                Ok(Some(newest))
            }
            (None, None) => return,
        };
        let asked = state.asked.take();
        drop(state);
        if let Some(reply) = asked {
            reply(answer);
        }
    }

    fn fail(&self, error: Error) {
        self.state.lock().failure = Some(error);
        self.tell();
    }

    /// Takes in a message of the server.
    fn take(&self, message: &[u8], is_first: bool) -> Result<(), End> {
        let malformed = |why: &str| {
            let why = format!("a watch's message is not KV Connect: {why}");
            End::Final(Error::corrupt(why))
        };
        let answer = read_answer(message, self.keys.len()).map_err(|e| malformed(e.message()))?;
        let WatchAnswer::State(changes) = answer else { return Err(End::Disabled) };
        let mut state = self.state.lock();
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
                None if is_first => return Err(malformed("the first one leaves a key out")),
                None => {}
            }
        }
        state.newest = Some(entries);
        state.news = true;
        drop(state);
        self.tell();
        Ok(())
    }
}

/// Follows the server for as long as the watch is there.
async fn follow(asker: Arc<Asker>, watch: Arc<Watch>) {
    let mut tries = 0;
    let mut renewed = false;
    loop {
        let grant = match asker.credentials.current(Instant::now() + asker.timeout).await {
            Ok(grant) => grant,
            Err(error) if error.kind() == Kind::Unavailable => {
                pause(&asker, &mut tries, Duration::ZERO, error.message()).await;
                continue;
            }
            Err(error) => return watch.fail(error),
        };
        let mut heard = false;
        let end = stream(&asker, &watch, &grant, &mut heard).await;
        if heard {
            (tries, renewed) = (0, false);
        }
        match end {
            End::Again(why, least) => pause(&asker, &mut tries, least, &why).await,
            End::Unauthorized(why) if renewed => {
                return watch.fail(Error::new(Kind::Denied, why));
            }
            End::Disabled if renewed => {
                let why = "Reads are disabled for this database";
                return watch.fail(Error::new(Kind::Unavailable, why));
            }
            End::Unauthorized(_) | End::Disabled => {
                renewed = true;
                let deadline = Instant::now() + asker.timeout;
                match asker.credentials.newer_than(grant.number, deadline).await {
                    Ok(_) => {}
                    Err(error) if error.kind() == Kind::Unavailable => {
                        renewed = false;
                        pause(&asker, &mut tries, Duration::ZERO, error.message()).await;
                    }
                    Err(error) => return watch.fail(error),
                }
            }
            End::Final(error) => return watch.fail(error),
        }
    }
}

async fn pause(asker: &Asker, tries: &mut u32, least: Duration, why: &str) {
    tracing::debug!(why, "a watch is asked for anew");
    let wait = backoff::delay(*tries, asker.env.random()).max(least);
    *tries = tries.saturating_add(1);
    sleep(wait).await;
}

async fn stream(asker: &Asker, watch: &Watch, grant: &Grant, heard: &mut bool) -> End {
    if grant.version < Version::V3 {
        let why = format!(
            "{} speaks version {} of KV Connect; watching needs version 3",
            asker.credentials.shown(),
            grant.version.number()
        );
        return End::Final(Error::new(Kind::Unsupported, why));
    }
    let Some(endpoint) = grant.endpoint(false) else {
        return End::Final(asker.credentials.no_endpoint());
    };
    let Ok(uri) = format!("{endpoint}/watch").parse::<Uri>() else {
        return End::Final(Error::corrupt(format!("{endpoint} cannot be requested")));
    };
    let body = Bytes::from(write_request(&watch.keys));
    let deadline = Instant::now() + asker.timeout;
    let answer = asker.transport.stream(&uri, grant.headers.clone(), body, deadline).await;
    let (answer, _seat) = match answer {
        Ok(answer) => answer,
        Err(fault) => return End::Again(fault.why(), Duration::ZERO),
    };
    let (head, body) = answer.into_parts();
    if head.status != StatusCode::OK {
        let text = refusal(body, deadline).await;
        return match stopped(endpoint, head.status, &head.headers, &text) {
            Stopped::Again(why, least) => End::Again(why, least),
            Stopped::Unauthorized(why) => End::Unauthorized(why),
            Stopped::Final(error) => End::Final(error),
        };
    }
    messages(watch, body, heard).await
}

/// Takes in what comes until the stream ends, or is silent for too long.
async fn messages(watch: &Watch, mut body: Incoming, heard: &mut bool) -> End {
    let mut frames = Frames::default();
    let silence = Duration::from_millis(WATCH_SILENCE_MS_MAX);
    loop {
        let piece = match timeout(silence, body.frame()).await {
            Err(_) => return End::Again("silent".into(), Duration::ZERO),
            Ok(None) => return End::Again("the stream has ended".into(), Duration::ZERO),
            Ok(Some(Err(error))) => return End::Again(error.to_string(), Duration::ZERO),
            Ok(Some(Ok(piece))) => piece,
        };
        let Some(data) = piece.data_ref() else { continue };
        frames.push(data);
        loop {
            match frames.next_message() {
                Ok(None) => break,
                Ok(Some(message)) if message.is_empty() => {}
                Ok(Some(message)) => {
                    if let Err(end) = watch.take(&message, !*heard) {
                        return end;
                    }
                    *heard = true;
                }
                Err(error) => return End::Final(Error::corrupt(error.message())),
            }
        }
    }
}
