//! Random values with cycles and shared objects, built from random choices.

use num_bigint::BigInt;
use proptest::prelude::*;

use super::*;
use crate::model::{
    Buffer, DomException, ErrorName, ErrorProperties, FileProperties, RegExp, Window,
};

/// Builds one value from a list of choices; once the list is used up, every node is `undefined`.
struct Grower {
    choices: std::vec::IntoIter<u8>,
    value: Value,
    /// Objects that may occur again, including those around the current one.
    objects: Vec<NodeId>,
    names: u32,
}

const NODES_DEEP_MAX: usize = 12;

impl Grower {
    fn grow(choices: Vec<u8>) -> Value {
        let value = Value::new(Node::Undefined);
        let mut grower = Self { choices: choices.into_iter(), value, objects: vec![], names: 0 };
        let root = grower.value.root_id();
        grower.fill(root, 0);
        grower.value
    }

    fn pick(&mut self, below: u8) -> u8 {
        self.choices.next().unwrap_or_default() % below
    }

    fn bytes(&mut self, multiple_of: usize) -> Vec<u8> {
        let len = usize::from(self.pick(4)) * multiple_of;
        (0..len).map(|_| self.pick(255)).collect()
    }

    fn string(&mut self) -> JsString {
        match self.pick(6) {
            0 => "".into(),
            1 => "😀é".into(),
            2 => JsString::from_wtf8(b"a\xed\xb0\x80\xed\xa0\xbd".to_vec()).unwrap(),
            3 => "x".repeat(usize::from(self.pick(255))).into(),
            _ => format!("{}", self.pick(255)).into(),
        }
    }

    fn number(&mut self) -> f64 {
        match self.pick(5) {
            0 => f64::from(self.pick(255)),
            1 => -f64::from(self.pick(255)).exp2(),
            2 => f64::from(self.pick(255)) / 8.0,
            3 => {
                [-0.0, f64::NAN, f64::INFINITY, 9_007_199_254_740_993.0][usize::from(self.pick(4))]
            }
            _ => 9_007_199_254_740_991.0 - f64::from(self.pick(255)),
        }
    }

    fn bigint(&mut self) -> BigInt {
        let magnitude = BigInt::from_bytes_be(num_bigint::Sign::Plus, &self.bytes(4));
        if self.pick(2) == 0 { magnitude } else { -magnitude }
    }

    /// A new node or an existing one.
    fn child(&mut self, depth: usize) -> NodeId {
        if let Some(last) = self.objects.len().checked_sub(1)
            && self.pick(4) == 0
        {
            let back = usize::from(self.pick(255)) % (last + 1);
            return self.objects[last - back];
        }
        self.fresh(depth)
    }

    fn fresh(&mut self, depth: usize) -> NodeId {
        let id = self.value.push(Node::Undefined);
        self.fill(id, depth + 1);
        id
    }

    fn children(&mut self, depth: usize) -> Vec<NodeId> {
        (0..self.pick(5)).map(|_| self.child(depth)).collect()
    }

    /// Items without duplicates.
    fn distinct(&mut self, depth: usize) -> Vec<NodeId> {
        let mut items = vec![];
        for _ in 0..self.pick(5) {
            let id = if self.pick(2) == 0 {
                self.names += 1;
                self.value.push(Node::Number(f64::from(self.names)))
            } else {
                let id = self.child(depth);
                if self.value.node(id).is_none_or(Node::is_primitive) || items.contains(&id) {
                    continue;
                }
                id
            };
            items.push(id);
        }
        items
    }

    fn properties(&mut self, depth: usize) -> Vec<(JsString, NodeId)> {
        let count = self.pick(5);
        let entry = |grower: &mut Self| {
            grower.names += 1;
            (format!("name {}", grower.names).into(), grower.child(depth))
        };
        (0..count).map(|_| entry(self)).collect()
    }

    fn sparse_array(&mut self, depth: usize) -> Node {
        let mut entries: Vec<(JsString, NodeId)> = vec![];
        for index in 0..self.pick(3) {
            entries.push((format!("{}", u32::from(index) * 7).into(), self.child(depth)));
        }
        entries.extend(self.properties(depth));
        Node::SparseArray { length: [1000, u32::MAX][usize::from(self.pick(2))], entries }
    }

    fn class(&mut self) -> ViewClass {
        ViewClass::ALL[usize::from(self.pick(13))]
    }

