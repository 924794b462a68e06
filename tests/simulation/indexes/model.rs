//! The model: entries with typed fields, and what follows from them.

use std::collections::{BTreeMap, BTreeSet};

use openkv::codec::cbor;
use openkv::model::{
    EncodedValue, Encoding, Key, Node, NodeId, OrderPath, Value, ValueIndexRequest, ValueIndexSpec,
};

use crate::rng::Rng;

/// Keys of the entries.
pub(super) const KEYS: u64 = 12;
/// Numbers and texts in fields: few, so that entries share them.
pub(super) const VALUES: u64 = 6;

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Field {
    Absent,
    Null,
    Text(u8),
    Number(u8),
    List(Vec<u8>),
}

/// A place in the order of values: the class, and the value within it.
type Rank = (u8, u8);

impl Field {
    fn any(rng: &mut Rng) -> Self {
        let value = rng.below(VALUES) as u8;
        match rng.below(12) {
            0 => Self::Absent,
            1 => Self::Null,
            2..=4 => Self::Text(value),
            5 => Self::List((0..rng.below(4)).map(|_| rng.below(VALUES) as u8).collect()),
            _ => Self::Number(value),
        }
    }

    fn rank(&self) -> Rank {
        match self {
            Self::Absent => (0, 0),
            Self::Null => (1, 0),
            Self::Text(value) => (2, *value),
            Self::Number(value) => (3, *value),
            Self::List(_) => (4, 0),
        }
    }

    /// The places of what a `multi` index has.
    fn ranks_of_elements(&self) -> BTreeSet<Rank> {
        match self {
            Self::List(list) if !list.is_empty() => list.iter().map(|value| (3, *value)).collect(),
            Self::List(_) => [(0, 0)].into(),
            // A text has another entry, for lists of the texts that contain one.
            Self::Text(_) => [self.rank(), (5, 0)].into(),
            _ => [self.rank()].into(),
        }
    }

    fn push(&self, value: &mut Value) -> Option<NodeId> {
        let number = |value: &u8| Node::Number(f64::from(*value));
        let node = match self {
            Self::Absent => return None,
            Self::Null => Node::Null,
            Self::Text(text) => Node::String(format!("t{text}").into()),
            Self::Number(n) => number(n),
            Self::List(list) => Node::Array(list.iter().map(|n| value.push(number(n))).collect()),
        };
        Some(value.push(node))
    }
}

/// An object of these fields, in CBOR.
pub(super) fn object(fields: &[(&str, Field)]) -> Vec<u8> {
    let mut value = Value::new(Node::Null);
    let pushed = |(name, field): &(&str, Field)| Some(((*name).into(), field.push(&mut value)?));
    let named = fields.iter().filter_map(pushed).collect();
    value.set(value.root_id(), Node::Object(named));
    cbor::encode(&value).expect("a small value")
}

/// An entry.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// Those of the three indexes.
    pub(super) u: Field,
    pub(super) n: Field,
    pub(super) m: Field,
    pub(super) expire_at_ms: Option<i64>,
}

impl Row {
    pub(super) fn any(rng: &mut Rng, now_ms: i64) -> Self {
        let [u, n, m] = [(); 3].map(|()| Field::any(rng));
        // Most values of `u` are one number or text, which can be unique.
        let u = if matches!(u, Field::List(_)) && rng.below(4) > 0 { Field::Null } else { u };
        Self { u, n, m, expire_at_ms: any_expiry(rng, now_ms) }
    }

    pub(super) fn value(&self) -> EncodedValue {
        let Self { u, n, m, .. } = self.clone();
        let bytes = object(&[("u", u), ("n", n), ("m", m)]);
        EncodedValue { encoding: Encoding::Cbor, bytes }
    }

    pub(super) fn is_alive(&self, now_ms: i64) -> bool {
        self.expire_at_ms.is_none_or(|end| end > now_ms)
    }

    /// Whether no unique index can compare `u`.
    pub(super) fn is_unfit(&self) -> bool {
        matches!(self.u, Field::List(_))
    }
}

/// Some entries are written when they have ended already.
pub(super) fn any_expiry(rng: &mut Rng, now_ms: i64) -> Option<i64> {
    (rng.below(3) == 0).then(|| now_ms + rng.pick(&[-1, 1, 5, 20, 100]))
}

pub(super) type Rows = BTreeMap<u8, Row>;

pub(super) fn prefix() -> Vec<u8> {
    vec![2, b'r', 0]
}

pub(super) fn key(number: u8) -> Key {
    Key::from_encoded([prefix(), vec![2, b'a' + number, 0]].concat())
}

/// The number of a key.
pub(super) fn number_of(key: &[u8]) -> Option<u8> {
    (0..KEYS as u8).find(|number| self::key(*number).as_bytes() == key)
}

/// The indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Index {
    /// `u`, unique.
    Unique,
    /// `n`, then `u` descending.
    Ordered,
    /// The elements of `m`.
    Multi,
}

impl Index {
    pub(super) const ALL: [Self; 3] = [Self::Unique, Self::Ordered, Self::Multi];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Unique => "unique",
            Self::Ordered => "ordered",
            Self::Multi => "multi",
        }
    }

    pub(super) fn request(self) -> ValueIndexRequest {
        let path = |path: &str, descending| OrderPath { path: path.to_owned(), descending };
        let on = match self {
            Self::Unique => vec![path("u", false)],
            Self::Ordered => vec![path("n", false), path("u", true)],
            Self::Multi => vec![path("m", false)],
        };
        let spec = ValueIndexSpec {
            name: self.name().to_owned(),
            prefix: Key::from_encoded(prefix()),
            on,
            unique: self == Self::Unique,
            multi: self == Self::Multi,
            sparse: false,
        };
        ValueIndexRequest { spec, replace: false }
    }

    /// The keys of its entries, in order.
    pub(super) fn keys(self, rows: &Rows) -> Vec<u8> {
        let down = |(class, value): Rank| (u8::MAX - class, u8::MAX - value);
        let places = |(key, row): (&u8, &Row)| -> Vec<(Vec<Rank>, u8)> {
            let places = match self {
                Self::Unique => vec![vec![row.u.rank()]],
                Self::Ordered => vec![vec![row.n.rank(), down(row.u.rank())]],
                Self::Multi => {
                    row.m.ranks_of_elements().into_iter().map(|rank| vec![rank]).collect()
                }
            };
            places.into_iter().map(|place| (place, *key)).collect()
        };
        let mut all: Vec<_> = rows.iter().flat_map(places).collect();
        all.sort();
        all.into_iter().map(|(_, key)| key).collect()
    }
}

/// Another living entry with the `u` of this one, of those that a unique index compares.
pub(super) fn twins(rows: &Rows, key: u8, now_ms: i64) -> Vec<u8> {
    let Some(row) = rows.get(&key).filter(|row| row.is_alive(now_ms)) else { return Vec::new() };
    if !matches!(row.u, Field::Text(_) | Field::Number(_)) {
        return Vec::new();
    }
    let is_twin =
        |(other, found): &(&u8, &Row)| **other != key && found.u == row.u && found.is_alive(now_ms);
    rows.iter().filter(is_twin).map(|(other, _)| *other).collect()
}
