//! Lists that read an index against scans: random entries, filters, definitions and orders.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use num_bigint::BigInt;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::code::Code;
use super::plan::after;
use super::*;
use crate::codec::cbor;
use crate::filter::Filter;
use crate::model::{
    Encoding, Key, OrderPath, VALUE_INDEX_PART_BYTES_MAX, ValueIndexInfo, ValueIndexSpec,
    ValueIndexState,
};

const NOW_MS: i64 = 1_000;

/// Values in CBOR that filters compare, or cannot.
fn leaves() -> Vec<Vec<u8>> {
    let text = |text: &str| {
        let mut bytes = Vec::new();
        ciborium::into_writer(text, &mut bytes).unwrap();
        bytes
    };
    let date = |ms: f64| {
        let mut bytes = vec![0xc1, 0xfb];
        bytes.extend((ms / 1000.0).to_be_bytes());
        bytes
    };
    let long = "x".repeat(VALUE_INDEX_PART_BYTES_MAX);
    let mut leaves = vec![vec![0xf6], vec![0xf7], vec![0xf4], vec![0xf5]];
    for number in
        [0.0, 1.0, -1.0, 1.5, -1.5, 255.0, 256.0, 65_536.5, 1e300, 5e-324, f64::NAN, 1000.0]
    {
        leaves.push(cbor::encode_number(number));
    }
    leaves.push(cbor::encode_number(f64::INFINITY));
    leaves.push(cbor::encode_number(f64::NEG_INFINITY));
    for number in [BigInt::from(1), BigInt::from(-256), BigInt::from(2).pow(200)] {
        leaves.push(cbor::encode_bigint(&number));
    }
    for string in ["", "a", "ab", "b", "a\0", "a\0b", "a\u{1}", "é", "2026-01-01T00:00:00.000Z"] {
        leaves.push(text(string));
    }
    leaves.extend(["", "a", "b"].map(|end| text(&format!("{long}{end}"))));
    leaves.extend([date(0.0), date(-5.0), date(1000.0), date(f64::NAN)]);
    // Bytes, an empty array, an empty object.
    leaves.extend([vec![0x40], vec![0x41, 0], vec![0x41, 1], vec![0x80], vec![0xa0]]);
    leaves
}

fn array(items: &[Vec<u8>]) -> Vec<u8> {
    [&[0x80 + items.len() as u8][..], &items.concat()].concat()
}

fn object(fields: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = vec![0xa0 + fields.len() as u8];
    for (name, value) in fields {
        bytes.push(0x60 + name.len() as u8);
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(value);
    }
    bytes
}

fn leaf() -> impl Strategy<Value = Vec<u8>> {
    select(leaves())
}

fn field() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => leaf(),
        1 => vec(leaf(), 0..4).prop_map(|items| array(&items)),
        1 => vec(leaf(), 1..3).prop_map(|items| {
            array(&items.into_iter().map(|item| object(&[("d", item)])).collect::<Vec<_>>())
        }),
        1 => leaf().prop_map(|item| object(&[("d", item)])),
    ]
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    let fields = [field().boxed(), field().boxed(), field().boxed()];
    (fields, 0..8_u8).prop_map(|(fields, present)| {
        let named = ["a", "b", "c"].into_iter().zip(fields);
        let kept = named.enumerate().filter(|(at, _)| present & (1 << at) == 0);
        object(&kept.map(|(_, field)| field).collect::<Vec<_>>())
    })
}

const PATHS: [&str; 4] = ["a", "b", "c", "c.d"];

/// An operand that filters accept in each place.
fn operand() -> impl Strategy<Value = Vec<u8>> {
    let refused = |leaf: &Vec<u8>| matches!(leaf[0], 0xf6 | 0xf7 | 0x80 | 0xa0);
    let mut given: Vec<_> = leaves().into_iter().filter(|leaf| !refused(leaf)).collect();
    given.push(object(&[("$now", vec![0xf5])]));
    select(given)
}

fn test() -> impl Strategy<Value = Vec<u8>> {
    let compared = select(vec!["$eq", "$gt", "$gte", "$lt", "$lte", "$ne", "$contains"]);
    prop_oneof![
        4 => (compared, operand()).prop_map(|(name, operand)| object(&[(name, operand)])),
        1 => operand(),
        2 => vec(operand(), 0..4).prop_map(|given| object(&[("$in", array(&given))])),
        1 => (operand(), operand()).prop_map(|(a, b)| object(&[("$between", array(&[a, b]))])),
        1 => (operand(), operand()).prop_map(|(a, b)| object(&[("$gte", a), ("$lt", b)])),
        1 => select(vec![vec![0x60], vec![0x61, b'a'], vec![0x62, b'a', 0], vec![0x41, 0]])
            .prop_map(|start| object(&[("$startsWith", start)])),
        1 => any::<bool>().prop_map(|given| object(&[("$null", vec![0xf4 + u8::from(given)])])),
        1 => Just(object(&[("$exists", vec![0xf5])])),
    ]
}

