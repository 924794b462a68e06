//! The file of a snapshot: a verified backup of a database in a file, or the entries of one on a server.
//!
//! Duty: write everything that a snapshot has into a new file of openkv's own.
//! Invariant: the file has one commit's state, also of entries that have expired and wait for their removal, as
//! a repetition of the log has them.
//! Never: a file of another copy of the database than the archive is of.

use std::path::Path;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use super::object::Source;
use openkv_core::model::{
    BEFORE_EXPIRY_MS, COPY_PAGE_BYTES, Capability, CopiedEntry, EncodedValue, Error, Followed,
    IndexRequest, Key, LogState, LoggedMessage, Replacement, Result, Step, ValueIndexRequest, Walk,
};
use openkv_engines::sqlite::SqliteEngine;
use openkv_engines::{Engine, Indexer, Snapshot, Writer};
use openkv_store::Store;

/// No other process has the file, so nothing waits.
const BUSY: Duration = Duration::from_secs(5);

/// Greater than every key.
const BEHIND_ALL_KEYS: [u8; 1] = [0xff];

/// Writes a new, closed file with the state of a database in use.
///
/// # Errors
/// Errors of the store and the disk; `Unavailable` if `goes_on` returns `false`.
pub(super) fn write(
    store: &Store,
    source: &Source,
    to: &Path,
    goes_on: &(dyn Fn() -> bool + Sync),
) -> Result<()> {
    if store.capabilities().has(Capability::Backup) {
        return backup(store, to);
    }
    entries(store, source, to, goes_on)?;
    SqliteEngine::promote(to, BUSY)
}

fn backup(store: &Store, to: &Path) -> Result<()> {
    let (done, outcome) = channel();
    // Without a receiver no caller waits any more.
    store.backup(to.to_owned(), |_, _| true, move |copied| drop(done.send(copied)));
    outcome.recv().map_err(|_| Error::closed())?.map(drop)
}

/// Copies all entries of one snapshot, page by page, with the definitions of the indexes.
fn entries(
    store: &Store,
    source: &Source,
    to: &Path,
    goes_on: &(dyn Fn() -> bool + Sync),
) -> Result<()> {
    let engine = SqliteEngine::open_copy(to, BUSY)?;
    let mut writer = engine.writer()?;
    let mut reader = store.reader()?;
    let copied = reader.read(BEFORE_EXPIRY_MS, &mut |snapshot| {
        let after = place(snapshot, source)?;
        let specs: Vec<_> = snapshot.indexes(false)?.into_iter().map(|index| index.spec).collect();
        let values = snapshot.value_indexes()?;
        let replacement = Replacement { before: None, generation: after.version ^ 1, after };
        let mut start = Vec::new();
        let mut next = || page(snapshot, &mut start, goes_on);
        Writer::replace_all(&mut writer, &replacement, &mut next, deadline())?;
        messages(snapshot, &mut writer, goes_on)?;
        for spec in &specs {
            writer.create_index(&IndexRequest::exact(spec.clone()), deadline())?;
        }
        for index in values.iter().filter(|index| index.is_kept()) {
            let request = ValueIndexRequest { spec: index.spec().clone(), replace: false };
            writer.create_value_index(&request, deadline())?;
        }
        Ok(())
    });
    reader.release();
    copied
}

/// Copies all messages, page by page, if the log has them: without it, those of a snapshot would be delivered
/// again after a restore of a later moment.
fn messages(
    snapshot: &mut dyn Snapshot,
    writer: &mut impl Writer,
    goes_on: &(dyn Fn() -> bool + Sync),
) -> Result<()> {
    let mut log = snapshot.log()?;
    let LogState { version, log: extent } = log.state()?;
    if !extent.is_some_and(|extent| extent.messages) {
        return Ok(());
    }
    let (mut page, mut bytes, mut fault) = (Vec::new(), 0, None);
    log.messages(&mut |id, kept| {
        bytes += kept.value.len();
        page.push(LoggedMessage { version, id, kept: Some(kept) });
        if bytes >= COPY_PAGE_BYTES {
            let added =
                if goes_on() { writer.add_messages(&page, deadline()) } else { Err(ended()) };
            fault = added.err();
            page.clear();
            bytes = 0;
        }
        fault.is_none()
    })?;
    match fault {
        Some(fault) => Err(fault),
        None => writer.add_messages(&page, deadline()),
    }
}

fn ended() -> Error {
    Error::unavailable("the snapshot was ended before it was complete")
}

fn deadline() -> Instant {
    Instant::now() + BUSY
}

/// The place of a snapshot in the log that is archived.
fn place(snapshot: &mut dyn Snapshot, source: &Source) -> Result<Followed> {
    let LogState { version, log } = snapshot.log()?.state()?;
    let origin = log.map(|log| log.origin).filter(|origin| {
        source.is_same_history(&Source::new(*origin, source.timeline, source.epoch))
    });
    let origin = origin.ok_or_else(|| {
        Error::unavailable(
            "the database became another copy, or its log was turned off, before its snapshot was taken",
        )
    })?;
    let found = snapshot.log()?.at_commit(version)?;
    let at_ms = found.filter(|(last, _)| *last == version).map_or(0, |(_, at_ms)| at_ms);
    Ok(Followed { origin, version, at_ms, prefixes: Vec::new() })
}

/// The next entries from a key on; `None` behind the last one.
fn page(
    snapshot: &mut dyn Snapshot,
    start: &mut Vec<u8>,
    goes_on: &(dyn Fn() -> bool + Sync),
) -> Result<Option<Vec<CopiedEntry>>> {
    if !goes_on() {
        return Err(ended());
    }
    let (mut page, mut bytes) = (Vec::new(), 0);
    let walk =
        Walk { start: start.as_slice(), end: &BEHIND_ALL_KEYS, reverse: false, values: true };
    snapshot.walk(walk, &mut |seen| {
        let row = &seen.row;
        bytes += row.key.len() + row.value.len();
        page.push(CopiedEntry {
            key: Key::from_encoded(row.key.to_vec()),
            version: row.stamp.version(),
            value: EncodedValue { encoding: row.encoding, bytes: row.value.to_vec() },
            expire_at_ms: seen.expire_at_ms,
        });
        if bytes < COPY_PAGE_BYTES { Step::Next } else { Step::Stop }
    })?;
    if let Some(CopiedEntry { key, .. }) = page.last() {
        *start = [key.as_bytes(), &[0]].concat();
    }
    Ok((!page.is_empty()).then_some(page))
}
