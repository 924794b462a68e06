//! Reads parts of a value without decoding all of it: only the heads on the path are read, other
//! items are skipped.
//!
//! An item that is read is checked as [`decode`](super::decode) checks it; a skipped one is parsed
//! only far enough to find its end. Nothing recurses. The number of items behind references is
//! bounded, because a value can refer to one item many times and a walk over them could take
//! exponential time. Other items need no bound: for each step of a path, a walk over them is at
//! most as long as the value.

use std::ops::Range;

use num_bigint::{BigInt, Sign};

use super::Malformed;
use super::head::{
    Head, Reader, TAG_BIGINT, TAG_DATE, TAG_GENERIC, TAG_MAP, TAG_NEGATIVE_BIGINT, TAG_SET,
    TAG_SHAREABLE, TAG_SHARED, TAG_WTF8,
};
use super::packed::Packed;
use super::special::read_date;
use crate::model::{FILTER_LOOK_VISITS, FILTER_VISIT_BYTES, Node};

/// The start of an item. References are resolved by the [`LazyReader`] of the value.
#[derive(Clone, Copy)]
pub struct ItemRef<'a> {
    reader: Reader<'a>,
    /// Whether a reference led to the item.
    again: bool,
}

/// The head of an item. A container holds the number of its items and the first of them;
/// [`ItemRef::next`] returns the following ones.
#[derive(Clone, Copy)]
pub enum Item<'a> {
    /// `undefined`.
    Undefined,
    /// `null`.
    Null,
    /// A boolean.
    Bool(bool),
    /// A number.
    Number(f64),
    /// A bigint. For a negative one the magnitude is that of `-1 - n`.
    BigInt {
        /// Whether it is below zero.
        negative: bool,
        /// Big-endian, without leading zeros.
        magnitude: &'a [u8],
    },
    /// A string, in WTF-8.
    Text(&'a [u8]),
    /// A `Uint8Array`.
    Bytes(&'a [u8]),
    /// A `Date`, in ms since the epoch; NaN when invalid.
    Date(f64),
    /// The number of items, and the first.
    Array(usize, ItemRef<'a>),
    /// An array of numbers.
    Numbers(Packed<'a>),
    /// An array with holes: the number of pairs of an index or name and an item, and the first
    /// name.
    SparseArray(usize, ItemRef<'a>),
    /// The number of items, and the first.
    Set(usize, ItemRef<'a>),
    /// The number of pairs of a name and an item, and the first name.
    Object(usize, ItemRef<'a>),
    /// The number of pairs of items, and the first key.
    Map(usize, ItemRef<'a>),
    /// A value that filters never compare: an error, a regular expression, a typed array.
    Other,
}

impl Item<'_> {
    /// The number, if it is a bigint.
    pub fn bigint(&self) -> Option<BigInt> {
        match self {
            Self::BigInt { negative, magnitude } => {
                let n = BigInt::from_bytes_be(Sign::Plus, magnitude);
                Some(if *negative { -1 - n } else { n })
            }
            _ => None,
        }
    }
}

/// The state of reading one value: an index of its shareable items, built at the first reference,
/// and the number of items that it may still visit behind references.
pub struct LazyReader<'a> {
    shared: Option<Vec<Reader<'a>>>,
    left: usize,
    /// Items visited since the last call of `goes_on`.
    work: usize,
    goes_on: Option<GoesOn<'a>>,
    ended: bool,
}

/// Receives the number of items visited since the last call; `false` ends the reading.
pub type GoesOn<'a> = &'a dyn Fn(usize) -> bool;

impl<'a> LazyReader<'a> {
    /// A reader that may visit up to so many items behind references.
    #[must_use]
    pub fn new(visits: usize) -> Self {
        Self { shared: None, left: visits, work: 0, goes_on: None, ended: false }
    }

    /// Calls `goes_on` every [`FILTER_LOOK_VISITS`] items.
    #[must_use]
    pub fn asking(self, goes_on: GoesOn<'a>) -> Self {
        Self { goes_on: Some(goes_on), ..self }
    }

    /// Whether `goes_on` ended the reading; errors then say nothing about the value.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Counts visits of items up to `here`, against the bound if a reference led there.
    fn count(&mut self, visits: usize, here: ItemRef<'a>) -> Result<(), Malformed> {
        self.work = self.work.saturating_add(visits);
        if self.work >= FILTER_LOOK_VISITS {
            let done = std::mem::take(&mut self.work);
            self.ended |= self.goes_on.is_some_and(|goes_on| !goes_on(done));
            if self.ended {
                return here.reader.fail("reading was ended");
            }
        }
        if here.again {
            let Some(left) = self.left.checked_sub(visits) else {
                return here.reader.fail("value too intertwined for a filter");
            };
            self.left = left;
        }
        Ok(())
    }

    /// The content of the shareable item with this number.
    fn find(&mut self, from: Reader<'a>, index: u64) -> Result<Reader<'a>, Malformed> {
        let items = match &mut self.shared {
            Some(items) => items,
            empty => empty.insert(shareables(from.rewound())?),
        };
        let found = usize::try_from(index).ok().and_then(|index| items.get(index));
        found.copied().map_or_else(|| from.fail("invalid value: reference to nothing"), Ok)
    }
}

/// Every item in a tag 28, in order. The heads follow each other in the bytes, so nesting needs no
/// stack.
fn shareables(mut reader: Reader<'_>) -> Result<Vec<Reader<'_>>, Malformed> {
    let mut items = Vec::new();
    while reader.end().is_err() {
        match reader.head()? {
            Head::Bytes(len) | Head::Text(len) => drop(reader.body(len)?),
            Head::Tag(TAG_DATE) => drop(reader.float()?),
            Head::Tag(TAG_SHAREABLE) => items.push(reader),
            _ => {}
        }
    }
    Ok(items)
}

/// Calls `show` with the byte range of each string in a value, in order, without its head. Includes
/// names that belong to the format.
///
/// # Errors
/// Bytes that are no value.
pub fn texts(bytes: &[u8], show: &mut dyn FnMut(Range<usize>)) -> Result<(), Malformed> {
    let mut reader = Reader::new(bytes);
    let mut wtf8 = false;
    while reader.end().is_err() {
        let head = reader.head()?;
        match head {
            Head::Bytes(len) | Head::Text(len) => {
                let start = reader.at();
                reader.body(len)?;
                if wtf8 || matches!(head, Head::Text(_)) {
                    show(start..reader.at());
                }
            }
            Head::Tag(TAG_DATE) => drop(reader.float()?),
            _ => {}
        }
        wtf8 = head == Head::Tag(TAG_WTF8);
    }
    Ok(())
}

impl<'a> ItemRef<'a> {
    /// The root of a value.
    #[must_use]
    pub fn of(bytes: &'a [u8]) -> Self {
        Self { reader: Reader::new(bytes), again: false }
    }

    /// Reads the head of the item.
    ///
    /// # Errors
    /// For invalid bytes, and for more visits behind references than the reader allows.
    pub fn open(self, lazy: &mut LazyReader<'a>) -> Result<Item<'a>, Malformed> {
        let (item, again) = self.item(lazy)?;
        let body = match item {
            Item::Text(bytes) | Item::Bytes(bytes) | Item::BigInt { magnitude: bytes, .. } => bytes,
            Item::Numbers(packed) => packed.bytes(),
            _ => &[],
        };
        lazy.count(visits(body), Self { again, ..self })?;
        Ok(item)
    }

    /// The item, and whether a reference led to it.
    fn item(self, lazy: &mut LazyReader<'a>) -> Result<(Item<'a>, bool), Malformed> {
        let Self { mut reader, mut again } = self;
        let mut head = reader.head()?;
        if head == Head::Tag(TAG_SHARED) {
            let index = reader.count()?;
            reader = lazy.find(reader, index)?;
            again = true;
            head = reader.head()?;
        } else if head == Head::Tag(TAG_SHAREABLE) {
            head = reader.head()?;
        }
        let item = match head {
            Head::Undefined => Item::Undefined,
            Head::Null => Item::Null,
            Head::Bool(b) => Item::Bool(b),
            Head::Number(n) => Item::Number(n),
            Head::Text(len) => Item::Text(reader.body(len)?),
            Head::Bytes(len) => Item::Bytes(reader.body(len)?),
            Head::Array(len) => Item::Array(len, Self { reader, again }),
            Head::Map(len) => Item::Object(len, Self { reader, again }),
            Head::Tag(TAG_WTF8) => Item::Text(reader.byte_string()?),
            Head::Tag(tag @ (TAG_BIGINT | TAG_NEGATIVE_BIGINT)) => Item::BigInt {
                negative: tag == TAG_NEGATIVE_BIGINT,
                magnitude: reader.byte_string()?,
            },
            Head::Tag(TAG_DATE) => match read_date(&mut reader)? {
                Node::Date(ms) => Item::Date(ms),
                _ => Item::Other,
            },
            Head::Tag(TAG_SET) => match reader.head()? {
                Head::Array(len) => Item::Set(len, Self { reader, again }),
                _ => return reader.fail("invalid value: Set that is no array"),
            },
            Head::Tag(TAG_MAP) => match reader.head()? {
                Head::Map(len) => Item::Map(len, Self { reader, again }),
                _ => return reader.fail("invalid value: Map that is no map"),
            },
            Head::Tag(TAG_GENERIC) => generic(Self { reader, again }, lazy)?,
            Head::Tag(_) => Item::Other,
        };
        Ok((item, again))
    }

    /// The item after this one.
    pub fn next(self, lazy: &mut LazyReader<'a>) -> Result<Self, Malformed> {
        let Self { mut reader, again } = self;
        let mut left: usize = 1;
        let mut skipped: usize = 0;
        while left > 0 {
            left -= 1;
            skipped += 1;
            let inside = match reader.head()? {
                Head::Bytes(len) | Head::Text(len) => {
                    reader.body(len)?;
                    0
                }
                Head::Array(len) => len,
                Head::Map(len) => len.saturating_mul(2),
                Head::Tag(TAG_DATE) => {
                    reader.float()?;
                    0
                }
                Head::Tag(_) => 1,
                _ => 0,
            };
            left = left.saturating_add(inside);
        }
        let next = Self { reader, again };
        lazy.count(skipped, next)?;
        Ok(next)
    }

    /// The bytes of the item. They are a value of their own, unless they share an object with an item before them.
    pub fn bytes(self, lazy: &mut LazyReader<'a>) -> Result<&'a [u8], Malformed> {
        Ok(self.next(lazy)?.reader.since(self.reader.at()))
    }

    /// Reads a string, in WTF-8, and returns it with the item after it.
    ///
    /// # Errors
    /// If the item is no string; as [`ItemRef::open`].
    pub fn name(self, lazy: &mut LazyReader<'a>) -> Result<(&'a [u8], Self), Malformed> {
        let Self { mut reader, again } = self;
        let name = match reader.head()? {
            Head::Text(len) => reader.body(len)?,
            Head::Tag(TAG_WTF8) => reader.byte_string()?,
            _ => return self.reader.fail("invalid value: no string where there must be one"),
        };
        lazy.count(visits(name), self)?;
        Ok((name, Self { reader, again }))
    }
}

/// The number of visits that an item with this body counts as.
fn visits(body: &[u8]) -> usize {
    1 + body.len() / FILTER_VISIT_BYTES
}

/// The item in tag 27. Filters only need packed arrays, those with holes, and a `Uint8Array` over a shared
/// buffer.
fn generic<'a>(object: ItemRef<'a>, lazy: &mut LazyReader<'a>) -> Result<Item<'a>, Malformed> {
    let ItemRef { mut reader, again } = object;
    let Head::Array(items) = reader.head()? else {
        return reader.fail("invalid value: generic object that is no array");
    };
    let (name, ItemRef { mut reader, .. }) = ItemRef { reader, again }.name(lazy)?;
    match (name, items) {
        (b"Array", 2) => Packed::read(&mut reader).map(Item::Numbers),
        (b"Array", 3) => {
            reader.count()?;
            match reader.head()? {
                Head::Map(len) => Ok(Item::SparseArray(len, ItemRef { reader, again })),
                _ => reader.fail("invalid value: array without its properties"),
            }
        }
        (b"View", 5) => {
            let (class, buffer) = ItemRef { reader, again }.name(lazy)?;
            if class == b"Uint8Array" { window(buffer, lazy) } else { Ok(Item::Other) }
        }
        _ => Ok(Item::Other),
    }
}

/// The bytes of `buffer` that a `Uint8Array` covers; its offset and length follow the buffer.
fn window<'a>(buffer: ItemRef<'a>, lazy: &mut LazyReader<'a>) -> Result<Item<'a>, Malformed> {
    let mut bounds = buffer.next(lazy)?.reader;
    let offset = bounds.count()?;
    let before_length = bounds;
    let length = match bounds.head()? {
        Head::Null => None,
        _ => {
            bounds = before_length;
            Some(bounds.count()?)
        }
    };
    let mut reader = buffer.reader;
    match reader.head()? {
        Head::Tag(TAG_SHARED) => {
            let index = reader.count()?;
            reader = lazy.find(reader, index)?;
            reader.head()?;
        }
        Head::Tag(TAG_SHAREABLE) => drop(reader.head()?),
        _ => {}
    }
    // Tag 27 is already read: ["ArrayBuffer", bytes, …].
    let Head::Array(_) = reader.head()? else { return buffer.reader.fail("invalid value: view") };
    let class = ItemRef { reader, again: buffer.again };
    let bytes = class.name(lazy)?.1.reader.byte_string()?;
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let end = length.map_or(bytes.len(), |length| {
        usize::try_from(length).ok().and_then(|length| start.checked_add(length)).unwrap_or(start)
    });
    let shown = bytes.get(start..end);
    shown.map_or_else(
        || buffer.reader.fail("invalid value: view outside of its buffer"),
        |bytes| Ok(Item::Bytes(bytes)),
    )
}
