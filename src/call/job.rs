//! The entry point of reads that answer a call: a job on a snapshot that does not begin if no caller
//! waits for the answer any more.

use std::sync::Arc;

use super::{Fault, Reply};
use crate::model::{Error, Result};
use crate::store::{Patience, ReadJob, Snapshot, Store};

/// A job that hands the reply on with the snapshot, while a caller waits for the answer.
pub(super) fn job(
    reply: Reply,
    work: impl FnOnce(Reply, Result<&mut dyn Snapshot>) + Send + 'static,
) -> ReadJob {
    Box::new(move |snapshot| {
        if reply.is_wanted() {
            work(reply, snapshot);
        } else {
            reply.bad(Error::closed());
        }
    })
}

/// Answers with what `read` returns, on the reader thread.
pub(super) fn answer(
    store: &Store,
    reply: Reply,
    read: impl FnOnce(&mut dyn Snapshot, &Reply) -> Result<Vec<u8>> + Send + 'static,
) {
    store.read(job(reply, move |reply, snapshot| {
        match snapshot.and_then(|snapshot| read(snapshot, &reply)) {
            Ok(answer) => reply.good(answer),
            Err(error) => reply.bad(error),
        }
    }));
}

/// As [`answer`], within the bounds of the call. With `is_long` the job has a thread for long reads.
pub(super) fn answer_within(
    store: &Store,
    (patience, is_long): (Arc<Patience>, bool),
    reply: Reply,
    read: impl FnOnce(&mut dyn Snapshot, &Reply) -> Result<Vec<u8>> + Send + 'static,
) {
    let bounds = patience.clone();
    let job = job(reply, move |reply, snapshot| {
        let snapshot = bounds.check().and(snapshot);
        match snapshot.and_then(|snapshot| read(snapshot, &reply)) {
            Ok(answer) => reply.good(answer),
            Err(error) => reply.bad(Fault::of_long(&bounds, error)),
        }
    });
    match is_long {
        true => store.read_long(patience, job),
        false => store.read(job),
    }
}
