//! Values: V8's structured clone format ⇄ [`Value`](crate::model::Value), as Deno KV stores them.
//!
//! Reads format versions 13 to 16, and what Node's and Deno's serializers put into host objects.
//! Writes version 15 with the tags that every reader knows, so that Deno and Node both take it. The
//! facts are those of V8's `value-serializer.cc`, of the serializers of Node and Deno, and of bytes
//! that they have written; `docs/format.md` §2.2 lists them.
//!
//! Invariant: neither direction recurses, and memory grows with the bytes that are really there:
//! less than 64 bytes for each of them, 512 for each level of nesting that they open, and 64 KiB.

mod decode;
mod encode;
mod finish;
mod frames;
mod host;
mod reader;
mod tag;
#[cfg(test)]
mod tests;
mod writer;

use super::Malformed;

pub use decode::decode;
pub use encode::encode;
