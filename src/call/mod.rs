//! Calls: requests that are neither hot nor a stream, each a verb with a frame and one answer, over
//! a store.
//!
//! Duty: carry a call out, whoever asks: JavaScript of this process, or a client of the server.
//! Invariant: every call is answered exactly once, also if the code that should answer it panics.
//! Never: trust in a frame; a stream; the meaning of a write.
//!
//! A verb's work is in the file of its capability; this is the table of them.

mod custody;
mod deletion;
mod expiry;
mod held;
mod maintain;
mod metrics;
mod preview;
mod queue;
mod read;
mod reply;
mod scan;
mod search;
mod vet;

use std::sync::Arc;
use std::time::Duration;

use crate::codec::frame::Verb;
use crate::model::{Error, Kind, Limits};
use crate::store::{Patience, Store};

pub use read::read;
pub use reply::{Fault, Reply};
pub use vet::vet;

/// What a call has to work with.
pub struct Call {
    /// The database.
    pub store: Arc<Store>,
    /// Gets the answer.
    pub reply: Reply,
    /// Whether its commits wait for the disk.
    pub durable: bool,
    /// Longest wait for other processes.
    pub busy: Duration,
    /// What writes are held to.
    pub limits: Limits,
    /// Most bytes of an answer.
    pub answer_bytes_max: usize,
    /// Longest time of a search, a count or a filtered deletion, with all its steps.
    pub long_most: Duration,
}

impl Call {
    /// The bounds of its work, by the name of its method.
    fn patience(&self, what: &'static str) -> Arc<Patience> {
        self.store.patience(what, self.long_most, self.reply.wanted())
    }
}

/// The answer would have more bytes than the caller takes.
#[must_use]
pub fn too_large(bytes_max: usize) -> Error {
    let why =
        format!("The answer is too large (max {bytes_max} bytes): ask for fewer entries at a time");
    Error::new(Kind::Unsupported, why)
}

/// Carries a call out. Its answer is counted among the store's metrics.
pub fn carry_out(verb: Verb, frame: &[u8], mut call: Call) {
    if let Some(operation) = metrics::operation(verb) {
        call.reply.counted(operation, call.store.metrics());
    }
    match verb {
        Verb::Checkpoint => maintain::checkpoint(call),
        Verb::Stats => maintain::stats(frame, call),
        Verb::Vacuum => maintain::vacuum(call),
        Verb::Metrics => metrics::metrics(frame, call),
        Verb::Backup => custody::backup(frame, call),
        Verb::BackupProgress => custody::progress(frame, call.reply),
        Verb::Check => custody::check(call),
        Verb::Count => scan::count(frame, call),
        Verb::Scan => scan::scan(frame, call),
        Verb::Ttl => expiry::ttl(frame, call),
        Verb::DeleteMany => deletion::delete_many(frame, call),
        Verb::Entries => scan::entries(frame, call),
        Verb::Preview => preview::preview(frame, call),
        Verb::Settle => queue::settle(frame, call),
        Verb::Extend => queue::extend(frame, call),
        Verb::QueueStats => queue::stats(frame, call),
        Verb::DeadList => queue::dead_list(frame, call),
        Verb::DeadGet => queue::dead_get(frame, call),
        Verb::DeadRequeue => queue::dead_requeue(frame, call),
        Verb::DeadDelete => queue::dead_delete(frame, call),
        Verb::DeadPurge => queue::dead_purge(frame, call),
        Verb::Held => held::held(frame, call),
        Verb::ConsumeEnd => held::consume_end(frame, call),
        // Nothing has to be told to anybody.
        Verb::Told => call.reply.good(Vec::new()),
        Verb::CreateIndex => search::create(frame, call),
        Verb::DropIndex => search::remove(frame, call),
        Verb::ListIndexes => search::list(frame, call),
        Verb::Search => search::search(frame, call),
    }
}
