//! What servers share at the place of their databases, and how they open these.

use std::path::Path;
use std::time::Duration;

use super::{SecretUrl, Target};
use openkv_core::model::Result;
use openkv_engines::bucket::{BucketCluster, served};
use openkv_engines::cluster::Cluster;
use openkv_engines::postgres::{PostgresCluster, Server};

/// What openkv servers share at the URL of an engine: a PostgreSQL database, or a path in an object store. With
/// `readonly` nothing is created.
///
/// # Errors
/// As `PostgresEngine::open` and `BucketCluster::open`; `Invalid` for a URL that names one openkv database.
pub fn cluster(url: &SecretUrl, readonly: bool) -> Result<Box<dyn Cluster>> {
    if url.is_of_bucket() {
        return Ok(Box::new(BucketCluster::open(&url.0, readonly)?));
    }
    Ok(Box::new(PostgresCluster::open(&Server::parse_for_all(&url.0)?, readonly)?))
}

/// A database of servers. `name`: its name at the place of the engine; `advertise`: the URL of this server for clients;
/// `cache`: the folder of the local copies, where the engine has them.
///
/// # Errors
/// As [`cluster`].
pub fn of_cluster(
    engine: &SecretUrl,
    name: &str,
    advertise: &str,
    cache: Option<&Path>,
    busy: Duration,
) -> Result<Target> {
    if engine.is_of_bucket() {
        return Ok(Target::Bucket {
            url: served(&engine.0, name)?,
            cache: cache.map(|folder| folder.join(name)),
            lead: "served".to_owned(),
            eventual: false,
            advertise: Some(advertise.to_owned()),
            encoding: None,
            leader: None,
        });
    }
    Ok(Target::Postgres {
        url: engine.with_parameters(&[("kv", name), ("lead", advertise)]),
        readonly: false,
        busy,
        encoding: None,
        replica: None,
    })
}
