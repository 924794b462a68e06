//! `watch`: a stream of states.

use std::sync::Arc;

use hyper::body::Bytes;
use tokio::sync::oneshot;

use super::Serving;
use super::answer::{Answer, Refusal};
use super::auth::Grant;
use super::data::{store_of, wire_entry};
use super::database::{Database, WatchPlace};
use super::stream::{Source, stream};
use crate::connect::frames::push_frame;
use crate::connect::wire::watch;
use crate::model::{Error, Key, Limits, Result};
use crate::store::{Entry, Id, Store};

type State = Result<Option<Vec<Option<Entry>>>>;

/// A watch of the store, which is cancelled when its stream ends.
struct Watching {
    store: Arc<Store>,
    id: Id,
    keys: Vec<Key>,
    asked: Option<oneshot::Receiver<State>>,
    _place: WatchPlace,
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.store.watch_cancel(self.id);
    }
}

impl Watching {
    fn ask(store: &Store, id: Id) -> oneshot::Receiver<State> {
        let (reply, state) = oneshot::channel();
        store.watch_next(id, Box::new(move |answer| drop(reply.send(answer))));
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

impl Source for Watching {
    async fn next(&mut self) -> Option<Bytes> {
        let asked = self.asked.get_or_insert_with(|| Self::ask(&self.store, self.id));
        let told = asked.await.unwrap_or_else(|_| Err(Error::closed()));
        self.asked = None;
        let frame = told.and_then(|told| told.map(|entries| self.frame(&entries)).transpose());
        frame.unwrap_or_else(|error| {
            // The client connects again, and learns by status what is wrong.
            tracing::warn!(%error, "a watch ended");
            None
        })
    }
}

/// Starts a watch.
pub(super) async fn watch(
    serving: &Arc<Serving>,
    database: &Arc<Database>,
    grant: &Grant,
    body: &[u8],
) -> Result<Answer, Refusal> {
    let keys = watch::read_request(body, &Limits::default())?;
    let place = database.take_watch()?;
    let store = store_of(database).await?;
    let id = store.watch(keys.clone(), false);
    let watching = Watching { store, id, keys, asked: None, _place: place };
    Ok(stream(serving, database, grant, watching))
}
