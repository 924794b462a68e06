//! Sends writing clients to the server that leads their database: by the status 401, after which they
//! fetch the metadata again, which names that server.

use std::sync::Arc;

use hyper::StatusCode;

use super::answer::{Answer, Refusal};
use super::database::Database;

/// Fails if another server leads the database. Asks for the leader only if a short time ago it was
/// another server.
pub(super) async fn pass(database: &Arc<Database>) -> Result<(), Refusal> {
    if database.known_leader().is_none() {
        return Ok(());
    }
    match database.leader().await? {
        Some(_) => Err(led_by_another()),
        None => Ok(()),
    }
}

/// The answer of a write. If the store refused it for now, another server may have become the leader.
pub(super) async fn or(
    database: &Arc<Database>,
    answer: Result<Answer, Refusal>,
) -> Result<Answer, Refusal> {
    match answer {
        Err(refusal) if refusal.status == StatusCode::SERVICE_UNAVAILABLE => {
            match database.leader().await {
                Ok(Some(_)) => Err(led_by_another()),
                Ok(None) | Err(_) => Err(refusal),
            }
        }
        answer => answer,
    }
}

fn led_by_another() -> Refusal {
    Refusal::unauthorized("Another server leads this database: fetch its metadata again.")
}
