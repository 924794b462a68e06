//! A decoded value: a graph of nodes in one arena.
//!
//! A JavaScript object has identity and can occur in several places, also inside itself. Here it is
//! a [`NodeId`] that occurs several times. Cycles therefore need no special case, dropping a value
//! does not recurse, and a walk with an explicit stack does not use the call stack.

use num_bigint::BigInt;

use super::JsString;
use crate::named;

/// The index of a node in its [`Value`]. An unknown id gives `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub(super) usize);

/// A JavaScript value of any kind that can be stored.
///
/// ```
/// use openkv_core::model::{Node, Value};
/// let mut value = Value::new(Node::Null);
/// let one = value.push(Node::Number(1.0));
/// // An array that holds 1 and itself.
/// let array = value.root_id();
/// value.set(array, Node::Array(vec![one, array]));
/// ```
#[derive(Clone, Debug)]
pub struct Value {
    pub(super) nodes: Vec<Node>,
}

impl Value {
    /// A value of one node, the root.
    #[must_use]
    pub fn new(root: Node) -> Self {
        Self { nodes: vec![root] }
    }

    /// The root's id.
    pub fn root_id(&self) -> NodeId {
        NodeId(0)
    }

    /// A node; `None` for an unknown id.
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id.0)
    }

    /// Adds a node. It becomes part of the value once another node refers to it.
    pub fn push(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        NodeId(self.nodes.len() - 1)
    }

    /// Replaces a node; ignores an unknown id.
    pub fn set(&mut self, id: NodeId, node: Node) {
        if let Some(place) = self.nodes.get_mut(id.0) {
            *place = node;
        }
    }

    /// Every node, whether or not it is part of the value.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter()
    }

    /// The number of nodes. Every id is below it.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }
}

impl NodeId {
    /// The id as an index below [`Value::node_count`], for tables indexed by node.
    pub const fn index(self) -> usize {
        self.0
    }
}

/// One JavaScript value, which refers to others by id. Rare and large variants are boxed: an array
/// has a node for every number, so the size of a node determines the memory of decoding.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// `undefined`.
    Undefined,
    /// `null`.
    Null,
    /// A boolean.
    Bool(bool),
    /// A number; JavaScript has no separate integers.
    Number(f64),
    /// A bigint.
    BigInt(BigInt),
    /// A string.
    String(JsString),
    /// A plain object or class instance: its own enumerable properties in order, without duplicate
    /// names.
    Object(Vec<(JsString, NodeId)>),
    /// An array without holes or further properties.
    Array(Vec<NodeId>),
    /// An array with holes or further properties: its properties, indexes first and ascending.
    SparseArray {
        /// The length, holes included.
        length: u32,
        /// The properties, as of an object.
        entries: Vec<(JsString, NodeId)>,
    },
    /// A `Map`, in insertion order.
    Map(Vec<(NodeId, NodeId)>),
    /// A `Set`, in insertion order.
    Set(Vec<NodeId>),
    /// A `Date`: ms since the epoch, NaN when invalid.
    Date(f64),
    /// A regular expression.
    RegExp(Box<RegExp>),
    /// A boxed primitive.
    Boxed(Box<Boxed>),
    /// An `Error` or one of its standard subclasses.
    Error(Box<ErrorProperties>),
    /// A `DOMException`.
    DomException(Box<DomException>),
    /// An `ArrayBuffer`.
    Buffer(Box<Buffer>),
    /// A view over its own whole buffer: a typed array or a `DataView`.
    View(ViewClass, Box<[u8]>),
    /// A view over a buffer that other nodes share or that is resizable.
    Window(Box<Window>),
    /// A `Blob`, or a `File` if it has a name.
    Blob(Box<Blob>),
}

impl Node {
    /// Whether the value is a primitive, which has no identity.
    pub fn is_primitive(&self) -> bool {
        matches!(
            self,
            Self::Undefined
                | Self::Null
                | Self::Bool(_)
                | Self::Number(_)
                | Self::BigInt(_)
                | Self::String(_)
        )
    }
}

/// A regular expression. `lastIndex` is not stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegExp {
    /// The `source` property. It may not compile.
    pub source: JsString,
    /// The flags, in alphabetical order.
    pub flags: String,
}

