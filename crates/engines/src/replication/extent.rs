//! The extent of a replication log that an engine stores: its settings, and what is trimmed.

use openkv_core::codec::change_log;
use openkv_core::model::{
    FEED_AGE_MS_MAX, HistoryExtent, LOG_BYTES_MAX, LOG_FORGET_CHANGES_MAX, LOG_TRIM_SEGMENTS,
    LogBounds, LogSettings, Moment, Result, Setting,
};

use super::damaged;

/// [`SEGMENT_BYTES`], for the text of a statement.
macro_rules! segment_bytes {
    () => {
        64
    };
}
pub(crate) use segment_bytes;

/// What a segment counts beside its changes, in bytes: about what its row and its entries in indexes take. So a bound
/// of bytes also bounds segments without changes.
pub(crate) const SEGMENT_BYTES: u64 = 64;
const _: () = assert!(SEGMENT_BYTES == segment_bytes!());

/// The bounds of a log that a feed turns on: its readers may be away for days.
pub(crate) const FEED_BOUNDS: LogBounds =
    LogBounds { retention_ms: FEED_AGE_MS_MAX, bytes_max: LOG_BYTES_MAX };

/// What the first feed of a database asks for if the log is off.
pub(crate) const FOR_FEEDS: LogSettings =
    LogSettings { log: Setting::On(FEED_BOUNDS), history_ms: Setting::Keep, messages: None };

/// A log that is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Every change of the commits after this one is logged.
    pub(crate) complete: u64,
    /// Every removal of the commits after this one is logged. Not after `complete`.
    pub(crate) removed: u64,
    /// What all segments count ([`counted`]), in bytes.
    pub(crate) bytes: u64,
    /// The time of the last segment.
    pub(crate) newest_ms: i64,
    pub(crate) bounds: LogBounds,
    pub(crate) history: Option<HistoryExtent>,
    /// Whether messages of queues are logged too.
    pub(crate) messages: bool,
    /// The history begins behind a segment whose changes it has not removed yet: so many are removed.
    pub(crate) forgotten: Option<usize>,
}

/// Where a log begins that is turned on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Beginning {
    /// The last commit.
    pub(crate) version: u64,
    /// The last commit that may have removed an entry.
    pub(crate) removed: u64,
}

/// A segment without its changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outline {
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) at_ms: i64,
    /// What it counts ([`counted`]).
    pub(crate) bytes: u64,
}

/// What a segment counts, in bytes, by the length of its changes.
pub(crate) fn counted(changes: u64) -> u64 {
    SEGMENT_BYTES + changes
}

/// The result of a change of the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Changed {
    /// The log after it; `None`: it is off, and its segments go.
    pub(crate) extent: Option<Extent>,
    /// Whether the history goes.
    pub(crate) forgets: bool,
}

/// Decides a change of the settings. A log that is turned on begins at `at`.
pub(crate) fn change(
    before: Option<Extent>,
    settings: &LogSettings,
    at: Beginning,
    now_ms: i64,
) -> Changed {
    let Beginning { version, removed } = at;
    let bounds = match (settings.log, before) {
        (Setting::On(bounds), _) => Some(bounds),
        (Setting::Keep, Some(extent)) => Some(extent.bounds),
        (Setting::Keep, None) if matches!(settings.history_ms, Setting::On(_)) => {
            Some(LogBounds::default())
        }
        (Setting::Off, _) | (Setting::Keep, None) => None,
    };
    let begun = before.unwrap_or(Extent {
        complete: version,
        removed,
        bytes: 0,
        newest_ms: now_ms,
        bounds: LogBounds::default(),
        history: None,
        messages: false,
        forgotten: None,
    });
    let messages = settings.messages.unwrap_or(begun.messages);
    let newest_ms = begun.newest_ms.max(now_ms);
    let history = match settings.history_ms {
        Setting::On(kept_ms) => {
            let since = Moment { version, at_ms: newest_ms };
            let since = begun.history.map_or(since, |history| history.since);
            Some(HistoryExtent { kept_ms, since })
        }
        Setting::Keep => begun.history,
        Setting::Off => None,
    };
    let forgotten = history.and(begun.forgotten);
    let extent =
        bounds.map(|bounds| Extent { newest_ms, bounds, history, messages, forgotten, ..begun });
    let kept = extent.is_some_and(|extent| extent.history.is_some());
    Changed { extent, forgets: begun.history.is_some() && !kept }
}

