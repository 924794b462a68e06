//! Reads of entries for the HTTP API, with their memory.

use std::sync::Arc;
use std::time::Instant;

use super::document_writer::Stored;
use super::range::Bounds;
use super::schema::EntryBody;
use crate::answer::Refusal;
use crate::data::{Client, store_of};
use crate::memory::{Claim, attempt};
use crate::pending::{Pending, Reading, Wanted};
use openkv_core::filter::Filter;
use openkv_core::index::Explanation;
use openkv_core::model::{
    Encoding, Error, FRAMES_ANSWER_BYTES_MAX, FRAMES_PAGE_BYTES, Key, OrderPath, Result, Seen,
    Versionstamp,
};
use openkv_store::metrics::{Operation, Subject};
use openkv_store::{OrderedScan, Room, Scan, Store};

/// An entry.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Vec<u8>,
    pub(crate) stamp: Versionstamp,
    pub(crate) encoding: Encoding,
    /// Empty in a list of keys.
    pub(crate) value: Vec<u8>,
    pub(crate) expire_at_ms: Option<i64>,
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

impl Entry {
    /// The entry in a document; without its value in a list of keys.
    pub(crate) fn body(&self, keys_only: bool) -> EntryBody<'_> {
        let value = (!keys_only).then_some(Stored(self.encoding, &self.value));
        EntryBody::new(&self.key, self.stamp, value, self.expire_at_ms)
    }
}

/// Entries and their memory.
pub(crate) struct Found<T> {
    pub(crate) entries: T,
    pub(crate) claim: Arc<Claim>,
    /// Bytes of keys and values.
    pub(crate) bytes: usize,
}

/// The entries of a read so far.
struct Gathering {
    claim: Arc<Claim>,
    bytes: usize,
    entries: Vec<Option<Entry>>,
    fault: Option<Error>,
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

/// Counts an operation among the metrics of its database.
fn counted<T>(
    store: &Store,
    operation: Operation,
    (times, since): (u64, Instant),
    read: &Result<T>,
    about: impl FnOnce() -> Subject,
) {
    store.metrics().answered(operation, (times, read.is_ok()), since, about);
}

/// Reads the entries of keys from one snapshot, in their order; `None` where there is none.
pub(crate) async fn entries(
    client: &Client,
    keys: &[Key],
) -> Result<Found<Vec<Option<Entry>>>, Refusal> {
    let database = &client.database;
    let (store, claim) =
        (store_of(database).await?, database.memory.claim(FRAMES_ANSWER_BYTES_MAX));
    let since = Instant::now();
    let read = attempt!(claim, read_keys(&store, &claim, keys).await)?;
    let about = || keys.first().map_or(Subject::NONE, |key| Subject::key(key.as_bytes()));
    counted(&store, Operation::GetWithExpiry, (keys.len() as u64, since), &read, about);
    let (entries, bytes, ()) = read?;
    Ok(Found { entries, claim, bytes })
}

/// Reads the entry of one key.
pub(crate) async fn entry(client: &Client, key: &Key) -> Result<Found<Option<Entry>>, Refusal> {
    let Found { mut entries, claim, bytes } = entries(client, std::slice::from_ref(key)).await?;
    Ok(Found { entries: entries.pop().flatten(), claim, bytes })
}

async fn read_keys(store: &Store, claim: &Arc<Claim>, keys: &[Key]) -> Result<Gathered<()>> {
    let mut gathering = Gathering::new(claim, 0);
    if let Some(read) = store.entries_inline(keys, |seen| gathering.take(seen.as_ref())) {
        return gathering.end(read);
    }
    let (reading, answer) = Reading::new(Gathering::new(claim, 0), Gathering::end);
    store.entries(keys.to_vec(), reading, |to, seen| {
        to.state.take(seen.as_ref());
        Ok(())
    });
    answer.await
}

/// What a list selects.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    pub(crate) bounds: Bounds,
    pub(crate) reverse: bool,
    pub(crate) keys_only: bool,
    /// Most parts behind the prefix.
    pub(crate) depth: Option<usize>,
    /// A filter object in CBOR.
    pub(crate) filter: Option<Vec<u8>>,
}

impl Selection {
    /// All entries of a range.
    pub(crate) fn all(bounds: Bounds) -> Self {
        Self { bounds, reverse: false, keys_only: false, depth: None, filter: None }
    }

    fn scan(&self, store: &Store) -> Result<Scan> {
        let filter = self.filter.as_deref();
        Ok(Scan {
            reverse: self.reverse,
            values: !self.keys_only,
            depth: self.depth.map(|depth| (self.bounds.common, depth)),
            filter: filter.map(|bytes| Filter::parse(bytes, store.now_ms())).transpose()?,
            ..Scan::of_range(self.bounds.start.clone(), self.bounds.end.clone())
        })
    }
}

