//! The messages of the data path ⇄ ranges, entries and writes.
//!
//! Each request has a file with four functions: `write_request` (client), `read_request` (server),
//! `write_answer` (server), `read_answer` (client). A server checks requests against
//! [`Limits`](openkv_core::model::Limits) in the order and with the texts of Deno's server, because
//! clients match on them.
//!
//! Values are in V8's format on the wire and in CBOR in openkv's own files; this module converts
//! them. A value of a file in V8's format (a file of Deno's) is passed on unchanged.

pub mod atomic_write;
mod bytes;
pub mod snapshot_read;
mod sum;
#[cfg(test)]
mod tests;
pub mod value;
pub mod watch;

use openkv_core::model::{EncodedValue, Key, Versionstamp};

/// An entry from the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its key.
    pub key: Key,
    /// The versionstamp of the commit that wrote it.
    pub stamp: Versionstamp,
    /// Its value, converted from V8's format.
    pub value: EncodedValue,
}
