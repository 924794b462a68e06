//! The protobuf messages of the data path, package `com.deno.kv.datapath`, as derived structs.
//!
//! Enumerations are plain numbers here; [`super::wire`] interprets them.

/// Ranges to read from one snapshot.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct SnapshotRead {
    /// The ranges to read.
    #[prost(message, repeated, tag = "1")]
    pub ranges: Vec<ReadRange>,
}

/// A range of keys.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ReadRange {
    /// First key, included.
    #[prost(bytes = "vec", tag = "1")]
    pub start: Vec<u8>,
    /// Last key, excluded.
    #[prost(bytes = "vec", tag = "2")]
    pub end: Vec<u8>,
    /// Maximum number of entries, above zero.
    #[prost(int32, tag = "3")]
    pub limit: i32,
    /// Whether the order is descending.
    #[prost(bool, tag = "4")]
    pub reverse: bool,
}

/// The answer to a [`SnapshotRead`].
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct SnapshotReadOutput {
    /// One for each range of the request, in its order.
    #[prost(message, repeated, tag = "1")]
    pub ranges: Vec<ReadRangeOutput>,
    /// Whether reads are disabled at the endpoint (versions 1 and 2).
    #[prost(bool, tag = "2")]
    pub read_disabled: bool,
    /// Whether the read was strongly consistent.
    #[prost(bool, tag = "4")]
    pub read_is_strongly_consistent: bool,
    /// One of `STATUS_…` (version 3).
    #[prost(int32, tag = "8")]
    pub status: i32,
}

/// The entries of one range.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ReadRangeOutput {
    /// In the order of reading.
    #[prost(message, repeated, tag = "1")]
    pub values: Vec<KvEntry>,
}

/// An entry.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct KvEntry {
    /// Encoded key.
    #[prost(bytes = "vec", tag = "1")]
    pub key: Vec<u8>,
    /// Encoded value.
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
    /// One of `ENCODING_…`.
    #[prost(int32, tag = "3")]
    pub encoding: i32,
    /// Ten bytes.
    #[prost(bytes = "vec", tag = "4")]
    pub versionstamp: Vec<u8>,
}

/// Checks, mutations and messages that take effect together or not at all.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct AtomicWrite {
    /// Conditions.
    #[prost(message, repeated, tag = "1")]
    pub checks: Vec<Check>,
    /// Changes, in order.
    #[prost(message, repeated, tag = "2")]
    pub mutations: Vec<Mutation>,
    /// Messages.
    #[prost(message, repeated, tag = "3")]
    pub enqueues: Vec<Enqueue>,
}

/// A condition.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Check {
    /// Encoded key.
    #[prost(bytes = "vec", tag = "1")]
    pub key: Vec<u8>,
    /// Ten bytes; empty if there must be no entry.
    #[prost(bytes = "vec", tag = "2")]
    pub versionstamp: Vec<u8>,
}

/// A change.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Mutation {
    /// Encoded key.
    #[prost(bytes = "vec", tag = "1")]
    pub key: Vec<u8>,
    /// The value or operand; ignored for a delete.
    #[prost(message, optional, tag = "2")]
    pub value: Option<KvValue>,
    /// One of `MUTATION_…`.
    #[prost(int32, tag = "3")]
    pub mutation_type: i32,
    /// The expiry, in ms since the epoch; 0 or −1 for none.
    #[prost(int64, tag = "4")]
    pub expire_at_ms: i64,
    /// The minimum result of a sum, in V8's format.
    #[prost(bytes = "vec", tag = "5")]
    pub sum_min: Vec<u8>,
    /// The maximum result of a sum, in V8's format.
    #[prost(bytes = "vec", tag = "6")]
    pub sum_max: Vec<u8>,
    /// Whether a result out of bounds is clamped instead of rejected.
    #[prost(bool, tag = "7")]
    pub sum_clamp: bool,
}

