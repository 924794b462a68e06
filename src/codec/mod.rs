//! Bytes ⇄ model.
//!
//! Duty: the byte formats of `docs/format.md` and the framing of streams, each in one file, both
//! directions together.
//! Invariant: total. Every input gives a value or [`Malformed`]; work and memory are bounded by the
//! input's length, and the stack by a constant.
//! Never: I/O, a panic, a guess. A reader accepts exactly what the writer writes.

pub mod cbor;
pub mod framing;
#[cfg(test)]
pub(crate) mod hex;
pub mod key;
mod malformed;
pub mod transcode;
pub mod uuid;
pub mod v8;

pub use malformed::Malformed;
