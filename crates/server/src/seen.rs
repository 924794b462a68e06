//! The last commit that an answer can depend on, for clients with a replica.
//!
//! Many answers have no versionstamp: no entry, a count, a failed check. The commit is read once the
//! request has been executed, so it is not older than the state that the answer is about.

use std::sync::Arc;

use hyper::header::{HeaderMap, HeaderName, HeaderValue};

use super::answer::Answer;
use super::data::store_of;
use super::database::Database;
use super::pending::Pending;
use openkv_core::model::{Result, Versionstamp};
use openkv_wire::protocol::extension::SEEN_HEADER;

/// Puts the last commit into the head of an answer, if the head of the request has the header for it.
pub(super) async fn with_last_commit(
    database: &Arc<Database>,
    request_headers: &HeaderMap,
    mut answer: Answer,
) -> Answer {
    if !request_headers.contains_key(SEEN_HEADER) {
        return answer;
    }
    match newest(database).await {
        Ok(newest) => {
            if let Ok(value) = HeaderValue::from_bytes(&newest.hex()) {
                answer.headers_mut().insert(HeaderName::from_static(SEEN_HEADER), value);
            }
        }
        Err(error) => tracing::warn!(%error, "reading the last commit for a client with a replica"),
    }
    answer
}

async fn newest(database: &Arc<Database>) -> Result<Versionstamp> {
    let store = store_of(database).await?;
    Pending::of(|reply| store.last_commit(reply)).await.map(Versionstamp::new)
}
