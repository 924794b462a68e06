//! A replica: a local copy of a remote database that follows its replication log.
//!
//! Duty: keep a store the same as the database of a server, say how far it is, and decide which reads
//! it may answer.
//! Invariant: the store changes only by what the server has logged or copied, and its position changes in
//! the same transaction. Reads of one handle never go back in time, and see its own commits.
//! Never: a write to the store by another caller; a write that waits here for the server.
//!
//! | file | what |
//! |---|---|
//! | [`choice`] | what a handle has seen; whether a read is answered here, waits, or goes to the server |
//! | [`progress`] | how far the replica is |
//! | [`follower`] | takes the log of the server |
//! | [`in_process`] | reads the log of a database that this process has open itself |

mod choice;
mod follower;
mod in_process;
mod progress;

use std::sync::Arc;
use std::time::Duration;

pub use choice::{Choice, Freshness, Seen, choose, covers};
pub use progress::{Progress, State};

use tokio::sync::watch;

use crate::remote::{Client, Following, Tasks};
use in_process::StoreFollowing;
use openkv_core::model::{
    Advertised, Error, Key, Kind, REPLICA_WAIT_LOOK_MS, Result, Versionstamp,
};
use openkv_store::Store;
use openkv_store::metrics::ReplicaFigures;
use progress::FollowerProgress;

/// A store that follows a server, for all handles of a process on it.
pub struct LocalCopy {
    // Dropped first: the store waits for its work.
    following: Option<Source>,
    follower: Arc<follower::LogTaker>,
    store: Arc<Store>,
    shared: Arc<FollowerProgress>,
    prefixes: Vec<Key>,
    tasks: Tasks,
}

/// The database that it follows.
enum Source {
    #[expect(dead_code, reason = "held: following ends with it")]
    Server(Following, Arc<Client>),
    Store(StoreFollowing),
}

impl LocalCopy {
    /// Starts to follow the server of a client. `beat` is how often the server tells its position;
    /// `advertised` is what the server may tell clients about a server of the copy. With `unreached`, the
    /// server could not be reached just now, and the store is read until it can.
    ///
    /// # Errors
    /// `Unavailable` if the server could not be reached, and the store has no complete copy.
    pub fn start(
        store: Store,
        client: Arc<Client>,
        (prefixes, beat): (Vec<Key>, Duration),
        advertised: Option<Advertised>,
        unreached: Option<&Error>,
    ) -> Result<Arc<Self>> {
        let tasks = client.tasks();
        let shared = FollowerProgress::default();
        if let Some(error) = unreached {
            let held = tasks.wait_for(follower::followed(&store))?;
            let held = held.filter(|held| held.prefixes == prefixes);
            shared.opened_without(error.clone());
            shared.found(held.ok_or_else(|| nothing_copied(error))?.version);
        }
        Self::following((store, shared), (prefixes, beat), advertised, tasks, |follower, _| {
            Ok(Source::Server(client.follow(follower), client))
        })
    }

    /// Starts to follow a database that this process has open itself.
    ///
    /// # Errors
    /// `Unavailable` if no thread can be started.
    pub fn start_in_process(
        store: Store,
        source: Arc<Store>,
        prefixes: Vec<Key>,
        beat: Duration,
    ) -> Result<Arc<Self>> {
        let (tasks, of) = (Tasks::start()?, prefixes.clone());
        let parts = (store, FollowerProgress::default());
        Self::following(parts, (prefixes, beat), None, tasks, |follower, tasks| {
            StoreFollowing::start(source, follower, of, beat, tasks).map(Source::Store)
        })
    }

    fn following(
        (store, shared): (Store, FollowerProgress),
        (prefixes, beat): (Vec<Key>, Duration),
        advertised: Option<Advertised>,
        tasks: Tasks,
        start: impl FnOnce(Arc<follower::LogTaker>, Tasks) -> Result<Source>,
    ) -> Result<Arc<Self>> {
        let (store, shared) = (Arc::new(store), Arc::new(shared));
        let taker =
            follower::LogTaker::new(&store, shared.clone(), (prefixes.clone(), beat), advertised);
        let follower = Arc::new(taker);
        let shown = shared.clone();
        store.show_replica(Box::new(move || shown.figures()));
        let following = Some(start(follower.clone(), tasks.clone())?);
        Ok(Arc::new(Self { following, follower, store, shared, prefixes, tasks }))
    }

