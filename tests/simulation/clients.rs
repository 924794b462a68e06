//! The writes of clients: a few keys that all clients use, with checks, sums, expiries and messages.

use openkv::model::{
    Arith, AtomicWrite, Attempt, Check, EncodedValue, Encoding, Key, Limits, Message, Mutation,
    RangeCheck, Time, Versionstamp, WriteId, WriteParts,
};

use crate::rng::Rng;

const KEYS: u64 = 5;

fn key(number: u64) -> Key {
    Key::from_encoded(vec![2, b'k', b'a' + number as u8, 0])
}

/// A client, with what it last heard of the keys.
#[derive(Default)]
pub(crate) struct Client {
    /// Calls that it still makes.
    pub(crate) calls: u64,
    heard: Option<u64>,
}

impl Client {
    pub(crate) fn new(calls: u64) -> Self {
        Self { calls, heard: None }
    }

    /// A commit of this client was answered.
    pub(crate) fn hear(&mut self, version: u64) {
        self.heard = Some(version);
    }

    /// A few writes, most with ids. `now_ms`: the time that expiries refer to.
    pub(crate) fn writes(&self, rng: &mut Rng, now_ms: i64) -> Vec<AtomicWrite> {
        let has_ids = rng.below(4) > 0;
        (0..=rng.below(3)).map(|_| self.write(rng, now_ms, has_ids)).collect()
    }

    fn write(&self, rng: &mut Rng, now_ms: i64, has_id: bool) -> AtomicWrite {
        let mut parts = WriteParts::default();
        if has_id {
            // Clients know the time of the server from a while ago.
            let at_ms = now_ms - rng.below(3) as i64;
            let id = WriteId::new(at_ms, [rng.below(1 << 16), rng.below(u64::MAX)]);
            parts.attempt = Some(Attempt::first(id));
        }
        for _ in 0..rng.below(3) {
            parts.checks.push(self.check(rng));
        }
        for _ in 0..rng.below(4) {
            parts.mutations.push(mutation(rng, now_ms));
        }
        match rng.below(20) {
            0 => parts.messages.push(Message { value: vec![1], ..Message::default() }),
            1 => {
                // An empty range: the write holds while there is none of these keys.
                let (start, end, seen) = (key(rng.below(KEYS)), key(KEYS), Vec::new());
                parts.ranges.push(RangeCheck { start, end, seen, found_by: None });
            }
            _ => {}
        }
        AtomicWrite::new(parts, &Limits::default()).expect("within the limits")
    }

    fn check(&self, rng: &mut Rng) -> Check {
        let expected = match rng.below(3) {
            0 => None,
            1 => self.heard.map(Versionstamp::new),
            _ => Some(Versionstamp::new(self.heard.unwrap_or(0) + rng.below(4))),
        };
        Check { key: key(rng.below(KEYS)), expected }
    }
}

/// Half of the expiries are relative to the commit.
fn any_expiry(rng: &mut Rng, now_ms: i64) -> Option<Time> {
    (rng.below(4) == 0).then(|| {
        let ms = rng.pick(&[0, 1, 3, 10, 40, 1000]);
        if rng.below(2) == 0 { Time::After(ms) } else { Time::At(now_ms + ms) }
    })
}

fn mutation(rng: &mut Rng, now_ms: i64) -> Mutation {
    let key = key(rng.below(KEYS));
    let expiry = any_expiry(rng, now_ms);
    match rng.below(8) {
        0 | 1 => {
            let value = EncodedValue { encoding: Encoding::Bytes, bytes: vec![7; 20] };
            Mutation::Set { key, suffixed: false, value, expiry }
        }
        2 => Mutation::Delete { key },
        3 => Mutation::SetExpiry { key, expiry, required: rng.below(2) == 0, shortens: false },
        4 => {
            let value = EncodedValue::le64(rng.below(100));
            Mutation::Set { key, suffixed: false, value, expiry }
        }
        _ => Mutation::Arith { op: Arith::Sum, key, operand: EncodedValue::le64(1) },
    }
}
