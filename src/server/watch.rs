//! `watch`: a stream of states, cut when its token has expired or been withdrawn.

use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use hyper::body::Bytes;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};

use super::Serving;
use super::answer::{Answer, Body, Refusal, answer};
use super::auth::Grant;
use super::catalog::now_ms;
use super::data::{store_of, wire_entry};
use super::database::{Database, WatchPlace};
use crate::connect::frames::{KEEP_ALIVE, push_frame};
use crate::connect::versions::STREAM_TYPE;
use crate::connect::wire::watch;
use crate::model::{ALIVE_INTERVAL_MS, Error, Key, Limits, Result};
use crate::store::{Entry, Id, Store};

/// Cancels a watch when its stream ends, however that comes.
struct Watching {
    store: Arc<Store>,
    id: Id,
    keys: Vec<Key>,
    _place: WatchPlace,
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.store.watch_cancel(self.id);
    }
}

type State = Result<Option<Vec<Option<Entry>>>>;

impl Watching {
    fn next(&self) -> oneshot::Receiver<State> {
        let (reply, state) = oneshot::channel();
        self.store.watch_next(self.id, Box::new(move |answer| drop(reply.send(answer))));
        state
    }

    fn frame(&self, entries: &[Option<Entry>]) -> Result<Bytes> {
        let of = |(key, entry): (&Key, &Option<Entry>)| {
            entry.as_ref().map(|entry| wire_entry(key, entry)).transpose()
        };
        let entries = self.keys.iter().zip(entries).map(of).collect::<Result<Vec<_>>>()?;
        let mut frame = Vec::new();
        push_frame(&mut frame, &watch::write_answer(entries))?;
        Ok(frame.into())
    }
}

/// Starts a watch.
pub(super) async fn watch(
    serving: &Arc<Serving>,
    database: &Arc<Database>,
    grant: Grant,
    body: &[u8],
) -> Result<Answer, Refusal> {
    let keys = watch::read_request(body, &Limits::default())?;
    let place = database.take_watch()?;
    let store = store_of(database).await?;
    let id = store.watch(keys.clone(), false);
    let watching = Watching { store, id, keys, _place: place };
    // One frame ahead: a client that reads slowly misses states in between, not the last.
    let (sender, pieces) = mpsc::channel(1);
    tokio::spawn(stream(serving.clone(), database.clone(), grant, watching, sender));
    Ok(answer(StatusCode::OK, STREAM_TYPE, Body::Stream(pieces)))
}

async fn stream(
    serving: Arc<Serving>,
    database: Arc<Database>,
    grant: Grant,
    watching: Watching,
    pieces: mpsc::Sender<Bytes>,
) {
    let left = u64::try_from(grant.expires_at_ms - now_ms()).unwrap_or(0);
    let expiry = sleep(Duration::from_millis(left));
    tokio::pin!(expiry);
    let pace = Duration::from_millis(ALIVE_INTERVAL_MS);
    let mut alive = interval_at(Instant::now() + pace, pace);
    alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut closing = serving.closing.subscribe();
    let mut changed = database.changed.subscribe();
    let mut state = watching.next();
    loop {
        if *closing.borrow_and_update() || !database.has_token(grant.issued_for) {
            return;
        }
        let piece = tokio::select! {
            answered = &mut state => {
                let told: State = answered.unwrap_or_else(|_| Err(Error::closed()));
                match told.and_then(|entries| entries.map(|entries| watching.frame(&entries)).transpose()) {
                    Ok(Some(frame)) => frame,
                    Ok(None) => return,
                    Err(error) => {
                        // The client connects again, and learns by status what is wrong.
                        tracing::warn!(%error, "a watch ended");
                        return;
                    }
                }
            }
            _ = alive.tick() => Bytes::from_static(&KEEP_ALIVE),
            () = &mut expiry => return,
            () = pieces.closed() => return,
            _ = closing.changed() => continue,
            _ = changed.changed() => continue,
        };
        let is_state = piece.len() > KEEP_ALIVE.len();
        // A client that does not read holds this up, but not beyond its token.
        let permit = loop {
            tokio::select! {
                permit = pieces.reserve() => break permit,
                () = &mut expiry => return,
                _ = closing.changed() => return,
                _ = changed.changed() => if !database.has_token(grant.issued_for) { return },
            }
        };
        let Ok(permit) = permit else { return };
        permit.send(piece);
        if is_state {
            alive.reset();
            state = watching.next();
        }
    }
}