    /// Calls `then` when the replica has the indexes that the database has now, or cannot get them. A
    /// replica of a server gets them with the next position that the server tells.
    pub fn look_for_indexes(&self, then: impl FnOnce() + Send + 'static) {
        match &self.following {
            Some(Source::Store(following)) => following.look(Box::new(then)),
            Some(Source::Server(..)) | None => then(),
        }
    }

    /// The local store.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// The beginnings of the keys that it has; empty: all keys.
    pub fn prefixes(&self) -> &[Key] {
        &self.prefixes
    }

    /// Whether it has a complete copy, of now or from before.
    pub fn has_copy(&self) -> bool {
        let progress = self.shared.progress();
        progress.ready || progress.held
    }

    /// How far it is, for metrics.
    pub fn figures(&self) -> ReplicaFigures {
        self.shared.figures()
    }

    /// Whether reads may be answered from it: it has a complete copy of the database.
    pub fn is_usable(&self) -> bool {
        self.shared.is_usable()
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        self.shared.progress()
    }

    /// Whether the read of a handle may be answered here now.
    pub fn choose(&self, seen: &Seen, inside: bool) -> Choice {
        let (version, epoch) = self.shared.version();
        let quick = Freshness { needed: seen.needed(epoch), version, lag: None, max_lag: None };
        if inside && self.shared.is_usable() && seen.max_lag().is_none() {
            return choose(true, quick, true);
        }
        let progress = self.shared.progress();
        let freshness = Freshness { lag: progress.lag(), max_lag: seen.max_lag(), ..quick };
        if !self.shared.is_usable() {
            return Choice::Primary;
        }
        choose(inside, freshness, progress.is_reachable())
    }

    /// Notes a commit of a handle that was submitted when the replica had `before`.
    pub fn committed(&self, seen: &Seen, stamp: Versionstamp, before: (u64, u64)) {
        let (version, epoch) = before;
        if stamp.version() <= version && self.shared.version().1 == epoch {
            // The replica cannot have had the commit: the server has other commits than it had.
            self.shared.suspect();
        }
        seen.note(self.shared.version().1, stamp.version());
    }

    /// The version of the replica, and how often its past was exchanged.
    pub fn version(&self) -> (u64, u64) {
        self.shared.version()
    }

    /// Calls `reply` once the replica has a commit, at the latest after `most`.
    pub fn reached(
        &self,
        version: u64,
        most: Option<Duration>,
        wanted: impl Fn() -> bool + Send + 'static,
        reply: impl FnOnce(Result<()>) + Send + 'static,
    ) {
        let (mut changes, shared) = (self.shared.changes(), self.shared.clone());
        let epoch = shared.version().1;
        self.tasks.run(async move {
            let arrived = changes.wait_for(|progress| {
                progress.failure().is_some()
                    || progress.epoch != epoch
                    || (progress.ready && progress.version >= version)
            });
            let waited = tokio::select! {
                arrived = arrived => arrived.map(drop).map_err(|_| Error::closed()),
                () = over(most) => Err(too_late(version, most.unwrap_or_default())),
                () = unwanted(wanted) => Err(Error::closed()),
            };
            let progress = shared.progress();
            reply(match progress.failure() {
                Some(error) => Err(error),
                None if waited.is_ok() && progress.epoch != epoch => Err(exchanged(version)),
                None => waited,
            });
        });
    }

    /// Whether a feed that goes on after a commit may be served here: the log of a copy begins with it, and the
    /// server may have the changes before.
    pub fn may_reach(&self, since: u64) -> bool {
        self.shared.may_reach(since)
    }

    /// The commit that a handle has seen, if the replica does not have it yet.
    pub fn missing(&self, seen: &Seen) -> Option<u64> {
        let (version, epoch) = self.shared.version();
        Some(seen.needed(epoch)).filter(|needed| *needed > version)
    }

