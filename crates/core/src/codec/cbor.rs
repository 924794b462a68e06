//! Values: the CBOR of docs/format.md §2 ⇄ [`Value`](crate::model::Value).
//!
//! Invariant: every value has exactly one encoding, and the decoder accepts only that one: decoding
//! and encoding again gives the same bytes. Arrays of numbers are the exception: they may also be
//! packed, and are plain after encoding. `js/codec` implements the same format;
//! `tests/vectors/values.json` tests both. Neither direction recurses, so the depth of a value uses
//! no stack. Memory grows with the bytes present, never with a length that they declare.

mod array;
mod decode;
mod decoder;
mod encode;
mod frames;
mod head;
mod lazy;
mod number;
mod packed;
mod simple;
mod special;
#[cfg(test)]
mod tests;
mod view;

use super::Malformed;

pub use array::{array_length, joined, plain_items};
pub use decode::decode;
pub use encode::encode;
pub(super) use head::{TAG_DATE, Writer};
pub use lazy::{GoesOn, Item, ItemRef, LazyReader, texts};
pub use number::{encode_bigint, encode_number, number_of};
pub use packed::{PACKED_ITEMS_MIN, Packed, unpacked};
pub use simple::{SimpleItem, SimpleReader};
