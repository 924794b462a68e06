//! A restore: a snapshot and the segments after it, into a new file.
//!
//! Duty: check every object and the chain of them, repeat the commits up to a moment, and verify the result.
//! Invariant: the file has its name only when it is complete and verified.
//! Never: replace a file; leave out a commit in silence.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};

use super::catalog::{self, Catalog, Damaged, Found};
use super::content;
use super::names::{SegmentsName, Timeline, shown};
use super::object::{Content, Hash, Stored, cut, each_segment};
use super::plan::{Until, base};
use super::snapshot::download;
use super::target::{self, Target};
use openkv_core::model::{Error, KeyRange, Kind, LogSegment, Result, When};
use openkv_engines::Engine;
use openkv_engines::sqlite::{Rebuild, SqliteEngine, Unfinished, verify};

/// The options of a restore.
#[derive(Clone, Debug)]
pub struct RestoreOptions {
    /// The target of the archive.
    pub target: String,
    /// The new file.
    pub file: PathBuf,
    /// The moment; `None`: the newest.
    pub at: Option<When>,
    /// Only the entries of this range.
    pub range: Option<KeyRange>,
}

/// A restored database.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Restored {
    /// Its last commit.
    pub versionstamp: String,
    /// The time of the last restored commit, in ms since the epoch.
    pub at_ms: i64,
    /// The number of entries.
    pub entries: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// The hash of its entries.
    pub content: String,
    /// The snapshot that it began with.
    pub snapshot: String,
    /// Segments of the log that were repeated.
    pub segments: u64,
    /// Whether the archive had recorded the hash for this commit, which was compared.
    pub compared: bool,
}

/// The progress of a job: bytes done and bytes in all. `false` ends it.
pub type Progress<'p> = &'p mut dyn FnMut(u64, u64) -> bool;

/// Objects that are read ahead.
const AHEAD: usize = 2;

/// Restores a database from an archive.
///
/// # Errors
/// `Invalid` if the file exists or the target is no archive; `Range` for a moment outside of the archive;
/// `Corrupt` for a damaged or missing object; `Unavailable` when ended; errors of the target and the disk.
pub fn restore(options: &RestoreOptions, progress: Progress<'_>) -> Result<Restored> {
    let RestoreOptions { file, at, range, .. } = options;
    refuse_existing(file)?;
    let catalog = Catalog::read(target::open(&options.target, false)?)?;
    let until = Until::from(*at);
    let snapshots: Vec<_> = catalog.snapshots.iter().map(|found| found.snapshot).collect();
    let base = base(&snapshots, until).map_err(|error| with_damage(error, &catalog))?;
    let base = catalog
        .snapshots
        .iter()
        .find(|found| found.snapshot == base)
        .ok_or_else(|| Error::internal("a snapshot that is not in its list"))?;
    let (timeline, version) = (base.snapshot.name.timeline, base.snapshot.name.version);
    let objects = catalog.segments_after(timeline, version)?;
    let all = base.stored.head.compressed + objects.iter().map(|(_, bytes)| bytes).sum::<u64>();
    let mut done = 0;
    let mut step = |bytes: u64| {
        done += bytes;
        progress(done.min(all), all)
    };
    let unfinished = Unfinished::beside(file);
    let path = unfinished.path();
    download(&catalog.target, &base.snapshot.name, path, &mut step)?;
    let mut rebuild = Rebuild::open(path)?;
    check_base(&mut rebuild, base, &mut step)?;
    let (mut at_ms, mut segments) = (base.snapshot.at_ms, 0);
    let reached = repeat(&catalog, base, &objects, until, &mut step, &mut |segment| {
        at_ms = segment.at_ms;
        segments += 1;
        rebuild.replay(segment)
    })?;
    check_reached(&catalog, base, until, &reached)?;
    check_hidden(&catalog, base, until, &reached)?;
    let recorded = catalog.snapshots.iter().find(|found| {
        let name = found.snapshot.name;
        name.timeline == timeline && name.version == rebuild.version()
    });
    let restored = finish(rebuild, path, range.as_ref(), recorded, &mut step)?;
    let bytes = unfinished.finish(file)?;
    Ok(Restored {
        versionstamp: shown(restored.version),
        at_ms,
        entries: restored.entries,
        bytes,
        content: restored.content.to_string(),
        snapshot: shown(version),
        segments,
        compared: recorded.is_some(),
    })
}

