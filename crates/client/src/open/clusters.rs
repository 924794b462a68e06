//! What servers share at the place of their databases, and how they open these.

use std::path::Path;
use std::time::Duration;

#[cfg(not(feature = "archive"))]
use super::without_archive;
#[cfg(not(feature = "postgres"))]
use super::without_postgres;
use super::{SecretUrl, Target};
use openkv_core::model::Result;
#[cfg(feature = "archive")]
use openkv_engines::bucket::BucketCluster;
use openkv_engines::cluster::Cluster;
#[cfg(feature = "postgres")]
use openkv_engines::postgres::{PostgresCluster, Server};

/// What openkv servers share at the URL of an engine: a PostgreSQL database, or a path in an object store. With
/// `readonly` nothing is created.
///
/// # Errors
/// As `PostgresEngine::open` and `BucketCluster::open`; `Invalid` for a URL that names one openkv database;
/// `Unsupported` for an engine that this build is without.
pub fn cluster(url: &SecretUrl, readonly: bool) -> Result<Box<dyn Cluster>> {
    if url.is_of_bucket() { bucket_cluster(url, readonly) } else { postgres_cluster(url, readonly) }
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
            url: served(engine, name)?,
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

#[cfg(feature = "archive")]
fn served(engine: &SecretUrl, name: &str) -> Result<String> {
    openkv_engines::bucket::served(&engine.0, name)
}

#[cfg(not(feature = "archive"))]
fn served(_engine: &SecretUrl, _name: &str) -> Result<String> {
    Err(without_archive())
}

#[cfg(feature = "archive")]
fn bucket_cluster(url: &SecretUrl, readonly: bool) -> Result<Box<dyn Cluster>> {
    Ok(Box::new(BucketCluster::open(&url.0, readonly)?))
}

#[cfg(not(feature = "archive"))]
fn bucket_cluster(_url: &SecretUrl, _readonly: bool) -> Result<Box<dyn Cluster>> {
    Err(without_archive())
}

#[cfg(feature = "postgres")]
fn postgres_cluster(url: &SecretUrl, readonly: bool) -> Result<Box<dyn Cluster>> {
    Ok(Box::new(PostgresCluster::open(&Server::parse_for_all(&url.0)?, readonly)?))
}

#[cfg(not(feature = "postgres"))]
fn postgres_cluster(_url: &SecretUrl, _readonly: bool) -> Result<Box<dyn Cluster>> {
    Err(without_postgres())
}
