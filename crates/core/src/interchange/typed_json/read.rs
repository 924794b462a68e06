//! Typed JSON → stored value.
//!
//! One loop with an explicit stack, as the decoder of CBOR: a frame collects the children of a
//! container, and knows the place of the one that is being read.

use std::collections::HashMap;
use std::fmt::Write;

use num_bigint::BigInt;

use super::scalar;
use crate::codec::cbor;
use crate::interchange::json::order_names;
use crate::model::{
    EncodedValue, Encoding, Error, ErrorName, ErrorProperties, JsString, Node, NodeId, Result,
    VALUE_DEPTH_MAX, Value, ViewClass,
};

/// Most characters of a place in an error, from the outside.
const PLACE_CHARS_MAX: usize = 100;

/// The type of a string that a commit fills in.
const UUIDV7: &str = "uuidv7";

/// Makes the text of a string that a commit fills in, from its name.
pub type Fill<'f> = dyn FnMut(Option<&str>) -> String + 'f;

/// The stored value of a typed object inside parsed JSON. Only with `fill` it may contain strings that a commit
/// fills in.
pub(in crate::interchange) fn stored<'f>(
    json: &Value,
    id: NodeId,
    fill: Option<&'f mut Fill<'f>>,
) -> Result<EncodedValue> {
    let at_root = |what: String| Error::invalid(format!("value: {what}"));
    let (name, inner) = scalar::envelope(json, id).map_err(at_root)?;
    if name == "KvU64" {
        let n = scalar::integer(inner.and_then(|id| json.node(id))).map_err(at_root)?;
        let n = u64::try_from(&n).map_err(|_| {
            Error::invalid(format!("value: a KvU64 is from 0 to {}: received {n}", u64::MAX))
        })?;
        return Ok(EncodedValue::le64(n));
    }
    let value = read_with(json, id, "value", fill)?;
    if let Some(Node::View(ViewClass::Uint8, bytes)) = value.node(value.root_id()) {
        return Ok(EncodedValue { encoding: Encoding::Bytes, bytes: bytes.to_vec() });
    }
    Ok(EncodedValue { encoding: Encoding::Cbor, bytes: cbor::encode(&value)? })
}

/// The value of a typed object inside parsed JSON; errors begin with `place`.
pub(in crate::interchange) fn read(json: &Value, id: NodeId, place: &str) -> Result<Value> {
    read_with(json, id, place, None)
}

fn read_with<'f>(
    json: &Value,
    id: NodeId,
    place: &str,
    fill: Option<&'f mut Fill<'f>>,
) -> Result<Value> {
    let mut reader = Reader { json, out: Value::new(Node::Undefined), frames: Vec::new(), fill };
    match reader.run(id) {
        Ok(Some(whole)) => Ok(whole),
        Ok(None) => Ok(reader.out),
        Err(what) => Err(Error::invalid(format!("{}: {what}", reader.place(place)))),
    }
}

