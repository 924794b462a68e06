//! The messages of the data path ⇄ ranges, entries and writes.
//!
//! Each request has a file with its four directions: `write_request` (a client), `read_request` (a
//! server), `write_answer` (a server), `read_answer` (a client). What a server reads is held to
//! [`Limits`](crate::model::Limits) in the order and with the words of Deno's own server, so that
//! clients that match on them find them.
//!
//! Values are in V8's format on the wire and in CBOR in openkv's own files; they are rewritten here.
//! A value that lies in V8's format in the file (Deno's own files) goes through as it is.

pub mod atomic_write;
mod bytes;
pub mod snapshot_read;
mod sum;
#[cfg(test)]
mod tests;
pub mod value;
pub mod watch;

use crate::model::{EncodedValue, Key, Versionstamp};

/// An entry that has come over the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its key.
    pub key: Key,
    /// The commit that wrote it.
    pub stamp: Versionstamp,
    /// Its value, no longer in V8's format.
    pub value: EncodedValue,
}
