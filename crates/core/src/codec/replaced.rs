//! What commits have replaced: blocks of records, and the groups of records of a key (docs/format.md §8).
//!
//! A record says what the entry of a key was before a commit. The records of a key form a chain: each one
//! has the place of the one before. The last record of a chain that ends has the key.

use super::Malformed;
use super::fields::{Fields, put_bytes, put_number};
use crate::model::{HISTORY_BLOCK_BYTES, HISTORY_BLOCK_RECORDS_MAX, HISTORY_CHAIN_RECORDS_MAX};

/// The first byte of a block.
const FORM: u8 = 1;

/// Bits of a record.
const HAS_PREVIOUS: u8 = 1;
const ENDS_CHAIN: u8 = 2;
const HAS_ENTRY: u8 = 4;
const EXPIRES: u8 = 8;

/// From this stored encoding on, the value is spilled.
const SPILLED: u64 = 256;

const DEPTH_BITS: u32 = HISTORY_CHAIN_RECORDS_MAX.ilog2() + 1;
const SLOT_BITS: u32 = HISTORY_BLOCK_RECORDS_MAX.ilog2();

/// The place of a record: its block, its number in that, and how many records its chain has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(u64);

impl Place {
    /// Of a record of a block, the `depth`th of its chain.
    #[must_use]
    pub const fn new(block: u64, slot: usize, depth: usize) -> Self {
        Self((block << SLOT_BITS | slot as u64) << DEPTH_BITS | depth as u64)
    }

    /// From its number; `None` for 0, which no place has.
    #[must_use]
    pub const fn of(number: u64) -> Option<Self> {
        if number == 0 { None } else { Some(Self(number)) }
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }

    /// The block.
    #[must_use]
    pub const fn block(self) -> u64 {
        self.0 >> (SLOT_BITS + DEPTH_BITS)
    }

    /// The number in the block.
    #[must_use]
    pub const fn slot(self) -> usize {
        (self.0 >> DEPTH_BITS & ((1 << SLOT_BITS) - 1)) as usize
    }

    /// How many records the chain has with this one.
    #[must_use]
    pub const fn depth(self) -> usize {
        (self.0 & ((1 << DEPTH_BITS) - 1)) as usize
    }
}

/// The entry of a key before a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replaced<'a> {
    /// The commit.
    pub commit: u64,
    /// The record of the key before this one, in the same chain.
    pub previous: Option<Place>,
    /// The key, if the chain ends with this record.
    pub ends_chain_of: Option<&'a [u8]>,
    /// The entry; `None`: there was none.
    pub entry: Option<ReplacedEntry<'a>>,
}

/// An entry in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplacedEntry<'a> {
    /// The commit that wrote the value.
    pub version: u64,
    /// When it expired or was to expire, in ms since the epoch.
    pub expire_at_ms: Option<i64>,
    /// The value.
    pub value: ReplacedValue<'a>,
}

/// The value of an entry in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplacedValue<'a> {
    /// Its encoding, as it is stored, and its bytes.
    Here(u64, &'a [u8]),
    /// Its encoding, as it is stored, and the number of its place.
    Spilled(u64, i64),
}

/// A block that is being filled.
#[derive(Debug, Default)]
pub struct Block {
    bytes: Vec<u8>,
    record: Vec<u8>,
    records: usize,
    first: u64,
    last: u64,
}

impl Block {
    /// Whether it has no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// The newest commit in it.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.last
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Removes all records.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.records = 0;
    }

    /// Adds a record; returns its number. `None` if the block has no room; an empty block always has.
    /// Commits must not decrease.
    #[must_use]
    pub fn add(&mut self, record: &Replaced<'_>) -> Option<usize> {
        if self.is_empty() {
            self.first = record.commit;
            self.bytes.push(FORM);
            put_number(&mut self.bytes, self.first);
        }
        self.record.clear();
        encode(&mut self.record, record, self.first);
        let bytes = self.bytes.len() + self.record.len() + size_of::<u16>();
        let is_full = bytes > HISTORY_BLOCK_BYTES || self.records == HISTORY_BLOCK_RECORDS_MAX;
        if is_full && !self.is_empty() {
            return None;
        }
        put_bytes(&mut self.bytes, &self.record);
        self.last = record.commit;
        self.records += 1;
        Some(self.records - 1)
    }
}