fn condition() -> impl Strategy<Value = Vec<u8>> {
    let one = || (select(&PATHS[..]), test()).prop_map(|(path, test)| object(&[(path, test)]));
    let two = || (one(), one());
    prop_oneof![
        4 => one(),
        2 => two().prop_map(|(a, b)| object(&[("$and", array(&[a, b]))])),
        2 => two().prop_map(|(a, b)| object(&[("$or", array(&[a, b]))])),
        1 => (one(), two()).prop_map(|(a, (b, c))| {
            object(&[("$and", array(&[a, object(&[("$or", array(&[b, c]))])]))])
        }),
        1 => one().prop_map(|a| object(&[("$not", a)])),
    ]
}

fn paths(least: usize) -> impl Strategy<Value = Vec<OrderPath>> {
    let chosen = proptest::sample::subsequence(&PATHS[..], least..=3).prop_shuffle();
    (chosen, any::<u8>()).prop_map(|(chosen, directions)| {
        let path = |(at, path): (usize, &&str)| OrderPath {
            path: (*path).to_owned(),
            descending: directions & (1 << at) != 0,
        };
        chosen.iter().enumerate().map(path).collect()
    })
}

fn index(id: i64, on: Vec<OrderPath>, multi: bool, sparse: bool) -> ValueIndex {
    let spec = ValueIndexSpec {
        name: id.to_string(),
        prefix: Key::from_encoded(vec![2, b'p', 0]),
        on,
        unique: false,
        multi,
        sparse,
    };
    spec.check().unwrap();
    let state = ValueIndexState::Ready;
    ValueIndex::new(ValueIndexInfo { id, spec, state, scanned: 0 }).unwrap()
}

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// Entries of indexes, as an engine has them.
struct Entries(Vec<BTreeSet<Vec<u8>>>);

impl Entries {
    fn of(indexes: &[ValueIndex], rows: &Rows) -> Self {
        let entries = |index: &ValueIndex| {
            rows.iter().flat_map(|(key, value)| index.entries(key, Encoding::Cbor, value)).collect()
        };
        Self(indexes.iter().map(entries).collect())
    }

    fn walk(
        &self,
        id: i64,
        (lo, hi): (&[u8], &[u8]),
        reverse: bool,
        visit: &mut dyn FnMut(&[u8]) -> bool,
    ) {
        if lo >= hi {
            return;
        }
        let range = self.0[id as usize]
            .range::<[u8], _>((std::ops::Bound::Included(lo), std::ops::Bound::Excluded(hi)));
        let mut visit = |entry: &Vec<u8>| visit(entry);
        let _done = if reverse { range.rev().all(&mut visit) } else { range.clone().all(visit) };
    }
}

fn key(at: usize) -> Vec<u8> {
    vec![2, b'p', 0, 0x15, at as u8]
}