/// Adds the snapshots that cannot be read to the error of an archive that has no other one in time.
fn with_damage(error: Error, catalog: &Catalog) -> Error {
    match catalog.damaged.last() {
        None => error,
        Some(damaged) => {
            Error::corrupt(format!("{}; {}", damaged.error.message(), error.message()))
        }
    }
}

fn refuse_existing(file: &Path) -> Result<()> {
    for end in ["", "-wal", "-shm", "-journal"] {
        let mut name = file.as_os_str().to_owned();
        name.push(end);
        if Path::new(&name).symlink_metadata().is_ok() {
            return Err(Error::invalid(format!(
                "{} exists already: a restore replaces nothing; name a file that does not exist, or move this one",
                Path::new(&name).display()
            )));
        }
    }
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder.filter(|folder| !folder.is_dir()) {
        Some(folder) => Err(Error::invalid(format!(
            "the folder {} does not exist: create it first",
            folder.display()
        ))),
        None => Ok(()),
    }
}

fn check_base(
    rebuild: &mut Rebuild,
    base: &Found,
    step: &mut dyn FnMut(u64) -> bool,
) -> Result<()> {
    let name = base.snapshot.name;
    let (entries, hash) = content::of_reader(&mut rebuild.reader()?, &mut |_| step(0))?;
    if rebuild.version() != name.version || entries != base.entries || hash != base.content {
        return Err(Error::corrupt(format!(
            "the snapshot {name} does not have the entries that it names: restore an earlier moment"
        )));
    }
    Ok(())
}

/// How far the objects of an archive have led.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reached {
    /// The last commit of the last object.
    pub(super) last: u64,
    /// Whether a later commit than the wanted moment was seen.
    pub(super) ended: bool,
    /// The next object begins behind commits that are in no object, after this one.
    pub(super) gap: Option<u64>,
}

/// Visits the segments after a snapshot up to a moment, cut there. Checks the chain of the objects.
///
/// # Errors
/// `Corrupt` for a damaged or missing object and one of another archive; those of `visit`; `Unavailable` when ended.
pub(super) fn repeat(
    catalog: &Catalog,
    base: &Found,
    objects: &[(SegmentsName, u64)],
    until: Until,
    step: &mut dyn FnMut(u64) -> bool,
    visit: &mut dyn FnMut(LogSegment<'_>) -> Result<()>,
) -> Result<Reached> {
    let mut link = Link::after(base);
    let mut reached = Reached { last: base.snapshot.name.version, ended: false, gap: None };
    std::thread::scope(|scope| {
        let arriving = ahead(scope, &catalog.target, objects, until);
        for ((name, bytes), got) in objects.iter().zip(arriving) {
            if matches!(until, Until::Commit(version) if version <= reached.last) {
                break;
            }
            let (stored, content) = got.map_err(|error| lost(error, reached.last))?;
            match link.check(name, &stored)? {
                Next::Gap(after) => {
                    reached.gap = Some(after);
                    return Ok(reached);
                }
                Next::Follows => {}
            }
            each_segment(&name.to_string(), &content, |segment| {
                let Some(last) = until.within(segment.first, segment.last, segment.at_ms) else {
                    reached.ended = true;
                    return Ok(false);
                };
                if last == segment.last {
                    visit(segment)?;
                } else if let Some((last, changes)) = cut(segment, last)? {
                    visit(LogSegment { last, changes: &changes, ..segment })?;
                    reached.ended = true;
                }
                Ok(!reached.ended)
            })?;
            reached.last = name.last;
            if !step(*bytes) {
                return Err(Error::unavailable("the work was ended before it was done"));
            }
            if reached.ended {
                break;
            }
        }
        Ok(reached)
    })
}

/// Adds what can still be restored to the error of an object.
fn lost(error: Error, last: u64) -> Error {
    if error.kind() != Kind::Corrupt {
        return error;
    }
    let last = shown(last);
    Error::corrupt(format!(
        "{}; the commits up to {last} are sound: restore that one",
        error.message()
    ))
}

type Opened = Result<(Stored, Vec<u8>)>;

/// Reads objects on a thread of its own, a few ahead.
fn ahead<'s, 'e: 's>(
    scope: &'s std::thread::Scope<'s, 'e>,
    target: &'e Target,
    objects: &'e [(SegmentsName, u64)],
    until: Until,
) -> Receiver<Opened> {
    let (send, receive) = sync_channel(AHEAD);
    scope.spawn(move || {
        for (name, _) in objects {
            if matches!(until, Until::Commit(version) if name.first > version) {
                // Its head says whether commits are missing before it.
                drop(send.send(catalog::segments(target, name)));
                return;
            }
            if send.send(catalog::segments(target, name)).is_err() {
                return;
            }
        }
    });
    receive
}