/// The segments of a log, for [`trim`].
pub(crate) trait Segments {
    /// The first segment whose last commit is after this one.
    fn after(&mut self, version: u64) -> Result<Option<Outline>>;

    /// Deletes a segment. Returns whether it had a removal, or may have.
    fn drop(&mut self, segment: &Outline) -> Result<bool>;

    /// Removes from the history what changes of a segment had replaced: `max` of them, or all that are
    /// left behind the first `from`. Returns how many.
    fn forget(&mut self, segment: &Outline, from: usize, max: usize) -> Result<usize>;
}

/// Removes what is older than the bounds, in steps: a transaction adds one segment and removes up to
/// [`LOG_TRIM_SEGMENTS`]. A segment of the history stays, because the history needs its time and its
/// keys.
pub(crate) fn trim(segments: &mut impl Segments, extent: &mut Extent) -> Result<()> {
    forget(segments, extent)?;
    for _ in 0..LOG_TRIM_SEGMENTS {
        let Some(oldest) = segments.after(0)? else { break };
        let forgotten = extent.history.is_none_or(|history| {
            oldest.last < history.since.version
                || (oldest.last == history.since.version && extent.forgotten.is_none())
        });
        let old = oldest.at_ms < extent.newest_ms.saturating_sub(extent.bounds.retention_ms);
        if !forgotten || !(old || extent.bytes > extent.bounds.bytes_max) {
            break;
        }
        if segments.drop(&oldest)? {
            extent.removed = oldest.last;
        }
        extent.bytes = extent.bytes.saturating_sub(oldest.bytes);
        extent.complete = oldest.last;
    }
    Ok(())
}

/// Moves the beginning of the history behind the segments that are older than it keeps, and removes
/// what their changes had replaced: up to [`LOG_FORGET_CHANGES_MAX`]. The rest of a segment follows
/// with later transactions; readers do not see it any more.
fn forget(segments: &mut impl Segments, extent: &mut Extent) -> Result<()> {
    let mut left = LOG_FORGET_CHANGES_MAX;
    for _ in 0..LOG_TRIM_SEGMENTS {
        let Some(mut history) = extent.history else { break };
        let since = history.since.version;
        let (found, from) = match extent.forgotten {
            Some(from) => {
                let begun = segments.after(since.saturating_sub(1))?;
                (begun.filter(|segment| segment.last == since), from)
            }
            None => {
                let old = extent.newest_ms.saturating_sub(history.kept_ms);
                (segments.after(since)?.filter(|segment| segment.at_ms < old), 0)
            }
        };
        extent.forgotten = None;
        let Some(segment) = found else { break };
        history.since = Moment { version: segment.last, at_ms: segment.at_ms };
        extent.history = Some(history);
        let removed = segments.forget(&segment, from, left)?;
        left = left.saturating_sub(removed);
        if left == 0 {
            extent.forgotten = Some(from + removed);
            break;
        }
    }
    Ok(())
}

/// Whether the changes of a segment from `first` on have a removal. A damaged one may have.
pub(crate) fn has_removal(first: u64, changes: &[u8]) -> bool {
    let mut found = false;
    let decoded = change_log::decode(first, changes, |change| {
        found = change.kind.is_removal();
        !found
    });
    found || decoded.is_err()
}

