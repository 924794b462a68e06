//! Calls: a verb, its frame, one answer.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::{answered, answered_within, malformed, told, unanswered};
use crate::call::{Call, Fault, Reply, carry_out};
use crate::codec::frame::{Verb, parse_dead};
use crate::model::{
    BUSY_TIMEOUT_MS_DEFAULT, FRAMES_ANSWER_BYTES_MAX, Limits, SERVER_LONG_READ_MS_MAX,
};
use crate::server::answer::{Answer, Refusal};
use crate::server::auth::Rights;
use crate::server::catalog::now_ms;
use crate::server::data::{has_queue_room, store_of};
use crate::server::database::Database;
use crate::server::memory::Claim;
use crate::server::quota::over;
use crate::store::Store;

/// What a verb takes; `None`: it is not for clients.
pub(super) fn rights(verb: Verb) -> Option<Rights> {
    Some(match verb {
        // A path means a file of the server's machine.
        Verb::Backup | Verb::BackupProgress => return None,
        // What a client asks itself.
        Verb::Told => return None,
        Verb::Stats
        | Verb::Metrics
        | Verb::Count
        | Verb::Scan
        | Verb::Ttl
        | Verb::Entries
        | Verb::Preview
        | Verb::QueueStats
        | Verb::DeadList
        | Verb::DeadGet
        | Verb::ListIndexes
        | Verb::Search => Rights::Read,
        // They change nothing that can be read, but are work for the whole database.
        Verb::Checkpoint | Verb::Vacuum | Verb::Check => Rights::Write,
        Verb::DeleteMany
        | Verb::Settle
        | Verb::Extend
        | Verb::Held
        | Verb::ConsumeEnd
        | Verb::DeadRequeue
        | Verb::DeadDelete
        | Verb::DeadPurge
        | Verb::CreateIndex
        | Verb::DropIndex => Rights::Write,
    })
}

/// Carries a call out.
pub(super) async fn call(
    database: &Arc<Database>,
    verb: Verb,
    frame: &[u8],
    limits: Limits,
) -> Result<Answer, Refusal> {
    match verb {
        Verb::CreateIndex => database.has_room(now_ms())?,
        Verb::DeadRequeue => {
            let (queue, _) = parse_dead(frame).map_err(malformed)?;
            has_queue_room(database, &queue).await?;
        }
        // It reads the whole file, on a thread of its own.
        Verb::Check => {
            let place = database.examining.clone().try_acquire_owned();
            let place = place.map_err(|_| over("examinations at one time", 1, "", 5))?;
            let mut place = Some(place);
            return ask(database, limits, |mut call| {
                call.reply = call.reply.holding(place.take());
                carry_out(verb, frame, call);
            })
            .await;
        }
        _ => {}
    }
    ask(database, limits, |call| carry_out(verb, frame, call)).await
}

/// Gives work to the store, and waits for its answer. Once more if there was no memory for that: no
/// call that changes anything has an answer that needs some.
pub(super) async fn ask(
    database: &Arc<Database>,
    limits: Limits,
    mut work: impl FnMut(Call),
) -> Result<Answer, Refusal> {
    let claim = database.memory.claim(FRAMES_ANSWER_BYTES_MAX);
    let store = store_of(database).await?;
    let mut outcome = once(&store, &claim, limits.clone(), &mut work).await?;
    if claim.has_lacked() {
        claim.wait_for_all().await?;
        outcome = once(&store, &claim, limits, &mut work).await?;
    }
    called(&claim, outcome)
}

async fn once(
    store: &Arc<Store>,
    claim: &Arc<Claim>,
    limits: Limits,
    work: &mut impl FnMut(Call),
) -> Result<Outcome, Refusal> {
    let (sender, receiver) = oneshot::channel();
    // The reply owns the sender, and asks it whether the client is still there.
    let sender = Arc::new(Mutex::new(Some(sender)));
    let asked = sender.clone();
    let reply = Reply::new(move |answer| {
        if let Some(sender) = sender.lock().take() {
            let _gone = sender.send(answer);
        }
    })
    .while_wanted(move || asked.lock().as_ref().is_some_and(|sender| !sender.is_closed()))
    .within(claim.clone());
    let busy = Duration::from_millis(BUSY_TIMEOUT_MS_DEFAULT);
    let answer_bytes_max = FRAMES_ANSWER_BYTES_MAX;
    let store = store.clone();
    let long_most = Duration::from_millis(SERVER_LONG_READ_MS_MAX);
    work(Call { store, reply, durable: true, busy, limits, answer_bytes_max, long_most });
    Ok(receiver.await.map_err(unanswered)?)
}

type Outcome = Result<Vec<u8>, Fault>;

/// The answer of a call.
fn called(claim: &Claim, outcome: Outcome) -> Result<Answer, Refusal> {
    match outcome {
        Ok(answer) => answered_within(Some(claim), Ok(answer)),
        Err(Fault::Told(error)) => answered(Err(error)),
        // Never by a status, by which a client would ask for all of it again.
        Err(Fault::Begun(error)) => Ok(told(&error)),
        Err(Fault::Malformed(bytes)) => Err(malformed(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use hyper::StatusCode;

    use super::*;
    use crate::model::{Error, Kind};
    use crate::server::memory::ServerMemory;

    #[test]
    fn only_what_has_not_begun_is_told_by_a_status() {
        let claim = ServerMemory::new().share().claim(FRAMES_ANSWER_BYTES_MAX);
        for kind in [Kind::Unavailable, Kind::Closed] {
            let error = Error::new(kind, "no");
            let refusal = called(&claim, Err(Fault::Told(error.clone()))).err();
            assert_eq!(refusal.map(|of| of.status), Some(StatusCode::SERVICE_UNAVAILABLE));
            let answer = called(&claim, Err(Fault::Begun(error))).ok();
            assert_eq!(answer.map(|of| of.status()), Some(StatusCode::OK));
        }
    }
}
