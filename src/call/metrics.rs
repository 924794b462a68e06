//! Metrics, as an object's JSON or as Prometheus' text.

use super::Call;
use crate::codec::frame::Verb;
use crate::metrics::{Operation, exposition};
use crate::model::Error;

/// Frame: u8, 1 for Prometheus' text. Answer: JSON or text, UTF-8.
pub(super) fn metrics(frame: &[u8], Call { store, reply, .. }: Call) {
    let is_text = frame.first() == Some(&1);
    store.picture(Box::new(move |picture| {
        let text = picture.and_then(|picture| match is_text {
            true => exposition(&picture),
            false => {
                serde_json::to_string(&picture).map_err(|error| Error::internal(error.to_string()))
            }
        });
        match text {
            Ok(text) => reply.good(text.into_bytes()),
            Err(error) => reply.bad(error),
        }
    }));
}

/// What a verb counts as, if it is counted.
pub(super) fn operation(verb: Verb) -> Option<Operation> {
    Some(match verb {
        Verb::Checkpoint => Operation::Checkpoint,
        Verb::Vacuum => Operation::Vacuum,
        Verb::Backup => Operation::Backup,
        Verb::Count => Operation::Count,
        Verb::Scan => Operation::List,
        Verb::Ttl => Operation::Ttl,
        Verb::DeleteMany => Operation::DeleteMany,
        Verb::Entries => Operation::GetWithExpiry,
        Verb::Settle => Operation::Settle,
        Verb::Extend => Operation::Extend,
        Verb::Search => Operation::Search,
        _ => return None,
    })
}
