//! What a batch leaves under a key, which is all that an engine has to apply.

use crate::model::EncodedValue;

/// An entry as the batch leaves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRow {
    /// Its commit.
    pub version: u64,
    /// Its value.
    pub value: EncodedValue,
    /// When it ends, in ms since the epoch.
    pub expire_at_ms: Option<i64>,
}

/// What there is under a key that the batch has touched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Left {
    /// Nothing.
    Removed,
    /// This.
    Stored(NewRow),
    /// The entry that was there before the batch, value and version untouched; its end has moved.
    Retimed {
        /// Its commit, of before the batch.
        version: u64,
        /// When it ends now, in ms since the epoch.
        expire_at_ms: Option<i64>,
    },
}

impl Left {
    /// When what is there ends.
    #[must_use]
    pub fn expire_at_ms(&self) -> Option<i64> {
        match self {
            Self::Removed => None,
            Self::Stored(row) => row.expire_at_ms,
            Self::Retimed { expire_at_ms, .. } => *expire_at_ms,
        }
    }

    /// The commit of what is there at `now_ms`.
    #[must_use]
    pub(super) fn version(&self, now_ms: i64) -> Option<u64> {
        let version = match self {
            Self::Removed => return None,
            Self::Stored(row) => row.version,
            Self::Retimed { version, .. } => *version,
        };
        self.expire_at_ms().is_none_or(|end| end > now_ms).then_some(version)
    }

    /// The same with another end.
    #[must_use]
    pub(super) fn retimed(&self, expire_at_ms: Option<i64>) -> Self {
        match self {
            Self::Removed => Self::Removed,
            Self::Stored(row) => Self::Stored(NewRow { expire_at_ms, ..row.clone() }),
            Self::Retimed { version, .. } => Self::Retimed { version: *version, expire_at_ms },
        }
    }
}
