//! Sends writes to the server that leads their database. Clients go there by the status 401, after which
//! they fetch the metadata again, which names that server; or this server hands the request over.

use std::sync::Arc;

use hyper::StatusCode;
use hyper::http::request::Parts;

use super::Serving;
use super::answer::{Answer, Refusal};
use super::database::Database;
use super::request::RequestBody;

/// The URL of another server that leads the database. Asks for it only if there may be one.
pub(super) async fn other(database: &Arc<Database>) -> Result<Option<String>, Refusal> {
    match database.may_be_led_elsewhere() {
        true => Ok(database.leader().await?),
        false => Ok(None),
    }
}

/// The answer to a request for a database that another server leads.
pub(super) async fn answer(
    serving: &Serving,
    leader: &str,
    head: &Parts,
    body: RequestBody,
) -> Result<Answer, Refusal> {
    match &serving.forwarder {
        Some(forwarder) => forwarder.send(leader, head, body).await,
        None => Err(led_by_another()),
    }
}

/// The answer of a write. If the store refused it for now, another server may have become the leader;
/// then a client that repeats the request reaches it.
pub(super) async fn checked(
    serving: &Serving,
    database: &Arc<Database>,
    answer: Result<Answer, Refusal>,
) -> Result<Answer, Refusal> {
    match answer {
        Err(refusal) if refusal.status == StatusCode::SERVICE_UNAVAILABLE => {
            match database.leader().await {
                Ok(Some(_)) if serving.forwarder.is_none() => Err(led_by_another()),
                Ok(_) | Err(_) => Err(refusal),
            }
        }
        answer => answer,
    }
}

fn led_by_another() -> Refusal {
    Refusal::unauthorized("Another server leads this database: fetch its metadata again.")
}
