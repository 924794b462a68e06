//! Deletions of many entries, as those of `kv.deleteMany`.

use std::time::Instant;

use serde::Serialize;
use utoipa::ToSchema;

use super::problem::Problem;
use super::range::Bounds;
use crate::data::{Client, store_of};
use crate::pending::{BUSY, Pending, Wanted};
use openkv_core::model::{Among, Beyond, Deletion, Error, FilterResults, Key, Limits};
use openkv_store::call::{ManyDeletion, delete, subject_of};
use openkv_store::metrics::Operation;

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
    delete_among(client, Among::Keys(keys.to_vec()), filter).await
}

/// Deletes the entry of a key and all entries below it. Returns their number.
pub(super) async fn delete_below(
    client: &Client,
    key: &Key,
    filter: Option<&[u8]>,
) -> Result<u64, Problem> {
    let (start, end) = Bounds::of_key_and_below(key);
    delete_among(client, Among::Span { start, end }, filter).await
}

async fn delete_among(
    client: &Client,
    among: Among,
    filter: Option<&[u8]>,
) -> Result<u64, Problem> {
    let store = store_of(&client.database).await?;
    let (wanted, since) = (Wanted::new(), Instant::now());
    let deletion = Deletion {
        among,
        filter: filter.map(<[u8]>::to_vec),
        known: FilterResults::new(),
        now_ms: store.now_ms(),
        count_max: usize::MAX,
        beyond: Beyond::Resume,
    };
    let request = ManyDeletion {
        deletion,
        atomic: false,
        durable: true,
        busy: BUSY,
        limits: Limits::wide(),
        patience: wanted.patience(&store, "kv.deleteMany"),
    };
    let subject = subject_of(&request.deletion.among);
    let outcome = Pending::of(|reply| {
        delete(&store, request, move |outcome| reply(outcome.map_err(Error::from)));
    });
    let outcome = outcome.await;
    let metrics = store.metrics();
    metrics.answered(Operation::DeleteMany, (1, outcome.is_ok()), since, || subject);
    Ok(outcome?.0)
}
