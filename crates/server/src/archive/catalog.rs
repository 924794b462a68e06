//! What an archive has: its manifest, its histories, its snapshots and segments.

use super::manifest::Manifest;
use super::names::{
    MANIFEST, SegmentsName, SnapshotName, Timeline, segments_folder, snapshots_folder,
};
use super::object::{Content, FIRST_READ_BYTES, Hash, Stored, decode_head, open_segments};
use super::plan::{Snapshot, chain};
use super::target::{READS, Target};
use openkv_core::model::{Error, Kind, Result};

/// A snapshot with its head.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) snapshot: Snapshot,
    pub(super) stored: Stored,
    /// The hash of its entries.
    pub(super) content: Hash,
    pub(super) entries: u64,
    pub(super) taken_ms: i64,
}

/// A snapshot whose head cannot be read.
#[derive(Clone, Debug)]
pub(super) struct Damaged {
    pub(super) name: SnapshotName,
    pub(super) error: Error,
}

/// The snapshots of a history, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Snapshots {
    pub(super) sound: Vec<Found>,
    pub(super) damaged: Vec<Damaged>,
}

/// An archive that is read.
pub(super) struct Catalog {
    pub(super) target: Target,
    pub(super) manifest: Manifest,
    /// In the order of the histories, and of commits within one.
    pub(super) snapshots: Vec<Found>,
    /// In the same order. A restore to the commits after one begins with a snapshot before it.
    pub(super) damaged: Vec<Damaged>,
}

impl Catalog {
    /// # Errors
    /// `Invalid` if the target is no archive; `Unsupported` for a newer form; errors of the target.
    pub(super) fn read(target: Target) -> Result<Self> {
        let Some((bytes, _)) = target.versioned(MANIFEST)? else {
            return Err(Error::invalid(format!(
                "target: {} is no archive: it has no {MANIFEST}; name the target of 'openkv archive run' or of \
                 kv.archive",
                target.name()
            )));
        };
        let manifest = Manifest::parse(&bytes)?;
        let (mut snapshots, mut damaged) = (Vec::new(), Vec::new());
        for timeline in &manifest.timelines {
            let of = snapshots_of(&target, Timeline(timeline.number))?;
            snapshots.extend(of.sound);
            damaged.extend(of.damaged);
        }
        Ok(Self { target, manifest, snapshots, damaged })
    }

    /// The timelines, the oldest first.
    pub(super) fn timelines(&self) -> impl DoubleEndedIterator<Item = Timeline> {
        self.manifest.timelines.iter().map(|entry| Timeline(entry.number))
    }

    /// The objects with the commits of a history after this one, with their sizes.
    pub(super) fn segments_after(
        &self,
        timeline: Timeline,
        version: u64,
    ) -> Result<Vec<(SegmentsName, u64)>> {
        // All of them: one that begins before several snapshots can have commits after them.
        let listed = self.target.list(&segments_folder(timeline))?;
        let names = listed.iter().filter_map(|(name, _)| SegmentsName::parse(name)).collect();
        let size_of = |name: &SegmentsName| {
            let text = name.to_string();
            let at = listed.binary_search_by(|(listed, _)| listed.as_str().cmp(&text));
            at.ok().and_then(|at| listed.get(at)).map_or(0, |(_, bytes)| *bytes)
        };
        Ok(chain(names, version).into_iter().map(|name| (name, size_of(&name))).collect())
    }
}

/// The snapshots of a history. A damaged head is no error: the other snapshots are of use without it.
///
/// # Errors
/// `Unsupported` for a newer form; errors of the target.
pub(super) fn snapshots_of(target: &Target, timeline: Timeline) -> Result<Snapshots> {
    let mut found = Snapshots::default();
    for (text, _) in target.list(&snapshots_folder(timeline))? {
        let Some(name) = SnapshotName::parse(&text) else { continue };
        match patiently(|| snapshot(target, name)) {
            Ok(snapshot) => found.sound.push(snapshot),
            Err(error) if error.kind() == Kind::Corrupt => {
                found.damaged.push(Damaged { name, error });
            }
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

fn snapshot(target: &Target, name: SnapshotName) -> Result<Found> {
    let stored = head(target, &name.to_string())?;
    let Content::Snapshot { version, at_ms, taken_ms, entries, content } = stored.head.content
    else {
        let why = format!("the object {name} is no snapshot: it was exchanged");
        return Err(Error::corrupt(why));
    };
    if version.0 != name.version || stored.head.source.timeline != name.timeline.0 {
        let why = format!("the object {name} has another name: it was moved");
        return Err(Error::corrupt(why));
    }
    let snapshot = Snapshot { name, at_ms };
    Ok(Found { snapshot, stored, content, entries, taken_ms })
}

/// The head of an object.
///
/// # Errors
/// As [`decode_head`]; errors of the target.
pub(super) fn head(target: &Target, name: &str) -> Result<Stored> {
    decode_head(name, &target.head(name, FIRST_READ_BYTES)?)
}

/// An object with segments: its head and its content. A damaged answer is requested again.
///
/// # Errors
/// As [`open_segments`]; errors of the target.
pub(super) fn segments(target: &Target, name: &SegmentsName) -> Result<(Stored, Vec<u8>)> {
    let text = name.to_string();
    patiently(|| target.get(&text).and_then(|bytes| open_segments(&text, &bytes)))
}

/// Reads again what has arrived damaged, a few times.
fn patiently<T>(mut read: impl FnMut() -> Result<T>) -> Result<T> {
    let mut fault = None;
    for _ in 0..READS {
        match read() {
            Err(error) if error.kind() == Kind::Corrupt => fault = Some(error),
            read => return read,
        }
    }
    Err(fault.unwrap_or_else(|| Error::internal("a read without an attempt")))
}
