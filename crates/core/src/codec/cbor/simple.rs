//! The items of values that have only the types of JSON, one after the other, without a tree.

use super::head::{Head, Reader};
use super::packed::{Packed, packed_of};

/// An item of a type that JSON has.
#[derive(Clone, Copy, Debug)]
pub enum SimpleItem<'a> {
    /// `null`.
    Null,
    /// A boolean.
    Bool(bool),
    /// A number.
    Number(f64),
    /// A string, or the name of a member.
    Text(&'a str),
    /// The number of items, which follow.
    Array(usize),
    /// The items of an array of numbers.
    Numbers(Packed<'a>),
    /// The number of members, which follow: the name and the item of each.
    Object(usize),
}

/// Reads the items of a value in order.
pub struct SimpleReader<'a>(Reader<'a>);

impl<'a> SimpleReader<'a> {
    /// A reader at the beginning of a value.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(Reader::new(bytes))
    }

    /// The next item; `None` for one of another type, and for bytes that are none.
    pub fn item(&mut self) -> Option<SimpleItem<'a>> {
        Some(match self.0.head().ok()? {
            Head::Null => SimpleItem::Null,
            Head::Bool(b) => SimpleItem::Bool(b),
            Head::Number(n) => SimpleItem::Number(n),
            Head::Text(len) => SimpleItem::Text(self.0.text(len).ok()?),
            Head::Array(len) => SimpleItem::Array(len),
            Head::Map(len) => SimpleItem::Object(len),
            Head::Tag(tag) => SimpleItem::Numbers(packed_of(&mut self.0, tag)?),
            Head::Undefined | Head::Bytes(_) => return None,
        })
    }

    /// Whether no bytes are left.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.0.end().is_ok()
    }
}
