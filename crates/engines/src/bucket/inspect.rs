//! What the objects of a database say about it, without opening it.
//!
//! Never: a write, or a place in the lead.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use super::cache::Cache;
use super::location::{self, Location};
use super::objects::{Identity, Listed, Object, Objects, merged_name};
use crate::{GoesOn, Maintenance as _};
use openkv_core::chain::{Digest, Mark, Merged, Position, Standing, cover};
use openkv_core::model::{
    BUCKET_FINDINGS_MAX, BUCKET_FOLLOW_BYTES, BUCKET_READS_AT_ONCE, Error, Kind, Result,
    Versionstamp,
};

/// The state of a database in an object store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BucketStatus {
    /// The id of the database.
    pub database: String,
    /// The name of the process that has led it last; `None` before the first one.
    pub leader: Option<String>,
    /// Whether that process has given the lead up. A process that has died has not.
    pub released: bool,
    /// How often the leader has renewed its lease; it leads while this changes.
    pub beat: u64,
    /// The last commit that the newest snapshot contains.
    pub snapshot: Option<String>,
    /// The bytes of the newest snapshot.
    pub snapshot_bytes: u64,
    /// Snapshots.
    pub snapshots: usize,
    /// Objects of the log.
    pub log_objects: usize,
    /// Their bytes.
    pub log_bytes: u64,
    /// Merged objects, which have copies of objects of the log.
    pub merged_objects: usize,
    /// Their bytes.
    pub merged_bytes: u64,
    /// Objects that an opening without a cache reads: the newest snapshot, the merged objects behind it, and the log behind
    /// these.
    pub opening_objects: usize,
    /// Their bytes.
    pub opening_bytes: u64,
}

/// The result of reading all objects of a database.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BucketVerified {
    /// Snapshots that were read.
    pub snapshots: usize,
    /// Objects of the log that were read.
    pub log_objects: usize,
    /// Those among them that count for nothing, such as late writes of a former leader.
    pub void_objects: usize,
    /// Merged objects that were read.
    pub merged_objects: usize,
    /// The last commit.
    pub versionstamp: String,
    /// What is wrong.
    pub findings: Vec<String>,
}

/// What [`status`] and [`verify`] have found of a database.
struct Found {
    objects: Objects,
    identity: Identity,
    /// The oldest first, with their bytes.
    snapshots: Vec<(Mark, u64)>,
    merged: Vec<(Merged, u64)>,
    log: Vec<Listed>,
}

impl Found {
    fn of(objects: Objects) -> Result<Self> {
        let identity = objects.identify(None)?;
        // What is created or deleted meanwhile is newer, or known to be contained in a snapshot.
        let (snapshots, merged) = (objects.snapshots_with_bytes()?, objects.merged()?);
        let log = objects.log()?;
        Ok(Self { objects, identity, snapshots, merged, log })
    }
}

/// Reads the state of a database, by three listings and two objects.
///
/// # Errors
/// Errors of the store; `Unavailable` if there is no database.
pub fn status(url: &str) -> Result<BucketStatus> {
    status_of(at(url)?)
}

fn at(url: &str) -> Result<Objects> {
    location::open(url, false).map(|Location { target, .. }| Objects { target })
}

pub(super) fn status_of(objects: Objects) -> Result<BucketStatus> {
    let Found { objects, identity, snapshots, merged, log } = Found::of(objects)?;
    let lease = objects.lease()?.map(|found| found.lease);
    let newest = snapshots.last();
    let next = newest.map_or(0, |(mark, _)| mark.number + 1);
    let copies = cover(next, &merged);
    let next = copies.last().map_or(next, |(merged, _)| merged.last + 1);
    let rest = log.iter().filter(|listed| listed.number >= next).map(|listed| listed.bytes);
    let bytes: Vec<_> = copies.iter().map(|(_, bytes)| *bytes).chain(rest).collect();
    let snapshot_bytes = newest.map_or(0, |(_, bytes)| *bytes);
    Ok(BucketStatus {
        database: identity.database,
        released: lease.as_ref().is_some_and(|lease| lease.released),
        beat: lease.as_ref().map_or(0, |lease| lease.beat),
        leader: lease.map(|lease| lease.name),
        snapshot: newest.map(|(mark, _)| hex(mark.version)),
        snapshot_bytes,
        snapshots: snapshots.len(),
        log_objects: log.len(),
        log_bytes: log.iter().map(|listed| listed.bytes).sum(),
        merged_objects: merged.len(),
        merged_bytes: merged.iter().map(|(_, bytes)| bytes).sum(),
        opening_objects: bytes.len() + usize::from(newest.is_some()),
        opening_bytes: bytes.iter().sum::<u64>() + snapshot_bytes,
    })
}

/// Reads all snapshots and the log: whether each hash fits, the chain leads from object to object and through the
/// snapshots, and the newest snapshot has no damage.
///
/// # Errors
/// Errors of the store and the disk; `Unavailable` also if objects were deleted meanwhile.
pub fn verify(url: &str) -> Result<BucketVerified> {
    verify_of(at(url)?)
}

pub(super) fn verify_of(objects: Objects) -> Result<BucketVerified> {
    let found = Found::of(objects)?;
    let scratch = Cache::take(None, &super::random()?)?;
    let mut verified = BucketVerified::default();
    let places = found.read_snapshots(&scratch, &mut verified)?;
    let digests = found.walk(&places, &mut verified)?;
    found.compare_merged(&digests, &mut verified)?;
    verified.findings.truncate(BUCKET_FINDINGS_MAX);
    Ok(verified)
}

