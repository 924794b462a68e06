//! The history: what commits have replaced, as rows of `openkv.past`.
//!
//! Duty: a row for each change, with what the entry of the key was before it; reads of moments and of the
//! versions of a key.
//! Invariant: the row `(k, until)` has the entry that the commit `until` replaced, without a version if there was
//! none. So the entry of a key after a commit is in its first row with a later `until`, or is the present one. A
//! batch writes its rows in its own transaction, before it changes an entry.
//! Never: a look at rows up to the beginning of the history: they wait for their removal.
//!
//! | file | what |
//! |---|---|
//! | [`keep`] | the rows of a batch |
//! | [`trim`] | the beginning of the history moves on |
//! | [`versions`] | the versions of a key |
//! | [`moment`] | the snapshot of a moment |
//! | [`pages`] | ranges at a moment |

mod keep;
mod moment;
mod pages;
mod trim;
mod versions;

pub(super) use keep::Replaced;
pub(super) use moment::PastSnapshot;
pub(super) use trim::{FORGET, TRIM, rows_to_trim};
pub(super) use versions::{entry, replaced};

/// The last commit before the history, if the database keeps one.
const SINCE: &str = "\
SELECT r.history_version FROM openkv.databases AS d \
JOIN openkv.replication AS r ON r.db = d.id WHERE d.id = $1 AND d.log_bits & 2 <> 0";
