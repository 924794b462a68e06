//! The objects of a database in an object store, by their names.
//!
//! ```text
//! openkv.json                       the format and the id of the database
//! lease.json                        its leader
//! log/<number>                      fences and batches
//! merged/<first>-<last>-<digest>    copies of objects of the log, for readers that are far behind
//! snapshots/<version>-<number>      copies of the whole database
//! ```

use std::fs::File;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::objects::{Created, READS, Target, Version};
use openkv_core::chain::{Digest, Entry, Mark, Merged, decode, unmerge};
use openkv_core::model::{
    BUCKET_FOLLOW_BYTES, BUCKET_READS_AT_ONCE, BUCKET_RETRY_MS, Error, Kind, Result,
};

pub(super) const IDENTITY: &str = "openkv.json";
pub(super) const LEASE: &str = "lease.json";
/// Excludes other processes while the lease in a folder is replaced.
const FOLDER_LOCK: &str = "lease.lock";
const LOG: &str = "log";
const MERGED: &str = "merged";
const SNAPSHOTS: &str = "snapshots";
/// The manifest of an archive.
const ARCHIVE: &str = "openkv-archive.json";
const FORMAT: u32 = 1;

/// The content of `openkv.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    openkv: u32,
    /// 32 hexadecimal digits.
    pub(super) database: String,
}

/// The content of `lease.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Lease {
    /// A random number of the holder.
    pub(super) id: String,
    /// The holder in messages.
    pub(super) name: String,
    /// Counts the renewals.
    pub(super) beat: u64,
    /// Whether the holder has given it up.
    pub(super) released: bool,
    /// The URL of the holder for clients, if it is a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) url: Option<String>,
}

/// A lease as it was read.
#[derive(Clone, Debug)]
pub(super) struct FoundLease {
    pub(super) lease: Lease,
    pub(super) version: Version,
}

/// An object of the log.
pub(super) struct Object {
    pub(super) entry: Entry,
    pub(super) digest: Digest,
    pub(super) content: Vec<u8>,
    pub(super) bytes: u64,
}

/// An object of the log in a listing.
pub(super) struct Listed {
    pub(super) number: u64,
    pub(super) bytes: u64,
}

/// The objects of one database.
pub(super) struct Objects {
    pub(super) target: Target,
}

impl Objects {
    /// The identity of the database. If there is none, it gets this id, unless it is `None`.
    ///
    /// # Errors
    /// `Invalid` for a place with other objects; `Unavailable` if there is no database; `Unsupported` for a newer
    /// format and for a store that creates objects twice.
    pub(super) fn identify(&self, fresh: Option<String>) -> Result<Identity> {
        if let Some(found) = self.identity()? {
            return Ok(found);
        }
        let name = self.target.name();
        let Some(database) = fresh else {
            return Err(Error::unavailable(format!(
                "{name}: there is no database here; open it with lead: \"auto\" to create one"
            )));
        };
        if let Some(other) = self.target.any_but(FOLDER_LOCK)? {
            let is_archive = self.target.find(ARCHIVE)?.is_some();
            let what = if is_archive { "an archive of openkv" } else { "other objects" };
            return Err(Error::invalid(format!(
                "{name} has {what} in it (for example {other}): name an empty path; nothing was changed"
            )));
        }
        let identity = Identity { openkv: FORMAT, database };
        self.target.create(IDENTITY, json(&identity)?)?;
        // If another process was faster, its identity counts.
        let found = self.identity()?;
        found.ok_or_else(|| {
            Error::unavailable(format!("{name}: a new object cannot be read; try again"))
        })
    }

    fn identity(&self) -> Result<Option<Identity>> {
        let Some(bytes) = self.target.find(IDENTITY)? else { return Ok(None) };
        let name = self.target.name();
        let corrupt =
            || Error::corrupt(format!("{name}/{IDENTITY} is damaged, or of another program"));
        let identity: Identity = serde_json::from_slice(&bytes).map_err(|_| corrupt())?;
        if identity.openkv > FORMAT {
            return Err(Error::unsupported(format!(
                "{name}: the database has the format {}, and this version of openkv knows {FORMAT} at most: \
                 update openkv",
                identity.openkv
            )));
        }
        if identity.database.len() != 32
            || !identity.database.bytes().all(|b| b.is_ascii_hexdigit())
        {
            return Err(corrupt());
        }
        Ok(Some(identity))
    }

