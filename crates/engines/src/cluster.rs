//! What several servers share: in front of one database server, or in one object store.

use openkv_core::model::Result;

/// The state that openkv servers share at one place. Any thread may use it, and every method but
/// [`Cluster::properties`] waits for the place.
pub trait Cluster: Send + Sync {
    /// What differs from place to place.
    fn properties(&self) -> ClusterProperties;

    /// The key that signs tokens: the one of the first server that requested it. `fresh` becomes the key if
    /// there is none.
    fn signing_key(&self, fresh: &[u8; 32]) -> Result<Vec<u8>>;

    /// The catalog of databases.
    fn catalog(&self) -> Result<SharedCatalog>;

    /// The catalog's revision, the time of the place, and who leads databases.
    fn poll(&self) -> Result<ClusterPoll>;

    /// Replaces the catalog, if it still has this revision. Returns whether it had.
    fn replace_catalog(&self, revision: i64, text: &[u8]) -> Result<bool>;

    /// The URL of the server that leads a database, as of a short time ago.
    fn leader_of(&self, database: &str) -> Result<Option<String>>;

    /// Deletes everything in a database that no server has in its catalog any more.
    ///
    /// # Errors
    /// Errors of the medium. Some of it may be deleted then.
    fn empty(&self, database: &str) -> Result<()>;

    /// All databases that the place can name, or at least those with the names `served`.
    fn databases(&self, served: &[String]) -> Result<Vec<ClusterDatabase>>;
}

/// What a server must know of the place of its databases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterProperties {
    /// The place in messages.
    pub place: &'static str,
    /// The time between two polls, in ms.
    pub poll_ms: u64,
    /// Whether a poll tells the leaders of all databases, and not only of those whose leader was requested.
    pub polls_leaders: bool,
    /// Whether a server can measure what is stored in a database.
    pub measures_bytes: bool,
    /// Whether all servers of a database have one replication log, so that a follower may go on at another one.
    pub has_one_log: bool,
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
    /// The time of the place, in ms since the epoch; `None` if it has no clock.
    pub now_ms: Option<i64>,
    /// The databases that are led, and the URLs of their leaders.
    pub leaders: Vec<(String, String)>,
}

/// The state of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterDatabase {
    /// Its name at the place.
    pub name: String,
    /// Counts its leaders, if the place tells it.
    pub epoch: Option<u64>,
    /// Its last commit, if the place tells it.
    pub version: Option<u64>,
    /// The URL or name of its leader, and how long its lease still lasts, in ms: below 0 after its end, `None` where the
    /// place does not report the end.
    pub leader: Option<(String, Option<i64>)>,
}