const START: [u8; 4] = [2, b'p', 0, 0];
const END: [u8; 4] = [2, b'p', 0, 0xff];

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn a_list_by_keys_finds_what_a_scan_finds(
        values in vec(value(), 1..12),
        by in condition(),
        definitions in vec((paths(1), any::<bool>(), any::<bool>()), 1..4),
        max in 1..5_usize,
        reverse in any::<bool>(),
        bounds in any::<(Index, Index)>(),
    ) {
        let rows: Rows = values.into_iter().enumerate().map(|(at, value)| (key(at), value)).collect();
        let indexes: Vec<_> = definitions.into_iter().enumerate()
            .map(|(id, (on, multi, sparse))| index(id as i64, on, multi, sparse)).collect();
        let filter = Filter::parse(&by, NOW_MS).unwrap();
        let mut start = key(bounds.0.index(rows.len()));
        let mut end = key(bounds.1.index(rows.len()));
        if start > end {
            (start, end) = (START.to_vec(), END.to_vec());
        }
        let matches = |key: &Vec<u8>| filter.matches(Encoding::Cbor, &rows[key]).unwrap();
        let mut expected: Vec<_> =
            rows.keys().filter(|key| **key >= start && **key < end && matches(key)).cloned().collect();
        if reverse {
            expected.reverse();
        }
        let Some(plan) = plan_keys(&indexes, &filter, &start, &end) else { return Ok(()) };
        let entries = Entries::of(&indexes, &rows);
        let mut found = Vec::new();
        for _ in 0..=rows.len() {
            let bounds = (start.as_slice(), end.as_slice());
            let gathered = gather(&indexes, &plan, bounds, reverse, max, &mut |id, range, reverse, visit| {
                entries.walk(id, range, reverse, visit);
                Ok(())
            }).unwrap().unwrap();
            if let Some(last) = gathered.keys.last() {
                if reverse {
                    end = last.clone();
                } else {
                    start = [last.as_slice(), &[0]].concat();
                }
            }
            found.extend(gathered.keys);
            if gathered.is_complete {
                break;
            }
        }
        found.retain(&matches);
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn a_list_in_order_is_sorted_and_finds_what_a_scan_finds(
        values in vec(value(), 1..12),
        by in proptest::option::of(condition()),
        definitions in vec((paths(1), any::<bool>(), any::<bool>()), 1..6),
        order in paths(1),
        mut max in 1..5_usize,
    ) {
        let rows: Rows = values.into_iter().enumerate().map(|(at, value)| (key(at), value)).collect();
        let indexes: Vec<_> = definitions.into_iter().enumerate()
            .map(|(id, (on, multi, sparse))| index(id as i64, on, multi, sparse)).collect();
        let filter = by.map(|by| Filter::parse(&by, NOW_MS).unwrap());
        let order = parse_paths(&order).unwrap();
        let Some(plan) = plan_order(&indexes, filter.as_ref(), &order, &START, &END) else {
            return Ok(());
        };
        let entries = Entries::of(&indexes, &rows);
        let (mut position, mut found) = (None, Vec::new());
        loop {
            let after = position.as_deref();
            let mut visited = 0;
            let next = gather_ordered(&indexes, &plan, (&START, &END), after, max, &mut |id, range, reverse, visit| {
                entries.walk(id, range, reverse, &mut |entry| {
                    visited += 1;
                    visit(entry)
                });
                Ok(())
            }).unwrap();
            prop_assert_eq!(next.visited, visited);
            prop_assert!(visited as usize <= (max + 1) * plan.ranges.len());
            found.extend(next.entries.iter().map(|(_, key)| key.clone()));
            match next.next {
                Some(next_position) => {
                    prop_assert!(next.entries.len() >= max, "fewer than requested");
                    position = Some(next_position);
                }
                None => break,
            }
            max *= 2;
        }
        let matches = |key: &Vec<u8>| filter.as_ref()
            .is_none_or(|filter| filter.matches(Encoding::Cbor, &rows[key]).unwrap());
        found.retain(&matches);
        let keys: BTreeSet<_> = found.iter().cloned().collect();
        prop_assert_eq!(keys.len(), found.len(), "an entry comes twice");
        let expected: BTreeSet<_> = rows.keys().filter(|key| matches(key)).cloned().collect();
        prop_assert_eq!(keys, expected);
        let code = |key: &Vec<u8>| {
            let code = order_code(&order, key, Encoding::Cbor, &rows[key]);
            code[..code.len() - key.len()].to_vec()
        };
        prop_assert!(found.is_sorted_by_key(code));
    }

    #[test]
    fn the_key_of_an_entry_is_found_behind_its_codes(
        value in value(), on in paths(1), multi in any::<bool>(),
    ) {
        let index = index(0, on, multi, false);
        let entries = index.entries(&key(7), Encoding::Cbor, &value);
        prop_assert!(!entries.is_empty());
        for entry in entries {
            prop_assert_eq!(index.key_of(&entry), Some(&key(7)[..]));
        }
    }

    #[test]
    fn codes_of_numbers_are_in_their_order(a in any::<f64>(), b in any::<f64>(), n in any::<i64>()) {
        let code = |n: f64| Code::of_number(n).bytes;
        if let Some(order) = a.partial_cmp(&b) {
            prop_assert_eq!(code(a).cmp(&code(b)), order);
        }
        let whole = (n >> 11) as f64;
        prop_assert_eq!(code(whole), Code::of_bigint(&BigInt::from(n >> 11)).bytes);
        let next = Code::of_bigint(&BigInt::from((n >> 11) + 1)).bytes;
        prop_assert_eq!(code(whole).cmp(&next), Ordering::Less);
    }
}

