//! Bounds of frames and of messages of KV Connect.

/// Endpoints of the metadata of a KV Connect server.
pub const METADATA_ENDPOINTS_MAX: usize = 256;

/// Body of a request of openkv's extension with a read-only token: a thousand keys.
pub const FRAMES_READ_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Body of such a request with a token for writing: a commit of the set "wide", with room for its
/// other parts.
pub const FRAMES_WRITE_BYTES_MAX: usize = 72 * 1024 * 1024;

/// Writes of one request, which form one group.
pub const FRAMES_WRITES_MAX: usize = 1000;

/// Checks, mutations, messages and placeholders of one request, plus one for each write. The
/// largest commit with a UUID in each key and value stays below it.
pub const FRAMES_RECORDS_MAX: usize = 65_536;

/// Bodies of writes above this size are parsed outside of the server's threads.
pub const FRAMES_APART_BYTES_MIN: usize = 64 * 1024;

/// Bytes of writes after which no further write joins a request.
pub const FRAMES_GROUP_BYTES: usize = 1024 * 1024;

/// Bytes of an answer after which a list ends; the next page continues there.
pub const FRAMES_PAGE_BYTES: usize = 8 * 1024 * 1024;

/// Bytes of an answer that cannot be split.
pub const FRAMES_ANSWER_BYTES_MAX: usize = 112 * 1024 * 1024;

/// Bytes of a local answer that cannot be split. It becomes one `Buffer`, which has at most 4 GiB
/// in Node.js 20.
pub const ANSWER_BYTES_MAX: usize = u32::MAX as usize;

/// Ranges of one read of the extension, which share a snapshot.
pub const FRAMES_RANGES_MAX: usize = 1000;

/// Rows of one read of the extension: the sum of the limits of its ranges.
pub const FRAMES_ROWS_MAX: usize = 1000;

/// Retries in the backoff schedule of a message from the network.
pub const WIRE_BACKOFF_INTERVALS_MAX: usize = 10;