fn encode(out: &mut Vec<u8>, record: &Replaced<'_>, first: u64) {
    put_number(out, record.commit.saturating_sub(first));
    let expiry = record.entry.and_then(|entry| entry.expire_at_ms);
    out.push(
        u8::from(record.previous.is_some()) * HAS_PREVIOUS
            + u8::from(record.ends_chain_of.is_some()) * ENDS_CHAIN
            + u8::from(record.entry.is_some()) * HAS_ENTRY
            + u8::from(expiry.is_some()) * EXPIRES,
    );
    if let Some(place) = record.previous {
        put_number(out, place.number());
    }
    if let Some(key) = record.ends_chain_of {
        put_bytes(out, key);
    }
    let Some(entry) = record.entry else { return };
    put_number(out, entry.version);
    if let Some(end) = expiry {
        out.extend_from_slice(&end.to_le_bytes());
    }
    match entry.value {
        ReplacedValue::Here(encoding, bytes) => {
            put_number(out, encoding);
            out.extend_from_slice(bytes);
        }
        ReplacedValue::Spilled(encoding, place) => {
            put_number(out, encoding);
            put_number(out, place.cast_unsigned());
        }
    }
}

/// The record with a number.
///
/// # Errors
/// For bytes that are not those of a block, and for a number that it does not have.
pub fn record(block: &[u8], slot: usize) -> Result<Replaced<'_>, Malformed> {
    let (first, mut rest) = begin(block)?;
    for _ in 0..slot {
        rest.slice()?;
    }
    decode(first, rest.slice()?)
}

/// Visits all records of a block, in the order of their numbers. An empty block has none.
///
/// # Errors
/// For bytes that are not those of a block; records before the fault have been visited.
pub fn visit<'a>(block: &'a [u8], mut visit: impl FnMut(Replaced<'a>)) -> Result<(), Malformed> {
    if block.is_empty() {
        return Ok(());
    }
    let (first, mut rest) = begin(block)?;
    while !rest.is_at_end() {
        visit(decode(first, rest.slice()?)?);
    }
    Ok(())
}

fn begin(block: &[u8]) -> Result<(u64, Fields<'_>), Malformed> {
    let mut rest = Fields::of(block);
    if rest.byte()? != FORM {
        return Err(Malformed::new("a block of another format", 0));
    }
    Ok((rest.number()?, rest))
}

fn decode(first: u64, record: &[u8]) -> Result<Replaced<'_>, Malformed> {
    let mut rest = Fields::of(record);
    let ahead = rest.number()?;
    let commit = first.checked_add(ahead).ok_or(Malformed::new("a commit that is too large", 0))?;
    let bits = rest.byte()?;
    if bits > HAS_PREVIOUS + ENDS_CHAIN + HAS_ENTRY + EXPIRES {
        return rest.fault("an unknown kind of record");
    }
    let previous = if bits & HAS_PREVIOUS == 0 { None } else { Place::of(rest.number()?) };
    let ends_chain_of = if bits & ENDS_CHAIN == 0 { None } else { Some(rest.slice()?) };
    let entry = if bits & HAS_ENTRY == 0 { None } else { Some(entry(&mut rest, bits)?) };
    Ok(Replaced { commit, previous, ends_chain_of, entry })
}

fn entry<'a>(rest: &mut Fields<'a>, bits: u8) -> Result<ReplacedEntry<'a>, Malformed> {
    let version = rest.number()?;
    let expire_at_ms = if bits & EXPIRES == 0 { None } else { Some(rest.time()?) };
    let encoding = rest.number()?;
    let value = if encoding < SPILLED {
        ReplacedValue::Here(encoding, rest.all_left())
    } else {
        ReplacedValue::Spilled(encoding, rest.number()?.cast_signed())
    };
    Ok(ReplacedEntry { version, expire_at_ms, value })
}

/// Encodes the records of a chain, as commit and place each, the oldest first.
#[must_use]
pub fn encode_group(records: &[(u64, Place)]) -> Vec<u8> {
    let mut out = Vec::with_capacity(records.len() * 6);
    let (mut commit, mut place) = (0, 0);
    for (next, at) in records {
        put_number(&mut out, next.saturating_sub(commit));
        put_number(&mut out, at.number().saturating_sub(place));
        (commit, place) = (*next, at.number());
    }
    out
}

