//! Calls: requests that are neither hot nor a stream, each a verb with a frame and one answer.
//!
//! A verb's work is in the file of its capability; this is the table of them.

mod custody;
mod deletion;
mod expiry;
mod maintain;
mod metrics;
mod preview;
mod queue;
mod scan;
mod search;

use std::sync::Arc;
use std::time::Duration;

use super::replies::Reply;
use crate::model::{Error, Limits};
use crate::store::Store;

pub(super) use metrics::METRICS;

/// What a call has to work with.
pub(super) struct Call {
    pub(super) store: Arc<Store>,
    pub(super) reply: Reply,
    /// Whether commits of this handle wait for the disk.
    pub(super) durable: bool,
    /// Longest wait for other processes.
    pub(super) busy: Duration,
    pub(super) limits: Limits,
}

/// Carries a call out. The numbers are the contract's.
pub(super) fn carry_out(verb: u32, frame: &[u8], mut call: Call) {
    if let Some(operation) = metrics::operation(verb) {
        call.reply.counted(operation, call.store.metrics());
    }
    match verb {
        1 => maintain::checkpoint(call),
        5 => custody::backup(frame, call),
        6 => custody::progress(frame, call.reply),
        7 => custody::check(call),
        2 => maintain::stats(frame, call),
        3 => maintain::vacuum(call),
        METRICS => metrics::metrics(frame, call),
        10 => scan::count(frame, call),
        11 => scan::scan(frame, call),
        12 => expiry::ttl(frame, call),
        30 => queue::settle(frame, call),
        31 => queue::extend(frame, call),
        32 => queue::stats(frame, call),
        33 => queue::dead_list(frame, call),
        34 => queue::dead_get(frame, call),
        35 => queue::dead_requeue(frame, call),
        36 => queue::dead_delete(frame, call),
        37 => queue::dead_purge(frame, call),
        19 => preview::preview(frame, call),
        50 => search::create(frame, call),
        51 => search::remove(frame, call),
        52 => search::list(frame, call),
        53 => search::search(frame, call),
        13 => deletion::delete_many(frame, call),
        14 => scan::entries(frame, call),
        _ => call
            .reply
            .bad(&Error::internal(format!("an unknown verb {verb} with {} bytes", frame.len()))),
    }
}
