//! Committed changes, as a change feed reports them.

use super::{EncodedValue, Encoding, Key};

/// The change of one key by a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The key.
    pub key: Key,
    /// The commit.
    pub version: u64,
    /// What the commit did to the entry.
    pub kind: ChangeKind<EncodedValue>,
}

/// A logged change, borrowed for the length of a visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Logged<'a> {
    /// The commit.
    pub version: u64,
    /// Encoded key.
    pub key: &'a [u8],
    /// What the commit did to the entry.
    pub kind: ChangeKind<(Encoding, &'a [u8])>,
}

impl Logged<'_> {
    /// A copy that owns its bytes.
    #[must_use]
    pub fn to_change(&self) -> Change {
        let owned =
            |(encoding, bytes): (Encoding, &[u8])| EncodedValue { encoding, bytes: bytes.to_vec() };
        let key = Key::from_encoded(self.key.to_vec());
        Change { key, version: self.version, kind: self.kind.map(owned) }
    }
}

/// What a commit did to an entry. To apply all kinds in their order to a copy of the entries gives the
/// present entries, with their expiries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind<V> {
    /// Stored it.
    Set {
        /// Its value.
        value: V,
        /// When it expires, in ms since the epoch; `None`: never.
        expire_at_ms: Option<i64>,
    },
    /// Removed it, or would have: it may have been absent.
    Deleted,
    /// Removed it because it had expired.
    Expired,
    /// Changed when it expires, but not its value and its version.
    ExpirySet {
        /// When it expires, in ms since the epoch; `None`: never.
        expire_at_ms: Option<i64>,
    },
}

impl<V> ChangeKind<V> {
    /// Whether the entry is absent after the commit.
    pub fn is_removal(&self) -> bool {
        match self {
            Self::Deleted | Self::Expired => true,
            Self::Set { .. } | Self::ExpirySet { .. } => false,
        }
    }

    /// The stored value.
    pub fn value(&self) -> Option<&V> {
        match self {
            Self::Set { value, .. } => Some(value),
            Self::Deleted | Self::Expired | Self::ExpirySet { .. } => None,
        }
    }

    /// The same change with a borrowed value.
    pub fn as_ref(&self) -> ChangeKind<&V> {
        match self {
            Self::Set { value, expire_at_ms } => {
                ChangeKind::Set { value, expire_at_ms: *expire_at_ms }
            }
            Self::Deleted => ChangeKind::Deleted,
            Self::Expired => ChangeKind::Expired,
            Self::ExpirySet { expire_at_ms } => {
                ChangeKind::ExpirySet { expire_at_ms: *expire_at_ms }
            }
        }
    }

    /// The same change with another form of the value.
    pub fn map<W>(self, form: impl FnOnce(V) -> W) -> ChangeKind<W> {
        match self {
            Self::Set { value, expire_at_ms } => {
                ChangeKind::Set { value: form(value), expire_at_ms }
            }
            Self::Deleted => ChangeKind::Deleted,
            Self::Expired => ChangeKind::Expired,
            Self::ExpirySet { expire_at_ms } => ChangeKind::ExpirySet { expire_at_ms },
        }
    }
}

impl Change {
    /// Bytes of key and value.
    pub fn size_bytes(&self) -> usize {
        self.key.len() + self.kind.value().map_or(0, |value| value.bytes.len())
    }
}

/// A range of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// First key, included.
    pub start: Key,
    /// Last key, excluded.
    pub end: Key,
}

impl KeyRange {
    /// Whether the range contains a key.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.start.as_bytes() <= key && key < self.end.as_bytes()
    }
}
