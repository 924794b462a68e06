//! A process that leads a database: it decides all writes, several batches ahead of their durability.
//!
//! Duty: execute the actions of [`openkv_core::layer::Layer`] on a thread of its own, with one connection
//! for commits and one for reads, and answer the store in order.
//! Invariant: batches are sent in the order of their versions on one connection. After a lost connection
//! nothing is sent before the epoch was raised.
//! Never: a decision about a write; a commit that is cancelled.
//!
//! A process begins to lead with its first write, and hands the database over when it closes.

#[cfg(feature = "defects")]
mod actor;
mod batches;
mod connections;
mod driver;

#[cfg(feature = "defects")]
pub use actor::{Actor, Ending};
pub(super) use driver::Driver;
