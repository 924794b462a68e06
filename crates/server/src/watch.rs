//! Watches: a stream of states, in the client's form.

use std::sync::Arc;

use hyper::body::Bytes;

use super::answer::{Answer, Refusal};
use super::data::{Client, store_of, wire_entry};
use super::database::WatchPlace;
use super::memory::{Claim, attempt};
use super::pending::Pending;
use super::stream::{Source, stream};
use openkv_core::codec::framing::{KEEP_ALIVE, push_frame};
use openkv_core::model::{Entry, Error, Id, Key, Kind, Limits, Result, WATCH_FRAME_BYTES_MAX};
use openkv_store::Store;
use openkv_wire::connect::wire::watch;

type State = Option<Vec<Option<Entry>>>;

/// The form of states.
pub(super) trait Form: Send + 'static {
    /// Most bytes of a state.
    const BYTES_MAX: usize;

    /// The piece of a state.
    fn frame(&mut self, keys: &[Key], entries: &[Option<Entry>]) -> Result<Vec<u8>>;

    /// The last piece, after an error.
    fn end(&self, error: &Error) -> Option<Bytes>;

    /// The keep-alive piece.
    fn alive(&self) -> Bytes {
        Bytes::from_static(&KEEP_ALIVE)
    }
}

/// The form of KV Connect.
struct Wire;

impl Form for Wire {
    const BYTES_MAX: usize = WATCH_FRAME_BYTES_MAX;

    fn frame(&mut self, keys: &[Key], entries: &[Option<Entry>]) -> Result<Vec<u8>> {
        let of = |(key, entry): (&Key, &Option<Entry>)| {
            entry.as_ref().map(|entry| wire_entry(key, entry)).transpose()
        };
        let entries = keys.iter().zip(entries).map(of).collect::<Result<Vec<_>>>()?;
        let mut frame = Vec::new();
        push_frame(&mut frame, &watch::write_answer(entries))?;
        Ok(frame)
    }

    /// The client connects again and gets the error by status.
    fn end(&self, _error: &Error) -> Option<Bytes> {
        None
    }
}

/// A watch of the store, cancelled when its stream ends.
pub(super) struct Watching<F> {
    store: Arc<Store>,
    id: Id,
    keys: Vec<Key>,
    pending: Option<Pending<State>>,
    /// An error has been sent: the stream ends.
    ended: bool,
    form: F,
    /// The memory of the state in transfer.
    claim: Arc<Claim>,
    _keys: Option<Arc<Claim>>,
    _place: WatchPlace,
}

impl<F> Drop for Watching<F> {
    fn drop(&mut self) {
        self.store.watch_cancel(self.id);
    }
}

fn ask(store: &Store, id: Id) -> Pending<State> {
    Pending::of(|reply| store.watch_next(id, reply)).or_closed()
}

impl<F: Form> Source for Watching<F> {
    async fn next(&mut self) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        let answer = attempt!(self.claim, {
            let pending = self.pending.get_or_insert_with(|| ask(&self.store, self.id));
            let answer = pending.await;
            self.pending = None;
            answer
        })
        .ok()?;
        let state = |entries: Vec<_>| {
            let frame = self.form.frame(&self.keys, &entries);
            frame.map(|frame| self.claim.bytes(frame))
        };
        let frame = answer.and_then(|answer| answer.map(state).transpose());
        self.claim.shrink(0);
        frame.unwrap_or_else(|error| {
            tracing::warn!(%error, "a watch ended");
            self.ended = true;
            // The client asks again after these errors, so the stream sends no error piece.
            let comes_back = matches!(error.kind(), Kind::Closed | Kind::Unavailable);
            if comes_back { None } else { self.form.end(&error) }
        })
    }

    fn alive(&mut self) -> Bytes {
        self.form.alive()
    }
}

/// Starts a watch.
pub(super) async fn watch(
    client: &Client,
    body: &[u8],
    claim: Option<Arc<Claim>>,
) -> Result<Answer, Refusal> {
    let keys = watch::read_request(body, &Limits::default())?;
    start(client, (keys, claim), false, Wire).await
}

/// Starts a watch in the given form.
pub(super) async fn start<F: Form>(
    client: &Client,
    keys: (Vec<Key>, Option<Arc<Claim>>),
    raw: bool,
    form: F,
) -> Result<Answer, Refusal> {
    Ok(stream(client, Watching::open(client, keys, raw, form).await?))
}

impl<F: Form> Watching<F> {
    /// Opens a watch. It keeps the memory of its keys.
    pub(super) async fn open(
        client: &Client,
        (keys, _keys): (Vec<Key>, Option<Arc<Claim>>),
        raw: bool,
        form: F,
    ) -> Result<Self, Refusal> {
        let database = &client.database;
        let place = client.take_watch().await?;
        let store = store_of(database).await?;
        let claim = database.memory.claim(F::BYTES_MAX);
        let id = store.watch(keys.clone(), raw, Some(claim.clone()));
        let (pending, ended, _place) = (None, false, place);
        Ok(Self { store, id, keys, pending, ended, form, claim, _keys, _place })
    }
}
