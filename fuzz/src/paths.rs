//! Paths of value indexes: no value and no path panics, what an index has of stored bytes is what decoding the
//! value and walking its tree finds, and the memory is bounded.

use std::collections::BTreeSet;

use super::within;
use openkv::codec::cbor;
use openkv::index::{ValueIndex, order_code, parse_paths};
use openkv::model::{
    Encoding, FILTER_VISITS_MAX, Key, Node, NodeId, OrderPath, VALUE_INDEX_ELEMENTS_MAX,
    VALUE_INDEX_PART_BYTES_MAX, Value, ValueIndexInfo, ValueIndexSpec, ValueIndexState,
};

const MULTI: u8 = 1;
const SPARSE: u8 = 2;
const DESCENDING: u8 = 4;

/// The key of the entry: a prefix of one part, and a part behind it.
const PREFIX: [u8; 2] = [0x14, 0x01];
const KEY: [u8; 4] = [0x14, 0x01, 0x14, 0x02];

/// The codes of all elements, before equal ones are joined, and the entries that are made of them.
const ELEMENTS_BYTES_MAX: usize =
    VALUE_INDEX_ELEMENTS_MAX * 2 * (2 * VALUE_INDEX_PART_BYTES_MAX + 128);

fn bytes_max(len: usize) -> usize {
    2 * ELEMENTS_BYTES_MAX + len * 64 + 64 * 1024
}

fn path(flags: u8, path: &str) -> OrderPath {
    OrderPath { path: path.to_owned(), descending: flags & DESCENDING != 0 }
}

fn index(flags: u8, on: &str) -> Option<ValueIndex> {
    let spec = ValueIndexSpec {
        name: "p".to_owned(),
        prefix: Key::from_encoded(PREFIX.to_vec()),
        on: vec![path(flags, on)],
        unique: true,
        multi: flags & MULTI != 0,
        sparse: flags & SPARSE != 0,
    };
    spec.check().ok()?;
    let state = ValueIndexState::Ready;
    ValueIndex::new(ValueIndexInfo { id: 1, spec, state, scanned: 0 }).ok()
}

pub(crate) fn check(data: &[u8]) {
    // The kind of the index, the length of its path, the path, then the value.
    let [flags, len, rest @ ..] = data else { return };
    let (on, value) = rest.split_at(usize::from(*len).min(rest.len()));
    let Ok(on) = std::str::from_utf8(on) else { return };
    let Some(index) = index(*flags, on) else { return };
    for encoding in [Encoding::Cbor, Encoding::Bytes, Encoding::Le64, Encoding::V8] {
        let entries = within(bytes_max(data.len()), || index.entries(&KEY, encoding, value));
        assert!(entries.is_sorted_by(|a, b| a < b), "each entry once, in order");
        assert!(entries.iter().all(|entry| index.key_of(entry) == Some(&KEY)));
        if let Ok(values) = index.unique_values(encoding, value) {
            for value in values {
                assert!(entries.contains(&[value.as_slice(), &KEY].concat()));
            }
        }
        let order = parse_paths(&[path(*flags, on)]).expect("as in the index");
        let position = order_code(&order, &KEY, encoding, value);
        if flags & (MULTI | SPARSE) == 0 {
            assert_eq!(entries, [position]);
        }
    }
    if let Ok(value) = cbor::decode(value)
        && let Some(expected) = expected(*flags, &names(on), value, data.len())
    {
        assert_eq!(index.entries(&KEY, Encoding::Cbor, value_of(data, *len)), expected);
    }
}

fn value_of(data: &[u8], len: u8) -> &[u8] {
    data.get(2 + usize::from(len)..).unwrap_or_default()
}

/// The names between the dots of a path.
fn names(path: &str) -> Vec<Vec<u8>> {
    let mut names = vec![Vec::new()];
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'.' => names.push(Vec::new()),
            b'\\' => names.last_mut().expect("a name").push(bytes.next().unwrap_or(byte)),
            _ => names.last_mut().expect("a name").push(byte),
        }
    }
    names
}