/// The children of a container in JSON.
#[derive(Clone, Copy)]
enum Source<'j> {
    Items(&'j [NodeId]),
    /// The arrays of a `Map`, each with a key and an item.
    Pairs(&'j [NodeId]),
    Entries(&'j [(JsString, NodeId)]),
    Cause(NodeId),
}

enum Kind {
    Object,
    Array,
    Set,
    Map,
    Error(ErrorProperties),
}

struct Frame<'j> {
    kind: Kind,
    source: Source<'j>,
    /// The children that have been read.
    done: Vec<NodeId>,
}

struct Reader<'j, 'f> {
    json: &'j Value,
    /// The root is the last node to be known; until then it is `undefined`.
    out: Value,
    frames: Vec<Frame<'j>>,
    fill: Option<&'f mut Fill<'f>>,
}

/// The kind of value that an item of JSON begins.
enum Begun<'j> {
    Scalar(Node),
    Whole(Value),
    Container(Kind, Source<'j>),
}

impl<'j> Reader<'j, '_> {
    /// Reads all; `Some` if the root is CBOR, which is a value of its own.
    fn run(&mut self, root: NodeId) -> Result<Option<Value>, String> {
        let mut next = root;
        loop {
            let mut done = match self.begin(next)? {
                Begun::Scalar(node) => Some(self.add(node)),
                Begun::Whole(value) if self.frames.is_empty() => return Ok(Some(value)),
                Begun::Whole(value) => Some(self.out.absorb(value)),
                Begun::Container(kind, source) => {
                    self.frames.push(Frame { kind, source, done: Vec::new() });
                    None
                }
            };
            next = loop {
                let Some(frame) = self.frames.last_mut() else { return Ok(None) };
                frame.done.extend(done.take());
                if let Some(child) = child(self.json, frame.source, frame.done.len())? {
                    break child;
                }
                if let Some(frame) = self.frames.pop() {
                    let node = self.finish(frame);
                    done = Some(self.add(node));
                }
            };
        }
    }

    /// Adds a node that is complete: as the root if no frame waits for it.
    fn add(&mut self, node: Node) -> NodeId {
        if !self.frames.is_empty() {
            return self.out.push(node);
        }
        self.out.set(self.out.root_id(), node);
        self.out.root_id()
    }

    fn begin(&mut self, id: NodeId) -> Result<Begun<'j>, String> {
        if self.frames.len() > VALUE_DEPTH_MAX {
            return Err(format!("nested deeper than {VALUE_DEPTH_MAX} levels"));
        }
        let (name, value) = scalar::envelope(self.json, id)?;
        if let Some(node) = scalar::parse(self.json, name, value)? {
            return Ok(Begun::Scalar(node));
        }
        if name == UUIDV7 {
            return self.placeholder(value).map(Begun::Scalar);
        }
        let value = value.and_then(|id| self.json.node(id));
        let items = || match value {
            Some(Node::Array(items)) => Ok(items.as_slice()),
            _ => Err("value must be an array".to_owned()),
        };
        let entries = || match value {
            Some(Node::Object(entries)) => Ok(entries.as_slice()),
            _ => Err("value must be an object".to_owned()),
        };
        Ok(match name {
            "object" => Begun::Container(Kind::Object, Source::Entries(entries()?)),
            "Array" => Begun::Container(Kind::Array, Source::Items(items()?)),
            "Set" => Begun::Container(Kind::Set, Source::Items(items()?)),
            "Map" => Begun::Container(Kind::Map, Source::Pairs(items()?)),
            "KvU64" => return Err("a KvU64 is a value of its own, never inside another".to_owned()),
            "CBOR" => {
                let decoded = cbor::decode(&scalar::bytes(value)?);
                Begun::Whole(decoded.map_err(|_| "not a value in CBOR".to_owned())?)
            }
            _ => match ErrorName::from_name(name) {
                Some(name) => self.error(name, entries()?)?,
                None => return Err(format!("unknown type {name}")),
            },
        })
    }

    fn placeholder(&mut self, name: Option<NodeId>) -> Result<Node, String> {
        let Some(fill) = &mut self.fill else {
            return Err(format!("{UUIDV7} is for values of atomic operations"));
        };
        let name = name.map(|id| scalar::text(self.json.node(id))).transpose()?;
        let name =
            name.map(|name| name.as_str().ok_or("value must be text without lone surrogates"));
        Ok(Node::String(fill(name.transpose()?).as_str().into()))
    }

    fn error(&self, name: ErrorName, entries: &[(JsString, NodeId)]) -> Result<Begun<'j>, String> {
        let mut error = ErrorProperties { name, message: None, stack: None, cause: None };
        let mut cause = None;
        for (name, id) in entries {
            let text = || scalar::text(self.json.node(*id)).cloned();
            match name.as_str() {
                Some("message") => error.message = Some(text()?),
                Some("stack") => error.stack = Some(text()?),
                Some("cause") => cause = Some(*id),
                _ => {}
            }
        }
        Ok(match cause {
            Some(id) => Begun::Container(Kind::Error(error), Source::Cause(id)),
            None => Begun::Scalar(Node::Error(Box::new(error))),
        })
    }

    fn finish(&mut self, frame: Frame<'j>) -> Node {
        let Frame { kind, source, done } = frame;
        match kind {
            Kind::Array => Node::Array(done),
            Kind::Object => {
                let names = match source {
                    Source::Entries(entries) => entries,
                    _ => &[],
                };
                let names = names.iter().map(|(name, _)| name.clone());
                let mut entries: Vec<_> = names.zip(done).collect();
                order_names(&mut entries);
                Node::Object(entries)
            }
            Kind::Set => {
                let kept = self.distinct(&done);
                Node::Set(kept.into_iter().filter_map(|at| done.get(at.0).copied()).collect())
            }
            Kind::Map => {
                let (pairs, _) = done.as_chunks::<2>();
                let keys: Vec<_> = pairs.iter().map(|[key, _]| *key).collect();
                let kept = self.distinct(&keys).into_iter();
                let pair = |(first, last): (usize, usize)| {
                    Some((*keys.get(first)?, pairs.get(last).map(|[_, item]| *item)?))
                };
                Node::Map(kept.filter_map(pair).collect())
            }
            Kind::Error(mut error) => {
                error.cause = done.first().copied();
                Node::Error(Box::new(error))
            }
        }
    }

    /// The first and the last place of each distinct key, as a `Map` distinguishes them: primitives
    /// by value, −0 as 0, objects by identity.
    fn distinct(&mut self, keys: &[NodeId]) -> Vec<(usize, usize)> {
        for id in keys {
            if self.out.node(*id) == Some(&Node::Number(0.0)) {
                self.out.set(*id, Node::Number(0.0));
            }
        }
        let mut kept: Vec<(usize, usize)> = Vec::with_capacity(keys.len());
        let mut places: HashMap<Identity<'_>, usize> = HashMap::new();
        for (at, id) in keys.iter().enumerate() {
            let place = *places.entry(Identity::of(&self.out, *id)).or_insert(kept.len());
            match kept.get_mut(place) {
                Some((_, last)) => *last = at,
                None => kept.push((at, at)),
            }
        }
        kept
    }

    /// The place of the item that is being read: `value.name[3]`.
    fn place(&self, outermost: &str) -> String {
        let mut place = outermost.to_owned();
        for frame in &self.frames {
            let at = frame.done.len();
            let _ = match frame.source {
                Source::Items(_) => write!(place, "[{at}]"),
                Source::Pairs(_) => write!(place, "[{}][{}]", at / 2, at % 2),
                Source::Entries(entries) => {
                    let name = entries.get(at).map(|(name, _)| name.as_wtf8()).unwrap_or_default();
                    write!(place, ".{}", String::from_utf8_lossy(name))
                }
                Source::Cause(_) => write!(place, ".cause"),
            };
            if let Some((end, _)) = place.char_indices().nth(PLACE_CHARS_MAX) {
                place.truncate(end);
                place.push('…');
                break;
            }
        }
        place
    }
}

