//! The server from its clients' side: over a socket, route by route.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test ends where something is not as it should be"
)]

mod admin;
mod api;
mod archives;
mod client;
mod connections;
mod consume;
mod data;
mod extension;
mod feeds;
mod frames;
#[path = "../kit/mod.rs"]
mod kit;
mod long_reads;
mod memory;
mod mutations;
mod rights;
mod served;
mod slow_readers;
mod streams;
mod studio;
mod url_lists;
mod watches;
