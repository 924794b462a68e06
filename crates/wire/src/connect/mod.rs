//! KV Connect, the network protocol of Deno KV: its messages ⇄ the model.
//!
//! Duty: the messages of both ends of the protocol, versions 1 to 3: written and read, by a client
//! and by a server.
//! Invariant: total, like `codec`: any bytes give a value or an error, and their length bounds the
//! memory.
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
