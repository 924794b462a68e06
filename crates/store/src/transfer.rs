//! A copy of all entries for a replica, in pages of one snapshot.
//!
//! Invariant: the pages are of one snapshot, whose place comes first; a copy without its end is not complete.

use std::sync::Arc;

use super::{Caller, Patience, Store, on_thread};
use openkv_core::model::{
    COPY_PAGE_BYTES, Error, Followed, Key, LogExtent, LogState, Result, Seen, Step, Walk,
};
use openkv_engines::{GoesOn, Snapshot};

/// A part of a copy.
#[derive(Debug)]
pub enum TransferPiece<P> {
    /// The place of the snapshot.
    Begins(Followed),
    /// Some entries.
    Page(P),
    /// Nothing is missing.
    Ends,
    /// The copy has ended too early.
    Failed(Error),
}

/// Entries of a copy, in the form that its receiver needs. A new one is empty.
pub trait TransferPage: Default + Send + 'static {
    /// Adds an entry.
    fn push(&mut self, entry: &Seen<'_>);

    /// Its size.
    fn bytes(&self) -> usize;
}

impl Store {
    /// Hands all entries with these prefixes to `send`, until it answers `false`. The copy has a thread and
    /// a reader of its own, so `send` may wait. Meanwhile the log of a file cannot be reset, so the copy ends
    /// once the log is too long, which `send` learns from `patience` while it waits.
    pub fn transfer<P: TransferPage>(
        &self,
        prefixes: Vec<Key>,
        patience: Arc<Patience>,
        send: impl FnMut(TransferPiece<P>) -> bool + Send + 'static,
    ) {
        let (make_reader, now_ms) = (self.make_reader.clone(), self.env.now_ms());
        let keeper = self.log_keeper();
        let copy = move |mut transfer: Transfer<P, _>| {
            let caller = patience.clone();
            let goes_on: GoesOn = Arc::new(move || caller.lasts());
            let begun = patience.keep_log(keeper).and_then(|()| make_reader());
            let copied = begun.and_then(|mut reader| {
                reader.read_while(now_ms, &goes_on, &mut |snapshot| {
                    transfer.copy(snapshot, &prefixes)
                })
            });
            transfer.end(patience.check().and(copied));
        };
        let transfer = Transfer { page: P::default(), send };
        on_thread("openkv-walk", transfer, copy, |transfer, error| transfer.end(Err(error)));
    }
}

/// A copy under way, on its thread.
struct Transfer<P, S> {
    page: P,
    send: S,
}

impl<P: TransferPage, S: FnMut(TransferPiece<P>) -> bool + Send + 'static> Transfer<P, S> {
    fn copy(&mut self, snapshot: &mut dyn Snapshot, prefixes: &[Key]) -> Result<()> {
        let place = place_of(snapshot, prefixes)?;
        if !(self.send)(TransferPiece::Begins(place)) {
            return Err(unwanted());
        }
        let mut goes_on = true;
        for (start, end) in ranges(prefixes) {
            let walk = Walk { start: &start, end: &end, reverse: false, values: true };
            snapshot.walk(walk, &mut |seen| {
                goes_on = self.take(&seen);
                if goes_on { Step::Next } else { Step::Stop }
            })?;
            if !goes_on {
                return Err(unwanted());
            }
        }
        Ok(())
    }

    /// Takes an entry; `false` if no caller wants the copy.
    fn take(&mut self, entry: &Seen<'_>) -> bool {
        let more = entry.row.key.len() + entry.row.value.len();
        let is_full = self.page.bytes() > 0 && self.page.bytes() + more > COPY_PAGE_BYTES;
        let goes_on = !is_full || self.flush();
        self.page.push(entry);
        goes_on
    }

    fn flush(&mut self) -> bool {
        (self.send)(TransferPiece::Page(std::mem::take(&mut self.page)))
    }
}

impl<P: TransferPage, S: FnMut(TransferPiece<P>) -> bool + Send + 'static> Caller<()>
    for Transfer<P, S>
{
    fn end(mut self, copied: Result<()>) {
        let last = match copied {
            Ok(()) if !self.flush() => return,
            Ok(()) => TransferPiece::Ends,
            Err(error) => TransferPiece::Failed(error),
        };
        let _wanted = (self.send)(last);
    }
}

/// The ranges of keys with these prefixes, in order, each key in one of them.
fn ranges(prefixes: &[Key]) -> Vec<(Vec<u8>, Vec<u8>)> {
    if prefixes.is_empty() {
        return vec![(Vec::new(), vec![u8::MAX])];
    }
    let mut ranges: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    let mut sorted: Vec<&[u8]> = prefixes.iter().map(Key::as_bytes).collect();
    sorted.sort_unstable();
    for prefix in sorted {
        if ranges.last().is_none_or(|(start, _)| !prefix.starts_with(start)) {
            ranges.push((prefix.to_vec(), [prefix, &[u8::MAX]].concat()));
        }
    }
    ranges
}

/// The place of a follower that has everything of this snapshot.
fn place_of(snapshot: &mut dyn Snapshot, prefixes: &[Key]) -> Result<Followed> {
    let mut log = snapshot.log()?;
    let LogState { version, log: extent } = log.state()?;
    let LogExtent { origin, .. } = extent.ok_or_else(turned_off)?;
    let at_ms = log.at_commit(version)?.filter(|(last, _)| *last == version);
    let at_ms = at_ms.map_or(0, |(_, at_ms)| at_ms);
    Ok(Followed { origin, version, at_ms, prefixes: prefixes.to_vec() })
}

/// The error of a copy whose reader has not taken it to its end.
fn unwanted() -> Error {
    Error::unavailable("the copy was interrupted: its receiver has taken nothing for too long")
}

fn turned_off() -> Error {
    Error::unavailable(
        "the replication log has been turned off; it begins again with the next follower",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_each_key_once() {
        let key = |bytes: &[u8]| Key::from_encoded(bytes.to_vec());
        assert_eq!(ranges(&[]), [(vec![], vec![255])]);
        let found = ranges(&[key(&[2, 7]), key(&[2]), key(&[1]), key(&[2, 0])]);
        assert_eq!(found, [(vec![1], vec![1, 255]), (vec![2], vec![2, 255])]);
    }
}
