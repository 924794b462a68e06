//! Bytes ⇄ model.
//!
//! Duty: the byte formats of `docs/format.md`, each in one file, both directions together.
//! Invariant: total. Whatever bytes come in, the answer is a value or [`Malformed`]; work and memory
//! are bounded by the input's length and the stack by a constant.
//! Never: I/O, a panic, a guess. What a reader takes is what the writer would have written.

pub mod cbor;
pub mod cursor;
pub mod frame;
#[cfg(test)]
pub(crate) mod hex;
pub mod key;
mod malformed;
pub mod transcode;
pub mod uuid;
pub mod v8;

pub use malformed::Malformed;
