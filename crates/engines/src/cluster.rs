//! What several servers in front of one database server share.

use openkv_core::model::Result;

/// The state that openkv servers share on one database server. Any thread may use it, and every method
/// waits for the database server.
pub trait Cluster: Send + Sync {
    /// The key that signs tokens: the one of the first server that asked. `fresh` becomes the key if
    /// there is none.
    fn signing_key(&self, fresh: &[u8; 32]) -> Result<Vec<u8>>;

    /// The catalog of databases.
    fn catalog(&self) -> Result<SharedCatalog>;

    /// The catalog's revision, the time of the database server, and who leads each database.
    fn poll(&self) -> Result<ClusterPoll>;

    /// Replaces the catalog, if it still has this revision. Returns whether it had.
    fn replace_catalog(&self, revision: i64, text: &[u8]) -> Result<bool>;

    /// The name of the server that leads a database.
    fn leader_of(&self, database: &str) -> Result<Option<String>>;

    /// Deletes everything in a database that no server has in its catalog any more.
    ///
    /// # Errors
    /// Errors of the medium. Some of it may be deleted then.
    fn empty(&self, database: &str) -> Result<()>;

    /// All databases, with those that no server serves.
    fn databases(&self) -> Result<Vec<ClusterDatabase>>;
}

/// The catalog as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedCatalog {
    /// Rises with every change.
    pub revision: i64,
    /// The databases, in the form of their owner; empty before the first change.
    pub text: Vec<u8>,
}

/// The result of one poll of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterPoll {
    /// As [`SharedCatalog::revision`].
    pub revision: i64,
    /// The time of the database server, in ms since the epoch.
    pub now_ms: i64,
    /// The databases that are led, and the names of their leaders.
    pub leaders: Vec<(String, String)>,
}

/// The state of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterDatabase {
    /// Its name on the database server.
    pub name: String,
    /// Counts its leaders.
    pub epoch: u64,
    /// Its last commit.
    pub version: u64,
    /// The name of its leader, and how long its lease still lasts, in ms; below 0 after its end.
    pub leader: Option<(String, i64)>,
}
