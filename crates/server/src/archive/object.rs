//! The bytes of an object: a head, which names its content, and the content, compressed by zstd.
//!
//! ```text
//! "openkv archive 1\n"   17 bytes
//! head length            u32 little-endian
//! head                   JSON
//! content                zstd
//! ```
//!
//! The content of an object with segments has each segment of the log as: first, last, time (8 bytes each,
//! little-endian), the length of its changes (u32 little-endian), the changes (docs/format.md §6). The
//! content of a snapshot is a database file.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use openkv_core::codec::change_log;
use openkv_core::model::{
    ARCHIVE_HEAD_BYTES_MAX, ARCHIVE_SEGMENTS_BYTES_MAX, Change, Error, LogSegment, Origin, Result,
    Versionstamp,
};

/// The form of objects and manifests that this version writes. Form 2 can have values that are packed
/// (docs/format.md), which versions that know form 1 cannot read.
pub(super) const FORM: u32 = 2;

/// The oldest form that it reads.
const FORM_OLDEST: u32 = 1;

/// Refuses an object or manifest of a form that this version does not know.
///
/// # Errors
/// `Unsupported`, with what to do; `what` is named in it.
pub(super) fn check_form(what: &str, form: u32) -> Result<()> {
    if (FORM_OLDEST..=FORM).contains(&form) {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "{what} has form {form}, and this openkv knows the forms {FORM_OLDEST} to {FORM}: update openkv"
    )))
}

const MAGIC: &[u8] = b"openkv archive 1\n";

/// Bytes before the head.
const BEFORE_HEAD: usize = MAGIC.len() + 4;

/// Bytes of the first read of an object, which has its whole head.
pub(super) const FIRST_READ_BYTES: u64 = (BEFORE_HEAD + ARCHIVE_HEAD_BYTES_MAX) as u64;

/// A level of zstd that is faster than most networks.
pub(super) const ZSTD_LEVEL: i32 = 3;

/// A SHA-256.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) struct Hash(pub(super) [u8; 32]);

impl Hash {
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

impl std::fmt::Display for Hash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl From<Hash> for String {
    fn from(hash: Hash) -> Self {
        hash.to_string()
    }
}

impl TryFrom<String> for Hash {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        bytes_of(&text).map(Self).ok_or("64 hexadecimal digits are expected")
    }
}

/// The bytes of hexadecimal text of exactly this length.
pub(super) fn bytes_of<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if text.len() != N * 2 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(at * 2..at * 2 + 2)?, 16).ok()?;
    }
    Some(bytes)
}

/// A commit in JSON: its versionstamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) struct Commit(pub(super) u64);

impl From<Commit> for String {
    fn from(commit: Commit) -> Self {
        Versionstamp::new(commit.0).to_string()
    }
}

impl TryFrom<String> for Commit {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let stamp = Versionstamp::parse(text.as_bytes()).ok_or("a versionstamp is expected")?;
        Ok(Self(stamp.version()))
    }
}

/// Which history of which database an object belongs to, and who wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Source {
    /// The name of the database, in hexadecimal.
    pub(super) database: String,
    /// The copy of the database, in hexadecimal.
    pub(super) incarnation: String,
    pub(super) timeline: u32,
    /// The ownership of the archive under which it was written.
    pub(super) epoch: u32,
}

impl Source {
    pub(super) fn new(origin: Origin, timeline: u32, epoch: u32) -> Self {
        let database = origin.database.iter().map(|byte| format!("{byte:02x}")).collect();
        let incarnation = format!("{:016x}", origin.incarnation);
        Self { database, incarnation, timeline, epoch }
    }

    /// Whether both are of one history.
    pub(super) fn is_same_history(&self, other: &Self) -> bool {
        (&self.database, &self.incarnation, self.timeline)
            == (&other.database, &other.incarnation, other.timeline)
    }
}

