//! The pure part of search: the text of a value, and the meaning of a query.
//!
//! Duty: values to the text of an index's fields; queries to expressions of the full-text engine,
//! or to an error that names the place.
//! Invariant: of a query, only quoted text, numbers and the operators of the grammar reach the
//! engine. Parsing any input ends with a bounded stack. The bytes of a value bound the search for
//! its text.
//! Never: I/O, SQL.

mod division;
mod query;
mod text;
mod words;

pub use division::{divided, undivided};
pub use query::parse;
pub use text::Texts;
pub use words::words;
