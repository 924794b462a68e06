//! Makes merged copies of the log, so that an opening makes few requests.
//!
//! Duty: copy objects of the log that are known to exist, once there are enough of them, and copy merged objects into
//! larger ones; remove those that a larger one contains.
//! Invariant: a merged object has the same bytes as the log, whichever process has made it, so one that a former leader
//! makes late changes nothing.
//! Never: a change of the log, or a wait of a commit.

use super::objects::{Objects, next_count};
use openkv_core::chain::{Merged, Merging, covers, next_merge, unmerge};
use openkv_core::model::{
    BUCKET_MERGED_BYTES_MAX, BUCKET_MERGED_FAN, BUCKET_MERGED_OBJECTS_MAX, Error, Result,
};

/// The copies behind the newest snapshot, as one leader knows them.
#[derive(Default)]
pub(super) struct Merges {
    /// The epoch of that leader.
    epoch: u64,
    /// `None` before it has listed them.
    known: Option<Known>,
}

struct Known {
    /// In order, with their bytes.
    pieces: Vec<(Merged, u64)>,
    /// The first number of the log that is not copied.
    next: u64,
}

impl Merges {
    /// Whether there are enough objects before `next` that are not copied.
    pub(super) fn is_due(&self, epoch: u64, next: u64) -> bool {
        let known = self.known.as_ref().filter(|_| self.epoch == epoch);
        next.saturating_sub(known.map_or(0, |known| known.next)) >= BUCKET_MERGED_FAN as u64
    }

    /// A snapshot contains the log up to this number.
    pub(super) fn contained(&mut self, number: u64) {
        if let Some(known) = &mut self.known {
            known.pieces.retain(|(merged, _)| merged.last > number);
            known.next = known.next.max(number + 1);
        }
    }

    /// Copies what is due of the objects before `next`, which are known to exist, while `goes_on`.
    ///
    /// # Errors
    /// Errors of the store; the next run finds out what is there.
    pub(super) fn run(
        &mut self,
        objects: &Objects,
        (epoch, next): (u64, u64),
        goes_on: impl Fn() -> bool,
    ) -> Result<()> {
        let known = self.known.take().filter(|_| self.epoch == epoch);
        let mut known = known.map_or_else(|| Known::list(objects), Ok)?;
        while goes_on() && next.saturating_sub(known.next) >= BUCKET_MERGED_FAN as u64 {
            known.copy_log(objects, next)?;
            while let Some(range) = next_merge(&known.pieces) {
                known.join(objects, range)?;
            }
        }
        (self.epoch, self.known) = (epoch, Some(known));
        Ok(())
    }
}

impl Known {
    fn list(objects: &Objects) -> Result<Self> {
        let newest = objects.snapshots()?.last().copied();
        let start = newest.map_or(0, |mark| mark.number + 1);
        let pieces = covers(start, &objects.merged()?);
        let next = pieces.last().map_or(start, |(merged, _)| merged.last + 1);
        Ok(Self { pieces, next })
    }

    /// Copies objects of the log. Few that are large are left out: a copy would not save much.
    fn copy_log(&mut self, objects: &Objects, end: u64) -> Result<()> {
        let (mut merging, mut at, mut count, mut largest) = (Merging::default(), self.next, 4, 0);
        let end = end.min(self.next + BUCKET_MERGED_OBJECTS_MAX as u64);
        'reading: while at < end {
            let most = usize::try_from(end - at).unwrap_or(usize::MAX);
            let found = objects.bytes(at, count.min(most))?;
            if found.is_empty() {
                return Err(Error::unavailable(format!("object {at} of the log is not there")));
            }
            for bytes in found {
                let is_full = merging.size_bytes() + bytes.len() > BUCKET_MERGED_BYTES_MAX;
                if is_full && at > self.next {
                    break 'reading;
                }
                merging.add(&bytes).map_err(|error| Error::corrupt(error.to_string()))?;
                (at, largest) = (at + 1, largest.max(bytes.len() as u64));
            }
            count = next_count(count, largest);
        }
        let copied = at - self.next;
        self.next = at;
        match merging.finish() {
            Some(done) if copied >= BUCKET_MERGED_FAN as u64 => self.create(objects, done),
            Some(_) | None => Ok(()),
        }
    }

    fn create(&mut self, objects: &Objects, (merged, bytes): (Merged, Vec<u8>)) -> Result<()> {
        let size = bytes.len() as u64;
        objects.merge(&merged, bytes)?;
        let at = self.pieces.partition_point(|(piece, _)| piece.first < merged.first);
        self.pieces.insert(at, (merged, size));
        Ok(())
    }

    /// Makes one of some merged objects, and removes these.
    fn join(&mut self, objects: &Objects, range: std::ops::Range<usize>) -> Result<()> {
        let small: Vec<_> = self.pieces.get(range.clone()).unwrap_or_default().to_vec();
        let mut merging = Merging::default();
        let corrupt = |error| Error::corrupt(format!("a merged object: {error}"));
        let found = objects.merged_bytes(&small)?;
        if found.len() < small.len() {
            return Err(Error::unavailable("a merged object has vanished, or is damaged"));
        }
        for (bytes, (merged, _)) in found.iter().zip(&small) {
            for object in unmerge(merged, bytes).map_err(corrupt)? {
                merging.add(object).map_err(corrupt)?;
            }
        }
        self.pieces.drain(range);
        if let Some(done) = merging.finish() {
            self.create(objects, done)?;
        }
        // A reader that misses one reads the log.
        objects.remove_merged(&small)
    }
}
