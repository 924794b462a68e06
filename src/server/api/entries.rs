//! Reads of entries for the HTTP API, with their memory.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::range::Bounds;
use crate::filter::Filter;
use crate::metrics::Operation;
use crate::model::{
    Encoding, Error, FRAMES_ANSWER_BYTES_MAX, FRAMES_PAGE_BYTES, Key, Result,
    SERVER_LONG_READ_MS_MAX, Seen, Versionstamp,
};
use crate::server::answer::Refusal;
use crate::server::data::{Client, store_of, unanswered};
use crate::server::memory::{Claim, attempt};
use crate::store::{Caller, Patience, Room, Scan, Store};

/// An entry.
#[derive(Clone, Debug)]
pub(in crate::server) struct Entry {
    pub(in crate::server) key: Vec<u8>,
    pub(in crate::server) stamp: Versionstamp,
    pub(in crate::server) encoding: Encoding,
    /// Empty in a list of keys.
    pub(in crate::server) value: Vec<u8>,
    pub(in crate::server) expire_at_ms: Option<i64>,
}

impl Entry {
    fn of(seen: &Seen<'_>) -> Self {
        Self {
            key: seen.row.key.to_vec(),
            stamp: seen.row.stamp,
            encoding: seen.row.encoding,
            value: seen.row.value.to_vec(),
            expire_at_ms: seen.expire_at_ms,
        }
    }
}

/// Entries and their memory.
pub(super) struct Found<T> {
    pub(super) entries: T,
    pub(super) claim: Arc<Claim>,
    /// Bytes of keys and values.
    pub(super) bytes: usize,
}

/// The entries of a read so far.
struct Gathering {
    claim: Arc<Claim>,
    bytes: usize,
    entries: Vec<Option<Entry>>,
    fault: Option<Error>,
}

/// The caller of a read on another thread.
struct Remote<T> {
    gathering: Gathering,
    reply: oneshot::Sender<Result<Gathered<T>>>,
}

/// The entries of a read, the bytes of the page so far, and the result of the read.
type Gathered<T> = (Vec<Option<Entry>>, usize, T);

impl Gathering {
    /// `bytes`: those that the claim holds already.
    fn new(claim: &Arc<Claim>, bytes: usize) -> Self {
        Self { claim: claim.clone(), bytes, entries: Vec::new(), fault: None }
    }

    fn take(&mut self, seen: Option<&Seen<'_>>) {
        if self.fault.is_some() {
            return;
        }
        self.bytes += seen.map_or(0, |seen| seen.row.key.len() + seen.row.value.len());
        match self.claim.holds(self.bytes) {
            Ok(()) => self.entries.push(seen.map(Entry::of)),
            Err(error) => self.fault = Some(error),
        }
    }

    fn end<T>(self, read: Result<T>) -> Result<Gathered<T>> {
        let read = self.fault.map_or(read, Err);
        read.map(|done| (self.entries, self.bytes, done))
    }
}

impl<T: Send + 'static> Caller<T> for Remote<T> {
    /// A cancelled request needs no read.
    fn check(&self) -> Result<()> {
        if self.reply.is_closed() { Err(Error::closed()) } else { Ok(()) }
    }

    fn end(self, read: Result<T>) {
        let _gone = self.reply.send(self.gathering.end(read));
    }
}

/// Counts an operation among the metrics of its database.
fn counted<T>(store: &Store, operation: Operation, times: u64, since: Instant, read: &Result<T>) {
    store.metrics().answered(operation, times, read.is_ok(), since);
}

/// Reads the entries of keys from one snapshot, in their order; `None` where there is none.
pub(in crate::server) async fn entries(
    client: &Client,
    keys: &[Key],
) -> Result<Found<Vec<Option<Entry>>>, Refusal> {
    let database = &client.database;
    let (store, claim) =
        (store_of(database).await?, database.memory.claim(FRAMES_ANSWER_BYTES_MAX));
    let since = Instant::now();
    let read = attempt!(claim, read_keys(&store, &claim, keys).await)?;
    counted(&store, Operation::GetWithExpiry, keys.len() as u64, since, &read);
    let (entries, bytes, ()) = read?;
    Ok(Found { entries, claim, bytes })
}

/// Reads the entry of one key.
pub(in crate::server) async fn entry(
    client: &Client,
    key: &Key,
) -> Result<Found<Option<Entry>>, Refusal> {
    let Found { mut entries, claim, bytes } = entries(client, std::slice::from_ref(key)).await?;
    Ok(Found { entries: entries.pop().flatten(), claim, bytes })
}

