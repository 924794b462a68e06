//! How far a replica is.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use openkv_core::model::Error;
use openkv_store::metrics::ReplicaFigures;

/// Streams that fail one after the other from which on the server counts as not reachable.
const FAILURES_MIN: u32 = 2;

/// The state of a replica.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Connects, or gets a copy of everything.
    #[default]
    Bootstrapping,
    /// Follows the changes.
    Following,
    /// Is not connected, and tries again.
    Disconnected,
    /// Has ended: a person has to do something.
    Failed,
}

impl State {
    /// The name in the API.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Bootstrapping => "bootstrapping",
            Self::Following => "following",
            Self::Disconnected => "disconnected",
            Self::Failed => "failed",
        }
    }
}

/// How far a replica is.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Its state.
    pub state: State,
    /// The commit up to which it has every change.
    pub version: u64,
    /// How often its past was exchanged for another one.
    pub epoch: u64,
    /// Whether it has a complete copy, as the server has confirmed since it was opened.
    pub ready: bool,
    /// Whether it has a complete copy from before, which is read while the server is away.
    pub held: bool,
    /// The last problem; `None` while it follows.
    pub error: Option<Error>,
    /// The number of complete copies since the opening, and why the last one was needed.
    pub copies: u64,
    /// Why the last copy was needed.
    pub copied_because: Option<String>,
    /// The commit with which its log begins, if it was copied since it was opened and its past was not exchanged.
    begins: u64,
    /// When it had everything.
    fresh_at: Option<Instant>,
    /// Streams that have failed since the last message.
    failures: u32,
    /// Whether the server has other commits than the replica.
    is_suspected: bool,
}

impl Progress {
    /// How long ago it had everything; `None`: not since it was opened.
    pub fn lag(&self) -> Option<Duration> {
        self.fresh_at.map(|at| at.elapsed())
    }

    /// Whether the server can be reached, as far as is known.
    pub fn is_reachable(&self) -> bool {
        self.state != State::Failed && self.failures < FAILURES_MIN
    }

    /// Whether reads may be answered from it.
    pub fn is_usable(&self) -> bool {
        let has_copy = self.ready || self.held && self.state == State::Disconnected;
        has_copy && self.state != State::Failed && !self.is_suspected
    }

    /// Why following has ended.
    pub fn failure(&self) -> Option<Error> {
        self.error.clone().filter(|_| self.state == State::Failed)
    }
}

/// The progress that the follower reports and reads look at.
pub(super) struct FollowerProgress {
    progress: watch::Sender<Progress>,
    /// As in the progress, for reads that must not take a lock.
    version: AtomicU64,
    epoch: AtomicU64,
    begins: AtomicU64,
    usable: AtomicBool,
}

impl Default for FollowerProgress {
    fn default() -> Self {
        Self {
            progress: watch::Sender::new(Progress::default()),
            version: AtomicU64::new(0),
            epoch: AtomicU64::new(0),
            begins: AtomicU64::new(0),
            usable: AtomicBool::new(false),
        }
    }
}

impl FollowerProgress {
    pub(super) fn progress(&self) -> Progress {
        self.progress.borrow().clone()
    }

