//! Reads and writes of the data path.

use std::collections::BTreeSet;
use std::sync::Arc;

use hyper::http::request::Parts;
use hyper::{StatusCode, Uri};
use parking_lot::Mutex;
use uuid::Uuid;

use super::answer::{Answer, Refusal, answer, whole};
use super::auth::{Grant, bearer};
use super::clock::now_ms;
use super::database::{Database, WatchPlace};
use super::memory::{Claim, RequestPermit, attempt};
use super::pending::{BUSY, Pending, Reading, unanswered};
use super::quota::over;
use super::read_server::InUse;
use super::slots::mark_authenticated;
use super::{Serving, read_entry};
use openkv_core::model::{
    AtomicWrite, Decision, Entry, Error, FRAMES_ANSWER_BYTES_MAX, Key, Kind, Limits, Range, Result,
    Row,
};
use openkv_store::{Room, Rows, Store};
use openkv_wire::connect::schema::KvEntry;
use openkv_wire::connect::versions::{
    DATABASE_HEADER, DOMAIN_HEADER, PROTOBUF_TYPE, VERSION_HEADER,
};
use openkv_wire::connect::wire::atomic_write::{self, WriteAnswer};
use openkv_wire::connect::wire::{snapshot_read, value};

/// The sender of an authorized request.
pub(super) struct Client {
    pub(super) serving: Arc<Serving>,
    pub(super) database: Arc<Database>,
    pub(super) grant: Grant,
    /// On a read server: its token is in use.
    pub(super) in_use: Option<InUse>,
    /// The place of its request among the running ones, until the request counts as a watch, or its answer has the place.
    pub(super) permit: Mutex<Option<RequestPermit>>,
}

impl Client {
    /// A place for one more watch. From then on the request counts as a watch, and no longer as a running one.
    pub(crate) async fn take_watch(&self) -> Result<WatchPlace, Refusal> {
        let place = self.database.take_watch().await?;
        drop(self.take_permit());
        Ok(place)
    }

    /// The place of the request among the running ones, if it still has it.
    pub(crate) fn take_permit(&self) -> Option<RequestPermit> {
        self.permit.lock().take()
    }

    /// The path of a request below a base of its database.
    pub(crate) fn path_below<'r>(&self, base: &str, uri: &'r Uri) -> &'r str {
        let path = uri.path();
        let path = match self.serving.catalog.is_folder() {
            true => path.get(1..).and_then(|path| path.find('/').and_then(|at| path.get(at..))),
            false => Some(path),
        };
        path.and_then(|path| path.strip_prefix(base)).unwrap_or_default()
    }
}

/// Authorizes a request by its head.
pub(super) async fn authorize(serving: &Arc<Serving>, head: &Parts) -> Result<Client, Refusal> {
    let headers = &head.headers;
    let (database, grant, in_use) = match read_entry::admitted(serving, head, true).await? {
        Some((database, grant, in_use)) => (database, grant, Some(in_use)),
        None => {
            let (database, grant) = verified(serving, head).await?;
            (database, grant, None)
        }
    };
    let named = match headers.get(VERSION_HEADER).map(|version| version.as_bytes()) {
        None => headers
            .get(DOMAIN_HEADER)
            .ok_or_else(|| Refusal::bad_request("Expected protocol version 1, 2 or 3."))?
            .to_str()
            .ok(),
        Some(b"2" | b"3") => headers.get(DATABASE_HEADER).and_then(|id| id.to_str().ok()),
        Some(_) => return Err(Refusal::bad_request("Expected protocol version 1, 2 or 3.")),
    };
    if named.and_then(|text| Uuid::try_parse(text).ok()) != Some(grant.database) {
        return Err(Refusal::bad_request("Invalid database id."));
    }
    Ok(Client { serving: serving.clone(), database, grant, in_use, permit: Mutex::default() })
}

/// The database and the grant of a token that this server, or one of those with its key, has issued.
async fn verified(serving: &Serving, head: &Parts) -> Result<(Arc<Database>, Grant), Refusal> {
    let grant = serving.signer.verify(bearer(&head.headers)?, serving.catalog.now_ms());
    let grant = grant.ok_or_else(Refusal::wrong_token)?;
    let find = || {
        let database = serving.catalog.by_id(grant.database)?;
        database.has_token(grant.issued_for).then_some(database)
    };
    let database = serving.catalog.find(find).await?.ok_or_else(Refusal::wrong_token)?;
    mark_authenticated(head);
    Ok((database, grant))
}

