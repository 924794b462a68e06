//! Where a request of a read server goes, and what its token may do.

use std::sync::Arc;

use hyper::http::request::Parts;

use super::answer::{Answer, Refusal};
use super::auth::Grant;
use super::database::Database;
use super::read_server::{InUse, Primary};
use super::request::database_in;
use super::{Serving, exchange};

/// The database of a request, and what its token may do; `None` on a server with databases of its own.
/// `is_data`: the token is one of the data path.
pub(super) async fn admitted(
    serving: &Serving,
    head: &Parts,
    is_data: bool,
) -> Result<Option<(Arc<Database>, Grant, InUse)>, Refusal> {
    if let Some((database, primary)) = serving.catalog.replica() {
        let (grant, in_use) = primary.granted(head, is_data).await?;
        return Ok(Some((database, grant, in_use)));
    }
    let Some(folder) = serving.catalog.primary_folder() else { return Ok(None) };
    let known = folder.by_name(database_in(head)).await?;
    let (grant, in_use) = known.1.granted(head, is_data).await?;
    folder.opened(&known).await?;
    Ok(Some((known.0, grant, in_use)))
}

/// The database whose metadata a request asks for; `None` on a server with databases of its own.
pub(super) async fn requested_database(
    serving: &Serving,
    head: &Parts,
) -> Result<Option<(Arc<Database>, Arc<Primary>)>, Refusal> {
    match serving.catalog.primary_folder() {
        Some(folder) => folder.by_name(database_in(head)).await.map(Some),
        None => Ok(serving.catalog.replica()),
    }
}

/// Answers with the metadata of the primary.
pub(super) async fn metadata(
    serving: &Serving,
    known: (Arc<Database>, Arc<Primary>),
    head: &Parts,
    body: &[u8],
) -> Result<Answer, Refusal> {
    let Some(folder) = serving.catalog.primary_folder() else {
        return exchange::of_read_server(serving, &known.1, head, body).await;
    };
    let mut known = known;
    let answer = match exchange::of_read_server(serving, &known.1, head, body).await {
        Err(_) if known.1.was_exchanged() => {
            folder.forget(&known).await;
            known = folder.by_name(database_in(head)).await?;
            exchange::of_read_server(serving, &known.1, head, body).await?
        }
        answer => answer?,
    };
    // The client reads soon. Until the replica is open, it reads at the primary.
    let folder = folder.clone();
    tokio::spawn(async move { folder.opened(&known).await.map_err(drop) });
    Ok(answer)
}
