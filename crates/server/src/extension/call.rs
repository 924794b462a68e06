//! Calls: a command, its frame, one answer.

use std::sync::Arc;

use super::{answered, answered_within, error_answer, malformed};
use crate::answer::{Answer, Refusal};
use crate::auth::Rights;
use crate::data::{has_queue_room, has_room, store_of};
use crate::database::Database;
use crate::memory::{Claim, attempt};
use crate::pending::{BUSY, LONG, Wanted, pending};
use crate::quota::over;
use openkv_core::model::{FRAMES_ANSWER_BYTES_MAX, Limits};
use openkv_store::Store;
use openkv_store::call::{Call, Fault, Reply, carry_out};
use openkv_wire::protocol::frame::first_queue;
use openkv_wire::protocol::{Access, Command, CommandFlag};

/// The rights that a command needs; `None` if clients may not call it.
pub(super) fn rights(command: Command) -> Option<Rights> {
    match command.access() {
        Access::Read => Some(Rights::Read),
        Access::Write => Some(Rights::Write),
        Access::Local(_) => None,
    }
}

/// Executes a call.
pub(super) async fn call(
    database: &Arc<Database>,
    command: Command,
    frame: &[u8],
    limits: Limits,
    kinds: u8,
) -> Result<Answer, Refusal> {
    if command.is(CommandFlag::FillsStorage) {
        has_room(database).await?;
    }
    if command.is(CommandFlag::FillsQueue) {
        has_queue_room(database, first_queue(frame).map_err(malformed)?).await?;
    }
    let mut place = None;
    if command.is(CommandFlag::OneAtATime) {
        let taken = database.checking.clone().try_acquire_owned();
        place = Some(taken.map_err(|_| over("integrity checks at one time", 1, "", 5))?);
    }
    ask(database, limits, kinds, |mut call| {
        if let Some(place) = place.take() {
            call.reply = call.reply.holding(place);
        }
        carry_out(command, frame, call);
    })
    .await
}

/// Gives work to the store and waits for its answer, with an error of the `kinds` that the client knows. Repeats it once after a lack of memory, which
/// is safe: no call that changes anything has an answer that needs memory.
pub(super) async fn ask(
    database: &Arc<Database>,
    limits: Limits,
    kinds: u8,
    mut work: impl FnMut(Call),
) -> Result<Answer, Refusal> {
    let claim = database.memory.claim(FRAMES_ANSWER_BYTES_MAX);
    let store = store_of(database).await?;
    let outcome = attempt!(claim, once(&store, &claim, limits.clone(), &mut work).await)?;
    called(&claim, kinds, outcome)
}

async fn once(
    store: &Arc<Store>,
    claim: &Arc<Claim>,
    limits: Limits,
    work: &mut impl FnMut(Call),
) -> Outcome {
    let (wanted, (completion, outcome)) = (Wanted::new(), pending());
    let reply = Reply::new(move |answer| completion.complete(Ok(answer)))
        .while_wanted(wanted.liveness())
        .within(claim.clone());
    work(Call {
        store: store.clone(),
        reply,
        durable: true,
        busy: BUSY,
        limits,
        answer_bytes_max: FRAMES_ANSWER_BYTES_MAX,
        long_most: LONG,
    });
    outcome.await?
}

type Outcome = Result<Vec<u8>, Fault>;

/// The answer of a call.
fn called(claim: &Claim, kinds: u8, outcome: Outcome) -> Result<Answer, Refusal> {
    match outcome {
        Ok(answer) => answered_within(Some(claim), Ok(answer)),
        Err(Fault::Failed(error)) => answered(Err(error.known_to(kinds))),
        // Never a status: the client would repeat the whole call.
        Err(Fault::Begun(error)) => Ok(error_answer(&error.known_to(kinds))),
        Err(Fault::Malformed(bytes)) => Err(malformed(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use hyper::StatusCode;

    use super::*;
    use crate::memory::ServerMemory;
    use openkv_core::model::{Error, Kind};

    #[test]
    fn only_a_call_that_has_not_begun_is_answered_by_a_status() {
        let claim = ServerMemory::new().share().claim(FRAMES_ANSWER_BYTES_MAX);
        for kind in [Kind::Unavailable, Kind::Closed] {
            let error = Error::new(kind, "no");
            let refusal = called(&claim, Kind::KNOWN, Err(Fault::Failed(error.clone()))).err();
            assert_eq!(refusal.map(|of| of.status), Some(StatusCode::SERVICE_UNAVAILABLE));
            let answer = called(&claim, Kind::KNOWN, Err(Fault::Begun(error))).ok();
            assert_eq!(answer.map(|of| of.status()), Some(StatusCode::OK));
        }
    }
}
