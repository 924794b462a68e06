//! The state of all databases of servers, as they know them.

use serde::Serialize;

use super::records::read_page;
use openkv_client::open::{SecretUrl, cluster};
use openkv_core::model::{Error, Result};
use openkv_engines::cluster::ClusterDatabase;

/// A database in the answer of [`cluster_status`].
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DatabaseStatus {
    /// Its name on the servers; None for a database that no server serves.
    served_as: Option<String>,
    /// Its name at their place: on PostgreSQL (`kv=`), or below `databases/` in an object store.
    kv: String,
    version: Option<u64>,
    epoch: Option<u64>,
    leader: Option<String>,
    /// How long the lease of the leader still lasts, in ms; below 0 after its end; None where only the leader knows.
    lease_ms: Option<i64>,
}

/// All databases of the servers at the URL of an engine, as JSON. Nothing is created.
///
/// # Errors
/// As [`cluster`]; `Corrupt` for a damaged catalog.
pub fn cluster_status(url: &SecretUrl) -> Result<Vec<u8>> {
    let cluster = cluster(url, true)?;
    let served = match cluster.catalog()?.text.as_slice() {
        [] => Vec::new(),
        text => read_page(text, "the catalog of the servers")?.databases,
    };
    let status = |ClusterDatabase { name, epoch, version, leader }| {
        let record = served.iter().find(|record| record.id.to_string() == name);
        let (leader, lease_ms) = leader.unzip();
        let lease_ms = lease_ms.flatten();
        let served_as = record.map(|record| record.name.clone());
        DatabaseStatus { served_as, kv: name, version, epoch, leader, lease_ms }
    };
    let names: Vec<_> = served.iter().map(|record| record.id.to_string()).collect();
    let databases: Vec<_> = cluster.databases(&names)?.into_iter().map(status).collect();
    serde_json::to_vec(&databases).map_err(|error| Error::internal(error.to_string()))
}