/// The entries that follow from the tree of a value. `None` where the extractor may give up: references lead to
/// too many items.
fn expected(flags: u8, names: &[Vec<u8>], value: Value, len: usize) -> Option<Vec<Vec<u8>>> {
    let mut tree = Value::new(Node::Null);
    let root = tree.absorb(value);
    let visits_max = FILTER_VISITS_MAX / len;
    let mut walk = Walk { tree: &tree, found: Vec::new(), visits_left: visits_max };
    walk.follow(root, names)?;
    let Walk { found, visits_left, .. } = walk;
    let lens: Vec<_> = found.iter().map(|id| elements(&tree, *id)).collect();
    let direct = index(flags, "v").expect("a small index");
    let mut entries = |node: Option<Node>, found: Option<NodeId>| {
        let root = tree.root_id();
        let inner = node.map(|node| tree.push(node)).or(found);
        let fields = inner.map(|id| ("v".into(), id)).into_iter().collect();
        tree.set(root, Node::Object(fields));
        let bytes = cbor::encode(&tree).expect("a part of a value that was decoded");
        direct.entries(&KEY, Encoding::Cbor, &bytes)
    };
    if flags & MULTI == 0 {
        return Some(match found.as_slice() {
            [] => entries(None, None),
            [one] => entries(None, Some(*one)),
            // Several values have no order, as an object.
            _ => entries(Some(Node::Object(Vec::new())), None),
        });
    }
    if lens.iter().map(|len| len.unwrap_or(2)).sum::<usize>()
        > visits_left.min(VALUE_INDEX_ELEMENTS_MAX)
    {
        return None;
    }
    let full: Vec<_> = found.iter().zip(lens).filter(|(_, len)| *len != Some(0)).collect();
    if full.is_empty() {
        return Some(entries(None, None));
    }
    let all: BTreeSet<_> = full.iter().flat_map(|(id, _)| entries(None, Some(**id))).collect();
    Some(all.into_iter().collect())
}

/// The number of elements of an array or `Set`.
fn elements(tree: &Value, id: NodeId) -> Option<usize> {
    match tree.node(id)? {
        Node::Array(items) | Node::Set(items) => Some(items.len()),
        Node::SparseArray { entries, .. } => {
            Some(entries.iter().filter(|(name, _)| is_index(name.as_wtf8())).count())
        }
        _ => None,
    }
}

fn is_index(name: &[u8]) -> bool {
    name.iter().all(u8::is_ascii_digit)
}

/// A walk over a tree. `None`: it takes too many visits.
struct Walk<'t> {
    tree: &'t Value,
    found: Vec<NodeId>,
    visits_left: usize,
}

impl Walk<'_> {
    fn follow(&mut self, id: NodeId, names: &[Vec<u8>]) -> Option<()> {
        let Some((name, rest)) = names.split_first() else {
            self.found.push(id);
            return Some(());
        };
        if self.direct(id, name, rest)? {
            return Some(());
        }
        match self.tree.node(id)? {
            Node::Array(items) => {
                for item in items {
                    self.direct(*item, name, rest)?;
                }
            }
            Node::SparseArray { entries, .. } => {
                for (_, item) in entries.iter().filter(|(name, _)| is_index(name.as_wtf8())) {
                    self.direct(*item, name, rest)?;
                }
            }
            _ => {}
        }
        Some(())
    }

    /// Whether the item has something of that name.
    fn direct(&mut self, id: NodeId, name: &[u8], rest: &[Vec<u8>]) -> Option<bool> {
        self.visits_left = self.visits_left.checked_sub(1)?;
        let text = std::str::from_utf8(name).unwrap_or_default();
        let next: Vec<NodeId> = match self.tree.node(id)? {
            Node::Object(entries) | Node::SparseArray { entries, .. } => {
                let found = entries.iter().find(|(found, _)| found.as_wtf8() == name);
                found.map(|(_, item)| *item).into_iter().collect()
            }
            Node::Map(pairs) => {
                let number = text.parse::<f64>().ok().filter(|n| n.to_string() == text);
                let is_named = |(key, _): &&(NodeId, NodeId)| match self.tree.node(*key) {
                    Some(Node::String(found)) => found.as_wtf8() == name,
                    Some(Node::Number(found)) => number == Some(*found),
                    _ => false,
                };
                pairs.iter().filter(is_named).map(|(_, item)| *item).collect()
            }
            Node::Array(items) => {
                let index = text.parse::<usize>().ok().filter(|index| index.to_string() == text);
                index.and_then(|index| items.get(index)).copied().into_iter().collect()
            }
            _ => Vec::new(),
        };
        self.visits_left = self.visits_left.checked_sub(next.len())?;
        for item in &next {
            self.follow(*item, rest)?;
        }
        Some(!next.is_empty())
    }
}