/// Visits the records of a chain, the oldest first, until `visit` returns `false`.
///
/// # Errors
/// For other bytes; records before the fault have been visited.
pub fn visit_group(
    group: &[u8],
    mut visit: impl FnMut(u64, Place) -> bool,
) -> Result<(), Malformed> {
    let mut rest = Fields::of(group);
    let (mut commit, mut place) = (0_u64, 0_u64);
    while !rest.is_at_end() {
        let (ahead, further) = (rest.number()?, rest.number()?);
        let next = commit.checked_add(ahead).zip(place.checked_add(further));
        let Some((next, number)) = next else { return rest.fault("a number that is too large") };
        (commit, place) = (next, number);
        let Some(at) = Place::of(number) else { return rest.fault("a record without a place") };
        if !visit(commit, at) {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(value: ReplacedValue<'_>, expire_at_ms: Option<i64>) -> Option<ReplacedEntry<'_>> {
        Some(ReplacedEntry { version: 3, expire_at_ms, value })
    }

    fn records() -> Vec<Replaced<'static>> {
        let record =
            |commit, entry| Replaced { commit, previous: None, ends_chain_of: None, entry };
        vec![
            record(7, None),
            record(7, entry(ReplacedValue::Here(3, b"value"), None)),
            Replaced {
                previous: Some(Place::new(9, 4, 2)),
                ends_chain_of: Some(b"key"),
                ..record(8, entry(ReplacedValue::Spilled(259, 300), Some(-1)))
            },
            record(u64::MAX, entry(ReplacedValue::Here(3, b""), Some(i64::MAX))),
        ]
    }

    fn block() -> Block {
        let mut block = Block::default();
        for (slot, record) in records().iter().enumerate() {
            assert_eq!(block.add(record), Some(slot));
        }
        block
    }

    #[test]
    fn every_record_survives_the_round_trip() {
        let block = block();
        assert_eq!(block.last(), u64::MAX);
        let mut found = Vec::new();
        visit(block.bytes(), |record| found.push(record)).unwrap();
        assert_eq!(found, records());
        for (slot, expected) in records().iter().enumerate() {
            assert_eq!(record(block.bytes(), slot), Ok(*expected));
        }
        assert!(record(block.bytes(), 4).is_err());
        visit(&[], |_| panic!("a record")).unwrap();
    }

    #[test]
    fn the_bytes_are_those_of_the_format_page() {
        let mut block = Block::default();
        for record in &records()[1..3] {
            assert!(block.add(record).is_some());
        }
        let place = Place::new(9, 4, 2).number();
        assert_eq!(place, ((9 << 6) + 4) * 32 + 2);
        let expected = [
            &[1, 7][..],
            &[9, 0, 4, 3, 3],
            b"value",
            &[22, 1, 15, 0x82, 0x91, 1],
            &[3],
            b"key",
            &[3, 255, 255, 255, 255, 255, 255, 255, 255, 0x83, 2, 0xac, 2],
        ];
        assert_eq!(block.bytes(), expected.concat());
        let group = encode_group(&[(7, Place::new(1, 0, 1)), (9, Place::new(1, 1, 2))]);
        assert_eq!(group, [7, 0x81, 16, 2, 33]);
    }

    #[test]
    fn a_block_is_bounded() {
        let small = Replaced { commit: 1, previous: None, ends_chain_of: None, entry: None };
        let mut block = Block::default();
        for slot in 0..HISTORY_BLOCK_RECORDS_MAX {
            assert_eq!(block.add(&small), Some(slot));
        }
        assert_eq!(block.add(&small), None);
        block.clear();
        let value = vec![0; HISTORY_BLOCK_BYTES];
        let large = Replaced { entry: entry(ReplacedValue::Here(3, &value), None), ..small };
        assert_eq!((block.add(&large), block.add(&small)), (Some(0), None));
    }

    #[test]
    fn a_place_has_three_parts() {
        let most = (HISTORY_BLOCK_RECORDS_MAX - 1, HISTORY_CHAIN_RECORDS_MAX);
        for (block, (slot, depth)) in [(1, (0, 1)), (1 << 51, most), (5, (17, 3))] {
            let place = Place::new(block, slot, depth);
            assert_eq!((place.block(), place.slot(), place.depth()), (block, slot, depth));
            assert_eq!(Place::of(place.number()), Some(place));
        }
        assert_eq!(Place::of(0), None);
    }

    #[test]
    fn a_group_survives_the_round_trip() {
        let records =
            [(7, Place::new(1, 3, 1)), (7, Place::new(1, 4, 2)), (90, Place::new(8, 0, 3))];
        let mut found = Vec::new();
        visit_group(&encode_group(&records), |commit, place| {
            found.push((commit, place));
            found.len() < 3
        })
        .unwrap();
        assert_eq!(found, records);
    }

    #[test]
    fn other_bytes_are_rejected() {
        let whole = block();
        for end in 0..whole.bytes().len() {
            let mut found = Vec::new();
            let _ = visit(&whole.bytes()[..end], |record| found.push(record));
            assert_eq!(found, records()[..found.len()]);
        }
        for bytes in [&[2][..], &[1], &[1, 0, 2, 0, 16], &[1, 1, 2, 0], &[1, 0, 3, 0, 4, 0]] {
            assert!(visit(bytes, |_| {}).is_err(), "{bytes:?}");
        }
        for bytes in [&[1][..], &[1, 0], &[0x80]] {
            assert!(visit_group(bytes, |_, _| true).is_err(), "{bytes:?}");
        }
    }
}
