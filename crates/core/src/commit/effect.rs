//! The effect of a batch on one key. An engine applies nothing else.

use crate::model::EncodedValue;

/// An entry that the batch stores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRow {
    /// Its commit.
    pub version: u64,
    /// Its value.
    pub value: EncodedValue,
    /// When it expires, in ms since the epoch.
    pub expire_at_ms: Option<i64>,
}

/// The change of the entry of a key by the batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowEffect {
    /// Removes it.
    Removed,
    /// Stores this one.
    Stored(NewRow),
    /// Changes the expiry of an entry from before the batch, but not its value and version.
    ExpirySet {
        /// Its commit, from before the batch.
        version: u64,
        /// The new expiry, in ms since the epoch.
        expire_at_ms: Option<i64>,
    },
}

impl RowEffect {
    /// When the entry expires.
    pub fn expire_at_ms(&self) -> Option<i64> {
        match self {
            Self::Removed => None,
            Self::Stored(row) => row.expire_at_ms,
            Self::ExpirySet { expire_at_ms, .. } => *expire_at_ms,
        }
    }

    /// The commit of the entry; `None` if there is none at `now_ms`.
    pub(super) fn version(&self, now_ms: i64) -> Option<u64> {
        let version = match self {
            Self::Removed => return None,
            Self::Stored(row) => row.version,
            Self::ExpirySet { version, .. } => *version,
        };
        self.expire_at_ms().is_none_or(|end| end > now_ms).then_some(version)
    }

    /// The same effect with another expiry.
    #[must_use]
    pub(super) fn with_expiry(&self, expire_at_ms: Option<i64>) -> Self {
        match self {
            Self::Removed => Self::Removed,
            Self::Stored(row) => Self::Stored(NewRow { expire_at_ms, ..row.clone() }),
            Self::ExpirySet { version, .. } => Self::ExpirySet { version: *version, expire_at_ms },
        }
    }
}