impl Found {
    /// The places of the snapshots that can be read.
    fn read_snapshots(
        &self,
        scratch: &Cache,
        verified: &mut BucketVerified,
    ) -> Result<Vec<Position>> {
        let database = super::bytes_of(&self.identity.database)?;
        let mut places = Vec::new();
        for (mark, _) in &self.snapshots {
            verified.snapshots += 1;
            match scratch.restore(&self.objects, &database, *mark) {
                Ok((engine, (position, _))) => {
                    places.push(position);
                    if self.snapshots.last().is_some_and(|(newest, _)| newest == mark) {
                        let goes_on: GoesOn = Arc::new(|| true);
                        let damage = engine.check(BUCKET_FINDINGS_MAX, &goes_on)?;
                        verified.findings.extend(damage);
                    }
                }
                Err(error) if error.kind() == Kind::Corrupt => {
                    verified.findings.push(error.message().to_owned());
                }
                Err(error) => return Err(error),
            }
            scratch.remove()?;
        }
        Ok(places)
    }

    /// Walks the chain from its beginning, or from the first snapshot that the log leads on from.
    /// The digests of the objects that it has read.
    fn walk(
        &self,
        snapshots: &[Position],
        verified: &mut BucketVerified,
    ) -> Result<BTreeMap<u64, Digest>> {
        let mut digests = BTreeMap::new();
        let first = self.log.first().map_or(u64::MAX, |listed| listed.number);
        let start = Position::default();
        let leads_on = |position: &&Position| position.next >= first;
        let newest = snapshots.last().copied();
        let mut position = match () {
            () if first == start.next => start,
            () => match snapshots.iter().find(leads_on).copied().or(newest) {
                Some(position) => position,
                None if self.log.is_empty() && self.snapshots.is_empty() => start,
                None => {
                    verified.findings.push("the log has lost its beginning".to_owned());
                    return Ok(digests);
                }
            },
        };
        verified.versionstamp = hex(position.version);
        let from = position.next;
        let mut left = self.log.iter().filter(|listed| listed.number >= from).peekable();
        while left.peek().is_some() {
            let mut bytes = 0;
            let count = left.clone().take(BUCKET_READS_AT_ONCE).take_while(|listed| {
                bytes += listed.bytes;
                bytes <= BUCKET_FOLLOW_BYTES as u64
            });
            let count = count.count().max(1);
            let objects = match self.objects.objects(position.next, count) {
                Err(error) if error.kind() == Kind::Corrupt => {
                    verified.findings.push(error.message().to_owned());
                    return Ok(digests);
                }
                read => read?,
            };
            if objects.is_empty() {
                // What a snapshot contains may be deleted.
                if let Some(place) = snapshots.iter().find(|place| place.next > position.next) {
                    position = *place;
                    verified.versionstamp = hex(position.version);
                    while left.next_if(|listed| listed.number < position.next).is_some() {}
                    continue;
                }
                self.refuse_if_deleted(position.next)?;
                verified.findings.push(format!("the log has no object {}", position.next));
                return Ok(digests);
            }
            for Object { entry, digest, .. } in objects {
                verified.log_objects += 1;
                digests.insert(entry.number, digest);
                let standing = position.take(&entry, digest);
                verified.versionstamp = hex(position.version);
                verified.void_objects += usize::from(standing == Standing::Void);
                let of_snapshot = snapshots.iter().find(|place| place.next == position.next);
                if of_snapshot.is_some_and(|place| *place != position) {
                    let what = "the snapshot of the log up to";
                    let number = entry.number;
                    verified.findings.push(format!("{what} {number} is not what the log leads to"));
                }
                left.next_if(|listed| listed.number <= entry.number);
            }
        }
        Ok(digests)
    }

    /// Compares the merged objects with the objects of the log that were read.
    fn compare_merged(
        &self,
        log: &BTreeMap<u64, Digest>,
        verified: &mut BucketVerified,
    ) -> Result<()> {
        for one in &self.merged {
            let name = merged_name(&one.0);
            let objects = self.objects.unmerged(one.0.first, std::slice::from_ref(one))?;
            if objects.is_empty() && self.objects.target.find(&name)?.is_some() {
                verified.findings.push(format!("{name} is damaged"));
            }
            verified.merged_objects += usize::from(!objects.is_empty());
            let differs = |object: &&Object| {
                log.get(&object.entry.number).is_some_and(|digest| *digest != object.digest)
            };
            if let Some(Object { entry, .. }) = objects.iter().find(differs) {
                let number = entry.number;
                verified.findings.push(format!("{name} is not what the log has at {number}"));
            }
        }
        Ok(())
    }

    /// A leader has deleted what a new snapshot contains.
    fn refuse_if_deleted(&self, number: u64) -> Result<()> {
        match self.objects.snapshots()?.last() {
            Some(mark) if mark.number >= number && !self.knows(*mark) => {
                Err(Error::unavailable("the log was shortened while it was read; try again"))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn knows(&self, mark: Mark) -> bool {
        self.snapshots.iter().any(|(known, _)| *known == mark)
    }
}

fn hex(version: u64) -> String {
    Versionstamp::new(version).to_string()
}
