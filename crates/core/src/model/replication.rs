//! The log of a database, which feeds, replicas and archives read, and moments of its past.

use super::{
    EncodedValue, IndexSpec, Key, LOG_BYTES_MAX, LOG_RETENTION_MS, ValueIndexSpec, Versionstamp,
};

/// Which database a log belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The database: its copies have the same.
    pub database: [u8; 16],
    /// The copy of the database: a restored or copied file has another.
    pub incarnation: u64,
}

/// How long a replication log is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogBounds {
    /// How long a change is kept, in ms.
    pub retention_ms: i64,
    /// Bytes that all segments count.
    pub bytes_max: u64,
}

/// Those of a log that is turned on without any.
impl Default for LogBounds {
    fn default() -> Self {
        Self { retention_ms: LOG_RETENTION_MS, bytes_max: LOG_BYTES_MAX }
    }
}

/// The request to change a setting that is stored in the database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Setting<T> {
    /// Leave it as it is.
    #[default]
    Keep,
    /// Turn it off.
    Off,
    /// Turn it on, with this value.
    On(T),
}

/// The requested settings of the replication log and of history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogSettings {
    /// The log.
    pub log: Setting<LogBounds>,
    /// How long a replaced value is kept, in ms. It turns on the log too.
    pub history_ms: Setting<i64>,
    /// Whether a log that is turned on has messages of queues too; `None`: as it is.
    pub messages: Option<bool>,
}

/// The replication log of a database in one snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogState {
    /// The last commit of the database.
    pub version: u64,
    /// The log; `None` if it is off.
    pub log: Option<LogExtent>,
}

/// The extent of a replication log that is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogExtent {
    /// Which database it belongs to.
    pub origin: Origin,
    /// Its bounds.
    pub bounds: LogBounds,
    /// Every change of the commits after this one is logged.
    pub complete: u64,
    /// Bytes that all segments count.
    pub bytes: u64,
    /// The history, if it is kept.
    pub history: Option<HistoryExtent>,
    /// Whether it has messages of queues.
    pub messages: bool,
}

/// The extent of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryExtent {
    /// How long a replaced value is kept, in ms.
    pub kept_ms: i64,
    /// The oldest moment: every state from this one on is known.
    pub since: Moment,
}

/// The changes of one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSegment<'a> {
    /// The first commit of the transaction.
    pub first: u64,
    /// The last commit of the transaction.
    pub last: u64,
    /// The time of the commits, in ms since the epoch. It never decreases from segment to segment.
    pub at_ms: i64,
    /// The changes, as `codec::change_log` writes them.
    pub changes: &'a [u8],
}

/// A moment of the past: what a reader would have seen then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The last commit at that moment.
    pub version: u64,
    /// The time, by which entries had expired, in ms since the epoch.
    pub at_ms: i64,
}

/// A time of a read at which no entry has expired: it also finds those that wait for their removal.
pub const BEFORE_EXPIRY_MS: i64 = -1;

/// How a caller names a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Right after this commit.
    Commit(Versionstamp),
    /// At this time, in ms since the epoch.
    Time(i64),
}

/// A version of an entry, made by a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryVersion {
    /// The commit that made it; of the oldest known one, the commit that wrote the value.
    pub commit: u64,
    /// When, in ms since the epoch, if it is known.
    pub at_ms: Option<i64>,
    /// The entry; `None` if the commit removed it.
    pub entry: Option<PastEntry>,
}

/// An entry of the past.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastEntry {
    /// The commit that wrote the value.
    pub version: u64,
    /// The value.
    pub value: EncodedValue,
    /// When it expired or was to expire, in ms since the epoch.
    pub expire_at_ms: Option<i64>,
}

/// The URL and region that a read server sends to the server that it follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advertised {
    /// Its URL for clients.
    pub url: String,
    /// The name of where it is; empty if it does not say.
    pub region: String,
}

/// The definitions of the indexes that a copy of a database has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopiedIndexes {
    /// The full-text indexes.
    pub texts: Vec<IndexSpec>,
    /// The value indexes that lists may read; `None` if the database does not tell them.
    pub values: Option<Vec<ValueIndexSpec>>,
}

/// The position of a copy in the database that it follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Followed {
    /// The database that it follows.
    pub origin: Origin,
    /// The commit up to which it has every change.
    pub version: u64,
    /// The time of that commit, in ms since the epoch; 0 if the database does not know it.
    pub at_ms: i64,
    /// The beginnings of the keys that it has; empty: it has all keys.
    pub prefixes: Vec<Key>,
}

impl Followed {
    /// Moves on to a commit, with these segments up to it.
    pub fn advance(&mut self, version: u64, segments: &[Segment]) {
        self.version = version;
        if let Some(last) = segments.last() {
            self.at_ms = if last.last == version { last.at_ms } else { 0 };
        }
    }
}

/// An entry for a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedEntry {
    /// The key.
    pub key: Key,
    /// The commit that wrote the value.
    pub version: u64,
    /// The value.
    pub value: EncodedValue,
    /// When it expires, in ms since the epoch.
    pub expire_at_ms: Option<i64>,
}

/// The replacement of all entries of a copy by those of the database that it follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// The present position of the copy; `None`: it has no entries.
    pub before: Option<Followed>,
    /// The position afterwards.
    pub after: Followed,
    /// A random number: the copy is another one for its followers.
    pub generation: u64,
}

/// As [`LogSegment`], with its own bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The first commit.
    pub first: u64,
    /// The last commit.
    pub last: u64,
    /// The time of the commits, in ms since the epoch.
    pub at_ms: i64,
    /// The changes, as `codec::change_log` writes them.
    pub changes: Vec<u8>,
}

impl Segment {
    /// The segment, borrowed.
    #[must_use]
    pub fn borrowed(&self) -> LogSegment<'_> {
        let Self { first, last, at_ms, changes } = self;
        LogSegment { first: *first, last: *last, at_ms: *at_ms, changes }
    }
}
