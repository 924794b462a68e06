//! The ids by which a server recognises a write that it has seen: with them every write is safe to send
//! again, until its outcome is known.

use std::time::Duration;

use tokio::time::Instant;

use super::executor::{AnswerError, RequestExecutor};
use openkv_core::model::{Decision, Env, Kind, WRITE_REPEAT_MS_MAX, WriteId};
use openkv_wire::protocol::frame::{WRITE_ID_RECORD_BYTES, push_write_id};

/// How long a write is repeated with one id.
pub(super) const REPEAT_MAX: Duration = Duration::from_millis(WRITE_REPEAT_MS_MAX);

/// The frame of writes with these records, each with an id that is made at `at_ms`.
pub(super) fn frame_with_ids<'f>(
    frames: impl Iterator<Item = &'f [u8]>,
    at_ms: i64,
    env: &dyn Env,
) -> Vec<u8> {
    let mut frame = Vec::new();
    for records in frames {
        frame.reserve(WRITE_ID_RECORD_BYTES + records.len());
        push_write_id(&mut frame, WriteId::new(at_ms, [env.random(), env.random()]));
        frame.extend_from_slice(records);
    }
    frame
}

/// Passes if every outcome is known. A leader that has lost its connection does not know it, but the
/// one after it does.
pub(super) fn all_known(decisions: Vec<Decision>) -> Result<Vec<Decision>, AnswerError> {
    let open = decisions.iter().find_map(|decision| match decision {
        Decision::Rejected(error) if error.kind() == Kind::OutcomeUnknown => Some(error.clone()),
        _ => None,
    });
    match open {
        Some(error) => Err(AnswerError::Open(error.message().to_owned())),
        None => Ok(decisions),
    }
}

/// An executor for one id, and whether there is time for another.
pub(super) fn for_one_id(executor: &RequestExecutor, begun: Instant) -> (RequestExecutor, bool) {
    let mut executor = executor.later_by(begun.elapsed());
    let has_more = executor.timeout > REPEAT_MAX;
    executor.timeout = executor.timeout.min(REPEAT_MAX);
    (executor, has_more)
}
