//! The kinds of operations that are counted.

use crate::model::{AtomicWrite, MutationKind};

/// The operations that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// A key read by `get` or `getMany`.
    Get,
    /// As `get`, with the end: a call, of one key or many.
    GetWithExpiry,
    /// A page of a list.
    List,
    /// A count.
    Count,
    /// When an entry ends.
    Ttl,
    /// A search.
    Search,
    /// A write of one `set` and no more.
    Set,
    /// A write of one `delete` and no more.
    Delete,
    /// A write of one change of an end and no more.
    Touch,
    /// A write of one message and no more.
    Enqueue,
    /// Any other write.
    Atomic,
    /// A deletion of many entries; each of its commits counts as a write too.
    DeleteMany,
    /// The end of a received message.
    Settle,
    /// A received message's lock that is to go on.
    Extend,
    /// A backup.
    Backup,
    /// A checkpoint.
    Checkpoint,
    /// A vacuum.
    Vacuum,
}

impl Operation {
    /// All of them, in the order of their numbers.
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

    /// Its name in metrics.
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

    /// What a write is.
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
