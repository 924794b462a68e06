//! The entries that a leader knows: the newest effect on each key, durable or not, and entries that
//! were read.
//!
//! Invariant: what the cache has of a key is the newest state that any decided batch has left. It may
//! have nothing of a key only if every read under way has seen the last effect on it.

use foldhash::fast::RandomState;
use indexmap::IndexMap;

use crate::commit::{NewRow, OldRow, RowEffect};
use crate::model::{Key, LAYER_CACHE_ROW_BYTES};

/// An entry, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// There is none.
    Absent,
    /// It is there; its value is not known.
    Version {
        /// Its commit.
        version: u64,
        /// When it expires, in ms since the epoch.
        expire_at_ms: Option<i64>,
    },
    /// All of it.
    Row(OldRow),
}

impl Fetched {
    /// Its commit; `None` if there is no entry at `now_ms`.
    pub(super) fn version_at(&self, now_ms: i64) -> Option<u64> {
        let (version, expire_at_ms) = match self {
            Self::Absent => return None,
            Self::Version { version, expire_at_ms } => (*version, *expire_at_ms),
            Self::Row(row) => (row.version, row.expire_at_ms),
        };
        expire_at_ms.is_none_or(|end| end > now_ms).then_some(version)
    }

    fn size_bytes(&self) -> usize {
        match self {
            Self::Row(row) => row.value.bytes.len(),
            Self::Absent | Self::Version { .. } => 0,
        }
    }
}

struct Known {
    entry: Fetched,
    /// The last batch of this epoch that changed it; 0 for an entry that was read.
    changed: u64,
    /// Whether it was used since the hand last passed it.
    used: bool,
}

/// The entries that are known.
pub(super) struct Cache {
    rows: IndexMap<Key, Known, RandomState>,
    bytes: usize,
    bytes_max: usize,
    /// The position at which the next search for an entry to drop begins.
    hand: usize,
}

impl Cache {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { rows: IndexMap::default(), bytes: 0, bytes_max, hand: 0 }
    }

    pub(super) fn get(&mut self, key: &Key) -> Option<&Fetched> {
        let known = self.rows.get_mut(key)?;
        known.used = true;
        Some(&known.entry)
    }

    /// Whether it knows an entry, with its value if there is one.
    pub(super) fn knows(&self, key: &Key, with_value: bool) -> bool {
        let known = self.rows.get(key);
        known.is_some_and(|known| !with_value || !matches!(known.entry, Fetched::Version { .. }))
    }

    /// Takes the effect of a batch that ends with the commit `changed`.
    pub(super) fn change(&mut self, key: &Key, effect: &RowEffect, changed: u64) {
        let entry = match effect {
            RowEffect::Removed => Fetched::Absent,
            RowEffect::Stored(NewRow { version, value, expire_at_ms }) => Fetched::Row(OldRow {
                version: *version,
                value: value.clone(),
                expire_at_ms: *expire_at_ms,
            }),
            RowEffect::ExpirySet { version, expire_at_ms } => match self.get(key) {
                Some(Fetched::Row(row)) if row.version == *version => {
                    Fetched::Row(OldRow { expire_at_ms: *expire_at_ms, ..row.clone() })
                }
                _ => Fetched::Version { version: *version, expire_at_ms: *expire_at_ms },
            },
        };
        self.put(key, Known { entry, changed, used: true });
    }

    /// Takes an entry that was read, unless something newer is known.
    pub(super) fn learn(&mut self, key: &Key, read: &Fetched) {
        let known = match (self.rows.get(key), read) {
            (None, _) => Known { entry: read.clone(), changed: 0, used: true },
            (Some(Known { entry: Fetched::Version { version, expire_at_ms }, changed, .. }), _) => {
                let Fetched::Row(row) = read else { return };
                if row.version != *version {
                    return;
                }
                let row = OldRow { expire_at_ms: *expire_at_ms, ..row.clone() };
                Known { entry: Fetched::Row(row), changed: *changed, used: true }
            }
            (Some(_), _) => return,
        };
        self.put(key, known);
    }

    fn put(&mut self, key: &Key, known: Known) {
        self.bytes += size_bytes(key, &known);
        if let Some(old) = self.rows.insert(key.clone(), known) {
            self.bytes -= size_bytes(key, &old);
        }
    }

    /// Drops entries over the bound, those first that were not used lately. `seen`: every read under
    /// way sees the commits up to this one.
    pub(super) fn trim(&mut self, seen: u64) {
        let mut looks = 2 * self.rows.len();
        while self.bytes > self.bytes_max && looks > 0 {
            looks -= 1;
            if self.hand >= self.rows.len() {
                self.hand = 0;
            }
            let Some((_, known)) = self.rows.get_index_mut(self.hand) else { return };
            if std::mem::take(&mut known.used) || known.changed > seen {
                self.hand += 1;
            } else if let Some((key, known)) = self.rows.swap_remove_index(self.hand) {
                self.bytes -= size_bytes(&key, &known);
            }
        }
    }

    /// Drops an entry. No read may be under way.
    pub(super) fn forget(&mut self, key: &Key) {
        if let Some(known) = self.rows.swap_remove(key) {
            self.bytes -= size_bytes(key, &known);
        }
    }

    /// Drops everything.
    pub(super) fn clear(&mut self) {
        self.rows.clear();
        self.bytes = 0;
    }
}

fn size_bytes(key: &Key, known: &Known) -> usize {
    key.len() + known.entry.size_bytes() + LAYER_CACHE_ROW_BYTES
}
