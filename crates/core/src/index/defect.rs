//! Defects that tests plant, to show that the simulation finds them.

/// A defect of the value indexes. Only the feature `defects` can plant one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexDefect {
    /// The entry of a value that was replaced or removed stays.
    KeptEntries,
    /// The entries of the old value are removed once more after those of the new one were added.
    RemovedTwice,
    /// A range ends before the entries of its last value.
    ShortRanges,
}

impl IndexDefect {
    /// Every defect.
    pub const ALL: [Self; 3] = [Self::KeptEntries, Self::RemovedTwice, Self::ShortRanges];
}

/// The defect that an index has, if any.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Planted(pub(super) Option<IndexDefect>);

impl Planted {
    pub(super) fn is(self, defect: IndexDefect) -> bool {
        cfg!(feature = "defects") && self.0 == Some(defect)
    }
}
