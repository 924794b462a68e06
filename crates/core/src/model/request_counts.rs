//! The requests of a process to an object store.

/// Requests so far, by kind, and the bytes of objects that were sent and received. A request that the client of the
/// store has repeated by itself counts once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// Reads of objects, also of such that are not there.
    pub get: u64,
    /// Writes of objects; each part of a large one counts, and so do its beginning and its end.
    pub put: u64,
    /// Pages of listings.
    pub list: u64,
    /// Deletions of objects.
    pub delete: u64,
    /// Bytes of objects that were read.
    pub got_bytes: u64,
    /// Bytes of objects that were sent to be written.
    pub put_bytes: u64,
}