/// Whether an object continues the one before.
enum Next {
    Follows,
    /// Commits after this one are in no object.
    Gap(u64),
}

/// The end of the chain so far.
struct Link<'c> {
    base: &'c Found,
    /// The last commit and the hash of the object before; none before the first one.
    before: Option<(u64, Hash)>,
}

impl<'c> Link<'c> {
    fn after(base: &'c Found) -> Self {
        Self { base, before: None }
    }

    fn check(&mut self, name: &SegmentsName, stored: &Stored) -> Result<Next> {
        let broken = |why: &str| {
            Error::corrupt(format!(
                "the object {name} does not continue the one before it ({why}): an object is missing or was exchanged; \
                 restore a moment before it"
            ))
        };
        let Content::Segments { after, first, last, previous, .. } = &stored.head.content else {
            return Err(broken("it has no segments"));
        };
        if !stored.head.source.is_same_history(&self.base.stored.head.source) {
            return Err(broken("it belongs to another database or copy"));
        }
        if (first.0, last.0) != (name.first, name.last) {
            return Err(broken("it has another name"));
        }
        let version = self.base.snapshot.name.version;
        match self.before {
            // The first one can begin before the snapshot, in the middle of which that was taken.
            None if after.0 <= version => {}
            None => return Ok(Next::Gap(version)),
            Some((_, digest)) if *previous == digest => {}
            Some((last, _)) if after.0 > last => return Ok(Next::Gap(last)),
            Some(_) => return Err(broken("it names another one")),
        }
        self.before = Some((last.0, stored.digest));
        Ok(Next::Follows)
    }
}

