//! The types of watches, feeds and consumers that local and remote databases share.

use super::{Change, Delivery, EncodedValue, Result, Versionstamp};

/// The number of a watch, a feed, a listener or a receiver.
pub type Id = u64;

/// An entry of a watched key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The versionstamp of the commit that wrote it.
    pub stamp: Versionstamp,
    /// Its value.
    pub value: EncodedValue,
}

/// Receives the entries of the watched keys, from one snapshot; `None` when the watch has ended.
pub type WatchReply = Box<dyn FnOnce(Result<Option<Vec<Option<Entry>>>>) + Send>;

/// Changes of whole commits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// In commit order; no key twice in one commit.
    pub changes: Vec<Change>,
    /// The commit up to which the feed is complete.
    pub version: u64,
}

impl Batch {
    /// Bytes of the keys and values.
    pub fn size_bytes(&self) -> usize {
        self.changes.iter().map(Change::size_bytes).sum()
    }
}

/// Receives the next batch; `None` when the feed has ended.
pub type FeedReply = Box<dyn FnOnce(Result<Option<Batch>>) + Send>;

/// The options of a consumer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumeOptions {
    /// The queue; `""` is Deno's.
    pub queue: String,
    /// Duration of a lock without renewal, in ms.
    pub lock_ms: i64,
}

/// A message that is assigned to a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dispatched {
    /// The number with which to settle it.
    pub number: i64,
    /// The message.
    pub delivery: Delivery,
}

/// Receives messages. Returns those that it can no longer accept; no handler has seen them.
pub type Deliver = Box<dyn Fn(Vec<Dispatched>) -> Vec<Dispatched> + Send + Sync>;

/// Receives the number of a message whose lock is lost while its handler runs.
pub type LockLost = std::sync::Arc<dyn Fn(i64) + Send + Sync>;

/// Receives the end of a listener, with the error that ended it, if one did.
pub type ListenerEnd = Box<dyn FnOnce(Result<()>) + Send>;

/// Receives one message; `None` if there is none.
pub type Receive = Box<dyn FnOnce(Result<Option<Delivery>>) + Send>;
