//! What an archive has, for people.

use serde::Serialize;

use super::catalog::Catalog;
use super::names::shown;
use super::names::{SegmentsName, segments_folder};
use openkv_core::model::Result;

/// The contents of an archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Listing {
    /// The name of the database.
    pub database: String,
    /// The archiver that writes; none after it has ended.
    pub owner: Option<String>,
    /// The last archived commit, and when the database had no later one, in ms since the epoch.
    pub archived: Option<(String, i64)>,
    /// Its histories, the oldest first.
    pub timelines: Vec<ListedTimeline>,
}

/// A history of the database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedTimeline {
    /// Its number.
    pub number: u32,
    /// When it began, in ms since the epoch.
    pub begun_ms: i64,
    /// Its snapshots, the oldest first.
    pub snapshots: Vec<ListedSnapshot>,
    /// Names of snapshots that cannot be read.
    pub damaged: Vec<String>,
    /// The number of objects with segments.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The last commit in them.
    pub last: Option<String>,
}

/// A snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedSnapshot {
    /// Its last commit.
    pub versionstamp: String,
    /// The time of that commit, in ms since the epoch.
    pub at_ms: i64,
    /// When it was taken, in ms since the epoch.
    pub taken_ms: i64,
    /// Its entries.
    pub entries: u64,
    /// Bytes of the object.
    pub bytes: u64,
}

pub(super) fn of(catalog: &Catalog) -> Result<Listing> {
    let manifest = &catalog.manifest;
    let mut timelines = Vec::new();
    for (timeline, entry) in catalog.timelines().zip(&manifest.timelines) {
        let own = catalog.snapshots.iter().filter(|one| one.snapshot.name.timeline == timeline);
        let snapshots = own.map(|one| ListedSnapshot {
            versionstamp: shown(one.snapshot.name.version),
            at_ms: one.snapshot.at_ms,
            taken_ms: one.taken_ms,
            entries: one.entries,
            bytes: one.stored.content_at + one.stored.head.compressed,
        });
        let damaged = catalog.damaged.iter().map(|damaged| damaged.name);
        let damaged = damaged.filter(|name| name.timeline == timeline).map(|name| name.to_string());
        let listed = catalog.target.list(&segments_folder(timeline))?;
        let names =
            listed.iter().filter_map(|(name, bytes)| Some((SegmentsName::parse(name)?, bytes)));
        let (mut objects, mut bytes, mut last) = (0, 0, None);
        for (name, size) in names {
            objects += 1;
            bytes += size;
            last = last.max(Some(name.last));
        }
        timelines.push(ListedTimeline {
            number: entry.number,
            begun_ms: entry.begun_ms,
            snapshots: snapshots.collect(),
            damaged: damaged.collect(),
            objects,
            bytes,
            last: last.map(shown),
        });
    }
    let archived =
        manifest.archived.map(|archived| (shown(archived.version.0), archived.complete_ms));
    Ok(Listing {
        database: manifest.database.clone(),
        owner: manifest.owner.as_ref().map(|_| manifest.host.clone()),
        archived,
        timelines,
    })
}
