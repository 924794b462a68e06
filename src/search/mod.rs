//! Search, as far as it is pure: which text a value has, and what a query means.
//!
//! Duty: values to the text of an index's fields; queries to expressions that the full-text engine
//! takes, or to an error that names the place.
//! Invariant: nothing of a query reaches the engine but quoted text, numbers and the operators of
//! the grammar; whatever comes in, parsing ends and its stack is bounded; finding text is bounded by
//! the bytes of the value.
//! Never: I/O, SQL.

mod query;
mod text;

pub use query::parse;
pub use text::Texts;
