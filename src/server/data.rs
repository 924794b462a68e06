//! Reads and writes of the data path.

use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use hyper::http::request::Parts;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::Serving;
use super::answer::{Answer, Refusal, answer, whole};
use super::auth::{Grant, bearer};
use super::catalog::now_ms;
use super::database::Database;
use super::memory::{Claim, attempt};
use super::quota::over;
use super::slots::mark_authenticated;
use crate::connect::schema::KvEntry;
use crate::connect::versions::{DATABASE_HEADER, DOMAIN_HEADER, PROTOBUF_TYPE, VERSION_HEADER};
use crate::connect::wire::atomic_write::{self, WriteAnswer};
use crate::connect::wire::{snapshot_read, value};
use crate::model::{
    BUSY_TIMEOUT_MS_DEFAULT, Decision, Entry, Error, FRAMES_ANSWER_BYTES_MAX, Key, Kind, Limits,
    Range, Result, Row,
};
use crate::store::{Room, Store, visit_range};

/// Authorizes a request by its head. Returns the database and the grant.
pub(super) fn authorize(
    serving: &Serving,
    head: &Parts,
) -> Result<(Arc<Database>, Grant), Refusal> {
    let headers = &head.headers;
    let grant =
        serving.signer.verify(bearer(headers)?, now_ms()).ok_or_else(Refusal::wrong_token)?;
    let database = serving.catalog.by_id(grant.database).ok_or_else(Refusal::wrong_token)?;
    if !database.has_token(grant.issued_for) {
        return Err(Refusal::wrong_token());
    }
    mark_authenticated(head);
    let named = match headers.get(VERSION_HEADER).map(|version| version.as_bytes()) {
        None => headers
            .get(DOMAIN_HEADER)
            .ok_or_else(|| Refusal::bad_request("Expected protocol version 1, 2 or 3."))?
            .to_str()
            .ok(),
        Some(b"2" | b"3") => headers.get(DATABASE_HEADER).and_then(|id| id.to_str().ok()),
        Some(_) => return Err(Refusal::bad_request("Expected protocol version 1, 2 or 3.")),
    };
    if named.and_then(|text| Uuid::try_parse(text).ok()) != Some(database.id) {
        return Err(Refusal::bad_request("Invalid database id."));
    }
    Ok((database, grant))
}

/// Checks the grant again after the body has arrived, which may take time.
pub(super) fn still(database: &Database, grant: &Grant) -> Result<(), Refusal> {
    if grant.expires_at_ms > now_ms() && database.has_token(grant.issued_for) {
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

fn unanswered<T>(_: T) -> Error {
    Error::internal("the database did not answer; please report this")
}

/// `snapshot_read`.
pub(super) async fn snapshot_read(
    database: &Arc<Database>,
    body: &[u8],
) -> Result<Answer, Refusal> {
    let ranges: Arc<[Range]> = snapshot_read::read_request(body, &Limits::default())?.into();
    let (store, claim) =
        (store_of(database).await?, database.memory.claim(FRAMES_ANSWER_BYTES_MAX));
    let found = attempt!(claim, read_ranges(&store, &claim, ranges.clone()).await)?;
    Ok(answer(StatusCode::OK, PROTOBUF_TYPE, whole(claim.bytes(found?))))
}

/// The answer of a read, built on the reader thread. While it grows it reserves memory.
async fn read_ranges(store: &Store, claim: &Arc<Claim>, ranges: Arc<[Range]>) -> Result<Vec<u8>> {
    let (reply, answered) = oneshot::channel();
    let claim = claim.clone();
    store.read(Box::new(move |snapshot| {
        // A cancelled request needs no read.
        if reply.is_closed() {
            return;
        }
        let found = snapshot.and_then(|snapshot| {
            let mut found = Found { claim: &claim, bytes: 0, rows: Vec::new(), fault: None };
            let mut answer = Vec::with_capacity(ranges.len());
            for range in &*ranges {
                visit_range(snapshot, range, |row, _| found.add(&row))?;
                answer.push(found.take()?);
            }
            Ok(snapshot_read::write_answer(answer))
        });
        let _gone = reply.send(found);
    }));
    answered.await.map_err(unanswered)?
}

/// Entries of a range in wire form, and the total of their bytes.
struct Found<'c> {
    claim: &'c Claim,
    bytes: usize,
    rows: Vec<KvEntry>,
    fault: Option<Error>,
}

impl Found<'_> {
    /// Adds an entry. Returns whether there was room.
    fn add(&mut self, row: &Row<'_>) -> bool {
        self.bytes += row.key.len() + row.value.len();
        let added = self.claim.holds(self.bytes).and_then(|()| value::entry_to_wire(row));
        match added {
            Ok(entry) => self.rows.push(entry),
            Err(error) => self.fault = Some(error),
        }
        self.fault.is_none()
    }

    fn take(&mut self) -> Result<Vec<KvEntry>> {
        self.fault.take().map_or(Ok(()), Err)?;
        Ok(std::mem::take(&mut self.rows))
    }
}

/// `atomic_write`.
pub(super) async fn atomic_write(database: &Arc<Database>, body: &[u8]) -> Result<Answer, Refusal> {
    let now_ms = now_ms();
    let write = atomic_write::read_request(body, &Limits::default(), now_ms)?;
    if database.readonly {
        return Ok(written(&WriteAnswer::Disabled));
    }
    if !write.only_deletes() {
        database.has_room(now_ms)?;
    }
    if write.queues().next().is_some() {
        has_queue_room(database, "").await?;
    }
    let (reply, answered) = oneshot::channel();
    store_of(database).await?.commit(
        vec![Ok(write)],
        true,
        Duration::from_millis(BUSY_TIMEOUT_MS_DEFAULT),
        Box::new(move |decisions| drop(reply.send(decisions))),
    );
    let decision = answered.await.map_err(unanswered)?.into_iter().next();
    match decision.ok_or_else(|| unanswered(()))? {
        Decision::Committed(stamp) | Decision::CommittedWith(stamp, _) => {
            Ok(written(&WriteAnswer::Committed(stamp)))
        }
        Decision::CheckFailed(failed) => Ok(written(&WriteAnswer::CheckFailed(failed))),
        Decision::Rejected(error) if error.kind() == Kind::Denied => {
            Ok(written(&WriteAnswer::Disabled))
        }
        Decision::Rejected(error) => Err(error.into()),
        Decision::Deleted(_) => Err(Error::internal("a deletion as the answer of a write").into()),
    }
}

/// Fails if the queue is at its bound.
pub(super) async fn has_queue_room(database: &Arc<Database>, queue: &str) -> Result<(), Refusal> {
    let Some(max) = database.quotas().queue_depth else { return Ok(()) };
    if database.readonly {
        return Ok(());
    }
    let (reply, answered) = oneshot::channel();
    let store = store_of(database).await?;
    store.queue_depth(queue.to_owned(), Box::new(|depth| drop(reply.send(depth))));
    if answered.await.map_err(unanswered)?? < max {
        return Ok(());
    }
    Err(over("messages in the queue", max, "", 1))
}

fn written(answered: &WriteAnswer) -> Answer {
    answer(StatusCode::OK, PROTOBUF_TYPE, whole(atomic_write::write_answer(answered)))
}

/// A key's entry in wire form.
pub(super) fn wire_entry(key: &Key, entry: &Entry) -> Result<KvEntry> {
    let (encoding, bytes) = (entry.value.encoding, entry.value.bytes.as_slice());
    value::entry_to_wire(&Row { key: key.as_bytes(), stamp: entry.stamp, encoding, value: bytes })
}
