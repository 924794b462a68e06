//! UUIDs for the placeholders of writes. They increase from commit to commit, even if the clock
//! does not.

use foldhash::fast::RandomState;
use indexmap::IndexMap;
use uuid::{Builder, Uuid, Variant, Version};

use crate::codec::uuid::{TEXT_BYTES, text};
use crate::model::{Mutation, Patch, Resolved, Target, WriteParts};

/// Bits of a UUID of version 7 (RFC 9562 §5.7) that are neither version nor variant: the time in ms,
/// then randomness in two parts.
const TIME_BITS: u32 = 48;
const MIDDLE_BITS: u32 = 12;
const LOW_BITS: u32 = 62;
const RANDOM_BITS: u32 = MIDDLE_BITS + LOW_BITS;

/// Generates the UUIDs of one batch.
pub(super) struct Uuids {
    now_ms: i64,
    seed: u64,
    /// The payload of the previous UUID.
    last: u128,
}

impl Uuids {
    /// `last` is the last UUID of the database so far.
    pub(super) fn new(now_ms: i64, seed: u64, last: Option<Uuid>) -> Self {
        Self { now_ms, seed, last: last.map_or(0, payload) }
    }

    /// The last UUID.
    pub(super) fn last(&self) -> Uuid {
        from_payload(self.last)
    }

    fn next(&mut self) -> Uuid {
        let random = u128::from(self.random()) << 64 | u128::from(self.random());
        let fresh = payload_of(self.now_ms, random);
        // While the clock does not advance, a UUID follows the previous one at a random distance.
        let behind = self.last + 1 + u128::from(self.random() >> 32);
        self.last = if fresh >> RANDOM_BITS > self.last >> RANDOM_BITS { fresh } else { behind };
        self.last()
    }

    /// splitmix64 of the seed, which is random for every batch.
    fn random(&mut self) -> u64 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.seed;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Fills in the placeholders of a write; equal numbers get the same UUID.
    pub(super) fn fill_in(&mut self, parts: &mut WriteParts) -> Vec<Resolved> {
        let patches = std::mem::take(&mut parts.patches);
        let mut resolved: IndexMap<u64, Uuid, RandomState> = IndexMap::default();
        for Patch { target, offset, placeholder } in patches {
            let uuid = *resolved.entry(placeholder).or_insert_with(|| self.next());
            let text = text(uuid);
            let patch = |bytes: &mut [u8]| {
                if let Some(room) = bytes.get_mut(offset..offset + TEXT_BYTES) {
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

/// The lowest bits of a number.
fn low(number: u128, bits: u32) -> u128 {
    number & ((1 << bits) - 1)
}

/// The 122 bits of a UUID of version 7 beside version and variant. UUIDs sort as these payloads do,
/// and a payload can be incremented.
fn payload(uuid: Uuid) -> u128 {
    let uuid = uuid.as_u128();
    let (time, middle) = (uuid >> (128 - TIME_BITS), low(uuid >> 64, MIDDLE_BITS));
    time << RANDOM_BITS | middle << LOW_BITS | low(uuid, LOW_BITS)
}

fn from_payload(payload: u128) -> Uuid {
    let (time, middle) =
        (low(payload >> RANDOM_BITS, TIME_BITS), low(payload >> LOW_BITS, MIDDLE_BITS));
    let bits = time << (128 - TIME_BITS) | middle << 64 | low(payload, LOW_BITS);
    let builder = Builder::from_u128(bits).with_version(Version::SortRand);
    builder.with_variant(Variant::RFC4122).into_uuid()
}

/// The payload for a time in ms, clamped to 48 bits, and randomness.
fn payload_of(now_ms: i64, random: u128) -> u128 {
    let time = u128::try_from(now_ms).unwrap_or(0).min(low(u128::MAX, TIME_BITS));
    time << RANDOM_BITS | low(random, RANDOM_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_rfc() {
        // RFC 9562, appendix A.6.
        let random = 0xCC3 << LOW_BITS | 0x18C4_DC0C_0C07_398F;
        let uuid = from_payload(payload_of(0x017F_22E2_79B0, random));
        assert_eq!(uuid.to_string(), "017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
        assert_eq!(from_payload(payload(uuid)), uuid);
    }

    #[test]
    fn order_survives_carries() {
        let before = payload_of(5, low(u128::MAX, RANDOM_BITS));
        assert!(from_payload(before + 1) > from_payload(before));
        assert_eq!(from_payload(before + 1), from_payload(payload_of(6, 0)));
        assert_eq!(payload_of(-1, 0), 0);
    }

    #[test]
    fn uuids_increase_when_the_clock_runs_backwards() {
        let mut all = Vec::new();
        let mut last = None;
        for now_ms in [1000, 1000, 900, 0, -5, 1001, i64::MAX, 5] {
            let mut uuids = Uuids::new(now_ms, 7, last);
            all.extend((0..3).map(|_| uuids.next()));
            last = Some(uuids.last());
        }
        assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "{all:x?}");
        assert!(all.iter().all(|uuid| {
            uuid.get_version() == Some(Version::SortRand) && uuid.get_variant() == Variant::RFC4122
        }));
    }
}
