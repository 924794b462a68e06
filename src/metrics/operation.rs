//! The kinds of operations that metrics count.

use crate::model::{AtomicWrite, MutationKind};

/// A kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// A key read by `get` or `getMany`.
    Get,
    /// As `get`, with the expiry: a call of one key or many.
    GetWithExpiry,
    /// A page of a list.
    List,
    /// A count.
    Count,
    /// The expiry of an entry.
    Ttl,
    /// A search.
    Search,
    /// A write of exactly one `set`.
    Set,
    /// A write of exactly one `delete`.
    Delete,
    /// A write of exactly one change of an expiry.
    Touch,
    /// A write of exactly one message.
    Enqueue,
    /// Any other write.
    Atomic,
    /// A deletion of many entries; each of its commits counts as a write too.
    DeleteMany,
    /// The settlement of a received message.
    Settle,
    /// An extension of a received message's lock.
    Extend,
    /// A backup.
    Backup,
    /// A checkpoint.
    Checkpoint,
    /// A vacuum.
    Vacuum,
}

impl Operation {
    /// Every kind, in the order of their numbers.
    pub const ALL: [Self; 17] = [
        Self::Get,
        Self::GetWithExpiry,
        Self::List,
        Self::Count,
        Self::Ttl,
        Self::Search,
        Self::Set,
        Self::Delete,
        Self::Touch,
        Self::Enqueue,
        Self::Atomic,
        Self::DeleteMany,
        Self::Settle,
        Self::Extend,
        Self::Backup,
        Self::Checkpoint,
        Self::Vacuum,
    ];

    /// The name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::GetWithExpiry => "getWithExpiry",
            Self::List => "list",
            Self::Count => "count",
            Self::Ttl => "ttl",
            Self::Search => "search",
            Self::Set => "set",
            Self::Delete => "delete",
            Self::Touch => "touch",
            Self::Enqueue => "enqueue",
            Self::Atomic => "atomic",
            Self::DeleteMany => "deleteMany",
            Self::Settle => "settle",
            Self::Extend => "extend",
            Self::Backup => "backup",
            Self::Checkpoint => "checkpoint",
            Self::Vacuum => "vacuum",
        }
    }

    /// The kind of a write.
    #[must_use]
    pub fn of(write: &AtomicWrite) -> Self {
        match write.parts() {
            ([], [mutation], []) => match mutation.kind() {
                MutationKind::Set => Self::Set,
                MutationKind::Delete => Self::Delete,
                MutationKind::SetExpiry => Self::Touch,
                MutationKind::Arith | MutationKind::Calculate | MutationKind::Append => {
                    Self::Atomic
                }
            },
            ([], [], [_]) => Self::Enqueue,
            _ => Self::Atomic,
        }
    }
}
