//! Requests of openkv's own servers beyond the protocol: calls, each a command with a frame.
//!
//! The command table says whether a call may be sent again. The server cannot detect a repetition.
//! So a call that is not idempotent is sent once, and its outcome may be unknown.

use hyper::header::HeaderValue;

use super::executor::{AnswerError, HttpRequest, Needs, RequestExecutor, outcome_unknown};
use openkv_core::model::{Error, Limits, Result};
use openkv_wire::protocol::extension::{CALL, FRAMES, read_answer, write_limits};
use openkv_wire::protocol::{Command, CommandFlag};

/// Whether the answer to a repeated call says that nothing was left to do. The first try may have
/// done it.
fn did_nothing(command: Command, answer: &[u8]) -> bool {
    command.is(CommandFlag::ZeroSaysNothing) && answer.iter().all(|byte| *byte == 0)
}

/// Calls a command.
pub(super) async fn call(
    executor: &RequestExecutor,
    command: Command,
    frame: Vec<u8>,
    limits: Limits,
) -> Result<Vec<u8>> {
    let (retry, patient) = (command.retry_safety(), command.is(CommandFlag::WholeTimeout));
    let path = format!("{CALL}/{}", command.number());
    let needs = Needs { extension: FRAMES, what: command.feature() };
    let limits = limits_header(&limits);
    // Lock renewals must not wait for other requests. A listener sends one at a time.
    let waits = command.is(CommandFlag::OutOfTurn);
    let http_request =
        HttpRequest { patient, limits, waits, ..HttpRequest::extension(path, retry, frame, needs) };
    let (answer, sent_before) =
        executor.execute(&http_request, |_, bytes| answer_of(bytes)).await?;
    if sent_before && did_nothing(command, &answer) {
        return Err(outcome_unknown(
            "The answer to a request was lost; sent again, it found nothing left to do. Either it \
             has happened the first time, or another client was faster: read to find out",
        ));
    }
    Ok(answer)
}

/// The header with a handle's limits; `None` if the server's limits apply.
pub(super) fn limits_header(limits: &Limits) -> Option<HeaderValue> {
    let text = write_limits(limits);
    (!text.is_empty()).then(|| HeaderValue::from_str(&text).ok()).flatten()
}

/// Reads the body of an answer.
pub(super) fn answer_of(bytes: &[u8]) -> Result<Vec<u8>, AnswerError> {
    match read_answer(bytes) {
        Ok(Ok(answer)) => Ok(answer.to_vec()),
        Ok(Err(error)) => Err(AnswerError::Final(error)),
        Err(why) => Err(AnswerError::Malformed(why.to_owned())),
    }
}

/// The error for a command that only the process with the local database can execute.
pub(super) fn is_local(command: Command, why: &str) -> Error {
    let feature = command.feature();
    Error::unsupported(format!("{feature} of a remote database: {why}"))
}
