//! Values: V8's structured clone format ⇄ [`Value`](crate::model::Value), as Deno KV stores them.
//!
//! Reads format versions 13 to 16, and the host objects of Node's and Deno's serializers. Writes
//! version 15 with the tags that every reader knows, so that both Deno and Node read it. Sources
//! are V8's `value-serializer.cc`, the serializers of Node and Deno, and bytes that they have
//! written; `docs/format.md` §2.2 lists them.
//!
//! Invariant: neither direction recurses, and memory grows with the bytes present: less than 64
//! bytes for each of them, 512 for each level of nesting, and 64 KiB.

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
pub(super) use writer::Writer;
