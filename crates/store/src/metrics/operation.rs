//! The kinds of operations that metrics count.

use openkv_core::model::{AtomicWrite, MutationKind};

openkv_core::named! {
    /// A kind of operation.
    pub enum Operation {
        /// A key read by `get` or `getMany`.
        Get = "get",
        /// As `get`, with the expiry: a call of one key or many.
        GetWithExpiry = "getWithExpiry",
        /// A page of a list.
        List = "list",
        /// A count.
        Count = "count",
        /// The expiry of an entry.
        Ttl = "ttl",
        /// A search.
        Search = "search",
        /// A write of exactly one `set`.
        Set = "set",
        /// A write of exactly one `delete`.
        Delete = "delete",
        /// A write of exactly one change of an expiry.
        Touch = "touch",
        /// A write of exactly one message.
        Enqueue = "enqueue",
        /// Any other write, and a comparison of what a transaction without writes has read.
        Atomic = "atomic",
        /// A deletion of many entries; each of its commits counts as a write too.
        DeleteMany = "deleteMany",
        /// The settlement of a received message.
        Settle = "settle",
        /// An extension of a received message's lock.
        Extend = "extend",
        /// A backup.
        Backup = "backup",
        /// A checkpoint.
        Checkpoint = "checkpoint",
        /// A vacuum.
        Vacuum = "vacuum",
    }
}

impl Operation {
    /// The kind of a write.
    #[must_use]
    pub fn of(write: &AtomicWrite) -> Self {
        if !write.acks().is_empty() {
            return Self::Atomic;
        }
        match write.parts() {
            ([], [mutation], []) => match mutation.kind() {
                MutationKind::Set => Self::Set,
                MutationKind::Delete => Self::Delete,
                MutationKind::SetExpiry => Self::Touch,
                _ => Self::Atomic,
            },
            ([], [], [_]) => Self::Enqueue,
            _ => Self::Atomic,
        }
    }
}