async fn read_keys(store: &Store, claim: &Arc<Claim>, keys: &[Key]) -> Result<Gathered<()>> {
    let mut gathering = Gathering::new(claim, 0);
    if let Some(read) = store.entries_immediately(keys, |seen| gathering.take(seen.as_ref())) {
        return gathering.end(read);
    }
    let (reply, answered) = oneshot::channel();
    let remote = Remote { gathering: Gathering::new(claim, 0), reply };
    store.entries(keys.to_vec(), remote, |to, seen| {
        to.gathering.take(seen.as_ref());
        Ok(())
    });
    answered.await.map_err(unanswered)?
}

/// Ends the work of a request that is dropped.
pub(super) struct Wanted(Arc<()>);

impl Wanted {
    pub(super) fn new() -> Self {
        Self(Arc::new(()))
    }

    /// The bounds of a long read.
    pub(super) fn patience(&self, store: &Store, what: &'static str) -> Arc<Patience> {
        let alive = Arc::downgrade(&self.0);
        let most = Duration::from_millis(SERVER_LONG_READ_MS_MAX);
        store.patience(what, most, Some(Arc::new(move || alive.strong_count() > 0)))
    }
}

/// What a list selects.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    pub(super) bounds: Bounds,
    pub(super) reverse: bool,
    pub(super) keys_only: bool,
    /// Most parts behind the prefix.
    pub(super) depth: Option<usize>,
    /// A filter object in CBOR.
    pub(super) filter: Option<Vec<u8>>,
}

impl Selection {
    fn scan(&self, store: &Store) -> Result<Scan> {
        let filter = self.filter.as_deref();
        Ok(Scan {
            start: self.bounds.start.clone(),
            end: self.bounds.end.clone(),
            reverse: self.reverse,
            values: !self.keys_only,
            depth: self.depth.map(|depth| (self.bounds.common, depth)),
            filter: filter.map(|bytes| Filter::parse(bytes, store.now_ms())).transpose()?,
            passed: false,
        })
    }
}

/// A page of a list.
pub(super) struct Page {
    pub(super) entries: Vec<Entry>,
    pub(super) has_more: bool,
}

/// Reads a page of at most `limit` entries. A page of large values has fewer.
pub(super) async fn page(
    client: &Client,
    selection: &Selection,
    limit: usize,
) -> Result<Found<Page>, Refusal> {
    let database = &client.database;
    let (store, claim) =
        (store_of(database).await?, database.memory.claim(FRAMES_ANSWER_BYTES_MAX));
    let since = Instant::now();
    let read = attempt!(claim, read_page(&store, &claim, selection, limit).await)?;
    counted(&store, Operation::List, 1, since, &read);
    let (entries, bytes) = read?;
    Ok(Found { entries, claim, bytes })
}

/// One entry more than the limit shows whether there are more.
async fn read_page(
    store: &Store,
    claim: &Arc<Claim>,
    selection: &Selection,
    limit: usize,
) -> Result<(Page, usize)> {
    let wanted = Wanted::new();
    let patience = wanted.patience(store, "kv.list");
    let (mut scan, mut entries, mut bytes) = (selection.scan(store)?, Vec::new(), 0);
    loop {
        let (reply, answered) = oneshot::channel();
        let remote = Remote { gathering: Gathering::new(claim, bytes), reply };
        let rows = limit + 1 - entries.len();
        store.scan(scan, rows, patience.clone(), remote, |to, seen, chosen| {
            if chosen {
                to.gathering.take(Some(seen));
            }
        });
        let (step, sum, (rest, done)) = answered.await.map_err(unanswered)??;
        entries.extend(step.into_iter().flatten());
        (scan, bytes) = (rest, sum);
        let has_more = entries.len() > limit;
        let is_long = bytes >= FRAMES_PAGE_BYTES && !entries.is_empty();
        if done || has_more || is_long {
            entries.truncate(limit);
            return Ok((Page { entries, has_more: has_more || !done }, bytes));
        }
        patience.check()?;
    }
}

/// Counts the selected entries.
pub(super) async fn count(client: &Client, selection: &Selection) -> Result<u64, Refusal> {
    let store = store_of(&client.database).await?;
    let (wanted, since) = (Wanted::new(), Instant::now());
    let patience = wanted.patience(&store, "kv.count");
    let (reply, answered) = oneshot::channel();
    let caller = move |count: Result<u64>| drop(reply.send(count));
    store.count(selection.scan(&store)?, patience, caller);
    let count = answered.await.map_err(unanswered)?;
    counted(&store, Operation::Count, 1, since, &count);
    Ok(count?)
}
