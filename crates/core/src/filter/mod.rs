//! Filters: the conditions of `where` (docs/reading.md#filters).
//!
//! Duty: parse a caller's filter object into conditions, and evaluate them on a stored value's
//! bytes. Only the named paths are read, and no value is built.
//! Invariant: the work is bounded by the filter and the value, even for deep, wide or circular
//! ones.
//! Never: a guess. An unknown operator and an operand that cannot be compared are errors that name
//! their place.

mod holds;
mod operand;
mod parse;
mod path;
mod text;

use crate::codec::cbor::GoesOn;
use crate::codec::{Malformed, cbor};
use crate::model::{Encoding, Error, FILTER_BYTES_MAX, Result};
pub(crate) use holds::{Subject, any_element};
pub(crate) use operand::Operand;
pub(crate) use path::Path;
use text::Text;

/// Conditions on a value.
///
/// ```
/// use openkv_core::filter::Filter;
/// use openkv_core::model::Encoding;
/// // { age: { $gte: 18 } }
/// let filter = Filter::parse(b"\xa1\x63age\xa1\x64$gte\x12", 0)?;
/// assert_eq!(filter.matches(Encoding::Cbor, b"\xa1\x63age\x18\x28"), Ok(true));
/// assert_eq!(filter.matches(Encoding::Cbor, b"\xa1\x63age\x0c"), Ok(false));
/// # Ok::<(), openkv_core::model::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Filter(Condition);

/// One condition, or several.
#[derive(Clone, Debug)]
pub(crate) enum Condition {
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Not(Box<Condition>),
    /// Whether the test holds for an item at the end of the path, or for none of them.
    At {
        path: Path,
        negated: bool,
        test: Test,
    },
}

/// The test of one item.
#[derive(Clone, Debug)]
pub(crate) enum Test {
    Exists,
    /// Null, undefined or absent.
    Null,
    /// As `Null`, or with a length of zero.
    Empty,
    /// An array without items.
    EmptyArray,
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
    /// The operator that an array without items meets, beside those of callers.
    pub const EMPTY_ARRAY: &str = parse::EMPTY_ARRAY;

    /// Parses a filter object: CBOR, as JavaScript encodes it. `$now` is `now_ms`.
    ///
    /// # Errors
    /// `Invalid`, naming the place inside the filter.
    pub fn parse(bytes: &[u8], now_ms: i64) -> Result<Self> {
        let len = bytes.len();
        if len > FILTER_BYTES_MAX {
            return Err(Error::too_large(format!(
                "where: too large (max {FILTER_BYTES_MAX} bytes): {len} bytes given"
            )));
        }
        if let Some(condition) = parse::of_one_text(bytes) {
            return Ok(Self(condition));
        }
        let value = cbor::decode(bytes)
            .map_err(|error| Error::invalid(format!("where: {}", error.what())))?;
        parse::parse(&value, now_ms).map(Self)
    }

    /// The conditions, for the choice of an index.
    pub(crate) fn condition(&self) -> &Condition {
        &self.0
    }

    /// Whether a stored value meets the conditions.
    ///
    /// # Errors
    /// Malformed bytes on a path, a value in V8's format, and a value whose shared objects would
    /// cost more than [`FILTER_VISITS_MAX`](crate::model::FILTER_VISITS_MAX) visits.
    pub fn matches(&self, encoding: Encoding, bytes: &[u8]) -> Result<bool, Malformed> {
        // The callback never ends the walk, so there is an answer.
        self.matches_while(encoding, bytes, &|_| true).map(|met| met == Some(true))
    }

    /// As [`Filter::matches`], while `goes_on` returns `true`. It is called with the number of
    /// visited items, every [`FILTER_LOOK_VISITS`](crate::model::FILTER_LOOK_VISITS). `None` when
    /// it has returned `false`.
    pub fn matches_while(
        &self,
        encoding: Encoding,
        bytes: &[u8],
        goes_on: GoesOn<'_>,
    ) -> Result<Option<bool>, Malformed> {
        let mut room = [0; 8];
        let mut subject = Subject::of_value(encoding, bytes, &mut room)?.asking(goes_on);
        match subject.meets(&self.0) {
            Err(_) if subject.has_ended() => Ok(None),
            met => met.map(Some),
        }
    }
}

#[cfg(test)]
mod tests;
