//! The names of objects below a target. A listing in the order of the names is in the order of time.
//!
//! ```text
//! openkv-archive.json                                     the manifest
//! t00000001/snapshots/<version>.snapshot                  a snapshot
//! t00000001/segments/<first>-<last>-<epoch>.segments      commits
//! ```

use std::fmt;

use openkv_core::model::Versionstamp;

/// The name of the manifest.
pub(super) const MANIFEST: &str = "openkv-archive.json";

/// One history of a database: a restored or copied file begins another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Timeline(pub(super) u32);

impl fmt::Display for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t{:08x}", self.0)
    }
}

/// An object with commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SegmentsName {
    pub(super) timeline: Timeline,
    /// The first commit in it.
    pub(super) first: u64,
    /// The last commit in it.
    pub(super) last: u64,
    /// The ownership under which it was written.
    pub(super) epoch: u32,
}

/// An object with a whole database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SnapshotName {
    pub(super) timeline: Timeline,
    /// The last commit in it.
    pub(super) version: u64,
}

/// The folder of the segments of a timeline.
pub(super) fn segments_folder(timeline: Timeline) -> String {
    format!("{timeline}/segments")
}

/// The folder of the snapshots of a timeline.
pub(super) fn snapshots_folder(timeline: Timeline) -> String {
    format!("{timeline}/snapshots")
}

impl fmt::Display for SegmentsName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = (Versionstamp::new(self.first), Versionstamp::new(self.last));
        write!(f, "{}/{first}-{last}-{:08x}.segments", segments_folder(self.timeline), self.epoch)
    }
}

impl fmt::Display for SnapshotName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}/{}.snapshot",
            snapshots_folder(self.timeline),
            Versionstamp::new(self.version)
        )
    }
}

impl SegmentsName {
    /// The name of an object; `None` for any other.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let (timeline, rest) = split(name, "segments")?;
        let mut parts = rest.strip_suffix(".segments")?.split('-');
        let found = Self {
            timeline,
            first: version(parts.next()?)?,
            last: version(parts.next()?)?,
            epoch: number(parts.next()?)?,
        };
        (parts.next().is_none() && found.first <= found.last).then_some(found)
    }
}

impl SnapshotName {
    /// The name of an object; `None` for any other.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let (timeline, rest) = split(name, "snapshots")?;
        Some(Self { timeline, version: version(rest.strip_suffix(".snapshot")?)? })
    }
}

fn split<'n>(name: &'n str, folder: &str) -> Option<(Timeline, &'n str)> {
    let (timeline, rest) = name.split_once('/')?;
    let (found, rest) = rest.split_once('/')?;
    let timeline = Timeline(number(timeline.strip_prefix('t')?)?);
    (found == folder).then_some((timeline, rest))
}

/// Eight lower-case hexadecimal digits.
fn number(text: &str) -> Option<u32> {
    let number = u32::from_str_radix(text, 16).ok()?;
    (format!("{number:08x}") == text).then_some(number)
}

fn version(text: &str) -> Option<u64> {
    let stamp = Versionstamp::parse(text.as_bytes())?;
    (stamp.to_string() == text && stamp == Versionstamp::new(stamp.version()))
        .then_some(stamp.version())
}

/// The text of a commit in messages.
pub(super) fn shown(version: u64) -> String {
    Versionstamp::new(version).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENTS: SegmentsName =
        SegmentsName { timeline: Timeline(1), first: 2, last: 0x1f, epoch: 3 };
    const SNAPSHOT: SnapshotName = SnapshotName { timeline: Timeline(0xabc), version: u64::MAX };

    #[test]
    fn names_survive_the_round_trip() {
        assert_eq!(
            SEGMENTS.to_string(),
            "t00000001/segments/00000000000000020000-000000000000001f0000-00000003.segments"
        );
        assert_eq!(SegmentsName::parse(&SEGMENTS.to_string()), Some(SEGMENTS));
        assert_eq!(SnapshotName::parse(&SNAPSHOT.to_string()), Some(SNAPSHOT));
    }

    #[test]
    fn a_listing_is_in_the_order_of_commits() {
        let name = |first, last, epoch| {
            SegmentsName { timeline: Timeline(1), first, last, epoch }.to_string()
        };
        let sorted = [name(1, 9, 1), name(1, 9, 2), name(10, 12, 1), name(0x100, 0x100, 1)];
        assert!(sorted.is_sorted());
    }

    #[test]
    fn other_names_are_none() {
        for name in [
            "",
            "openkv-archive.json",
            "t1/segments/00000000000000020000-000000000000001f0000-00000003.segments",
            "t00000001/segments/00000000000000020000-000000000000001F0000-00000003.segments",
            "t00000001/segments/00000000000000020001-000000000000001f0000-00000003.segments",
            "t00000001/segments/00000000000000020000-00000000000000010000-00000003.segments",
            "t00000001/segments/00000000000000020000-000000000000001f0000-00000003.segments#1",
            "t00000001/segments/x/00000000000000020000-000000000000001f0000-00000003.segments",
            "t00000001/snapshots/0000000000000002.snapshot",
        ] {
            assert_eq!(SegmentsName::parse(name), None, "{name}");
            assert_eq!(SnapshotName::parse(name), None, "{name}");
        }
    }
}
