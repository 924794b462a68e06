//! Verification: repeats the log in memory from snapshot to snapshot, and compares the entries.
//!
//! Never: trust in the code of a restore: the replay is another one (`content::Model`).

use std::path::Path;
use std::time::Duration;

use super::catalog::{Catalog, Found};
use super::content::Model;
use super::names::shown;
use super::plan::Until;
use super::restore::{Progress, repeat};
use super::snapshot::download;
use openkv_core::model::Result;
use openkv_engines::Engine;
use openkv_engines::sqlite::{SqliteEngine, Unfinished, verify as verify_file};

/// The result of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verified {
    /// Snapshots whose entries were compared with their hash.
    pub snapshots: u64,
    /// Snapshots that the log has led to from the one before, with the same entries.
    pub compared: u64,
    /// Segments of the log that were repeated.
    pub segments: u64,
    /// The newest commit.
    pub versionstamp: String,
    /// The faults; none in a sound archive.
    pub findings: Vec<String>,
}

/// Verifies a whole archive. Files are written beside `scratch`, and removed.
///
/// # Errors
/// Errors of the target and the disk; what is wrong with the archive is a finding.
pub(super) fn verify(
    catalog: &Catalog,
    scratch: &Path,
    progress: Progress<'_>,
) -> Result<Verified> {
    let mut all = catalog.snapshots.iter().map(|found| found.stored.head.compressed).sum::<u64>();
    let mut parts = Vec::new();
    for (at, found) in catalog.snapshots.iter().enumerate() {
        let name = found.snapshot.name;
        let following = catalog.snapshots.get(at + 1);
        let next = following.filter(|next| next.snapshot.name.timeline == name.timeline);
        let mut objects = catalog.segments_after(name.timeline, name.version)?;
        if let Some(next) = next {
            objects.retain(|(object, _)| object.first <= next.snapshot.name.version);
        }
        all += objects.iter().map(|(_, bytes)| bytes).sum::<u64>();
        parts.push((found, next, objects));
    }
    let findings = catalog.damaged.iter().map(|damaged| damaged.error.message().to_owned());
    let mut verified = Verified { findings: findings.collect(), ..Verified::default() };
    if catalog.snapshots.is_empty() {
        verified.findings.push("there is no snapshot: nothing can be restored".into());
    }
    let mut done = 0;
    for (found, next, objects) in parts {
        let mut step = |bytes: u64| {
            done += bytes;
            progress(done.min(all), all)
        };
        let Some(mut model) = load(found, catalog, scratch, &mut step, &mut verified)? else {
            continue;
        };
        let until = next.map_or(Until::Newest, |next| Until::Commit(next.snapshot.name.version));
        let mut segments = 0;
        let reached = repeat(catalog, found, &objects, until, &mut step, &mut |segment| {
            segments += 1;
            model.replay(segment, u64::MAX)
        });
        verified.segments += segments;
        verified.versionstamp = shown(model.version());
        match reached {
            Err(error) if error.kind() == openkv_core::model::Kind::Corrupt => {
                verified.findings.push(error.message().to_owned());
            }
            Err(error) => return Err(error),
            Ok(reached) => {
                if let Some(after) = reached.gap {
                    verified.findings.push(lost(after));
                } else if let Some(next) = next {
                    compare(&model, next, reached.last, &mut verified);
                }
            }
        }
    }
    Ok(verified)
}

/// The entries of a snapshot, if they are those that it names.
fn load(
    found: &Found,
    catalog: &Catalog,
    scratch: &Path,
    step: &mut dyn FnMut(u64) -> bool,
    verified: &mut Verified,
) -> Result<Option<Model>> {
    let name = found.snapshot.name;
    let file = Unfinished::beside(scratch);
    let loaded = download(&catalog.target, &name, file.path(), step).and_then(|_| {
        verify_file(file.path())?;
        let engine = SqliteEngine::open(file.path(), false, Duration::ZERO)?;
        Model::load(&mut engine.reader()?, name.version, &mut |_| step(0))
    });
    match loaded {
        Err(error) if error.kind() == openkv_core::model::Kind::Corrupt => {
            verified.findings.push(error.message().to_owned());
            Ok(None)
        }
        Err(error) => Err(error),
        Ok(model) => {
            let (entries, content) = model.hash();
            if (entries, content) != (found.entries, found.content) {
                let finding =
                    format!("the snapshot {name} does not have the entries that it names");
                verified.findings.push(finding);
                return Ok(None);
            }
            verified.snapshots += 1;
            Ok(Some(model))
        }
    }
}

/// `last` is the last commit of the objects before the snapshot; later ones can have changed no entry.
fn compare(model: &Model, next: &Found, last: u64, verified: &mut Verified) {
    let (entries, content) = model.hash();
    if (entries, content) == (next.entries, next.content) {
        verified.compared += 1;
    } else if last < next.snapshot.name.version {
        verified.findings.push(lost(last));
    } else {
        verified.findings.push(format!(
            "the log leads to {entries} entries at the commit {}, and the snapshot of that commit has {} others: one of \
             them is wrong",
            shown(next.snapshot.name.version),
            next.entries
        ));
    }
}

fn lost(after: u64) -> String {
    let after = shown(after);
    format!("commits after {after} are in no object: restores to them are not possible")
}