/// A page of a list.
pub(crate) struct Page {
    pub(crate) entries: Vec<Entry>,
    pub(crate) has_more: bool,
}

/// Reads a page of at most `limit` entries. A page of large values has fewer.
pub(crate) async fn page(
    client: &Client,
    selection: &Selection,
    limit: usize,
) -> Result<Found<Page>, Refusal> {
    let database = &client.database;
    let (store, claim) =
        (store_of(database).await?, database.memory.claim(FRAMES_ANSWER_BYTES_MAX));
    let since = Instant::now();
    let read = attempt!(claim, read_page(&store, &claim, selection, limit).await)?;
    counted(&store, Operation::List, (1, since), &read, || selection.bounds.subject());
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
        let (reading, answer) = Reading::new(Gathering::new(claim, bytes), Gathering::end);
        let rows = limit + 1 - entries.len();
        store.scan(scan, rows, patience.clone(), reading, |to, seen, chosen| {
            if chosen {
                to.state.take(Some(seen));
            }
        });
        let (step, sum, (rest, done)) = answer.await?;
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
pub(crate) async fn count(client: &Client, selection: &Selection) -> Result<u64, Refusal> {
    let store = store_of(&client.database).await?;
    let (wanted, since) = (Wanted::new(), Instant::now());
    let patience = wanted.patience(&store, "kv.count");
    let scan = selection.scan(&store)?;
    let count = Pending::of(|reply| store.count(scan, patience, reply)).await;
    counted(&store, Operation::Count, (1, since), &count, || selection.bounds.subject());
    Ok(count?)
}

/// The order of a list.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) paths: Vec<OrderPath>,
    /// Without an index for it the entries are sorted in memory.
    pub(crate) sort: bool,
    /// The position of the last entry of the page before.
    pub(crate) after: Option<Vec<u8>>,
}

impl Order {
    /// The list of a selection. Without paths it is in the order of keys.
    fn list(&self, selection: &Selection, store: &Store) -> Result<OrderedScan> {
        let Self { mut paths, sort, after } = self.clone();
        let mut scan = selection.scan(store)?;
        if !paths.is_empty() {
            // The reverse of an order is the order of each path in reverse.
            paths.iter_mut().for_each(|path| path.descending ^= scan.reverse);
            scan = Scan { reverse: false, ..scan }.whole_keys()?;
        }
        Ok(OrderedScan { scan, order: paths, sort, after })
    }
}

/// As [`page`], in the order of values; with the position of its last entry.
pub(super) async fn ordered_page(
    client: &Client,
    selection: &Selection,
    order: &Order,
    limit: usize,
) -> Result<(Found<Page>, Vec<u8>), Refusal> {
    let database = &client.database;
    let (store, claim) =
        (store_of(database).await?, database.memory.claim(FRAMES_ANSWER_BYTES_MAX));
    let since = Instant::now();
    let read = attempt!(claim, {
        let list = order.list(selection, &store)?;
        read_ordered(&store, &claim, list, limit).await
    })?;
    counted(&store, Operation::List, (1, since), &read, || selection.bounds.subject());
    let (entries, bytes, last) = read?;
    Ok((Found { entries, claim, bytes }, last))
}

async fn read_ordered(
    store: &Store,
    claim: &Arc<Claim>,
    mut list: OrderedScan,
    limit: usize,
) -> Result<(Page, usize, Vec<u8>)> {
    let wanted = Wanted::new();
    let patience = wanted.patience(store, "kv.list");
    let (mut entries, mut bytes, mut last) = (Vec::new(), 0, Vec::new());
    loop {
        let (request, rows) = (list.clone(), limit + 1 - entries.len());
        let read =
            Pending::of(|reply| store.ordered(request, rows, patience.clone(), reply)).await?;
        list.after = read.next;
        for found in &read.entries {
            if entries.len() == limit {
                return Ok((Page { entries, has_more: true }, bytes, last));
            }
            let seen = found.seen();
            bytes += seen.row.key.len() + seen.row.value.len();
            claim.holds(bytes)?;
            entries.push(Entry::of(&seen));
            last.clone_from(&found.position);
        }
        let is_long = bytes >= FRAMES_PAGE_BYTES && !entries.is_empty();
        if is_long || list.after.is_none() {
            let has_more = list.after.is_some();
            return Ok((Page { entries, has_more }, bytes, last));
        }
        patience.check()?;
    }
}

/// What a list reads, and how much.
pub(super) async fn explained(
    client: &Client,
    selection: &Selection,
    order: &Order,
    limit: usize,
) -> Result<Explanation, Refusal> {
    let store = store_of(&client.database).await?;
    let wanted = Wanted::new();
    let patience = wanted.patience(&store, "kv.explain");
    let list = order.list(selection, &store)?;
    Ok(Pending::of(|reply| store.explain(list, limit, patience, reply)).await?)
}