/// The primitive inside a box such as `new Number(1)`.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names are those of the classes")]
pub enum Boxed {
    Boolean(bool),
    Number(f64),
    String(JsString),
    BigInt(BigInt),
}

/// The stored properties of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorProperties {
    /// The class of the decoded error.
    pub name: ErrorName,
    /// Its own `message`, if it has one.
    pub message: Option<JsString>,
    /// Its `stack`, if it has one.
    pub stack: Option<JsString>,
    /// Its own `cause`, if it has one: any value.
    pub cause: Option<NodeId>,
}

named! {
    /// The stored classes of errors; every other error is stored as `Error`.
    #[expect(missing_docs, reason = "the names are those of the classes")]
    pub enum ErrorName {
        Error = "Error",
        EvalError = "EvalError",
        RangeError = "RangeError",
        ReferenceError = "ReferenceError",
        SyntaxError = "SyntaxError",
        TypeError = "TypeError",
        UriError = "URIError",
    }
}

named! {
    /// The classes of views of an `ArrayBuffer`.
    #[expect(missing_docs, reason = "the names are those of the classes")]
    pub enum ViewClass {
        Int8 = "Int8Array",
        Uint8 = "Uint8Array",
        Uint8Clamped = "Uint8ClampedArray",
        Int16 = "Int16Array",
        Uint16 = "Uint16Array",
        Int32 = "Int32Array",
        Uint32 = "Uint32Array",
        BigInt64 = "BigInt64Array",
        BigUint64 = "BigUint64Array",
        Float16 = "Float16Array",
        Float32 = "Float32Array",
        Float64 = "Float64Array",
        DataView = "DataView",
    }
}

impl ViewClass {
    /// Bytes of one element. The length of a `DataView` is in bytes.
    pub const fn element_bytes(self) -> usize {
        match self {
            Self::Int8 | Self::Uint8 | Self::Uint8Clamped | Self::DataView => 1,
            Self::Int16 | Self::Uint16 | Self::Float16 => 2,
            Self::Int32 | Self::Uint32 | Self::Float32 => 4,
            Self::BigInt64 | Self::BigUint64 | Self::Float64 => 8,
        }
    }
}

/// A `DOMException`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomException {
    /// Its message.
    pub message: JsString,
    /// Its name, such as `AbortError`.
    pub name: JsString,
    /// Its stack, if it has one.
    pub stack: Option<JsString>,
}

/// An `ArrayBuffer`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Its contents.
    pub bytes: Vec<u8>,
    /// The maximum size, if it is resizable; at least its length.
    pub max_bytes: Option<u64>,
}

/// A view of part of a buffer, aligned to its element and inside the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The class.
    pub class: ViewClass,
    /// The buffer, a [`Node::Buffer`].
    pub buffer: NodeId,
    /// The offset of its first byte.
    pub offset_bytes: u64,
    /// The number of elements; `None` if it extends to the end of a resizable buffer.
    pub length: Option<u64>,
}

/// A `Blob` or `File`.
#[derive(Clone, Debug, PartialEq)]
pub struct Blob {
    /// Its contents.
    pub bytes: Vec<u8>,
    /// Its media type, possibly empty.
    pub media_type: JsString,
    /// The additional properties of a `File`.
    pub file: Option<FileProperties>,
}

/// The properties of a `File` beyond those of a `Blob`.
#[derive(Clone, Debug, PartialEq)]
pub struct FileProperties {
    /// Its name.
    pub name: JsString,
    /// Its `lastModified`, in ms since the epoch.
    pub last_modified_ms: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_small() {
        // The documented memory of decoding for each byte of input depends on it.
        assert!(size_of::<Node>() <= 40, "{}", size_of::<Node>());
    }

    #[test]
    fn ids_of_other_values_have_no_node() {
        let mut large = Value::new(Node::Null);
        let second = large.push(Node::Null);
        let mut small = Value::new(Node::Null);
        small.set(second, Node::Undefined);
        assert_eq!(small.node(second), None);
        assert_eq!(small.node(small.root_id()), Some(&Node::Null));
    }

    #[test]
    fn classes_are_found_by_name() {
        assert_eq!(ErrorName::from_name("URIError"), Some(ErrorName::UriError));
        assert_eq!(ErrorName::from_name("AggregateError"), None);
        let float16 = ViewClass::from_name("Float16Array");
        assert_eq!(float16.map(ViewClass::element_bytes), Some(2));
    }
}