/// The child of a container after the first `at` ones; `None` behind the last one.
fn child(json: &Value, source: Source<'_>, at: usize) -> Result<Option<NodeId>, String> {
    Ok(match source {
        Source::Items(items) => items.get(at).copied(),
        Source::Entries(entries) => entries.get(at).map(|(_, id)| *id),
        Source::Cause(id) => (at == 0).then_some(id),
        Source::Pairs(pairs) => match pairs.get(at / 2).map(|id| json.node(*id)) {
            None => None,
            Some(Some(Node::Array(pair))) if pair.len() == 2 => pair.get(at % 2).copied(),
            Some(_) => return Err("must be a pair".to_owned()),
        },
    })
}

/// Equal for two keys that a `Map` treats as the same.
#[derive(PartialEq, Eq, Hash)]
enum Identity<'v> {
    Undefined,
    Null,
    Bool(bool),
    Number(u64),
    BigInt(&'v BigInt),
    String(&'v JsString),
    Object(NodeId),
}

impl<'v> Identity<'v> {
    fn of(value: &'v Value, id: NodeId) -> Self {
        match value.node(id) {
            Some(Node::Undefined) => Self::Undefined,
            Some(Node::Null) => Self::Null,
            Some(Node::Bool(b)) => Self::Bool(*b),
            Some(Node::Number(n)) if n.is_nan() => Self::Number(f64::NAN.to_bits()),
            Some(Node::Number(n)) => Self::Number(n.to_bits()),
            Some(Node::BigInt(n)) => Self::BigInt(n),
            Some(Node::String(text)) => Self::String(text),
            _ => Self::Object(id),
        }
    }
}