/// Checks the grant again after the body has arrived, which may take time.
pub(super) fn still(Client { serving, database, grant, .. }: &Client) -> Result<(), Refusal> {
    if grant.expires_at_ms > serving.catalog.now_ms() && database.has_token(grant.issued_for) {
        return Ok(());
    }
    Err(Refusal::wrong_token())
}

/// The store, opened on a blocking thread.
pub(super) async fn store_of(database: &Arc<Database>) -> Result<Arc<Store>> {
    if let Some(store) = database.open_store() {
        return Ok(store);
    }
    let database = database.clone();
    let opened = tokio::task::spawn_blocking(move || database.store_for_client()).await;
    opened.map_err(|_| Error::internal("opening ended by a panic"))?
}

/// Commits writes, durably, and waits for their decisions.
pub(super) async fn committed(
    database: &Arc<Database>,
    writes: Vec<Result<AtomicWrite>>,
) -> Result<Vec<Decision>> {
    let store = store_of(database).await?;
    submitted(&store, writes).await
}

/// Commits one write, durably, and waits for its decision.
pub(super) async fn decided(database: &Arc<Database>, write: AtomicWrite) -> Result<Decision> {
    let decisions = committed(database, vec![Ok(write)]).await?;
    decisions.into_iter().next().ok_or_else(unanswered)
}

/// Commits writes, durably; their decisions come later.
pub(super) fn submitted(store: &Store, writes: Vec<Result<AtomicWrite>>) -> Pending<Vec<Decision>> {
    Pending::of(|reply| {
        store.commit(writes, true, BUSY, Box::new(move |decisions| reply(Ok(decisions))));
    })
}

/// `snapshot_read`.
pub(super) async fn snapshot_read(
    database: &Arc<Database>,
    body: &[u8],
) -> Result<Answer, Refusal> {
    let ranges: Arc<[Range]> = snapshot_read::read_request(body, &Limits::default())?.into();
    let (store, claim) =
        (store_of(database).await?, database.memory.claim(FRAMES_ANSWER_BYTES_MAX));
    let strong = database.primary().is_none();
    let found = attempt!(claim, read_ranges(&store, &claim, ranges.clone(), strong).await)?;
    Ok(answer(StatusCode::OK, PROTOBUF_TYPE, whole(claim.bytes(found?))))
}

/// The answer of a read, built on this thread or on the reader thread. While it grows it reserves memory.
async fn read_ranges(
    store: &Store,
    claim: &Arc<Claim>,
    ranges: Arc<[Range]>,
    strong: bool,
) -> Result<Vec<u8>> {
    let answered = || Answered::new(claim, ranges.len(), strong);
    let mut here = answered();
    if let Some(read) = store.ranges_inline(&ranges, |rows| here.take(rows)) {
        return here.end(read);
    }
    let (there, answer) = Reading::new(answered(), Answered::end);
    store.read_ranges(ranges, there, |to, rows| to.state.take(rows));
    answer.await
}

/// The answer of a read under construction: entries in wire form, range by range, and the total of
/// their bytes.
struct Answered {
    claim: Arc<Claim>,
    bytes: usize,
    answer: Vec<Vec<KvEntry>>,
    /// Whether the state is the newest one.
    strong: bool,
}

impl Answered {
    fn new(claim: &Arc<Claim>, ranges: usize, strong: bool) -> Self {
        Self { claim: claim.clone(), bytes: 0, answer: Vec::with_capacity(ranges), strong }
    }

    /// Takes the entries of the next range.
    fn take(&mut self, rows: Rows<'_>) -> Result<()> {
        let (mut entries, mut fault) = (Vec::new(), None);
        rows.visit(|row, _| match self.entry(&row) {
            Ok(entry) => {
                entries.push(entry);
                true
            }
            Err(error) => {
                fault = Some(error);
                false
            }
        })?;
        self.answer.push(entries);
        fault.map_or(Ok(()), Err)
    }

    /// An entry in wire form, if there is room for it.
    fn entry(&mut self, row: &Row<'_>) -> Result<KvEntry> {
        self.bytes += row.key.len() + row.value.len();
        self.claim.holds(self.bytes)?;
        value::entry_to_wire(row)
    }