    pub(super) fn changes(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// The version and the epoch.
    pub(super) fn version(&self) -> (u64, u64) {
        // The epoch first: a version that is read with an older epoch only makes a read wait.
        let epoch = self.epoch.load(Ordering::Acquire);
        (self.version.load(Ordering::Acquire), epoch)
    }

    /// Whether its log may have the changes after a commit that the server may still have.
    pub(super) fn may_reach(&self, since: u64) -> bool {
        since >= self.begins.load(Ordering::Acquire)
    }

    /// How far the replica is, for metrics.
    pub(super) fn figures(&self) -> ReplicaFigures {
        let progress = self.progress();
        ReplicaFigures {
            state: progress.state.name(),
            usable: self.is_usable(),
            lag_ms: progress.lag().map(|lag| lag.as_secs_f64() * 1000.0),
            version: progress.version,
            copies: progress.copies,
        }
    }

    /// Whether reads may be answered from the replica at all.
    pub(super) fn is_usable(&self) -> bool {
        self.usable.load(Ordering::Acquire)
    }

    fn change(&self, change: impl FnOnce(&mut Progress)) {
        self.progress.send_modify(|progress| {
            change(progress);
            self.version.store(progress.version, Ordering::Release);
            self.epoch.store(progress.epoch, Ordering::Release);
            self.begins.store(progress.begins, Ordering::Release);
            self.usable.store(progress.is_usable(), Ordering::Release);
        });
    }

    /// The replica has a complete copy from before. While the server can be reached, it is used once that
    /// has confirmed that it is a copy of this database.
    pub(super) fn found(&self, version: u64) {
        self.change(|progress| {
            progress.version = progress.version.max(version);
            progress.held = true;
        });
    }

    /// The server could not be reached when the replica was opened.
    pub(super) fn opened_without(&self, error: Error) {
        self.change(|progress| {
            progress.state = State::Disconnected;
            progress.error = Some(error);
            progress.failures = FAILURES_MIN;
        });
    }

    /// A copy has begun.
    pub(super) fn copying(&self) {
        self.change(|progress| {
            progress.state = State::Bootstrapping;
            (progress.error, progress.failures) = (None, 0);
        });
    }

    /// A copy is complete; `exchanged`: its commits are others than those before.
    pub(super) fn copied(&self, version: u64, exchanged: bool, why: String) {
        self.change(|progress| {
            progress.epoch += u64::from(exchanged);
            progress.version = version;
            // After an exchange, the copy alone knows that an earlier commit may be one of the lost past.
            progress.begins = if exchanged { 0 } else { version };
            (progress.state, progress.ready) = (State::Following, true);
            progress.is_suspected = false;
            progress.copies += 1;
            progress.copied_because = Some(why);
        });
    }

    /// The replica has all changes up to here; `newest`: the server had no later ones.
    pub(super) fn followed(&self, version: u64, newest: bool) {
        self.change(|progress| {
            progress.version = progress.version.max(version);
            (progress.state, progress.ready) = (State::Following, true);
            (progress.error, progress.failures) = (None, 0);
            if newest {
                progress.fresh_at = Some(Instant::now());
            }
        });
    }

    pub(super) fn disconnected(&self, why: &str) {
        self.change(|progress| {
            progress.state = State::Disconnected;
            progress.error = Some(Error::unavailable(why.to_owned()));
            progress.failures = progress.failures.saturating_add(1);
        });
    }

    pub(super) fn failed(&self, error: Error) {
        self.change(|progress| {
            progress.state = State::Failed;
            progress.error = Some(error);
        });
    }

    /// The server has other commits than the replica: nothing is read here until it was copied again.
    pub(super) fn suspect(&self) {
        self.change(|progress| progress.is_suspected = true);
    }

    /// Ends all waits.
    pub(super) fn close(&self) {
        self.change(|progress| {
            progress.state = State::Failed;
            progress.error = Some(Error::closed());
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_failures_make_the_server_unreachable_until_a_message() {
        let shared = FollowerProgress::default();
        shared.disconnected("no");
        assert!(shared.progress().is_reachable());
        shared.disconnected("no");
        assert!(!shared.progress().is_reachable());
        shared.followed(3, true);
        let progress = shared.progress();
        assert!(progress.is_reachable() && progress.lag().is_some() && progress.error.is_none());
    }

    #[test]
    fn a_version_goes_back_only_with_another_epoch() {
        let shared = FollowerProgress::default();
        shared.found(9);
        shared.followed(5, false);
        assert_eq!(shared.version(), (9, 0));
        shared.copied(4, true, String::new());
        assert_eq!(shared.version(), (4, 1));
    }

    /// A feed that went on after an earlier commit failed at the copy, although the server had the changes.
    #[test]
    fn its_log_begins_with_a_copy() {
        let shared = FollowerProgress::default();
        shared.found(3);
        assert!(shared.may_reach(0), "its file may have a log");
        shared.copied(9, false, String::new());
        shared.followed(12, true);
        assert!(!shared.may_reach(8) && shared.may_reach(9));
        shared.copied(4, true, String::new());
        assert!(shared.may_reach(0), "it tells of a past that is lost");
    }

    /// An application that started without its server could not read its own copy.
    #[test]
    fn a_copy_from_before_is_used_while_the_server_is_away() {
        let shared = FollowerProgress::default();
        shared.opened_without(Error::closed());
        assert!(!shared.is_usable() && !shared.progress().is_reachable());
        shared.found(9);
        assert!(shared.is_usable() && !shared.progress().ready);
        shared.copying();
        assert!(!shared.is_usable(), "the server has another state");
        shared.disconnected("no");
        assert!(shared.is_usable());
        shared.failed(Error::closed());
        assert!(!shared.is_usable(), "it is the copy of another database");
    }

    #[test]
    fn it_is_used_once_it_is_complete_and_not_while_it_is_suspected() {
        let shared = FollowerProgress::default();
        shared.found(9);
        assert!(!shared.is_usable());
        shared.followed(9, true);
        assert!(shared.is_usable());
        shared.suspect();
        shared.followed(10, true);
        assert!(!shared.is_usable());
        shared.copied(11, false, String::new());
        assert!(shared.is_usable());
        shared.failed(Error::closed());
        assert!(!shared.is_usable());
    }
}
