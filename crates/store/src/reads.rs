//! Reads of callers: what a read needs comes as data, its rows go to a visitor, its result to a
//! [`Caller`].
//!
//! Invariant: code above the store never gets a snapshot. So a read names its [`Needs`] before it
//! visits the first row.

use std::sync::Arc;

use super::read::ReadJob;
use super::{Patience, Store};
use openkv_core::model::{Key, Needs, Range, Result, Row, Seen, Step, Walk};
use openkv_engines::Snapshot;

/// The caller of a read, with what it has made of the visited rows so far. Its methods run on a
/// thread of the store.
pub trait Caller<T>: Send + 'static {
    /// Fails if the read must not begin, for example because nothing waits for its result.
    ///
    /// # Errors
    /// The error that the read ends with.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Gets the result, once. After a panic the caller is dropped instead.
    fn end(self, result: Result<T>);
}

impl<T, F: FnOnce(Result<T>) + Send + 'static> Caller<T> for F {
    fn end(self, result: Result<T>) {
        self(result);
    }
}

/// The rows of one range of a read.
pub struct Rows<'s> {
    pub(super) snapshot: &'s mut dyn Snapshot,
    /// The range.
    pub range: &'s Range,
}

impl Rows<'_> {
    /// Visits the rows in order, until `visit` answers `false`. It also gets whether the row is the
    /// last that the range's limit allows.
    pub fn visit(self, visit: impl FnMut(Row<'_>, bool) -> bool) -> Result<()> {
        self.snapshot.visit(self.range, visit)
    }
}

impl Store {
    /// Reads the ranges from one snapshot. `visit` gets them in order, each with its rows.
    pub fn read_ranges<C: Caller<()>>(
        &self,
        ranges: impl AsRef<[Range]> + Send + 'static,
        caller: C,
        mut visit: impl FnMut(&mut C, Rows<'_>) -> Result<()> + Send + 'static,
    ) {
        self.read(None, caller, move |snapshot, caller| {
            let ranges = ranges.as_ref();
            snapshot.prefetch(Needs { ranges, ..Needs::default() })?;
            let mut next = |range| visit(caller, Rows { snapshot: &mut *snapshot, range });
            ranges.iter().try_for_each(&mut next)
        });
    }

    /// Reads the entries of keys, with their expiry, from one snapshot. `visit` gets one for each
    /// key, in order; `None` where there is no entry.
    pub fn entries<C: Caller<()>>(
        &self,
        keys: Vec<Key>,
        caller: C,
        mut visit: impl FnMut(&mut C, Option<Seen<'_>>) -> Result<()> + Send + 'static,
    ) {
        self.read(None, caller, move |snapshot, caller| {
            snapshot.prefetch(Needs { keys: &keys, ..Needs::default() })?;
            keys.iter().try_for_each(|key| find(snapshot, key, |seen| visit(caller, seen))?)
        });
    }

    /// When the entries of keys expire, in ms since the epoch. Inner `None`: never; outer `None`:
    /// there is no entry.
    pub fn expiries(&self, keys: Vec<Key>, caller: impl Caller<Vec<Option<Option<i64>>>>) {
        self.read(None, caller, move |snapshot, _| {
            snapshot.prefetch(Needs { keys: &keys, ..Needs::default() })?;
            keys.iter().map(|key| snapshot.expiry(key.as_bytes())).collect()
        });
    }

    /// The last commit.
    pub fn last_commit(&self, caller: impl Caller<u64>) {
        self.read(None, caller, |snapshot, _| Ok(snapshot.feed_state()?.version));
    }

    /// Runs `read` on a current snapshot, on the reader thread, which all short reads share. With
    /// `long` it has a thread for long reads, so that no other read waits, and calls to the snapshot
    /// fail when these bounds end.
    pub(super) fn read<T, C: Caller<T>>(
        &self,
        long: Option<Arc<Patience>>,
        caller: C,
        read: impl FnOnce(&mut dyn Snapshot, &mut C) -> Result<T> + Send + 'static,
    ) {
        let job = job_of(caller, read);
        match long {
            Some(patience) => self.long.send_within(patience, job),
            None => self.reads.send(job),
        }
    }

    /// As [`Self::read`] for a short read, on what this process has of the database: it makes no request to find out
    /// whether that is current.
    pub(super) fn read_at_hand<T, C: Caller<T>>(
        &self,
        caller: C,
        read: impl FnOnce(&mut dyn Snapshot, &mut C) -> Result<T> + Send + 'static,
    ) {
        self.at_hand.send_at_hand(job_of(caller, read));
    }
}

fn job_of<T, C: Caller<T>>(
    mut caller: C,
    read: impl FnOnce(&mut dyn Snapshot, &mut C) -> Result<T> + Send + 'static,
) -> ReadJob {
    Box::new(move |snapshot| {
        let snapshot = caller.check().and(snapshot);
        let result = snapshot.and_then(|snapshot| read(snapshot, &mut caller));
        caller.end(result);
    })
}

/// Shows the entry of a key and its expiry, or that there is none.
pub(super) fn find<T>(
    snapshot: &mut dyn Snapshot,
    key: &Key,
    mut see: impl FnMut(Option<Seen<'_>>) -> T,
) -> Result<T> {
    let end = [key.as_bytes(), &[0]].concat();
    let walk = Walk { start: key.as_bytes(), end: &end, reverse: false, values: true };
    let mut found = None;
    snapshot.walk(walk, &mut |seen| {
        found = Some(see(Some(seen)));
        Step::Stop
    })?;
    Ok(found.unwrap_or_else(|| see(None)))
}