    /// Checks that the store refuses to create an object that is there.
    ///
    /// # Errors
    /// `Unsupported` if it does not.
    pub(super) fn probe(&self, identity: &Identity) -> Result<()> {
        match self.target.create(IDENTITY, json(identity)?)? {
            Created::Exists => Ok(()),
            Created::New => Err(unconditional(&self.target)),
        }
    }

    /// The lease; `None` before the first one.
    pub(super) fn lease(&self) -> Result<Option<FoundLease>> {
        lease_at(&self.target, LEASE)
    }

    /// Replaces the lease if it is still `before`. `None` if it is not.
    pub(super) fn replace_lease(
        &self,
        before: Option<&FoundLease>,
        lease: &Lease,
    ) -> Result<Option<FoundLease>> {
        let _locked = folder_lock(&self.target, FOLDER_LOCK)?;
        if self.target.as_folder().is_some() {
            let found = self.lease()?.map(|found| found.lease);
            if found.as_ref() != before.map(|before| &before.lease) {
                return Ok(None);
            }
        }
        let replaced =
            self.target.replace(LEASE, json(lease)?, before.map(|before| &before.version));
        match replaced {
            Ok(Some(version)) => Ok(Some(FoundLease { lease: lease.clone(), version })),
            // Also a request that was repeated after its answer was lost.
            Ok(None) => Ok(self.lease()?.filter(|found| found.lease == *lease)),
            // A process that closes need not know.
            Err(error) if self.target.is_ending() => Err(error),
            Err(error) if error.kind() == Kind::Unavailable => match self.lease()? {
                Some(found) if found.lease == *lease => Ok(Some(found)),
                _ => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    /// Whether the store itself refuses a replacement; in a folder a lock does it.
    pub(super) fn replaces_by_version(&self) -> bool {
        self.target.as_folder().is_none()
    }

    /// Checks that the store refuses to replace what is not there any more.
    ///
    /// # Errors
    /// `Unsupported` if it does not.
    pub(super) fn probe_lease(&self, stale: &FoundLease, lease: &Lease) -> Result<()> {
        if !self.replaces_by_version() {
            return Ok(());
        }
        match self.target.replace(LEASE, json(lease)?, Some(&stale.version))? {
            None => Ok(()),
            Some(_) => Err(unconditional(&self.target)),
        }
    }

    /// Creates an object of the log, as often as it takes until one with this number exists, and returns that.
    ///
    /// # Errors
    /// Errors of the store: it is open then whether the object exists.
    pub(super) fn fill(&self, number: u64, bytes: &[u8]) -> Result<Object> {
        loop {
            self.target.create(&log_name(number), bytes.to_vec())?;
            // Also an own creation whose answer was lost.
            if let Some(found) = self.object(number)? {
                return Ok(found);
            }
            std::thread::sleep(Duration::from_millis(BUCKET_RETRY_MS));
        }
    }

    /// Creates an object of the log, by one request.
    ///
    /// # Errors
    /// As [`Objects::fill`].
    pub(super) fn create(&self, number: u64, bytes: &[u8]) -> Result<Created> {
        self.target.create(&log_name(number), bytes.to_vec())
    }

    /// An object of the log.
    pub(super) fn object(&self, number: u64) -> Result<Option<Object>> {
        Ok(self.objects(number, 1)?.pop())
    }

    /// The objects of the log from a number on, at most `count`, up to the first that is not there.
    pub(super) fn objects(&self, first: u64, count: usize) -> Result<Vec<Object>> {
        let names: Vec<_> = (first..).take(count).map(log_name).collect();
        let mut objects = Vec::new();
        for (at, found) in self.target.find_all(&names)?.into_iter().enumerate() {
            let Some(bytes) = found else { break };
            let number = first + at as u64;
            objects.push(match read(number, &bytes) {
                Ok(object) => object,
                Err(_) => self.read_again(number)?,
            });
        }
        Ok(objects)
    }

    /// An object whose content has arrived damaged.
    fn read_again(&self, number: u64) -> Result<Object> {
        let name = log_name(number);
        let mut outcome = Err(Error::unavailable(format!("{name} has vanished; try again")));
        for _ in 1..READS {
            if let Some(bytes) = self.target.find(&name)? {
                outcome = read(number, &bytes);
            }
            if outcome.is_ok() {
                break;
            }
        }
        outcome.map_err(|error| {
            Error::new(error.kind(), format!("{}/{name}: {}", self.target.name(), error.message()))
        })
    }

    /// The bytes of objects of the log from a number on, at most `count`, up to the first that is not there.
    pub(super) fn bytes(&self, first: u64, count: usize) -> Result<Vec<Bytes>> {
        let names: Vec<_> = (first..).take(count).map(log_name).collect();
        Ok(self.target.find_all(&names)?.into_iter().map_while(|found| found).collect())
    }

    /// The merged objects, with their bytes.
    pub(super) fn merged(&self) -> Result<Vec<(Merged, u64)>> {
        let listed = self.target.list(MERGED)?;
        let named = |(name, bytes): &(String, u64)| Some((merged_of(name)?, *bytes));
        Ok(listed.iter().filter_map(named).collect())
    }

    /// Creates a merged object.
    pub(super) fn merge(&self, merged: &Merged, bytes: Vec<u8>) -> Result<()> {
        // One that exists has the same objects.
        self.target.create(&merged_name(merged), bytes).map(drop)
    }

    /// The bytes of merged objects, up to the first that is not there, or is damaged.
    pub(super) fn merged_bytes(&self, all: &[(Merged, u64)]) -> Result<Vec<Bytes>> {
        let names: Vec<_> = all.iter().map(|(merged, _)| merged_name(merged)).collect();
        let mut whole = Vec::new();
        for (found, (merged, _)) in self.target.find_all(&names)?.into_iter().zip(all) {
            let Some(mut bytes) = found else { break };
            for _ in 1..READS {
                if unmerge(merged, &bytes).is_err()
                    && let Some(again) = self.target.find(&merged_name(merged))?
                {
                    bytes = again;
                }
            }
            if let Err(error) = unmerge(merged, &bytes) {
                let name = merged_name(merged);
                tracing::warn!(%error, name, "a merged object is damaged; the log is read instead");
                break;
            }
            whole.push(bytes);
        }
        Ok(whole)
    }

    /// The objects from a number on in merged objects that lead on from it, up to the first merged object that cannot
    /// be read.
    pub(super) fn unmerged(&self, next: u64, all: &[(Merged, u64)]) -> Result<Vec<Object>> {
        let damaged = |error| Error::internal(format!("a merged object was not checked: {error}"));
        let mut objects: Vec<Object> = Vec::new();
        for (bytes, (merged, _)) in self.merged_bytes(all)?.iter().zip(all) {
            let next = objects.last().map_or(next, |last| last.entry.number + 1);
            let numbered = unmerge(merged, bytes).map_err(damaged)?.into_iter().zip(merged.first..);
            for (bytes, number) in numbered.filter(|(_, number)| *number >= next) {
                objects.push(read(number, bytes)?);
            }
        }
        Ok(objects)
    }

    /// Removes merged objects.
    pub(super) fn remove_merged(&self, all: &[(Merged, u64)]) -> Result<()> {
        let names: Vec<_> = all.iter().map(|(merged, _)| merged_name(merged)).collect();
        self.target.remove_at_once(&names, || true)
    }

    /// The snapshots, the oldest first.
    pub(super) fn snapshots(&self) -> Result<Vec<Mark>> {
        Ok(self.snapshots_with_bytes()?.into_iter().map(|(mark, _)| mark).collect())
    }

    /// As [`Objects::snapshots`], with their bytes.
    pub(super) fn snapshots_with_bytes(&self) -> Result<Vec<(Mark, u64)>> {
        let listed = self.target.list(SNAPSHOTS)?;
        let marked = |(name, bytes): &(String, u64)| Some((mark_of(name)?, *bytes));
        let mut marks: Vec<_> = listed.iter().filter_map(marked).collect();
        marks.sort_unstable();
        Ok(marks)
    }

    /// The objects of the log that are there, in order.
    pub(super) fn log(&self) -> Result<Vec<Listed>> {
        let listed = self.target.list(LOG)?;
        let numbered = |(name, bytes): &(String, u64)| {
            Some(Listed { number: number_of(name)?, bytes: *bytes })
        };
        let mut log: Vec<_> = listed.iter().filter_map(numbered).collect();
        log.sort_unstable_by_key(|listed| listed.number);
        Ok(log)
    }

    /// Deletes objects of the log up to `last`, their merged copies, and snapshots. It ends before all are deleted when
    /// `goes_on` says so.
    pub(super) fn delete(
        &self,
        last: Option<u64>,
        snapshots: &[Mark],
        goes_on: impl Fn() -> bool + Clone + Send + 'static,
    ) -> Result<()> {
        if let Some(last) = last {
            let most = log_name(last);
            let listed = self.target.list(LOG)?.into_iter().map(|(name, _)| name);
            let old: Vec<_> =
                listed.filter(|name| *name <= most && number_of(name).is_some()).collect();
            self.target.remove_at_once(&old, goes_on.clone())?;
            if !goes_on() {
                return Ok(());
            }
            let mut copies = self.merged()?;
            copies.retain(|(merged, _)| merged.last <= last);
            self.remove_merged(&copies)?;
        }
        let names: Vec<_> = snapshots.iter().map(|mark| snapshot_name(*mark)).collect();
        self.target.remove_at_once(&names, goes_on)
    }
}

/// How many objects the next look asks for, after one for `count`, so that they weigh little more together than one
/// transaction repeats.
pub(super) fn next_count(count: usize, largest: u64) -> usize {
    let most = usize::try_from(largest.max(1)).map_or(1, |bytes| BUCKET_FOLLOW_BYTES / bytes);
    (count * 2).min(BUCKET_READS_AT_ONCE).min(most).max(1)
}

/// The error of a store that a probe has found to be without conditional writes.
pub(super) fn unconditional(target: &Target) -> Error {
    Error::unsupported(format!(
        "{}: the object store ignores the conditions of requests (If-None-Match, If-Match), so two processes \
         could overwrite each other: use a store that has conditional writes",
        target.name()
    ))
}

/// The lease in an object; `None` if it is not there.
pub(super) fn lease_at(target: &Target, name: &str) -> Result<Option<FoundLease>> {
    let Some((bytes, version)) = target.versioned(name)? else { return Ok(None) };
    let lease = serde_json::from_slice(&bytes).map_err(|_| {
        let place = target.name();
        Error::corrupt(format!("{place}/{name} is damaged, or of another program"))
    })?;
    Ok(Some(FoundLease { lease, version }))
}

/// Excludes other processes while an object in a folder is replaced; `None` for a store that is no folder.
pub(super) fn folder_lock(target: &Target, name: &str) -> Result<Option<File>> {
    let Some(folder) = target.as_folder() else { return Ok(None) };
    let path = folder.join(name);
    let locked = File::options().write(true).create(true).truncate(false).open(&path);
    let locked = locked.and_then(|file| file.lock().map(|()| file));
    let named = |error: std::io::Error| {
        let kind = match error.kind() {
            std::io::ErrorKind::PermissionDenied => Kind::Denied,
            _ => Kind::Unavailable,
        };
        Error::new(kind, format!("{}: {error}", path.display()))
    };
    locked.map(Some).map_err(named)
}

fn read(number: u64, bytes: &[u8]) -> Result<Object> {
    let damaged = |why: String| Error::corrupt(format!("the object is damaged: {why}"));
    let (entry, content, digest) = decode(bytes).map_err(|error| damaged(error.to_string()))?;
    if entry.number != number {
        return Err(damaged(format!("it says that its number is {}", entry.number)));
    }
    Ok(Object { entry, digest, content: content.to_vec(), bytes: bytes.len() as u64 })
}

fn log_name(number: u64) -> String {
    format!("{LOG}/{number:016x}")
}

fn number_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("log/").filter(|digits| digits.len() == 16)?;
    u64::from_str_radix(digits, 16).ok()
}

pub(super) fn merged_name(Merged { first, last, digest }: &Merged) -> String {
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{MERGED}/{first:016x}-{last:016x}-{digest}")
}

fn merged_of(name: &str) -> Option<Merged> {
    let mut parts = name.strip_prefix("merged/")?.splitn(3, '-');
    let (first, last, hex) = (parts.next()?, parts.next()?, parts.next()?);
    let number = |digits: &str| u64::from_str_radix(digits, 16).ok().filter(|_| digits.len() == 16);
    let (first, last) = (number(first)?, number(last)?);
    let mut digest = Digest::default();
    for (at, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    let is_whole = hex.len() == 2 * digest.len() && first <= last && last < u64::MAX;
    is_whole.then_some(Merged { first, last, digest })
}

pub(super) fn snapshot_name(Mark { version, number }: Mark) -> String {
    format!("{SNAPSHOTS}/{version:016x}-{number:016x}")
}

fn mark_of(name: &str) -> Option<Mark> {
    let (version, number) = name.strip_prefix("snapshots/")?.split_once('-')?;
    let hex = |digits: &str| u64::from_str_radix(digits, 16).ok().filter(|_| digits.len() == 16);
    Some(Mark { version: hex(version)?, number: hex(number)? })
}

fn json(value: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|error| Error::internal(error.to_string()))
}