    fn end(self, read: Result<()>) -> Result<Vec<u8>> {
        read.map(|()| snapshot_read::write_answer(self.answer, self.strong))
    }
}

/// `atomic_write`.
pub(super) async fn atomic_write(database: &Arc<Database>, body: &[u8]) -> Result<Answer, Refusal> {
    let now_ms = now_ms();
    let write = atomic_write::read_request(body, &Limits::default(), now_ms)?;
    if database.is_readonly() {
        return Ok(written(&WriteAnswer::Disabled));
    }
    has_room_for(database, &write).await?;
    match decided(database, write).await? {
        Decision::Committed(stamp) | Decision::CommittedWith(stamp, _) => {
            Ok(written(&WriteAnswer::Committed(stamp)))
        }
        Decision::CheckFailed(failed) => Ok(written(&WriteAnswer::CheckFailed(failed))),
        Decision::NotUnique(violations) => Ok(written(&WriteAnswer::NotUnique(violations))),
        Decision::Rejected(error) if error.kind() == Kind::Denied => {
            Ok(written(&WriteAnswer::Disabled))
        }
        Decision::Rejected(error) => Err(error.into()),
        Decision::Deleted(_) => Err(Error::internal("a deletion as the answer of a write").into()),
    }
}

/// Fails if the database is over a quota that the write takes from.
pub(super) async fn has_room_for(
    database: &Arc<Database>,
    write: &AtomicWrite,
) -> Result<(), Refusal> {
    if !write.only_deletes() {
        has_room(database).await?;
    }
    let queues: BTreeSet<&str> = write.queues().collect();
    for queue in queues {
        has_queue_room(database, queue).await?;
    }
    Ok(())
}

/// Fails if the database has reached its quota of bytes. A reader takes no room: the log beside the file, which
/// readers can keep, does not count, nor does the log in it, which the first feed or replica turns on.
pub(super) async fn has_room(database: &Arc<Database>) -> Result<(), Refusal> {
    let Some(max) = database.quotas().bytes else { return Ok(()) };
    // What is stored on PostgreSQL is not measured, so such a database has no such quota.
    if !database.is_measured() {
        return Ok(());
    }
    let bytes = match database.known_bytes() {
        Some(bytes) => bytes,
        None => measured(database, &*store_of(database).await?).await?,
    };
    if bytes < max {
        return Ok(());
    }
    Err(over("storage: deletes are still accepted", max, " bytes", 60))
}

/// Bytes that are stored in the database, measured a short time ago. Of one that is not open, or cannot be read, the
/// length of its file; `None` where it has no file.
pub(super) async fn bytes_of(database: &Database) -> Option<u64> {
    if !database.is_measured() {
        return None;
    }
    let file_bytes = database.file_bytes();
    match (database.known_bytes(), database.open_store()) {
        (Some(bytes), _) => Some(bytes),
        (None, Some(store)) => measured(database, &store).await.ok().or(file_bytes),
        (None, None) => file_bytes,
    }
}

async fn measured(database: &Database, store: &Store) -> Result<u64> {
    let stats = Pending::of(|reply| store.stats_at_hand(reply)).await?;
    let bytes = stats.stored_bytes();
    database.has_bytes(bytes);
    Ok(bytes)
}

/// Fails if the queue is at its bound.
pub(super) async fn has_queue_room(database: &Arc<Database>, queue: &str) -> Result<(), Refusal> {
    if database.quotas().queue_depth.is_none() || database.is_readonly() {
        return Ok(());
    }
    let store = store_of(database).await?;
    let depth = Pending::of(|reply| store.queue_depth(queue.to_owned(), reply)).await?;
    database
        .within_quota(|| match database.quotas().queue_depth {
            Some(max) if depth >= max => Err(over("messages in the queue", max, "", 1)),
            Some(_) | None => Ok(()),
        })
        .await
}

fn written(answered: &WriteAnswer) -> Answer {
    answer(StatusCode::OK, PROTOBUF_TYPE, whole(atomic_write::write_answer(answered)))
}

/// A key's entry in wire form.
pub(super) fn wire_entry(key: &Key, entry: &Entry) -> Result<KvEntry> {
    let (encoding, bytes) = (entry.value.encoding, entry.value.bytes.as_slice());
    value::entry_to_wire(&Row { key: key.as_bytes(), stamp: entry.stamp, encoding, value: bytes })
}
