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
//! | [`versions`] | which versions there are, who chooses, which headers they have |
//! | [`metadata`] | the JSON of the first exchange |
//! | [`schema`] | the protobuf messages of the data path |
//! | [`wire`] | those messages ⇄ ranges, entries, writes; V8 ⇄ CBOR on the way |
//! | [`frames`] | the streams of messages |
//! | [`consume`] | openkv's own stream of a queue's messages |
//! | [`extension`] | openkv's own requests: names, answers, errors |
//! | [`feed`] | openkv's own stream of changes |
//! | [`database_id`], [`time`] | UUIDs and RFC 3339 |

pub mod consume;
pub mod database_id;
pub mod extension;
pub mod feed;
pub mod frames;
pub mod metadata;
pub mod schema;
pub mod state;
pub mod time;
pub mod versions;
pub mod wire;
