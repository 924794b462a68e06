//! The history: what commits have replaced.
//!
//! Duty: a record for each change, which says what the entry of the key was before it, and how records are
//! found ([`openkv_core::codec::replaced`] has their form).
//! Invariant: `kv.seq` has the place of the newest record of the chain of a key. A chain that is long enough,
//! and that of a removed entry, becomes a row of `openkv_history_groups` and is left by `kv.seq`. So
//! the groups of a key are older than its chain, and together they have all records since the beginning
//! of the history.
//! Never: a number of a block that is used twice. `kv.seq` may still have the place of a record that is gone.
//!
//! Records are appended in the order of the commits, so a transaction fills few pages, however far apart
//! its keys are. A spilled value of an entry that a transaction replaces or removes becomes the history's:
//! its row of `openkv_spill` stays as it is, and the new value gets another one.

mod blocks;
mod reader;
mod writer;

pub(super) use reader::{HistoryReader, Lookup, oldest_after};
pub(super) use writer::HistoryWriter;

use openkv_core::codec::Malformed;
use openkv_core::model::Error;

fn damaged(error: Malformed) -> Error {
    Error::corrupt(format!(
        "the history of the file is damaged ({error}): restore a backup, or turn the history off and on again, \
         which begins a new one"
    ))
}
