//! Looking into a value without decoding it: only the heads on the way are read, and what is not on
//! it is passed over.
//!
//! What is looked at is checked as [`decode`](super::decode) would; what is passed over is only
//! taken apart far enough to find its end. Nothing recurses. Items that are reached by a reference are
//! bounded: a value can hold one item many times, and could be walked without end. Items that stand in
//! the value are not: a walk over them is no longer than the value for each step of a path.

use std::ops::Range;

use num_bigint::{BigInt, Sign};

use super::Malformed;
use super::head::{
    Head, Reader, TAG_BIGINT, TAG_DATE, TAG_GENERIC, TAG_MAP, TAG_NEGATIVE_BIGINT, TAG_SET,
    TAG_SHAREABLE, TAG_SHARED, TAG_WTF8,
};
use super::special::read_date;
use crate::model::{FILTER_LOOK_VISITS, FILTER_VISIT_BYTES, Node};

/// Where an item starts. Items that are met again are looked up in the [`Look`] into their value.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    reader: Reader<'a>,
    /// Whether a reference has led here.
    again: bool,
}

/// What an item is. Containers say where their first item is; [`Place::next`] leads on.
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
    /// A bigint: its magnitude, big-endian without leading zeros; that of `-1 - n` if negative.
    BigInt {
        /// Whether it is below zero.
        negative: bool,
        /// The magnitude.
        magnitude: &'a [u8],
    },
    /// A string, in WTF-8.
    Text(&'a [u8]),
    /// A `Uint8Array`.
    Bytes(&'a [u8]),
    /// A `Date`, in ms since the epoch; NaN when invalid.
    Date(f64),
    /// An array: how many items follow from where.
    Array(usize, Place<'a>),
    /// An array with holes: pairs of an index or name, and an item.
    SparseArray(usize, Place<'a>),
    /// A `Set`: how many items follow from where.
    Set(usize, Place<'a>),
    /// An object: how many pairs of a name and an item follow from where.
    Object(usize, Place<'a>),
    /// A `Map`: how many pairs of items follow from where.
    Map(usize, Place<'a>),
    /// Something that is compared with nothing: an error, a regular expression, a typed array.
    Other,
}

impl Item<'_> {
    /// The number, if it is a bigint.
    #[must_use]
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

/// One look into a value: the places of what the value holds several times, in their order, found
/// when the first is asked for, and how many items it may still come by behind references.
pub struct Look<'a> {
    shared: Option<Vec<Reader<'a>>>,
    left: usize,
    /// Items since `goes_on` was last asked.
    work: usize,
    goes_on: Option<GoesOn<'a>>,
    ended: bool,
}

/// Told of so many items; `false` ends the look.
pub type GoesOn<'a> = &'a dyn Fn(usize) -> bool;

impl<'a> Look<'a> {
    /// A look that may come by so many items behind references.
    #[must_use]
    pub fn new(visits: usize) -> Self {
        Self { shared: None, left: visits, work: 0, goes_on: None, ended: false }
    }

    /// From now on asks this whether to go on, every [`FILTER_LOOK_VISITS`] items.
    #[must_use]
    pub fn asking(self, goes_on: GoesOn<'a>) -> Self {
        Self { goes_on: Some(goes_on), ..self }
    }

    /// Whether it was told not to go on: its errors then say nothing about the value.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// It has come by so many, up to here.
    fn count(&mut self, visits: usize, here: Place<'a>) -> Result<(), Malformed> {
        self.work = self.work.saturating_add(visits);
        if self.work >= FILTER_LOOK_VISITS {
            let done = std::mem::take(&mut self.work);
            self.ended |= self.goes_on.is_some_and(|goes_on| !goes_on(done));
            if self.ended {
                return here.reader.fail("a look was ended");
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

    /// The item with this number, after its tag.
    fn find(&mut self, from: Reader<'a>, index: u64) -> Result<Reader<'a>, Malformed> {
        let places = match &mut self.shared {
            Some(places) => places,
            empty => empty.insert(shareables(from.rewound())?),
        };
        let found = usize::try_from(index).ok().and_then(|index| places.get(index));
        found.copied().map_or_else(|| from.fail("invalid value: reference to nothing"), Ok)
    }
}

/// Every item after a tag 28, in order. Heads stand one behind the other, so no nesting is followed.
fn shareables(mut reader: Reader<'_>) -> Result<Vec<Reader<'_>>, Malformed> {
    let mut places = Vec::new();
    while reader.end().is_err() {
        match reader.head()? {
            Head::Bytes(len) | Head::Text(len) => drop(reader.body(len)?),
            Head::Tag(TAG_DATE) => drop(reader.float()?),
            Head::Tag(TAG_SHAREABLE) => places.push(reader),
            _ => {}
        }
    }
    Ok(places)
}

/// Shows where in a value its strings are, from the first to the last: their characters, and no
/// length of one. So are names that belong to the format.
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

impl<'a> Place<'a> {
    /// The start of a value.
    #[must_use]
    pub fn of(bytes: &'a [u8]) -> Self {
        Self { reader: Reader::new(bytes), again: false }
    }

    /// What is here.
    ///
    /// # Errors
    /// Bytes that are no value, and one that the look has come by too much of.
    pub fn open(self, look: &mut Look<'a>) -> Result<Item<'a>, Malformed> {
        let (item, again) = self.item(look)?;
        let body = match item {
            Item::Text(bytes) | Item::Bytes(bytes) | Item::BigInt { magnitude: bytes, .. } => bytes,
            _ => &[],
        };
        look.count(visits(body), Self { again, ..self })?;
        Ok(item)
    }

    /// What is here, and whether a reference has led to it.
    fn item(self, look: &mut Look<'a>) -> Result<(Item<'a>, bool), Malformed> {
        let Self { mut reader, mut again } = self;
        let mut head = reader.head()?;
        if head == Head::Tag(TAG_SHARED) {
            let index = reader.count()?;
            reader = look.find(reader, index)?;
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
            Head::Tag(TAG_GENERIC) => generic(Self { reader, again }, look)?,
            Head::Tag(_) => Item::Other,
        };
        Ok((item, again))
    }

    /// Where the item after this one starts.
    ///
    /// # Errors
    /// Bytes that are no value, and one that the look has come by too much of.
    pub fn next(self, look: &mut Look<'a>) -> Result<Self, Malformed> {
        let Self { mut reader, again } = self;
        let mut left: usize = 1;
        let mut passed: usize = 0;
        while left > 0 {
            left -= 1;
            passed += 1;
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
        look.count(passed, next)?;
        Ok(next)
    }

    /// A string that must be here, in WTF-8, and where the item after it starts.
    ///
    /// # Errors
    /// Anything else, and as [`Place::next`].
    pub fn name(self, look: &mut Look<'a>) -> Result<(&'a [u8], Self), Malformed> {
        let Self { mut reader, again } = self;
        let name = match reader.head()? {
            Head::Text(len) => reader.body(len)?,
            Head::Tag(TAG_WTF8) => reader.byte_string()?,
            _ => return self.reader.fail("invalid value: no string where there must be one"),
        };
        look.count(visits(name), self)?;
        Ok((name, Self { reader, again }))
    }
}

/// What an item with such a body counts.
fn visits(body: &[u8]) -> usize {
    1 + body.len() / FILTER_VISIT_BYTES
}

/// What follows tag 27. Of these, arrays with holes are stepped into, and a `Uint8Array` over a
/// buffer that others see is compared.
fn generic<'a>(place: Place<'a>, look: &mut Look<'a>) -> Result<Item<'a>, Malformed> {
    let Place { mut reader, again } = place;
    let Head::Array(items) = reader.head()? else {
        return reader.fail("invalid value: generic object that is no array");
    };
    let (name, Place { mut reader, .. }) = Place { reader, again }.name(look)?;
    match (name, items) {
        (b"Array", 3) => {
            reader.count()?;
            match reader.head()? {
                Head::Map(len) => Ok(Item::SparseArray(len, Place { reader, again })),
                _ => reader.fail("invalid value: array without its properties"),
            }
        }
        (b"View", 5) => {
            let (class, buffer) = Place { reader, again }.name(look)?;
            if class == b"Uint8Array" { window(buffer, look) } else { Ok(Item::Other) }
        }
        _ => Ok(Item::Other),
    }
}

/// The bytes that a `Uint8Array` shows of a buffer, which is here; its place follows.
fn window<'a>(buffer: Place<'a>, look: &mut Look<'a>) -> Result<Item<'a>, Malformed> {
    let mut place = buffer.next(look)?.reader;
    let offset = place.count()?;
    let before_length = place;
    let length = match place.head()? {
        Head::Null => None,
        _ => {
            place = before_length;
            Some(place.count()?)
        }
    };
    let mut reader = buffer.reader;
    match reader.head()? {
        Head::Tag(TAG_SHARED) => {
            let index = reader.count()?;
            reader = look.find(reader, index)?;
            reader.head()?;
        }
        Head::Tag(TAG_SHAREABLE) => drop(reader.head()?),
        _ => {}
    }
    // Tag 27 has been read: ["ArrayBuffer", bytes, …].
    let Head::Array(_) = reader.head()? else { return buffer.reader.fail("invalid value: view") };
    let class = Place { reader, again: buffer.again };
    let bytes = class.name(look)?.1.reader.byte_string()?;
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