    /// A view of a resizable buffer, new or existing.
    fn window(&mut self) -> Node {
        let is_growing = |id: &&NodeId| matches!(self.value.node(**id), Some(Node::Buffer(buffer)) if buffer.max_bytes.is_some());
        let buffer = self.objects.iter().rfind(is_growing).copied().unwrap_or_else(|| {
            let buffer = Buffer { bytes: vec![7; 64], max_bytes: Some(100) };
            let id = self.value.push(Node::Buffer(Box::new(buffer)));
            self.objects.push(id);
            id
        });
        let Some(Node::Buffer(contents)) = self.value.node(buffer) else { panic!("no buffer") };
        let left = contents.bytes.len();
        let class = self.class();
        let offset = (usize::from(self.pick(255)) % (left + 1)) / class.element_bytes();
        let offset_bytes = offset * class.element_bytes();
        let length = match self.pick(3) {
            0 => None,
            _ => Some(((left - offset_bytes) / class.element_bytes()) as u64),
        };
        Node::Window(Box::new(Window { class, buffer, offset_bytes: offset_bytes as u64, length }))
    }

    fn fill(&mut self, id: NodeId, depth: usize) {
        let choice = self.pick(if depth < NODES_DEEP_MAX { 25 } else { 17 });
        if choice > 6 {
            self.objects.push(id);
            // Until it is filled it must not be a primitive.
            self.value.set(id, Node::Object(vec![]));
        }
        let node = match choice {
            0 => Node::Undefined,
            1 => Node::Null,
            2 => Node::Bool(self.pick(2) == 0),
            3 | 4 => Node::Number(self.number()),
            5 => Node::BigInt(self.bigint()),
            6 => Node::String(self.string()),
            7 => Node::Date([f64::NAN, 0.0, -1.0, 8.64e15, 1.7e12][usize::from(self.pick(5))]),
            8 => Node::RegExp(Box::new(RegExp { source: self.string(), flags: "gi".into() })),
            9 => Node::Boxed(Box::new(match self.pick(4) {
                0 => Boxed::Boolean(self.pick(2) == 0),
                1 => Boxed::Number(self.number()),
                2 => Boxed::String(self.string()),
                _ => Boxed::BigInt(self.bigint()),
            })),
            10 => Node::DomException(Box::new(DomException {
                message: self.string(),
                name: self.string(),
                stack: (self.pick(2) == 0).then(|| self.string()),
            })),
            11 => Node::Buffer(Box::new(Buffer { bytes: self.bytes(1), max_bytes: None })),
            12 => Node::Buffer(Box::new(Buffer { bytes: self.bytes(1), max_bytes: Some(800) })),
            13 => {
                let class = self.class();
                Node::View(class, self.bytes(class.element_bytes()).into())
            }
            14 => self.window(),
            15 | 16 => Node::Blob(Box::new(Blob {
                bytes: self.bytes(1),
                media_type: self.string(),
                file: (choice == 15).then(|| FileProperties {
                    name: self.string(),
                    last_modified_ms: self.number(),
                }),
            })),
            17 => Node::Set(self.distinct(depth)),
            18 => {
                let keys = self.distinct(depth);
                Node::Map(keys.into_iter().map(|key| (key, self.child(depth))).collect())
            }
            19 => self.sparse_array(depth),
            20 => Node::Error(Box::new(ErrorProperties {
                name: [ErrorName::Error, ErrorName::UriError][usize::from(self.pick(2))],
                message: (self.pick(2) == 0).then(|| self.string()),
                stack: (self.pick(2) == 0).then(|| self.string()),
                cause: (self.pick(2) == 0).then(|| self.child(depth)),
            })),
            21 | 22 => Node::Array(self.children(depth)),
            _ => Node::Object(self.properties(depth)),
        };
        self.value.set(id, node);
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    prop::collection::vec(any::<u8>(), 0..400).prop_map(Grower::grow)
}

proptest! {
    #[test]
    fn decoding_gives_back_what_was_encoded(value in any_value()) {
        read(&encode(&value).unwrap());
    }

    #[test]
    fn accepted_bytes_are_canonical(
        value in any_value(), at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in 0..9,
    ) {
        let mut bytes = encode(&value).unwrap();
        let at = at.index(bytes.len());
        match cut {
            0 => bytes.truncate(at),
            1 => { bytes.remove(at); }
            2 => bytes.insert(at, byte),
            _ => bytes[at] = byte,
        }
        if let Ok(value) = decode(&bytes) {
            prop_assert_eq!(encode(&value).unwrap(), bytes);
        }
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        if let Ok(value) = decode(&bytes) {
            prop_assert_eq!(encode(&value).unwrap(), bytes);
        }
    }
}
