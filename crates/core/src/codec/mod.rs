//! Bytes ⇄ model.
//!
//! Duty: the byte formats of `docs/format.md` and the framing of streams, each in one file, both
//! directions together.
//! Invariant: total. Every input gives a value or [`Malformed`]. The length of the input bounds
//! work and memory, a constant bounds the stack.
//! Never: I/O, a panic, a guess. A reader accepts exactly what the writer writes.

pub mod cbor;
pub mod change_log;
mod database_log;
pub mod date;
mod fields;
pub mod framing;
#[cfg(test)]
#[path = "../../../../tests/kit/hex.rs"]
pub(crate) mod hex;
pub mod job_entry;
pub mod key;
mod malformed;
pub mod message_context;
mod message_log;
pub mod replaced;
pub mod schedule;
pub mod transcode;
pub mod turns;
pub mod uuid;
pub mod v8;
pub mod write_log;

pub use malformed::Malformed;

use crate::model::{Error, Kind, Result, VALUE_DEPTH_MAX};

/// The depth inside one more container of an encoded value, within the limit.
fn deeper(depth: usize) -> Result<usize> {
    if depth < VALUE_DEPTH_MAX {
        return Ok(depth + 1);
    }
    let message = format!("Value is nested too deeply (max {VALUE_DEPTH_MAX} levels)");
    Err(Error::new(Kind::Range, message))
}
