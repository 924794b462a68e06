//! The bounds of the log of changes, and its trimming.
//!
//! Sets are trimmed first, because the entry's row still has its last state. A removal is stored
//! nowhere else, so removals have bounds of their own. A change of only the expiry counts as a set:
//! a reader for whom it was trimmed has to read the expiries of the entries.

use openkv_core::model::{
    FEED_AGE_MS_MAX, FEED_BYTES_MAX, FEED_CHANGES_MAX, FEED_REMOVAL_BYTES_MAX, FEED_REMOVALS_MAX,
    Result,
};

/// The size of a log, and its extent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::postgres) struct Extent {
    pub(in crate::postgres) complete: u64,
    pub(in crate::postgres) removed: u64,
    pub(in crate::postgres) sets: Amount,
    pub(in crate::postgres) removals: Amount,
}

/// Rows, and the bytes of their keys and values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::postgres) struct Amount {
    pub(in crate::postgres) rows: u64,
    pub(in crate::postgres) bytes: u64,
}

impl Amount {
    pub(in crate::postgres) fn add(&mut self, bytes: usize) {
        self.rows += 1;
        self.bytes += bytes as u64;
    }

    fn subtract(&mut self, other: Self) {
        self.rows = self.rows.saturating_sub(other.rows);
        self.bytes = self.bytes.saturating_sub(other.bytes);
    }

    fn exceeds(&self, rows: u64, bytes: u64) -> bool {
        self.rows > rows || self.bytes > bytes
    }
}

/// The rows of a log, for [`trim`].
pub(in crate::postgres) trait Shelf {
    /// The first commit after `after` that has rows, and the time at which it was logged.
    fn first_after(&mut self, after: u64) -> Result<Option<(u64, i64)>>;
    /// Deletes the sets of a commit.
    fn drop_sets(&mut self, version: u64) -> Result<Amount>;
    /// Deletes the removals of a commit.
    fn drop_removals(&mut self, version: u64) -> Result<Amount>;
}

/// Trims the oldest commits while the log is over its bounds, at most `commits` of them.
pub(in crate::postgres) fn trim(
    shelf: &mut impl Shelf,
    extent: &mut Extent,
    now_ms: i64,
    commits: usize,
) -> Result<()> {
    let old_ms = now_ms.saturating_sub(FEED_AGE_MS_MAX);
    for _ in 0..commits {
        let sets_over = extent.sets.exceeds(FEED_CHANGES_MAX, FEED_BYTES_MAX);
        let next = shelf.first_after(extent.complete)?;
        if let Some((version, _)) = next.filter(|(_, at_ms)| sets_over || *at_ms < old_ms) {
            extent.sets.subtract(shelf.drop_sets(version)?);
            extent.complete = version;
            continue;
        }
        if extent.removals.rows == 0 {
            break;
        }
        // Up to `complete` the log has only removals.
        let over = extent.removals.exceeds(FEED_REMOVALS_MAX, FEED_REMOVAL_BYTES_MAX);
        let first = shelf.first_after(0)?;
        let Some((version, _)) = first
            .filter(|(version, at_ms)| over || (*version <= extent.complete && *at_ms < old_ms))
        else {
            break;
        };
        if version > extent.complete {
            extent.sets.subtract(shelf.drop_sets(version)?);
            extent.complete = version;
        }
        extent.removals.subtract(shelf.drop_removals(version)?);
        extent.removed = version;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Commits by number: the time, the number of sets and of removals, each of one byte.
    struct Rows(BTreeMap<u64, (i64, u64, u64)>);

    impl Shelf for Rows {
        fn first_after(&mut self, after: u64) -> Result<Option<(u64, i64)>> {
            let mut rest = self.0.range(after + 1..).filter(|(_, row)| row.1 + row.2 > 0);
            Ok(rest.next().map(|(version, row)| (*version, row.0)))
        }

        fn drop_sets(&mut self, version: u64) -> Result<Amount> {
            let row = self.0.get_mut(&version).unwrap();
            let rows = std::mem::take(&mut row.1);
            Ok(Amount { rows, bytes: rows })
        }

        fn drop_removals(&mut self, version: u64) -> Result<Amount> {
            let row = self.0.get_mut(&version).unwrap();
            let rows = std::mem::take(&mut row.2);
            Ok(Amount { rows, bytes: rows })
        }
    }

    fn log(commits: &[(u64, i64, u64, u64)]) -> (Rows, Extent) {
        let mut extent = Extent::default();
        let mut rows = BTreeMap::new();
        for &(version, at_ms, sets, removals) in commits {
            rows.insert(version, (at_ms, sets, removals));
            extent.sets.rows += sets;
            extent.sets.bytes += sets;
            extent.removals.rows += removals;
            extent.removals.bytes += removals;
        }
        (Rows(rows), extent)
    }

    #[test]
    fn a_log_within_its_bounds_is_not_trimmed() {
        let (mut rows, mut extent) = log(&[(1, 0, FEED_CHANGES_MAX, FEED_REMOVALS_MAX)]);
        let before = extent;
        trim(&mut rows, &mut extent, FEED_AGE_MS_MAX, 10).unwrap();
        assert_eq!(extent, before);
    }

    #[test]
    fn sets_are_trimmed_before_removals() {
        let (mut rows, mut extent) =
            log(&[(1, 0, 1, 1), (2, 0, FEED_CHANGES_MAX, 1), (3, 0, 1, 0)]);
        trim(&mut rows, &mut extent, 0, 10).unwrap();
        assert_eq!((extent.complete, extent.removed), (2, 0));
        assert_eq!((extent.sets.rows, extent.removals.rows), (1, 2));
    }

    #[test]
    fn trimming_the_removals_of_a_commit_trims_its_sets() {
        let (mut rows, mut extent) =
            log(&[(1, 0, 1, 0), (2, 0, 1, FEED_REMOVALS_MAX), (3, 0, 1, 1)]);
        trim(&mut rows, &mut extent, 0, 10).unwrap();
        assert_eq!((extent.complete, extent.removed), (2, 2));
        assert_eq!((extent.sets.rows, extent.removals.rows), (1, 1));
    }

    #[test]
    fn old_commits_are_trimmed_in_bounded_steps() {
        let commits: Vec<_> = (1..=10).map(|version| (version, 0, 1, 1)).collect();
        let (mut rows, mut extent) = log(&commits);
        trim(&mut rows, &mut extent, FEED_AGE_MS_MAX + 1, 15).unwrap();
        assert_eq!((extent.complete, extent.removed), (10, 5));
        trim(&mut rows, &mut extent, FEED_AGE_MS_MAX + 1, 15).unwrap();
        assert_eq!((extent.removed, extent.removals.rows), (10, 0));
    }
}
