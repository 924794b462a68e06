//! A decoded value: a graph of nodes in one arena.
//!
//! Objects of JavaScript have identity: one object can be met in several places, and inside itself.
//! Here that is a [`NodeId`] that occurs several times, so cycles cost nothing, dropping a value does
//! not recurse, and a walk that keeps its own stack never needs the machine's.

use num_bigint::BigInt;

use super::JsString;

/// A node's place in its [`Value`]. Ids of another value are answered with `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub(super) usize);

/// A JavaScript value of any kind that can be stored.
///
/// ```
/// use openkv::model::{Node, Value};
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
    #[must_use]
    pub fn root_id(&self) -> NodeId {
        NodeId(0)
    }

    /// A node, `None` if it is not of this value.
    #[must_use]
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id.0)
    }

    /// Adds a node. It is part of the value once another node names it.
    pub fn push(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        NodeId(self.nodes.len() - 1)
    }

    /// Replaces a node; does nothing if it is not of this value.
    pub fn set(&mut self, id: NodeId, node: Node) {
        if let Some(place) = self.nodes.get_mut(id.0) {
            *place = node;
        }
    }

    /// How many nodes the arena holds. Every id is below it.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }
}

impl NodeId {
    /// The id as an index below [`Value::node_count`], for tables beside a value.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0
    }
}

/// One JavaScript value, with others named by id. What is rare and large is boxed: there is a node
/// for every number of an array, so its size is what decoding costs.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// `undefined`.
    Undefined,
    /// `null`.
    Null,
    /// A boolean.
    Bool(bool),
    /// A number. JavaScript has no integers apart from these.
    Number(f64),
    /// A bigint.
    BigInt(BigInt),
    /// A string.
    String(JsString),
    /// A plain object or class instance: its own enumerable properties in order, no name twice.
    Object(Vec<(JsString, NodeId)>),
    /// An array without holes or further properties.
    Array(Vec<NodeId>),
    /// An array with holes or further properties: those that exist, indexes first and ascending.
    SparseArray {
        /// Its length, of which any part may be holes.
        length: u32,
        /// Its properties, like an object's.
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
    /// A view over all of a buffer that is its own: a typed array or a `DataView`.
    View(ViewClass, Box<[u8]>),
    /// A view over a buffer that other nodes share or that can grow.
    Window(Box<Window>),
    /// A `Blob`, or a `File` if it has a name.
    Blob(Box<Blob>),
}

impl Node {
    /// Whether the value has no identity: two equal ones cannot be told apart.
    #[must_use]
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

/// A regular expression. `lastIndex` is not part of a stored one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegExp {
    /// The pattern as its `source` property shows it. Whether it can be compiled is not known.
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

/// What is kept of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorProperties {
    /// Which class it comes back as.
    pub name: ErrorName,
    /// Its own `message`, if it has one.
    pub message: Option<JsString>,
    /// Its `stack`, if it has one.
    pub stack: Option<JsString>,
    /// Its own `cause`, if it has one: any value.
    pub cause: Option<NodeId>,
}

/// Declares an enum whose variants have the names of JavaScript classes.
macro_rules! classes {
    ($(#[$doc:meta])* $type:ident { $($variant:ident = $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "the names are those of the classes")]
        pub enum $type { $($variant,)* }

        impl $type {
            /// The name of the class in JavaScript.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The class of that name, `None` if it is not one of these.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

classes! {
    /// The classes of errors that are kept; every other error is stored as `Error`.
    ErrorName {
        Error = "Error",
        EvalError = "EvalError",
        RangeError = "RangeError",
        ReferenceError = "ReferenceError",
        SyntaxError = "SyntaxError",
        TypeError = "TypeError",
        UriError = "URIError",
    }
}

classes! {
    /// The classes that look into an `ArrayBuffer`.
    ViewClass {
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
    /// Bytes of one element. The length of a `DataView` counts bytes.
    #[must_use]
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
    /// How far it can grow, if it is resizable; at least its length.
    pub max_bytes: Option<u64>,
}

/// A view over a part of a buffer, whose elements lie where the class lets them and inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The class.
    pub class: ViewClass,
    /// The buffer, a [`Node::Buffer`].
    pub buffer: NodeId,
    /// Where it starts, in bytes.
    pub offset_bytes: u64,
    /// How many elements it has; `None` when it reaches to the end of a buffer that can grow.
    pub length: Option<u64>,
}

/// A `Blob` or `File`.
#[derive(Clone, Debug, PartialEq)]
pub struct Blob {
    /// Its contents.
    pub bytes: Vec<u8>,
    /// Its media type, possibly empty.
    pub media_type: JsString,
    /// What a `File` has beyond that.
    pub file: Option<FileProperties>,
}

/// What a `File` has beyond a `Blob`.
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
        // docs: the memory that decoding takes per byte of input follows from this.
        assert!(size_of::<Node>() <= 40, "{}", size_of::<Node>());
    }

    #[test]
    fn ids_of_other_values_name_nothing() {
        let mut large = Value::new(Node::Null);
        let second = large.push(Node::Null);
        let mut small = Value::new(Node::Null);
        small.set(second, Node::Undefined);
        assert_eq!(small.node(second), None);
        assert_eq!(small.node(small.root_id()), Some(&Node::Null));
    }

    #[test]
    fn classes_are_known_by_name() {
        assert_eq!(ErrorName::from_name("URIError"), Some(ErrorName::UriError));
        assert_eq!(ErrorName::from_name("AggregateError"), None);
        let float16 = ViewClass::from_name("Float16Array");
        assert_eq!(float16.map(ViewClass::element_bytes), Some(2));
    }
}
