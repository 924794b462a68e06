//! Stored value → typed JSON.

use std::slice::Iter;

use super::scalar;
use super::scalar::{push_bytes, push_digits};
use crate::codec::transcode;
use crate::interchange::json::order_names;
use crate::interchange::json_text::push_string;
use crate::interchange::{decode, le64};
use crate::model::{Encoding, JsString, Node, NodeId, Result, Value, ViewClass};

pub(super) fn push(out: &mut String, encoding: Encoding, bytes: &[u8]) -> Result<()> {
    match encoding {
        Encoding::Le64 => push_digits(out, "KvU64", &le64(bytes)?),
        Encoding::Bytes => push_bytes(out, ViewClass::Uint8.name(), bytes),
        Encoding::Cbor | Encoding::V8 => {
            let value = decode(encoding, bytes)?;
            let start = out.len();
            if !Writer::new(&value, out).run() {
                out.truncate(start);
                match encoding {
                    Encoding::V8 => push_bytes(out, "CBOR", &transcode::to_cbor(bytes)?),
                    _ => push_bytes(out, "CBOR", bytes),
                }
            }
        }
    }
    Ok(())
}

/// A step that is still to be written, the next one last.
enum Step<'v> {
    Text(&'static str),
    Node(NodeId),
    Items(Iter<'v, NodeId>),
    Pairs(Iter<'v, (NodeId, NodeId)>),
    Entries(Iter<'v, (JsString, NodeId)>),
    /// Entries in another order than the stored one.
    Ordered(std::vec::IntoIter<(JsString, NodeId)>),
}

struct Writer<'v, 'o> {
    value: &'v Value,
    out: &'o mut String,
    steps: Vec<Step<'v>>,
    /// By node: whether it has been written. An object that occurs again has an identity, which
    /// the form would lose.
    met: Vec<bool>,
}

impl<'v, 'o> Writer<'v, 'o> {
    fn new(value: &'v Value, out: &'o mut String) -> Self {
        let steps = vec![Step::Node(value.root_id())];
        Self { value, out, steps, met: vec![false; value.node_count()] }
    }

    /// Writes all; `false` if the form cannot express the value.
    fn run(&mut self) -> bool {
        while let Some(step) = self.steps.pop() {
            match step {
                Step::Text(text) => self.out.push_str(text),
                Step::Node(id) => {
                    if !self.node(id) {
                        return false;
                    }
                }
                Step::Items(mut items) => {
                    if let Some(id) = items.next() {
                        self.steps.push(Step::Items(items));
                        self.separate();
                        self.steps.push(Step::Node(*id));
                    }
                }
                Step::Pairs(mut pairs) => {
                    if let Some((key, item)) = pairs.next() {
                        self.steps.push(Step::Pairs(pairs));
                        self.separate();
                        self.out.push('[');
                        self.steps.push(Step::Text("]"));
                        self.steps.push(Step::Node(*item));
                        self.steps.push(Step::Text(","));
                        self.steps.push(Step::Node(*key));
                    }
                }
                Step::Entries(mut entries) => {
                    if let Some((name, id)) = entries.next() {
                        self.steps.push(Step::Entries(entries));
                        self.name(name, *id);
                    }
                }
                Step::Ordered(mut entries) => {
                    if let Some((name, id)) = entries.next() {
                        self.steps.push(Step::Ordered(entries));
                        self.name(&name, id);
                    }
                }
            }
        }
        true
    }

    /// A comma, unless the container was just opened.
    fn separate(&mut self) {
        if !self.out.ends_with(['[', '{']) {
            self.out.push(',');
        }
    }

    fn name(&mut self, name: &JsString, id: NodeId) {
        self.separate();
        push_string(self.out, name);
        self.out.push(':');
        self.steps.push(Step::Node(id));
    }

    fn node(&mut self, id: NodeId) -> bool {
        let Some(node) = self.value.node(id) else { return false };
        if !node.is_primitive()
            && let Some(met) = self.met.get_mut(id.index())
            && std::mem::replace(met, true)
        {
            return false;
        }
        match node {
            Node::Object(entries) => {
                self.open("{\"type\":\"object\",\"value\":{", "}}");
                let mut ordered = entries.clone();
                order_names(&mut ordered);
                self.steps.push(if ordered == *entries {
                    Step::Entries(entries.iter())
                } else {
                    Step::Ordered(ordered.into_iter())
                });
            }
            Node::Array(items) => {
                self.open("{\"type\":\"Array\",\"value\":[", "]}");
                self.steps.push(Step::Items(items.iter()));
            }
            Node::Set(items) => {
                self.open("{\"type\":\"Set\",\"value\":[", "]}");
                self.steps.push(Step::Items(items.iter()));
            }
            Node::Map(pairs) => {
                self.open("{\"type\":\"Map\",\"value\":[", "]}");
                self.steps.push(Step::Pairs(pairs.iter()));
            }
            Node::Error(error) => {
                self.out.push_str(&format!("{{\"type\":\"{}\",\"value\":{{", error.name.name()));
                self.steps.push(Step::Text("}}"));
                for (name, text) in [("message", &error.message), ("stack", &error.stack)] {
                    if let Some(text) = text {
                        self.separate();
                        self.out.push_str(&format!("\"{name}\":"));
                        push_string(self.out, text);
                    }
                }
                if let Some(cause) = error.cause {
                    self.name(&"cause".into(), cause);
                }
            }
            other => return scalar::push(self.out, other),
        }
        true
    }

    fn open(&mut self, start: &str, end: &'static str) {
        self.out.push_str(start);
        self.steps.push(Step::Text(end));
    }
}
