//! Filters: which values a read or a deletion is about (docs/filters.md).
//!
//! Duty: take the object that a caller wrote apart into conditions, and say whether a stored value
//! meets them, from its bytes: only the paths that are named are read, and nothing is built.
//! Invariant: bounded by the filter and the value: neither deep, nor wide, nor circular ones hang it.
//! Never: a guess. An operator that is not known, and an operand that it cannot compare with, are
//! errors that name their place.

mod holds;
mod operand;
mod parse;
mod path;
mod text;

use crate::codec::cbor::{GoesOn, Item};
use crate::codec::{Malformed, cbor};
use crate::model::{Encoding, Error, FILTER_BYTES_MAX, Result};
use holds::Subject;
use operand::Operand;
use path::Path;
use text::Text;

/// Conditions on a value.
///
/// ```
/// use openkv::filter::Filter;
/// use openkv::model::Encoding;
/// // { age: { $gte: 18 } }
/// let filter = Filter::parse(b"\xa1\x63age\xa1\x64$gte\x12", 0)?;
/// assert_eq!(filter.matches(Encoding::Cbor, b"\xa1\x63age\x18\x28"), Ok(true));
/// assert_eq!(filter.matches(Encoding::Cbor, b"\xa1\x63age\x0c"), Ok(false));
/// # Ok::<(), openkv::model::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Filter(Condition);

/// One condition, or several.
#[derive(Clone, Debug)]
enum Condition {
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Not(Box<Condition>),
    /// Whether the test holds for something that the path leads to, or for none of it.
    At {
        path: Path,
        negated: bool,
        test: Test,
    },
}

/// What is asked of one item.
#[derive(Clone, Debug)]
enum Test {
    Exists,
    /// Null, undefined or not there.
    Null,
    /// As `Null`, and what has a length of zero.
    Empty,
    In(Vec<Operand>),
    EqualFolded(Text),
    Greater(Operand),
    GreaterOrEqual(Operand),
    Less(Operand),
    LessOrEqual(Operand),
    Between(Operand, Operand),
    Contains(Operand),
    Starts(Operand),
    Ends(Operand),
    ContainsFolded(Text),
    StartsFolded(Text),
    EndsFolded(Text),
}

impl Filter {
    /// Takes a filter object apart: CBOR, as JavaScript encodes it. `$now` is `now_ms`.
    ///
    /// # Errors
    /// `Invalid`, naming the place inside the filter.
    pub fn parse(bytes: &[u8], now_ms: i64) -> Result<Self> {
        let len = bytes.len();
        if len > FILTER_BYTES_MAX {
            return Err(Error::invalid(format!(
                "where: too large (max {FILTER_BYTES_MAX} bytes): {len} bytes given"
            )));
        }
        let value = cbor::decode(bytes)
            .map_err(|error| Error::invalid(format!("where: {}", error.what())))?;
        parse::parse(&value, now_ms).map(Self)
    }

    /// Whether a stored value meets the conditions.
    ///
    /// # Errors
    /// Bytes on the way that are no value, a value in V8's format, and one whose objects are met so
    /// often that the filter would not end ([`FILTER_VISITS_MAX`](crate::model::FILTER_VISITS_MAX)).
    pub fn matches(&self, encoding: Encoding, bytes: &[u8]) -> Result<bool, Malformed> {
        // Nothing ends it, so there is an answer.
        self.matches_while(encoding, bytes, &|_| true).map(|met| met == Some(true))
    }

    /// As [`Filter::matches`], as long as `goes_on` answers `true`: it is told of the items that the
    /// filter has come by, every so many ([`FILTER_LOOK_VISITS`](crate::model::FILTER_LOOK_VISITS)).
    /// `None` when it has answered `false`.
    ///
    /// # Errors
    /// As [`Filter::matches`].
    pub fn matches_while(
        &self,
        encoding: Encoding,
        bytes: &[u8],
        goes_on: GoesOn<'_>,
    ) -> Result<Option<bool>, Malformed> {
        let magnitude: [u8; 8];
        let subject = match encoding {
            Encoding::Cbor => Subject::of_cbor(bytes),
            Encoding::Bytes => Subject::of_item(Item::Bytes(bytes)),
            Encoding::Le64 => {
                let n = bytes.try_into().map(u64::from_le_bytes);
                let n = n.map_err(|_| Malformed::new("a KvU64 that is not 8 bytes", 0))?;
                magnitude = n.to_be_bytes();
                let zeros = (n.leading_zeros() / 8) as usize;
                let magnitude = magnitude.get(zeros..).unwrap_or_default();
                Subject::of_item(Item::BigInt { negative: false, magnitude })
            }
            Encoding::V8 => return Err(Malformed::new("a value in V8's format", 0)),
        };
        let mut subject = subject.asking(goes_on);
        match subject.meets(&self.0) {
            Err(_) if subject.has_ended() => Ok(None),
            met => met.map(Some),
        }
    }
}

#[cfg(test)]
mod tests;