/// Visits the keys and commits of `max` changes of a segment behind the first `from`. Returns how many.
pub(crate) fn visit_changes(
    segment: &Outline,
    changes: &[u8],
    (from, max): (usize, usize),
    mut visit: impl FnMut(&[u8], u64) -> Result<()>,
) -> Result<usize> {
    let (mut at, mut visited) = (0, Ok(()));
    let end = from.saturating_add(max);
    let decoded = change_log::decode(segment.first, changes, |change| {
        if at >= from && at < end {
            visited = visit(change.key, change.version);
        }
        at += usize::from(at < end);
        at < end && visited.is_ok()
    });
    visited?;
    decoded.map_err(|error| damaged(segment.last, &error))?;
    Ok(at.saturating_sub(from))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use openkv_core::model::{Change, ChangeKind, Key};

    const DAY_MS: i64 = 86_400_000;

    struct Kept {
        segments: BTreeMap<u64, Outline>,
        /// The segments with a removal.
        removing: Vec<u64>,
        /// Of each segment.
        changes: usize,
        forgotten: Vec<u64>,
    }

    impl Kept {
        fn of(times: &[i64]) -> Self {
            let outline = |(at, at_ms): (u64, &i64)| {
                let last = at + 1;
                (last, Outline { first: last, last, at_ms: *at_ms, bytes: 10 })
            };
            let segments = (0..).zip(times).map(outline).collect();
            Self { segments, removing: Vec::new(), changes: 1, forgotten: Vec::new() }
        }

        fn left(&self) -> Vec<u64> {
            self.segments.keys().copied().collect()
        }
    }

    impl Segments for Kept {
        fn after(&mut self, version: u64) -> Result<Option<Outline>> {
            Ok(self.segments.range(version + 1..).next().map(|(_, outline)| *outline))
        }

        fn drop(&mut self, segment: &Outline) -> Result<bool> {
            self.segments.remove(&segment.last);
            Ok(self.removing.contains(&segment.last))
        }

        fn forget(&mut self, segment: &Outline, from: usize, max: usize) -> Result<usize> {
            self.forgotten.push(segment.last);
            Ok(max.min(self.changes - from))
        }
    }

    fn at(version: u64) -> Beginning {
        Beginning { version, removed: 4 }
    }

    fn extent(segments: &Kept, history_ms: Option<i64>) -> Extent {
        let since = Moment { version: 0, at_ms: 0 };
        Extent {
            complete: 0,
            removed: 0,
            bytes: segments.segments.len() as u64 * 10,
            newest_ms: segments.segments.values().map(|outline| outline.at_ms).max().unwrap_or(0),
            bounds: LogBounds { retention_ms: DAY_MS, bytes_max: 1000 },
            history: history_ms.map(|kept_ms| HistoryExtent { kept_ms, since }),
            messages: false,
            forgotten: None,
        }
    }

    #[test]
    fn old_segments_are_trimmed_in_steps() {
        let mut segments = Kept::of(&[0, 1, 2, 3, 4, 5, DAY_MS + 5]);
        let mut extent = extent(&segments, None);
        trim(&mut segments, &mut extent).unwrap();
        assert_eq!((segments.left(), extent.complete, extent.bytes), (vec![5, 6, 7], 4, 30));
        trim(&mut segments, &mut extent).unwrap();
        assert_eq!((segments.left(), extent.complete, extent.bytes), (vec![6, 7], 5, 20));
    }

    #[test]
    fn a_log_over_its_bytes_is_trimmed() {
        let mut segments = Kept::of(&[0, 0, 0]);
        let mut extent = Extent {
            bounds: LogBounds { retention_ms: DAY_MS, bytes_max: 20 },
            ..extent(&segments, None)
        };
        trim(&mut segments, &mut extent).unwrap();
        assert_eq!((segments.left(), extent.complete), (vec![2, 3], 1));
    }

    /// Until a removal is trimmed, the entries still have the last change of each key.
    #[test]
    fn a_trimmed_removal_moves_what_feeds_can_read() {
        let mut segments = Kept::of(&[0, 1, 2, 3, DAY_MS * 2]);
        segments.removing = vec![2, 5];
        let mut extent = extent(&segments, None);
        extent.bounds.bytes_max = 40;
        extent.bounds.retention_ms = DAY_MS * 3;
        trim(&mut segments, &mut extent).unwrap();
        assert_eq!((extent.complete, extent.removed), (1, 0));
        extent.bounds.bytes_max = 20;
        trim(&mut segments, &mut extent).unwrap();
        assert_eq!((extent.complete, extent.removed), (3, 2));
        extent.bounds.bytes_max = 0;
        trim(&mut segments, &mut extent).unwrap();
        assert_eq!((extent.complete, extent.removed), (5, 5));
    }

    #[test]
    fn a_damaged_segment_may_have_a_removal() {
        let change = |kind| Change { key: Key::from_encoded(vec![1]), version: 7, kind };
        let touched = change(ChangeKind::ExpirySet { expire_at_ms: None });
        let kept = change_log::encode(7, std::slice::from_ref(&touched));
        assert!(!has_removal(7, &kept) && !has_removal(7, &change_log::encode(7, &[])));
        for kind in [ChangeKind::Deleted, ChangeKind::Expired] {
            assert!(has_removal(7, &change_log::encode(7, &[touched.clone(), change(kind)])));
        }
        assert!(has_removal(7, &kept[..2]) && has_removal(7, &[]));
    }

    #[test]
    fn the_history_keeps_its_segments_and_ends_before_the_log() {
        let mut segments = Kept::of(&[0, 1, 2 * DAY_MS]);
        let mut longer = extent(&segments, Some(7 * DAY_MS));
        trim(&mut segments, &mut longer).unwrap();
        assert_eq!((segments.left(), longer.complete), (vec![1, 2, 3], 0));
        let mut shorter = extent(&segments, Some(DAY_MS / 2));
        trim(&mut segments, &mut shorter).unwrap();
        assert_eq!((segments.left(), segments.forgotten), (vec![3], vec![1, 2]));
        assert_eq!(shorter.history.unwrap().since, Moment { version: 2, at_ms: 1 });
    }

    #[test]
    fn a_large_segment_is_forgotten_in_steps_and_stays_meanwhile() {
        let mut segments = Kept::of(&[0, 1, 9 * DAY_MS]);
        segments.changes = 2 * LOG_FORGET_CHANGES_MAX + 1;
        let mut extent = extent(&segments, Some(DAY_MS));
        let mut steps = Vec::new();
        for _ in 0..6 {
            trim(&mut segments, &mut extent).unwrap();
            let since = extent.history.unwrap().since.version;
            steps.push((since, extent.forgotten, segments.left()));
        }
        let most = LOG_FORGET_CHANGES_MAX;
        let expected = [
            (1, Some(most), vec![1, 2, 3]),
            (1, Some(2 * most), vec![1, 2, 3]),
            // The rest of the first segment, and the beginning of the second one.
            (2, Some(most - 1), vec![2, 3]),
            (2, Some(2 * most - 1), vec![2, 3]),
            (2, None, vec![3]),
            (2, None, vec![3]),
        ];
        assert_eq!(steps, expected);
        // Turned off meanwhile, nothing is left to be removed later.
        extent.forgotten = Some(5);
        let off = LogSettings { history_ms: Setting::Off, ..LogSettings::default() };
        assert_eq!(change(Some(extent), &off, at(3), 0).extent.unwrap().forgotten, None);
    }

    #[test]
    fn a_part_of_the_changes_of_a_segment_is_visited() {
        let changes: Vec<Change> = (0..5)
            .map(|n| Change {
                key: Key::from_encoded(vec![n]),
                version: 7 + u64::from(n / 2),
                kind: ChangeKind::Deleted,
            })
            .collect();
        let bytes = change_log::encode(7, &changes);
        let segment = Outline { first: 7, last: 9, at_ms: 0, bytes: bytes.len() as u64 };
        let visited = |from, max| {
            let mut found = Vec::new();
            let count = visit_changes(&segment, &bytes, (from, max), |key, version| {
                found.push((key[0], version));
                Ok(())
            });
            assert_eq!(count.unwrap(), found.len());
            found
        };
        assert_eq!(visited(0, 2), [(0, 7), (1, 7)]);
        assert_eq!(visited(2, 2), [(2, 8), (3, 8)]);
        assert_eq!(visited(4, 2), [(4, 9)]);
        assert_eq!(visited(5, 2), []);
        assert_eq!(visited(0, 0), []);
    }

    #[test]
    fn settings_are_kept_turned_on_and_turned_off() {
        let on = |settings: LogSettings, before| change(before, &settings, at(9), 100).extent;
        let history = LogSettings { history_ms: Setting::On(5), ..LogSettings::default() };
        let begun = on(history, None).unwrap();
        assert_eq!((begun.complete, begun.removed, begun.newest_ms), (9, 4, 100));
        assert_eq!(begun.bounds, LogBounds::default());
        let since = Moment { version: 9, at_ms: 100 };
        assert_eq!(begun.history, Some(HistoryExtent { kept_ms: 5, since }));
        assert_eq!(on(LogSettings::default(), Some(begun)), Some(begun));
        assert_eq!(on(LogSettings::default(), None), None);
        let longer = LogSettings { history_ms: Setting::On(50), ..LogSettings::default() };
        let later = change(Some(begun), &longer, at(20), 200).extent.unwrap();
        assert_eq!(later.history, Some(HistoryExtent { kept_ms: 50, since }));
        let without = LogSettings { history_ms: Setting::Off, ..LogSettings::default() };
        let changed = change(Some(begun), &without, at(20), 200);
        assert!(changed.forgets && changed.extent.unwrap().history.is_none());
        let off = LogSettings { log: Setting::Off, ..LogSettings::default() };
        assert_eq!(change(Some(begun), &off, at(20), 200), Changed { extent: None, forgets: true });
    }
}
