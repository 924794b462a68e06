//! UUIDs for the placeholders of writes: later ones sort after earlier ones, whatever the clock
//! does.

use foldhash::fast::RandomState;
use indexmap::IndexMap;

use crate::codec::uuid;
use crate::model::{Mutation, Patch, Resolved, Target, WriteParts};

/// Makes the UUIDs of one batch.
pub(super) struct Uuids {
    now_ms: i64,
    seed: u64,
    /// The payload of the one before.
    last: u128,
}

impl Uuids {
    /// `last` is the last UUID of the database so far.
    pub(super) fn new(now_ms: i64, seed: u64, last: Option<u128>) -> Self {
        Self { now_ms, seed, last: last.map_or(0, uuid::payload) }
    }

    /// The last UUID.
    pub(super) fn last(&self) -> u128 {
        uuid::from_payload(self.last)
    }

    fn next(&mut self) -> u128 {
        let random = u128::from(self.random()) << 64 | u128::from(self.random());
        let fresh = uuid::payload_of(self.now_ms, random);
        // Behind the last one by a distance that cannot be guessed, while the clock stands still.
        let behind = self.last + 1 + u128::from(self.random() >> 32);
        self.last = if fresh >> 74 > self.last >> 74 { fresh } else { behind };
        self.last()
    }

    /// splitmix64 of a seed that is drawn anew for every batch.
    fn random(&mut self) -> u64 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.seed;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Fills in the placeholders of a write; the same number is the same UUID.
    pub(super) fn fill_in(&mut self, parts: &mut WriteParts) -> Vec<Resolved> {
        let patches = std::mem::take(&mut parts.patches);
        let mut resolved: IndexMap<u64, u128, RandomState> = IndexMap::default();
        for Patch { target, offset, placeholder } in patches {
            let uuid = *resolved.entry(placeholder).or_insert_with(|| self.next());
            let text = uuid::text(uuid);
            let patch = |bytes: &mut [u8]| {
                if let Some(room) = bytes.get_mut(offset..offset + uuid::TEXT_BYTES) {
                    room.copy_from_slice(&text);
                }
            };
            match target {
                Target::Key(at) => {
                    if let Some(mutation) = parts.mutations.get_mut(at) {
                        mutation.change_key(patch);
                    }
                }
                Target::Value(at) => {
                    let mutation = parts.mutations.get_mut(at);
                    if let Some(value) = mutation.and_then(Mutation::value_mut) {
                        patch(value);
                    }
                }
                Target::Message(at) => {
                    if let Some(message) = parts.messages.get_mut(at) {
                        patch(&mut message.value);
                    }
                }
            }
        }
        let resolved = resolved.into_iter();
        resolved.map(|(placeholder, uuid)| Resolved { placeholder, uuid }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_rise_though_the_clock_falls() {
        let mut all = Vec::new();
        let mut last = None;
        for now_ms in [1000, 1000, 900, 0, -5, 1001, i64::MAX, 5] {
            let mut uuids = Uuids::new(now_ms, 7, last);
            all.extend((0..3).map(|_| uuids.next()));
            last = Some(uuids.last());
        }
        assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "{all:x?}");
        assert!(all.iter().all(|uuid| uuid >> 76 & 0xf == 7 && uuid >> 62 & 3 == 2));
    }
}
