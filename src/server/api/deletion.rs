//! Deletions of many entries, by the command of `kv.deleteMany`.

use serde::Serialize;
use utoipa::ToSchema;

use super::problem::Problem;
use super::range::Bounds;
use crate::model::{Among, Error, Key, Limits};
use crate::protocol::Command;
use crate::protocol::frame::{deletion_frame, read_deleted_answer};
use crate::server::data::Client;
use crate::server::extension::carried;

/// The answer of a deletion.
#[derive(Serialize, ToSchema)]
pub(super) struct Deleted {
    pub(super) deleted: u64,
}

/// Deletes the entries of keys. Returns their number.
pub(super) async fn delete_keys(
    client: &Client,
    keys: &[Key],
    filter: Option<&[u8]>,
) -> Result<u64, Problem> {
    delete(client, &Among::Keys(keys.to_vec()), filter).await
}

/// Deletes the entry of a key and all entries below it. Returns their number.
pub(super) async fn delete_below(
    client: &Client,
    key: &Key,
    filter: Option<&[u8]>,
) -> Result<u64, Problem> {
    let (start, end) = Bounds::of_key_and_below(key);
    delete(client, &Among::Span { start, end }, filter).await
}

async fn delete(client: &Client, among: &Among, filter: Option<&[u8]>) -> Result<u64, Problem> {
    let frame = deletion_frame(among, filter);
    let answer = carried(&client.database, Command::DeleteMany, &frame, Limits::wide()).await?;
    let malformed = || Error::internal("the answer of a deletion is malformed");
    Ok(read_deleted_answer(&answer).ok_or_else(malformed)?)
}
