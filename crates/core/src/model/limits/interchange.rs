//! Bounds of the texts of keys, values and filters.

use super::MIB;

/// Nesting of JSON. A level of a value takes up to three levels of its typed form,
/// so this is beyond `VALUE_DEPTH_MAX` in each form.
// Public (texts): levels of JSON
pub const JSON_DEPTH_MAX: usize = 4_000;

/// A key as a literal.
// Public (texts): bytes of a key as a literal in a URL
pub const KEY_LITERAL_BYTES_MAX: usize = 16_384;

/// Largest bigint that is written in decimal digits, since the conversion takes more than linear
/// time: a larger one is CBOR in typed JSON, and hexadecimal in plain JSON.
pub const BIGINT_TEXT_BITS_MAX: u64 = 32_768;

/// Decimal digits of a bigint that are read: those of the largest one that is written.
// Public (texts): decimal digits of a bigint in typed JSON
pub const BIGINT_TEXT_DIGITS_MAX: usize = 9_865;

/// Plain JSON of one value after which an object that has been written is not written again: a value
/// can refer to one object from many places.
pub const PLAIN_JSON_REPEATED_BYTES_MAX: usize = 16 * MIB;

/// `where` as JSON.
// Public (filters): bytes of a filter as JSON
pub const WHERE_JSON_BYTES_MAX: usize = 1_048_576;
