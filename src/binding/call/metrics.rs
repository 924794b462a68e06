//! Metrics, as an object's JSON or as Prometheus' text.

use super::Call;
use crate::metrics::{Operation, exposition};
use crate::model::Error;

/// The verb, which the handle knows too: what its lane has counted is merged before.
pub(in crate::binding) const METRICS: u32 = 4;

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
            Ok(text) => reply.good(Some(text.into_bytes())),
            Err(error) => reply.bad(&error),
        }
    }));
}

/// What a verb counts as, if it is counted.
pub(super) fn operation(verb: u32) -> Option<Operation> {
    Some(match verb {
        1 => Operation::Checkpoint,
        3 => Operation::Vacuum,
        5 => Operation::Backup,
        10 => Operation::Count,
        11 => Operation::List,
        12 => Operation::Ttl,
        13 => Operation::DeleteMany,
        14 => Operation::GetWithExpiry,
        30 => Operation::Settle,
        31 => Operation::Extend,
        53 => Operation::Search,
        _ => return None,
    })
}
