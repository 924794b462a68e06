//! Calls: requests off the hot path that are no streams. Each is a command with a frame and one answer,
//! over a store.
//!
//! Duty: carry a call out, for JavaScript of this process or for a client of the server.
//! Invariant: every call is answered exactly once, also if the code that should answer it panics.
//! Never: trust in a frame; a stream; the meaning of a write.
//!
//! A command's work is in the file of its capability; the table of commands (`protocol::Command`)
//! names its handler.

mod answering;
mod backup;
mod deletion;
mod feed;
mod groups;
mod history;
mod lock_update;
mod maintain;
mod metrics;
mod preview;
mod queue;
mod read;
mod replica;
mod reply;
mod scan;
mod schedules;
mod search;
mod validate_untrusted;
mod value_index;

use std::sync::Arc;
use std::time::Duration;

use crate::metrics::Operation;
use crate::{Patience, Store};
use openkv_core::model::{Error, Limits};
use openkv_wire::protocol::Command;

pub use backup::{Progress, UnderWay, backup_progress, begin_backup};
pub use deletion::{ManyDeletion, delete, subject_of};
pub use preview::brief_check_reads;
pub use read::{read, read_inline};
pub use reply::{Fault, Reply};
pub use scan::brief_scan;
pub use search::Paging;
pub use validate_untrusted::validate_untrusted;
pub use value_index::{brief_ordered, has_order};

/// The context of a call.
pub struct Call {
    /// The database.
    pub store: Arc<Store>,
    /// Gets the answer.
    pub reply: Reply,
    /// Whether its commits wait for the disk.
    pub durable: bool,
    /// Longest wait for other processes.
    pub busy: Duration,
    /// The limits of writes.
    pub limits: Limits,
    /// Most bytes of an answer.
    pub answer_bytes_max: usize,
    /// Longest time of a search, a count or a filtered deletion, with all its steps.
    pub long_most: Duration,
}

impl Call {
    /// The call with what its frame says. A malformed frame is answered at once: `None`.
    fn parsed<T>(self, parsed: Result<T, impl Into<Fault>>) -> Option<(T, Self)> {
        match parsed {
            Ok(parsed) => Some((parsed, self)),
            Err(fault) => {
                self.reply.bad(fault);
                None
            }
        }
    }

    /// The bounds of its work, by the name of its method.
    fn patience(&self, what: &'static str) -> Arc<Patience> {
        self.store.patience(what, self.long_most, self.reply.wanted())
    }
}

/// The answer would have more bytes than the caller takes.
pub fn too_large(bytes_max: usize) -> Error {
    let why =
        format!("The answer is too large (max {bytes_max} bytes): ask for fewer entries at a time");
    Error::unsupported(why)
}

macro_rules! dispatch {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $file:ident :: $handler:ident, $access:expr,
        $retry:ident, [$($trait:ident),*], [$($metric:ident)?], [$($capability:ident)?],
        $feature:literal;)*) => {
        /// Carries a call out. Its answer is counted among the store's metrics.
        pub fn carry_out(command: Command, frame: &[u8], mut call: Call) {
            if let Some(operation) = operation(command) {
                call.reply.counted(operation, call.store.metrics());
            }
            if let Some(capability) = command.capability()
                && let Err(lacking) = call.store.capabilities().require(capability)
            {
                return call.reply.bad(lacking);
            }
            match command { $(Command::$name => $file::$handler(frame, call),)* }
        }

        /// The metric of a command, if it has one.
        pub fn operation(command: Command) -> Option<Operation> {
            match command { $(Command::$name => metric!($($metric)?),)* }
        }
    };
}

macro_rules! metric {
    () => {
        None
    };
    ($metric:ident) => {
        Some(Operation::$metric)
    };
}

openkv_wire::commands!(dispatch);
