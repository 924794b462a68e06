//! THE CORE: what a write does, decided without doing it.
//!
//! Duty: given writes in order and a view of the rows before them, say for each whether it commits,
//! and what all of them together leave behind.
//! Invariant: a write that does not commit contributes nothing, by construction: its changes are
//! undone before its decision is given.
//! Never: I/O, a clock, an engine's name.

mod append;
mod arith;
mod calculate;
mod conflict;
mod evaluate;
mod journal;
mod left;
mod placeholders;
mod queue;
mod range;

pub use evaluate::{Base, Effects, Evaluation, OldRow};
pub use left::{Left, NewRow};
pub use queue::{Failure, Settled, settle};
