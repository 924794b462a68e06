//! Reads and writes of the data path.

use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use hyper::http::request::Parts;
use tokio::sync::oneshot;

use super::Serving;
use super::answer::{Answer, Refusal, answer, whole};
use super::auth::{Grant, bearer};
use super::catalog::now_ms;
use super::database::Database;
use super::memory::Claim;
use super::quota::over;
use super::slots::mark_authenticated;
use crate::connect::database_id::DatabaseId;
use crate::connect::schema::KvEntry;
use crate::connect::versions::{DATABASE_HEADER, DOMAIN_HEADER, PROTOBUF_TYPE, VERSION_HEADER};
use crate::connect::wire::atomic_write::{self, WriteAnswer};
use crate::connect::wire::{snapshot_read, value};
use crate::model::{
    BUSY_TIMEOUT_MS_DEFAULT, Decision, Error, FRAMES_ANSWER_BYTES_MAX, Key, Kind, Limits, Mutation,
    Range, Result, Row,
};
use crate::store::{Room, Store};

/// Who asks of which database, by the head of a request.
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
    if named.and_then(DatabaseId::parse) != Some(database.id) {
        return Err(Refusal::bad_request("Invalid database id."));
    }
    Ok((database, grant))
}

/// Whether who was let in by the head of a request still may: its body may have taken its time.
pub(super) fn still(database: &Database, grant: &Grant) -> Result<(), Refusal> {
    if grant.expires_at_ms > now_ms() && database.has_token(grant.issued_for) {
        return Ok(());
    }
    Err(Refusal::wrong_token())
}

/// The store, opened away from the threads that serve.
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
    let mut found = read_ranges(&store, &claim, ranges.clone()).await?;
    if claim.has_lacked() {
        claim.wait_for_all().await?;
        found = read_ranges(&store, &claim, ranges).await?;
    }
    Ok(answer(StatusCode::OK, PROTOBUF_TYPE, whole(claim.bytes(found?))))
}

/// The answer of a read, written on the thread that reads it: while it comes to be, it asks whether
/// there is memory for it.
async fn read_ranges(
    store: &Store,
    claim: &Arc<Claim>,
    ranges: Arc<[Range]>,
) -> Result<Result<Vec<u8>>, Refusal> {
    let (reply, answered) = oneshot::channel();
    let claim = claim.clone();
    store.read(Box::new(move |snapshot| {
        // Who has taken the request back need not be read for.
        if reply.is_closed() {
            return;
        }
        let found = snapshot.and_then(|snapshot| {
            let mut found = Found { claim: &claim, bytes: 0, rows: Vec::new(), fault: None };
            let mut answer = Vec::with_capacity(ranges.len());
            for range in &*ranges {
                match range {
                    Range::Point(key) => {
                        snapshot.get(key.as_bytes(), &mut |row| {
                            found.add(&row);
                        })?;
                    }
                    Range::Span { start, end, limit, .. } if *limit == 0 || start >= end => {}
                    Range::Span { start, end, limit, reverse } => {
                        let (start, end) = (start.as_bytes(), end.as_bytes());
                        snapshot.scan(start, end, *reverse, &mut |row| {
                            found.add(&row) && found.rows.len() < *limit
                        })?;
                    }
                }
                answer.push(found.take()?);
            }
            Ok(snapshot_read::write_answer(answer))
        });
        let _gone = reply.send(found);
    }));
    Ok(answered.await.map_err(unanswered)?)
}

/// Entries of a range as they go over the wire, and the bytes of all so far.
struct Found<'c> {
    claim: &'c Claim,
    bytes: usize,
    rows: Vec<KvEntry>,
    fault: Option<Error>,
}

impl Found<'_> {
    /// Whether it could be added.
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
    let parts = write.clone().into_parts();
    let only_deletes = parts.messages.is_empty()
        && parts.mutations.iter().all(|m| matches!(m, Mutation::Delete { .. }));
    if !only_deletes {
        database.has_room(now_ms)?;
    }
    if !parts.messages.is_empty() {
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
        Decision::Deleted(_) => Err(Error::internal("a deletion nobody asked for").into()),
    }
}

/// Whether the queue may get longer.
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

/// Keeps a key's entry for the wire.
pub(super) fn wire_entry(key: &Key, entry: &crate::store::Entry) -> Result<KvEntry> {
    let (encoding, bytes) = (entry.value.encoding, entry.value.bytes.as_slice());
    value::entry_to_wire(&Row { key: key.as_bytes(), stamp: entry.stamp, encoding, value: bytes })
}
