//! The answers of reads, of which the replica gives a part and the server another.

use std::sync::Arc;

use parking_lot::Mutex;

use openkv_core::model::{Error, Kind, Result, Versionstamp};
use openkv_store::call::{Fault, Reply};
use openkv_wire::protocol::frame::{parse_answers, push_failed};

/// The newest versionstamp in an answer.
pub(super) fn newest(answer: &[u8]) -> Option<Versionstamp> {
    let mut newest = None;
    let parsed = parse_answers(answer, 1, &mut |_, row| newest = newest.max(Some(row.stamp)));
    parsed.ok().and(newest)
}

/// The answers in these bytes, each with its own.
pub(super) fn split(bytes: &[u8], count: usize) -> Result<Vec<Vec<u8>>> {
    let places = parse_answers(bytes, count, &mut |_, _| ());
    let places = places.map_err(|bug| Error::from(Fault::Malformed(bug)))?;
    let answer = |place: std::ops::Range<usize>| bytes.get(place).unwrap_or_default().to_vec();
    Ok(places.into_iter().map(|place| answer(place.bytes)).collect())
}

/// The answers of reads that failed.
pub(super) fn failed(error: &Error, count: usize) -> Result<Vec<Vec<u8>>> {
    if error.kind() == Kind::Closed {
        return Err(error.clone());
    }
    let mut answer = Vec::new();
    push_failed(&mut answer, error);
    Ok(vec![answer; count])
}

/// The answers of a read that comes in parts.
pub(super) struct Merge {
    state: Mutex<Merged>,
}

struct Merged {
    answers: Vec<Vec<u8>>,
    parts: usize,
    reply: Option<Reply>,
}

impl Merge {
    /// Of `count` requests, whose answers come in this many parts.
    pub(super) fn new(count: usize, parts: usize, reply: Reply) -> Arc<Self> {
        let answers = vec![Vec::new(); count];
        let merge =
            Arc::new(Self { state: Mutex::new(Merged { answers, parts, reply: Some(reply) }) });
        if parts == 0 {
            merge.answered(&[], Ok(Vec::new()));
        }
        merge
    }

    /// The answers of a part, which belong to the requests at these places.
    pub(super) fn answered(&self, places: &[usize], answers: Result<Vec<Vec<u8>>>) {
        let mut state = self.state.lock();
        match answers {
            Err(error) => {
                let reply = state.reply.take();
                drop(state);
                if let Some(reply) = reply {
                    reply.bad(error);
                }
                return;
            }
            Ok(answers) => {
                for (place, answer) in places.iter().zip(answers) {
                    if let Some(to) = state.answers.get_mut(*place) {
                        *to = answer;
                    }
                }
            }
        }
        state.parts = state.parts.saturating_sub(1);
        if state.parts > 0 {
            return;
        }
        let (reply, answers) = (state.reply.take(), std::mem::take(&mut state.answers));
        drop(state);
        if let Some(reply) = reply {
            reply.good(answers.concat());
        }
    }
}
