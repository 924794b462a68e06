//! Values: the CBOR of docs/format.md §2 ⇄ [`Value`](crate::model::Value).
//!
//! Invariant: every value has exactly one encoding, and only that one is taken: decoding and
//! encoding again gives the same bytes. `js/codec` is the same format; `tests/vectors/values.json` holds
//! both to it. Neither direction recurses, so the depth of a value costs no stack; memory grows
//! with the bytes that are really there and never with a length that they claim.

mod array;
mod decode;
mod decoder;
mod encode;
mod frames;
mod head;
mod lazy;
mod number;
mod special;
#[cfg(test)]
mod tests;
mod view;

use super::Malformed;

pub use array::{array_length, joined, plain_items};
pub use decode::decode;
pub use encode::encode;
pub use lazy::{GoesOn, Item, ItemRef, LazyReader, texts};
pub use number::{encode_bigint, encode_number, number_of};