    /// Calls `reply` once the replica has everything that a handle has seen by now: at once, on this
    /// thread, if it has that already.
    pub fn caught_up(
        &self,
        seen: &Arc<Seen>,
        wanted: impl Fn() -> bool + Send + 'static,
        reply: impl FnOnce(Result<()>) + Send + 'static,
    ) {
        if self.shared.is_usable() && self.missing(seen).is_none() {
            return reply(Ok(()));
        }
        let (mut changes, seen) = (self.shared.changes(), seen.clone());
        self.tasks.run(async move {
            reply(tokio::select! {
                arrived = arrived(&mut changes, &seen) => arrived,
                () = unwanted(wanted) => Err(Error::closed()),
            });
        });
    }

    /// Calls `reply` once the replica has a complete copy of the database.
    pub fn ready(
        &self,
        wanted: impl Fn() -> bool + Send + 'static,
        reply: impl FnOnce(Result<()>) + Send + 'static,
    ) {
        let mut changes = self.shared.changes();
        self.tasks.run(async move {
            let ready = |progress: &Progress| progress.ready || progress.failure().is_some();
            let arrived = tokio::select! {
                arrived = changes.wait_for(ready) => arrived.ok().map(|progress| progress.failure()),
                () = unwanted(wanted) => None,
            };
            reply(match arrived {
                Some(failure) => failure.map_or(Ok(()), Err),
                None => Err(Error::closed()),
            });
        });
    }
}

impl LocalCopy {
    /// Ends it. Waits until the database that it follows is not used any more, so that it can be closed.
    pub fn close(mut self) {
        self.follower.end();
        if let Some(Source::Store(following)) = self.following.take() {
            following.end();
        }
    }
}

impl Drop for LocalCopy {
    fn drop(&mut self) {
        // The thread of a store may wait for a copy that this ends.
        self.follower.end();
        drop(self.following.take());
        self.shared.close();
    }
}

/// Refuses a server without a replication log.
///
/// # Errors
/// `Unsupported`.
pub fn require_log(client: &Client) -> Result<()> {
    if client.has_log() {
        return Ok(());
    }
    Err(client.lacks(
        "the replication log, which the option replica needs. Servers on an object store have none that a replica can \
         follow: leave the option out, or open the database with the URL of the object store, for a copy that is kept \
         up to date (docs/bucket.md)",
    ))
}

/// The error of an opening without the server, for a replica without a complete copy.
pub fn nothing_copied(unreached: &Error) -> Error {
    let why = unreached.message();
    // Advice may end with a question mark.
    let end = if why.ends_with(['?', '.']) { "" } else { "." };
    Error::unavailable(format!(
        "{why}{end} Nothing has been copied yet that the replica could be read from: open it once while the server \
         can be reached"
    ))
}

async fn over(most: Option<Duration>) {
    match most {
        Some(most) => tokio::time::sleep(most).await,
        None => std::future::pending().await,
    }
}

/// Waits until a replica has what a handle has seen by now. What it sees meanwhile does not make the wait
/// longer, unless the replica was exchanged for another copy.
async fn arrived(changes: &mut watch::Receiver<Progress>, seen: &Seen) -> Result<()> {
    loop {
        let epoch = changes.borrow_and_update().epoch;
        let needed = seen.needed(epoch);
        let is_there = |progress: &Progress| {
            let has_it = progress.epoch != epoch || progress.version >= needed;
            progress.failure().is_some() || progress.is_usable() && has_it
        };
        let progress = changes.wait_for(is_there).await.map_err(|_| Error::closed())?.clone();
        if let Some(error) = progress.failure() {
            return Err(error);
        }
        if progress.epoch == epoch {
            return Ok(());
        }
    }
}

/// Waits until no caller wants an answer any more.
async fn unwanted(wanted: impl Fn() -> bool) {
    while wanted() {
        tokio::time::sleep(Duration::from_millis(REPLICA_WAIT_LOOK_MS)).await;
    }
}

fn too_late(version: u64, most: Duration) -> Error {
    let (stamp, ms) = (Versionstamp::new(version), most.as_millis());
    Error::unavailable(format!(
        "the replica has not reached the commit {stamp} within {ms} ms (option timeout): read with \
         consistency: \"strong\", or call again once it is connected (kv.replica.status())"
    ))
}

fn exchanged(version: u64) -> Error {
    let stamp = Versionstamp::new(version);
    Error::new(
        Kind::Unavailable,
        format!(
            "the database was exchanged for another copy of it while the replica waited for the commit {stamp}, \
             which that may not have: read again"
        ),
    )
}