/// The kind of content of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(super) enum Content {
    /// Segments of the log.
    Segments {
        /// Every commit after this one, up to `last`, is in it.
        after: Commit,
        /// The first commit in it.
        first: Commit,
        /// The last commit in it.
        last: Commit,
        /// The time of the first segment, in ms since the epoch.
        first_ms: i64,
        /// The time of the last segment.
        last_ms: i64,
        /// How many segments.
        segments: u64,
        /// The hash of the head of the object that it continues.
        previous: Hash,
    },
    /// A whole database.
    Snapshot {
        /// The last commit in it.
        version: Commit,
        /// The time of that commit, as far as the log knows it, in ms since the epoch.
        at_ms: i64,
        /// When the snapshot was taken, in ms since the epoch.
        taken_ms: i64,
        /// How many entries.
        entries: u64,
        /// The hash of the entries.
        content: Hash,
    },
}

/// The head of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Head {
    pub(super) form: u32,
    #[serde(flatten)]
    pub(super) source: Source,
    #[serde(flatten)]
    pub(super) content: Content,
    /// Bytes of the content before compression.
    pub(super) bytes: u64,
    /// Bytes of the compressed content.
    pub(super) compressed: u64,
    /// The hash of the compressed content.
    pub(super) sha256: Hash,
}

/// A head as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) head: Head,
    /// The hash of the head, which names the whole object.
    pub(super) digest: Hash,
    /// The offset of the content.
    pub(super) content_at: u64,
}

/// The bytes of an object up to its content.
pub(super) fn encode_head(head: &Head) -> Result<(Vec<u8>, Hash)> {
    let json = serde_json::to_vec(head).map_err(|error| Error::internal(error.to_string()))?;
    let len = u32::try_from(json.len()).map_err(|error| Error::internal(error.to_string()))?;
    let bytes = [MAGIC, &len.to_le_bytes(), &json].concat();
    Ok((bytes, Hash::of(&json)))
}

/// The head at the beginning of an object.
///
/// # Errors
/// `Corrupt` for other bytes, `Unsupported` for a newer form; `name` is the object's.
pub(super) fn decode_head(name: &str, bytes: &[u8]) -> Result<Stored> {
    let damaged = |why: &str| Error::corrupt(format!("the object {name} is damaged: {why}"));
    let rest = bytes.strip_prefix(MAGIC).ok_or_else(|| damaged("it is no object of an archive"))?;
    let (len, rest) = rest.split_first_chunk().ok_or_else(|| damaged("it ends in its head"))?;
    let len = u32::from_le_bytes(*len) as usize;
    if len > ARCHIVE_HEAD_BYTES_MAX {
        return Err(damaged("its head is too long"));
    }
    let json = rest.get(..len).ok_or_else(|| damaged("it ends in its head"))?;
    let head: Head = serde_json::from_slice(json)
        .map_err(|error| damaged(&format!("its head cannot be read: {error}")))?;
    check_form(&format!("the object {name}"), head.form)?;
    Ok(Stored { head, digest: Hash::of(json), content_at: (BEFORE_HEAD + len) as u64 })
}

/// The segments of the log, as the content of an object, before compression.
#[derive(Default)]
pub(super) struct Segments {
    bytes: Vec<u8>,
    count: u64,
    /// The first commit and its time.
    first: Option<(u64, i64)>,
    last: (u64, i64),
}