/// Refuses a moment that the objects do not lead to.
fn check_reached(catalog: &Catalog, base: &Found, until: Until, reached: &Reached) -> Result<()> {
    let timeline = base.snapshot.name.timeline;
    let is_newest = catalog.timelines().next_back() == Some(timeline);
    let next = catalog.snapshots.iter().find(|found| {
        let name = found.snapshot.name;
        name.timeline == timeline && name.version > reached.last
    });
    let archived = catalog.manifest.archived.filter(|_| is_newest);
    let known = archived.map_or(0, |archived| archived.version.0).max(reached.last);
    let missing = |after: u64| {
        Error::corrupt(format!(
            "commits after {} are in no object of the archive: the log no longer reached back to them when the \
             archiver went on, or an object is missing; name that commit, or one since the next snapshot{}",
            shown(after),
            next.map_or_else(String::new, |next| format!(
                ", {} at {} (ms since the epoch)",
                shown(next.snapshot.name.version),
                next.snapshot.at_ms
            ))
        ))
    };
    let range = |given: String| {
        Error::new(
            Kind::Range,
            format!(
                "at: {given} is after the newest one of the archive, the commit {}{}; name an earlier one, or leave out \
                 --at for the newest",
                shown(known),
                archived.map_or_else(String::new, |archived| format!(
                    ", complete up to {} (ms since the epoch)",
                    archived.complete_ms
                ))
            ),
        )
    };
    match until {
        _ if reached.ended => Ok(()),
        Until::Commit(version) if version <= reached.last => Ok(()),
        _ if reached.gap.is_some() || (next.is_some() && !matches!(until, Until::Newest)) => {
            Err(missing(reached.gap.unwrap_or(reached.last)))
        }
        Until::Newest => Ok(()),
        Until::Commit(version) if version <= known => Ok(()),
        Until::Commit(version) => Err(range(format!("the commit {}", shown(version)))),
        // A later history begins after it.
        Until::Time(_) if !is_newest => Ok(()),
        Until::Time(at_ms) => match archived {
            Some(archived) if at_ms <= archived.complete_ms => Ok(()),
            _ => Err(range(format!("the time {at_ms} (ms since the epoch)"))),
        },
    }
}

/// Refuses a moment that a snapshot which cannot be read may have, and the objects do not.
fn check_hidden(catalog: &Catalog, base: &Found, until: Until, reached: &Reached) -> Result<()> {
    let own = base.snapshot.name.timeline;
    let begun_ms = |timeline: Timeline| {
        let mut entries = catalog.manifest.timelines.iter();
        entries.find(|entry| entry.number == timeline.0).map_or(i64::MIN, |entry| entry.begun_ms)
    };
    let hidden = catalog.damaged.iter().find(|Damaged { name, .. }| match until {
        _ if name.timeline < own => false,
        _ if name.timeline == own && (reached.ended || name.version <= reached.last) => false,
        Until::Newest => true,
        Until::Commit(version) if name.timeline == own => version > reached.last,
        Until::Commit(version) => version >= name.version,
        Until::Time(at_ms) => name.timeline == own || at_ms >= begun_ms(name.timeline),
    });
    let Some(Damaged { error, .. }) = hidden else { return Ok(()) };
    Err(Error::corrupt(format!(
        "{}; the commits up to {} do not need it: restore that one",
        error.message(),
        shown(reached.last)
    )))
}

/// A completed file.
struct Finished {
    version: u64,
    entries: u64,
    content: Hash,
}

fn finish(
    mut rebuild: Rebuild,
    path: &Path,
    range: Option<&KeyRange>,
    recorded: Option<&Found>,
    step: &mut dyn FnMut(u64) -> bool,
) -> Result<Finished> {
    let version = rebuild.version();
    let (entries, content) = content::of_reader(&mut rebuild.reader()?, &mut |_| step(0))?;
    if recorded.is_some_and(|found| found.content != content) {
        return Err(Error::corrupt(format!(
            "the restored entries are not those that the archive has recorded for the commit {}: an object was \
             exchanged; restore another moment",
            shown(version)
        )));
    }
    let expected = match range {
        None => Some((entries, content)),
        Some(range) => {
            rebuild.keep_only(range)?;
            None
        }
    };
    rebuild.finish(range.is_some())?;
    verify(path)?;
    let engine = SqliteEngine::open(path, false, std::time::Duration::ZERO)?;
    let (entries, content) = content::of_reader(&mut engine.reader()?, &mut |_| step(0))?;
    if expected.is_some_and(|expected| expected != (entries, content)) {
        return Err(Error::corrupt(
            "the restored file lost entries when it was closed: check the disk",
        ));
    }
    Ok(Finished { version, entries, content })
}
