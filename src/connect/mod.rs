//! KV Connect, the network protocol of Deno KV: its messages ⇄ the model.
//!
//! Duty: both ends of the protocol, versions 1 to 3, in both directions: what a client sends and a
//! server reads, what a server sends and a client reads. A server and a client differ only in which
//! half they call.
//! Invariant: total, like `codec`: whatever bytes come in, the answer is a value or an error, and
//! memory is bounded by their length.
//! Never: I/O, a clock, a socket.
//!
//! | file | what |
//! |---|---|
//! | [`versions`] | the versions, how one is chosen, their headers |
//! | [`metadata`] | the JSON of the first exchange |
//! | [`schema`] | the protobuf messages of the data path |
//! | [`wire`] | those messages ⇄ ranges, entries, writes; V8 ⇄ CBOR on the way |
//! | [`time`] | times as RFC 3339 writes them |

pub mod metadata;
pub mod schema;
pub mod time;
pub mod versions;
pub mod wire;