impl Segments {
    /// Adds the next segment.
    pub(super) fn push(&mut self, segment: LogSegment<'_>) -> Result<()> {
        let LogSegment { first, last, at_ms, changes } = segment;
        let len = u32::try_from(changes.len())
            .map_err(|_| Error::internal("a segment of the log of more than 4 GiB"))?;
        self.bytes.reserve(changes.len() + 28);
        self.bytes.extend_from_slice(&first.to_le_bytes());
        self.bytes.extend_from_slice(&last.to_le_bytes());
        self.bytes.extend_from_slice(&at_ms.to_le_bytes());
        self.bytes.extend_from_slice(&len.to_le_bytes());
        self.bytes.extend_from_slice(changes);
        self.first.get_or_insert((first, at_ms));
        self.last = (last, at_ms);
        self.count += 1;
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The object with them, which continues another; `None` without segments.
    pub(super) fn finish(
        self,
        source: Source,
        after: u64,
        previous: Hash,
    ) -> Result<Option<(Vec<u8>, Head, Hash)>> {
        let Some((first, first_ms)) = self.first else { return Ok(None) };
        let (last, last_ms) = self.last;
        let content = zstd::encode_all(self.bytes.as_slice(), ZSTD_LEVEL)
            .map_err(|error| Error::internal(format!("zstd: {error}")))?;
        let head = Head {
            form: FORM,
            source,
            content: Content::Segments {
                after: Commit(after),
                // The first segment can begin before, and is stored whole.
                first: Commit(first.max(after + 1)),
                last: Commit(last),
                first_ms,
                last_ms,
                segments: self.count,
                previous,
            },
            bytes: self.bytes.len() as u64,
            compressed: content.len() as u64,
            sha256: Hash::of(&content),
        };
        let (mut bytes, digest) = encode_head(&head)?;
        bytes.extend_from_slice(&content);
        Ok(Some((bytes, head, digest)))
    }
}

/// The content of an object with segments, decompressed.
///
/// # Errors
/// `Corrupt` if it is not what its head names.
pub(super) fn open_segments(name: &str, bytes: &[u8]) -> Result<(Stored, Vec<u8>)> {
    let damaged = |why: &str| Error::corrupt(format!("the object {name} is damaged: {why}"));
    let stored = decode_head(name, bytes)?;
    let content = usize::try_from(stored.content_at).ok().and_then(|at| bytes.get(at..));
    let content = content.unwrap_or_default();
    if content.len() as u64 != stored.head.compressed {
        return Err(damaged(&format!(
            "it has {} bytes of content instead of {}",
            content.len(),
            stored.head.compressed
        )));
    }
    if Hash::of(content) != stored.head.sha256 {
        return Err(damaged("its checksum is wrong"));
    }
    if stored.head.bytes > ARCHIVE_SEGMENTS_BYTES_MAX {
        return Err(damaged("it is too large"));
    }
    let plain =
        zstd::decode_all(content).map_err(|error| damaged(&format!("zstd refuses it: {error}")))?;
    if plain.len() as u64 != stored.head.bytes {
        return Err(damaged("its length is wrong"));
    }
    Ok((stored, plain))
}

/// Visits the segments in the content of an object, until `visit` returns `false`.
///
/// # Errors
/// `Corrupt` for other bytes; those of `visit`.
pub(super) fn each_segment(
    name: &str,
    mut content: &[u8],
    mut visit: impl FnMut(LogSegment<'_>) -> Result<bool>,
) -> Result<()> {
    let cut = || Error::corrupt(format!("the object {name} is damaged: a segment ends too early"));
    while !content.is_empty() {
        let (first, rest) = content.split_first_chunk().ok_or_else(cut)?;
        let (last, rest) = rest.split_first_chunk().ok_or_else(cut)?;
        let (at_ms, rest) = rest.split_first_chunk().ok_or_else(cut)?;
        let (len, rest) = rest.split_first_chunk().ok_or_else(cut)?;
        let len = u32::from_le_bytes(*len) as usize;
        let (changes, rest) = rest.split_at_checked(len).ok_or_else(cut)?;
        let segment = LogSegment {
            first: u64::from_le_bytes(*first),
            last: u64::from_le_bytes(*last),
            at_ms: i64::from_le_bytes(*at_ms),
            changes,
        };
        if !visit(segment)? {
            break;
        }
        content = rest;
    }
    Ok(())
}

/// The part of a segment up to a commit, as its last commit and its changes; `None` if nothing is left.
///
/// # Errors
/// `Corrupt` for a damaged segment.
pub(super) fn cut(segment: LogSegment<'_>, until: u64) -> Result<Option<(u64, Vec<u8>)>> {
    let mut changes: Vec<Change> = Vec::new();
    let decoded = change_log::decode(segment.first, segment.changes, |change| {
        let wanted = change.version <= until;
        if wanted {
            changes.push(change.to_change());
        }
        wanted
    });
    let damaged = |error| {
        Error::corrupt(format!("the segment {} of the archive is damaged: {error}", segment.last))
    };
    decoded.map_err(damaged)?;
    let messages = change_log::messages(segment.first, segment.changes);
    let mut messages = messages.map_err(damaged)?;
    messages.retain(|message| message.version <= until);
    let last = changes.last().map(|change| change.version);
    let last = last.max(messages.last().map(|message| message.version));
    let Some(last) = last else { return Ok(None) };
    Ok(Some((last, change_log::encode_all(segment.first, &changes, &messages))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use openkv_core::model::{ChangeKind, EncodedValue, Encoding, Key, Kind};

    fn source() -> Source {
        Source::new(Origin { database: [7; 16], incarnation: 9 }, 1, 2)
    }

    fn changes(versions: &[u64]) -> Vec<Change> {
        let change = |version: &u64| Change {
            key: Key::from_encoded(version.to_be_bytes().to_vec()),
            version: *version,
            kind: ChangeKind::Set {
                value: EncodedValue { encoding: Encoding::Bytes, bytes: vec![1; 100] },
                expire_at_ms: None,
            },
        };
        versions.iter().map(change).collect()
    }

    fn object() -> (Vec<u8>, Head, Hash) {
        let mut segments = Segments::default();
        for versions in [[3, 4], [5, 9]] {
            let bytes = change_log::encode(versions[0], &changes(&versions));
            let [first, last] = versions;
            segments
                .push(LogSegment { first, last, at_ms: last as i64 * 10, changes: &bytes })
                .unwrap();
        }
        segments.finish(source(), 2, Hash([4; 32])).unwrap().unwrap()
    }

    #[test]
    fn segments_survive_the_round_trip() {
        let (bytes, head, digest) = object();
        let (stored, content) = open_segments("x", &bytes).unwrap();
        assert_eq!((&stored.head, stored.digest), (&head, digest));
        let mut seen = Vec::new();
        each_segment("x", &content, |segment| {
            seen.push((segment.first, segment.last, segment.at_ms));
            Ok(true)
        })
        .unwrap();
        assert_eq!(seen, [(3, 4, 40), (5, 9, 90)]);
        assert!(matches!(
            head.content,
            Content::Segments {
                after: Commit(2),
                first: Commit(3),
                last: Commit(9),
                segments: 2,
                ..
            }
        ));
    }

    #[test]
    fn no_segments_are_no_object() {
        assert!(Segments::default().finish(source(), 2, Hash([4; 32])).unwrap().is_none());
    }

    /// A flipped bit of the head gives another head, which the chain of objects notices.
    #[test]
    fn damage_is_found_everywhere() {
        let (bytes, head, digest) = object();
        for end in 0..bytes.len() {
            assert!(open_segments("x", &bytes[..end]).is_err(), "cut at {end}");
        }
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1;
            let found = open_segments("x", &other).map(|(stored, _)| stored);
            assert!(found.is_err() || found.unwrap().digest != digest, "flipped at {at}");
        }
        let long = [bytes.as_slice(), b"more"].concat();
        assert!(open_segments("x", &long).is_err());
        for (form, known) in [(0, false), (1, true), (FORM, true), (FORM + 1, false)] {
            let (bytes, _) = encode_head(&Head { form, ..head.clone() }).unwrap();
            let read = decode_head("x", &bytes);
            assert_eq!(read.is_ok(), known, "form {form}");
            if let Err(error) = read {
                assert_eq!(error.kind(), Kind::Unsupported);
                assert!(error.message().contains("update openkv"), "{error}");
            }
        }
    }

    #[test]
    fn a_segment_is_cut_at_a_commit() {
        let bytes = change_log::encode(3, &changes(&[3, 4, 4, 7]));
        let segment = LogSegment { first: 3, last: 7, at_ms: 0, changes: &bytes };
        for (until, expected) in [(2, None), (3, Some(3)), (6, Some(4)), (7, Some(7))] {
            assert_eq!(cut(segment, until).unwrap().map(|(last, _)| last), expected);
        }
        let (_, changes) = cut(segment, 6).unwrap().unwrap();
        let mut count = 0;
        change_log::decode(3, &changes, |_| {
            count += 1;
            true
        })
        .unwrap();
        assert_eq!(count, 3);
    }
}
