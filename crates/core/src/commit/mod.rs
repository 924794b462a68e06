//! Decides the effects of writes, without applying them.
//!
//! Duty: given writes in order and a view of the rows before them, decide for each whether it
//! commits, and which rows all of them change; run the steps of a batch in the transaction of an
//! engine.
//! Invariant: a write that does not commit has no effect: its changes are undone before its
//! decision is returned.
//! Never: I/O of its own, a clock, an engine's name.

mod append;
mod arith;
pub mod batch;
mod calculate;
mod conflict;
mod effect;
mod evaluate;
mod found;
mod job;
mod journal;
mod limiting;
mod needs;
mod placeholders;
mod queue;
mod range;
pub mod replay;
mod schedules;
mod speculation;
mod transaction;
mod turns;
mod unique;
mod violations;
mod work;

pub use effect::{NewRow, RowEffect};
pub use evaluate::{Acknowledged, Effects, Evaluation, Sent};
pub use needs::{IndexPoint, WriteNeeds};
pub(crate) use speculation::speculate;
pub use speculation::{Speculation, can_speculate};
pub use transaction::{Base, OldRow};
pub use transaction::{
    Begun, EntryTable, LockedMessage, MessageTable, Placed, Transaction, Undelivered,
};
pub use turns::{after_change, after_clock, after_resume, set_limits};
pub use work::{Report, Ticket, Work};
