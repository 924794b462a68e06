//! The hash of the entries of a database, which is the same for every file and every memory with the same
//! entries.
//!
//! SHA-256 over the entries in the order of their keys: the length of the key (u32), the key, the versionstamp's
//! counter (u64), the encoding (u8), the SHA-256 of the value, and the expiry (i64; -1 for none). Numbers are
//! little-endian. An expired entry counts until it is removed.

use sha2::{Digest, Sha256};

use super::object::Hash;
use openkv_core::codec::change_log;
use openkv_core::model::{
    BEFORE_EXPIRY_MS, ChangeKind, Encoding, Error, LogSegment, Result, Step, Walk,
};
use openkv_engines::Reader;

/// Greater than every key.
const BEHIND_ALL_KEYS: [u8; 1] = [0xff];

/// An entry without its key and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Facts {
    version: u64,
    encoding: Encoding,
    value: Hash,
    expire_at_ms: Option<i64>,
}

/// The hash of the entries so far.
#[derive(Default)]
struct ContentHash {
    hash: Sha256,
    entries: u64,
}

impl ContentHash {
    fn add(&mut self, key: &[u8], facts: &Facts) {
        let len = u32::try_from(key.len()).unwrap_or(u32::MAX);
        self.hash.update(len.to_le_bytes());
        self.hash.update(key);
        self.hash.update(facts.version.to_le_bytes());
        self.hash.update([facts.encoding.id()]);
        self.hash.update(facts.value.0);
        self.hash.update(facts.expire_at_ms.unwrap_or(-1).to_le_bytes());
        self.entries += 1;
    }

    fn finish(self) -> (u64, Hash) {
        (self.entries, Hash(self.hash.finalize().into()))
    }
}

/// The number and the hash of the entries of a database. `goes_on` ends it.
///
/// # Errors
/// Those of the reader; `Unavailable` when ended.
pub(super) fn of_reader(
    reader: &mut dyn Reader,
    goes_on: &mut dyn FnMut(u64) -> bool,
) -> Result<(u64, Hash)> {
    let mut hash = ContentHash::default();
    each_entry(reader, &mut |key, facts| {
        hash.add(key, facts);
        goes_on(hash.entries)
    })?;
    Ok(hash.finish())
}

fn each_entry(reader: &mut dyn Reader, visit: &mut dyn FnMut(&[u8], &Facts) -> bool) -> Result<()> {
    let mut ended = false;
    reader.read(BEFORE_EXPIRY_MS, &mut |snapshot| {
        let walk = Walk { start: &[], end: &BEHIND_ALL_KEYS, reverse: false, values: true };
        snapshot.walk(walk, &mut |seen| {
            let facts = Facts {
                version: seen.row.stamp.version(),
                encoding: seen.row.encoding,
                value: Hash::of(seen.row.value),
                expire_at_ms: seen.expire_at_ms,
            };
            ended = !visit(seen.row.key, &facts);
            if ended { Step::Stop } else { Step::Next }
        })
    })?;
    reader.release();
    if ended { Err(Error::unavailable("ended before it was done")) } else { Ok(()) }
}

/// The entries of a database in memory, each with the hash of its value instead of the value: a second
/// implementation of the replay of the log, which a verification compares with snapshots.
#[derive(Default)]
pub(super) struct Model {
    entries: std::collections::BTreeMap<Box<[u8]>, Facts>,
    version: u64,
}

impl Model {
    /// The entries of a database with this last commit.
    ///
    /// # Errors
    /// Those of the reader; `Unavailable` when ended.
    pub(super) fn load(
        reader: &mut dyn Reader,
        version: u64,
        goes_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Self> {
        let mut model = Self { version, ..Self::default() };
        each_entry(reader, &mut |key, facts| {
            model.entries.insert(key.into(), *facts);
            goes_on(model.entries.len() as u64)
        })?;
        Ok(model)
    }

    /// The last commit.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// Repeats the changes of a segment, up to a commit.
    ///
    /// # Errors
    /// `Corrupt` for a damaged segment, and for a change of an entry that is not there.
    pub(super) fn replay(&mut self, segment: LogSegment<'_>, until: u64) -> Result<()> {
        let (from, mut fault) = (self.version, None);
        let decoded = change_log::decode(segment.first, segment.changes, |change| {
            if change.version <= from || change.version > until {
                return true;
            }
            let (key, version) = (change.key, change.version);
            match change.kind {
                ChangeKind::Set { value: (encoding, bytes), expire_at_ms } => {
                    let value = Hash::of(bytes);
                    let facts = Facts { version, encoding, value, expire_at_ms };
                    self.entries.insert(key.into(), facts);
                }
                ChangeKind::Deleted | ChangeKind::Expired => {
                    self.entries.remove(key);
                }
                ChangeKind::ExpirySet { expire_at_ms } => match self.entries.get_mut(key) {
                    Some(facts) => facts.expire_at_ms = expire_at_ms,
                    None => fault = Some("it changes the expiry of an entry that is not there"),
                },
            }
            fault.is_none()
        });
        let damaged = |why: &str| {
            Error::corrupt(format!("the segment {} of the archive is damaged: {why}", segment.last))
        };
        decoded.map_err(|error| damaged(&error.to_string()))?;
        if let Some(fault) = fault {
            return Err(damaged(fault));
        }
        self.version = self.version.max(segment.last.min(until));
        Ok(())
    }

    /// The number and the hash of the entries.
    pub(super) fn hash(&self) -> (u64, Hash) {
        let mut hash = ContentHash::default();
        self.entries.iter().for_each(|(key, facts)| hash.add(key, facts));
        hash.finish()
    }
}
