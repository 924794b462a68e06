//! What a database counts about itself while it is in use, and how that is shown.
//!
//! Duty: counts and latencies of operations, commits and transactions; one picture of them, as
//! JSON and as Prometheus text.
//! Invariant: every answered operation is counted once, whichever lane answered it.
//! Never: a clock or a lock for each point read: a lane counts in integers of its own ([`Tally`]).

mod book;
mod exposition;
mod latency;
mod operation;
mod picture;
mod tally;

pub use book::{Metrics, Notes};
pub use exposition::exposition;
pub use operation::Operation;
pub use picture::{
    Cache, Depth, Holders, IndexSize, Latency, Operations, Picture, Sizes, Spread, Transactions,
};
pub use tally::Tally;