/// A value.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct KvValue {
    /// Its bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub data: Vec<u8>,
    /// One of `ENCODING_…`.
    #[prost(int32, tag = "2")]
    pub encoding: i32,
}

/// A message for the queue.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Enqueue {
    /// Its value in V8's format.
    #[prost(bytes = "vec", tag = "1")]
    pub payload: Vec<u8>,
    /// The due time, in ms since the epoch.
    #[prost(int64, tag = "2")]
    pub deadline_ms: i64,
    /// The keys that receive the value if it cannot be delivered.
    #[prost(bytes = "vec", repeated, tag = "3")]
    pub keys_if_undelivered: Vec<Vec<u8>>,
    /// Waiting times before each retry, in ms.
    #[prost(uint32, repeated, tag = "4")]
    pub backoff_schedule: Vec<u32>,
}

/// The answer to an [`AtomicWrite`].
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct AtomicWriteOutput {
    /// One of `WRITE_…`.
    #[prost(int32, tag = "1")]
    pub status: i32,
    /// Ten bytes after success.
    #[prost(bytes = "vec", tag = "2")]
    pub versionstamp: Vec<u8>,
    /// The failed checks, by index.
    #[prost(uint32, repeated, tag = "4")]
    pub failed_checks: Vec<u32>,
    /// openkv's: how the write breaks unique indexes. Other clients see a failed check.
    #[prost(message, repeated, tag = "1000")]
    pub violations: Vec<UniqueViolation>,
}

/// Two entries of which a unique index allows one.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct UniqueViolation {
    /// The name of the index.
    #[prost(string, tag = "1")]
    pub index: String,
    /// The key that was written.
    #[prost(bytes = "vec", tag = "2")]
    pub key: Vec<u8>,
    /// The key that has the value.
    #[prost(bytes = "vec", tag = "3")]
    pub other: Vec<u8>,
}

/// A request for a watch.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Watch {
    /// The keys.
    #[prost(message, repeated, tag = "1")]
    pub keys: Vec<WatchKey>,
}

/// A key to watch.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct WatchKey {
    /// Encoded key.
    #[prost(bytes = "vec", tag = "1")]
    pub key: Vec<u8>,
}

/// One state of a watch.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct WatchOutput {
    /// One of `STATUS_…`.
    #[prost(int32, tag = "1")]
    pub status: i32,
    /// One for each key of the request, in its order.
    #[prost(message, repeated, tag = "2")]
    pub keys: Vec<WatchKeyOutput>,
}

/// The state of one key.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct WatchKeyOutput {
    /// Whether the key has changed since the last state.
    #[prost(bool, tag = "1")]
    pub changed: bool,
    /// The entry, if it has changed and exists.
    #[prost(message, optional, tag = "2")]
    pub entry_if_changed: Option<KvEntry>,
}

/// The read was answered.
pub const STATUS_SUCCESS: i32 = 1;
/// Reads are disabled at the endpoint.
pub const STATUS_READ_DISABLED: i32 = 2;

/// Store a value.
pub const MUTATION_SET: i32 = 1;
/// Delete an entry.
pub const MUTATION_DELETE: i32 = 2;
/// Add.
pub const MUTATION_SUM: i32 = 3;
/// Keep the larger number.
pub const MUTATION_MAX: i32 = 4;
/// Keep the smaller number.
pub const MUTATION_MIN: i32 = 5;
/// Store a value under the key and the commit's versionstamp.
pub const MUTATION_SET_SUFFIXED: i32 = 9;

/// V8's serialization format.
pub const ENCODING_V8: i32 = 1;
/// Eight bytes, little-endian.
pub const ENCODING_LE64: i32 = 2;
/// The bytes themselves.
pub const ENCODING_BYTES: i32 = 3;

/// The write has committed.
pub const WRITE_SUCCESS: i32 = 1;
/// A check failed; nothing was written.
pub const WRITE_CHECK_FAILURE: i32 = 2;
/// Writes are disabled at the endpoint; nothing was written.
pub const WRITE_DISABLED: i32 = 5;
