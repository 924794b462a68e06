//! The shapes of watches, feeds and consumers, which are the same for a local and a remote database.

use super::{Change, Delivery, EncodedValue, Result, Versionstamp};

/// The number of a watch, a feed, a listener or a receiver.
pub type Id = u64;

/// An entry of a watched key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Stamp of the commit that wrote it.
    pub stamp: Versionstamp,
    /// Its value.
    pub value: EncodedValue,
}

/// Gets the entries of the watched keys, all from one snapshot; `None` when the watch has ended.
pub type WatchReply = Box<dyn FnOnce(Result<Option<Vec<Option<Entry>>>>) + Send>;

/// Changes of whole commits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// In commit order; no key twice in one commit.
    pub changes: Vec<Change>,
    /// The commit up to which the feed has now reported everything.
    pub version: u64,
}

impl Batch {
    /// Bytes of the keys and values.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.changes.iter().map(Change::size_bytes).sum()
    }
}

/// Gets the next batch; `None` when the feed has ended.
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
    /// The number to settle it with.
    pub number: i64,
    /// The message.
    pub delivery: Delivery,
}

/// Takes messages, each with the number to settle it with. Returns those that it cannot take any
/// more; no handler has seen them.
pub type Deliver = Box<dyn Fn(Vec<Dispatched>) -> Vec<Dispatched> + Send + Sync>;

/// Gets one message; `None` if there is none.
pub type Receive = Box<dyn FnOnce(Result<Option<Delivery>>) + Send>;