#[test]
fn a_step_of_an_ordered_list_continues_where_the_shortest_range_ended() {
    let index = index(0, vec![path("a"), path("b")], false, false);
    let indexes = [index];
    let number = |n: usize| cbor::encode_number(n as f64);
    let (count, max) = (8192, 1000);
    let rows: Rows = (0..count)
        .map(|at| {
            let [high, low] = (at as u16).to_be_bytes();
            let key = vec![2, b'p', 0, 0x16, high, low];
            (key, object(&[("a", number(usize::from(at % 8 == 0))), ("b", number(at))]))
        })
        .collect();
    let entries = Entries::of(&indexes, &rows);
    let by = object(&[("a", object(&[("$in", array(&[number(0), number(1)]))]))]);
    let filter = Filter::parse(&by, NOW_MS).unwrap();
    for descending in [false, true] {
        let order = parse_paths(&[OrderPath { path: "b".to_owned(), descending }]).unwrap();
        let plan = plan_order(&indexes, Some(&filter), &order, &START, &END).unwrap();
        let (mut position, mut found, mut steps) = (None, Vec::new(), 0);
        loop {
            let after = position.as_deref();
            let next = gather_ordered(
                &indexes,
                &plan,
                (&START, &END),
                after,
                max,
                &mut |id, range, reverse, visit| {
                    entries.walk(id, range, reverse, visit);
                    Ok(())
                },
            )
            .unwrap();
            steps += 1;
            found.extend(next.entries.into_iter().map(|(_, key)| key));
            match next.next {
                Some(next) => position = Some(next),
                None => break,
            }
        }
        let mut expected: Vec<_> = rows.keys().cloned().collect();
        if descending {
            expected.reverse();
        }
        assert!(steps > 2);
        assert_eq!(found, expected);
    }
}

fn path(path: &str) -> OrderPath {
    OrderPath { path: path.to_owned(), descending: false }
}

#[test]
fn unique_values_are_those_that_can_be_compared() {
    let index = index(0, vec![path("a")], false, false);
    let of = |value: Vec<u8>| {
        index.unique_values(Encoding::Cbor, &object(&[("a", value)])).map(|values| values.len())
    };
    assert_eq!(of(vec![0x01]), Ok(1));
    assert_eq!(of(vec![0xf6]), Ok(0));
    assert_eq!(index.unique_values(Encoding::Cbor, &object(&[])), Ok(Vec::new()));
    assert_eq!(of(vec![0x80]), Err(Unfit::NotComparable));
    let mut long = Vec::new();
    ciborium::into_writer(&"x".repeat(VALUE_INDEX_PART_BYTES_MAX + 1), &mut long).unwrap();
    assert_eq!(of(long), Err(Unfit::TooLong));
    assert_eq!(index.unique_values(Encoding::V8, b"x"), Err(Unfit::NotComparable));
}

/// An update that leaves the indexed values alone once stored all entries again.
#[test]
fn a_change_leaves_the_entries_alone_that_stay() {
    let mut index = index(0, vec![path("a")], true, false);
    let value = |numbers: &[u8]| {
        let numbers: Vec<_> = numbers.iter().map(|n| vec![*n]).collect();
        object(&[("a", array(&numbers))])
    };
    let changed = |index: &ValueIndex, old: &[u8], new: &[u8]| {
        let mut all = Vec::new();
        let (old, new) = (value(old), value(new));
        let (old, new) = (Some((Encoding::Cbor, &old[..])), Some((Encoding::Cbor, &new[..])));
        changes(std::slice::from_ref(index), &key(1), old, new, &mut |_, change| {
            all.extend(change.each().map(|(entry, added)| (entry.to_vec(), added)));
            Ok(())
        })
        .unwrap();
        all
    };
    let [_, two, three] =
        [1, 2, 3].map(|n| index.entries(&key(1), Encoding::Cbor, &value(&[n])).pop().unwrap());
    assert_eq!(changed(&index, &[1, 2], &[1, 3]), [(two, false), (three.clone(), true)]);
    assert_eq!(changed(&index, &[1], &[1]), []);
    // One that is being built may lack an entry of the old value.
    index.info.state = ValueIndexState::Building;
    assert_eq!(changed(&index, &[3], &[3]), [(three, true)]);
}

#[test]
fn the_first_bytes_behind_a_beginning_are_the_next_ones() {
    assert_eq!(after(&[1, 0xff]), [2]);
    assert_eq!(after(&[1, 2]), [1, 3]);
    assert_eq!(after(&[0xff]), [0xff, 0xff]);
}
