//! Retention: removes what no restore to a time since then needs.

use super::catalog::{self, Catalog};
use super::names::{SegmentsName, Timeline, segments_folder};
use super::plan::{Held, prune};
use openkv_core::model::{ARCHIVE_PRUNE_OBJECTS, Result};

/// The objects that a retention has removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Removed {
    /// Objects.
    pub objects: u64,
    /// Of these, snapshots.
    pub snapshots: u64,
}

/// Removes everything that no restore to a time since `oldest_ms` needs. The segments go first, and of the
/// snapshots the oldest: what is left is an archive at any time.
pub(super) fn by_retention(catalog: &Catalog, oldest_ms: i64) -> Result<Removed> {
    let mut histories = Vec::new();
    for timeline in catalog.timelines() {
        let own = catalog.snapshots.iter().filter(|found| found.snapshot.name.timeline == timeline);
        let snapshots = own.map(|found| found.snapshot).collect();
        let names = catalog.damaged.iter().map(|damaged| damaged.name);
        let damaged = names.filter(|name| name.timeline == timeline).collect();
        let segments = listed(catalog, timeline)?;
        histories.push((timeline, Held { snapshots, damaged, segments }));
    }
    let pruned = prune(&histories, oldest_ms);
    // A restore begins with a snapshot: without it, its segments are of no use, but do no harm.
    let snapshots: Vec<_> = pruned.snapshots.iter().map(ToString::to_string).collect();
    let segments: Vec<_> = pruned.segments.iter().map(ToString::to_string).collect();
    let removed = Removed {
        objects: (snapshots.len() + segments.len()) as u64,
        snapshots: snapshots.len() as u64,
    };
    for names in
        snapshots.chunks(ARCHIVE_PRUNE_OBJECTS).chain(segments.chunks(ARCHIVE_PRUNE_OBJECTS))
    {
        catalog.target.remove(names)?;
    }
    Ok(removed)
}

fn listed(catalog: &Catalog, timeline: Timeline) -> Result<Vec<SegmentsName>> {
    let listed = catalog.target.list(&segments_folder(timeline))?;
    Ok(listed.iter().filter_map(|(name, _)| SegmentsName::parse(name)).collect())
}

/// The target of an archive, which must be one.
pub(super) fn open(target: &str) -> Result<catalog::Catalog> {
    Catalog::read(super::target::open(target, false)?)
}
