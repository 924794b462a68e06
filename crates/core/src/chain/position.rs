//! A place in the chain, and the judgement of the next object.

use super::object::{Digest, Entry, EntryKind};

/// The state of a chain after the objects below a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The number of the next object.
    pub next: u64,
    /// The epoch of the last valid fence.
    pub epoch: u64,
    /// The version after the last valid batch.
    pub version: u64,
    /// The digest of the last valid object.
    pub digest: Digest,
}

/// The judgement of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It begins an epoch.
    Fence,
    /// Its changes are the next ones.
    Batch,
    /// It counts for nothing.
    Void,
}

impl Position {
    /// Judges the next object, and moves behind it. `digest` is its own.
    pub fn take(&mut self, entry: &Entry, digest: Digest) -> Standing {
        debug_assert_eq!(entry.number, self.next, "an object was skipped");
        self.next = entry.number + 1;
        match entry.kind {
            EntryKind::Fence if entry.epoch > self.epoch => {
                (self.epoch, self.digest) = (entry.epoch, digest);
                Standing::Fence
            }
            EntryKind::Batch { before, after }
                if entry.epoch == self.epoch
                    && before == self.version
                    && after > before
                    && entry.previous == self.digest =>
            {
                (self.version, self.digest) = (after, digest);
                Standing::Batch
            }
            EntryKind::Fence | EntryKind::Batch { .. } => Standing::Void,
        }
    }

    /// The fence that begins the next epoch here.
    #[must_use]
    pub fn fence(&self) -> Entry {
        Entry {
            number: self.next,
            epoch: self.epoch + 1,
            previous: self.digest,
            kind: EntryKind::Fence,
        }
    }
}
