//! The store over both engines, with a clock that only the tests move.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test ends where something is not as it should be"
)]

mod blocked;
mod commits;
mod database;
mod expiry;
mod external;
mod failures;
mod faulty;
mod feeds;
mod inline;
mod inline_commits;
#[path = "../kit/mod.rs"]
mod kit;
#[cfg(unix)]
mod led;
mod long_reads;
mod named_queues;
mod pipeline;
#[cfg(unix)]
mod postgres;
#[cfg(unix)]
#[path = "../kit/postgres.rs"]
mod postgres_server;
mod queue;
mod under_way;
mod watches;
mod wide_watches;
mod writes;
