//! What a write does, decided without doing it.
//!
//! Duty: given writes in order and a view of the rows before them, decide for each whether it commits,
//! and what all of them change together; carry out the steps of a batch over an engine's transaction.
//! Invariant: a write that does not commit contributes nothing: its changes are undone before its
//! decision is given.
//! Never: I/O of its own, a clock, an engine's name.

mod append;
mod arith;
pub(crate) mod batch;
mod calculate;
mod conflict;
mod effect;
mod evaluate;
mod journal;
mod placeholders;
mod queue;
mod range;
mod transaction;
mod work;

pub use effect::{NewRow, RowEffect};
pub use evaluate::{Effects, Evaluation};
pub use transaction::{Base, OldRow};
pub(crate) use transaction::{
    Begun, EntryTable, LockedMessage, MessageTable, Transaction, Undelivered,
};
pub use work::{Report, Work};
