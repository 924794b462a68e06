//! Values in the typed JSON of docs/format.md §5: `{"type":"bigint","value":"42"}`.
//!
//! Invariant: lossless. [`parse`] reads what [`push`] writes as the same value, and both agree with
//! `js/interchange`. Neither recurses.

mod read;
pub(super) mod scalar;
mod write;

use crate::model::{EncodedValue, Encoding, Result};

pub use read::Fill;
pub(super) use read::{read, stored};

/// Appends a stored value.
///
/// ```
/// use openkv_core::interchange::typed_json;
/// use openkv_core::model::{EncodedValue, Encoding};
/// let mut text = String::new();
/// typed_json::push(&mut text, Encoding::Cbor, &[0xc2, 0x41, 0x2a])?;
/// assert_eq!(text, r#"{"type":"bigint","value":"42"}"#);
/// let stored = typed_json::parse(&text)?;
/// assert_eq!(stored, EncodedValue { encoding: Encoding::Cbor, bytes: vec![0xc2, 0x41, 0x2a] });
/// # Ok::<(), openkv_core::model::Error>(())
/// ```
///
/// # Errors
/// `Corrupt` for bytes that are no value.
pub fn push(out: &mut String, encoding: Encoding, bytes: &[u8]) -> Result<()> {
    write::push(out, encoding, bytes)
}

/// The stored value of a text. A time must name its zone, and the source of a regular expression is
/// not compiled; otherwise accepts what `js/interchange/decode.ts` accepts.
///
/// # Errors
/// `Invalid`, with the fault and its place; `Range` for a value that is nested too deeply.
pub fn parse(text: &str) -> Result<EncodedValue> {
    let json = super::json::parse(text)?;
    stored(&json, json.root_id(), None)
}

/// As [`parse`], for a value of a write, which may contain `{"type":"uuidv7"}`: a string that the commit fills in, at
/// present the text that `fill` makes. `fill` gets the `value` beside that type, a name.
pub fn parse_with_uuids(text: &str, fill: &mut Fill<'_>) -> Result<EncodedValue> {
    let json = super::json::parse(text)?;
    stored(&json, json.root_id(), Some(fill))
}
