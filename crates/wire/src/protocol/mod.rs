//! openkv's own wire format, between JavaScript and Rust, and between an openkv client and an
//! openkv server.
//!
//! Duty: frames ⇄ model, in both directions, and the requests, answers and streams of openkv's
//! extension of KV Connect, whose bodies are these frames.
//! Invariant: total, like `codec`: any bytes give a value or an error, and their length bounds the
//! memory.
//! Never: I/O, a clock, a socket; the messages of KV Connect, which are in `connect`.
//!
//! | file | content |
//! |---|---|
//! | [`Command`] | the table of commands |
//! | [`numbers`] | the numbers of frames, with the table that generates JavaScript's |
//! | [`frame`] | frames of requests and answers (`js/native/contract.md`) |
//! | [`extension`] | paths, headers, answers and errors over HTTP |
//! | [`backup`] | headers of the download of a backup |
//! | [`feed`] | the stream of a change feed |
//! | [`follow`] | the stream of a replication log |
//! | [`state`] | the stream of a watch |

pub mod backup;
mod command;
pub mod extension;
pub mod feed;
pub mod follow;
pub mod frame;
pub mod numbers;
pub mod state;

pub use command::{Access, Command, CommandFlag, RetrySafety};
