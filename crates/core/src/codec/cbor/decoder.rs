//! The state of a decoding: the reader, the nodes so far, and the shareable objects.

use super::Malformed;
use super::frames::Frame;
use super::head::{Head, Reader};
use crate::model::{Node, NodeId, Value};

/// Placeholder for a node whose content is not read yet. It is an object, because its content may
/// refer to it.
pub(super) const UNFINISHED: Node = Node::Object(Vec::new());

pub(super) struct Decoder<'a> {
    pub(super) reader: Reader<'a>,
    pub(super) value: Value,
    shares: Vec<Share>,
    pub(super) frames: Vec<Frame<'a>>,
}

/// An object in tag 28.
struct Share {
    id: NodeId,
    met_again: bool,
}

impl<'a> Decoder<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            reader: Reader::new(bytes),
            value: Value::new(UNFINISHED),
            shares: Vec::new(),
            frames: Vec::new(),
        }
    }

    /// The value, if no bytes are left and every shareable object was referenced.
    pub(super) fn end(self) -> Result<Value, Malformed> {
        self.reader.end()?;
        if self.shares.iter().any(|share| !share.met_again) {
            return self.reader.fail("invalid value: shareable that is not shared");
        }
        Ok(self.value)
    }

    /// Numbers the node after tag 28 and reads the next head.
    pub(super) fn share(&mut self, id: NodeId) -> Result<Head, Malformed> {
        self.shares.push(Share { id, met_again: false });
        self.reader.head()
    }

    /// The node that tag 29 refers to.
    pub(super) fn shared(&mut self) -> Result<NodeId, Malformed> {
        let start = self.reader;
        let index = usize::try_from(self.reader.count()?).unwrap_or(usize::MAX);
        match self.shares.get_mut(index) {
            Some(share) => {
                share.met_again = true;
                Ok(share.id)
            }
            None => start.fail("invalid value: reference to nothing"),
        }
    }
}
