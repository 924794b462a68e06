//! The transaction layer: orders the batches of one database that this process leads, decides each
//! over the effects of those before it that are not durable yet, and keeps several in flight.
//!
//! It is a machine without I/O: [`Layer::step`] takes one [`Event`] and returns the [`Action`]s that
//! its driver must execute. Its parts are the sequencer and the reorder buffer
//! (`reorder_buffer.rs`), the evaluator with its cache (`evaluator.rs`, `cache.rs`), the ids of writes
//! (`write_ids.rs`), the entries of value indexes (`index_entries.rs`), and the depth of the writer (`depth.rs`).
//!
//! Duty: decide batches ahead of their durability, with the outcomes that deciding them one after the
//! other would have.
//! Invariant: an answer leaves only after every batch before it is durable, and after the database has
//! confirmed that no other process has written to it; also `{ ok: false }`. What the database may have
//! refused is decided again or refused by name, never answered as done. A write with an id commits at most
//! once, however often it arrives.
//! Never: I/O, a clock, randomness, a thread.
//!
//! # Safety
//! A batch of the epoch `e` that takes the database from version `prev` to `next` is stored only if
//! the database's row still has `e` and `prev`. So batches can be sent without waiting: if one fails,
//! the ones behind it fail. After a lost connection the leader raises the epoch, which waits for the
//! batch under way and refuses those that arrive later. The version at which the new epoch began tells
//! which batches have happened ([`Resolution`]).

mod cache;
mod defect;
mod depth;
mod evaluator;
mod events;
#[cfg(test)]
mod figures;
mod index_entries;
mod leader;
mod reorder_buffer;
#[cfg(test)]
mod repetitions;
#[cfg(test)]
mod unique;
mod write_ids;

pub use cache::Fetched;
pub use defect::Defect;
pub use events::{Action, Commit, Event, FetchId, Lead, Moment, Resolution};
pub use leader::Layer;
pub use write_ids::{Bounds, NewestWrites, Remembered};
