//! What a handle has seen, and the choice between the replica and the server: eventual reads are never older.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use openkv_core::model::Key;

/// The newest commit that a handle knows.
#[derive(Debug, Default)]
pub struct Seen {
    version: AtomicU64,
    /// The past of the replica that the version belongs to.
    epoch: AtomicU64,
    noting: Mutex<()>,
    max_lag: Option<Duration>,
}

impl Seen {
    /// Of a new handle, whose eventual reads may be this old.
    #[must_use]
    pub fn new(max_lag: Option<Duration>) -> Self {
        Self { max_lag, ..Self::default() }
    }

    /// How old a read may be.
    pub fn max_lag(&self) -> Option<Duration> {
        self.max_lag
    }

    /// Notes that the handle has seen a commit, while the replica has this past.
    pub fn note(&self, epoch: u64, version: u64) {
        let _one = self.noting.lock();
        let known = self.epoch.load(Ordering::Acquire);
        if epoch < known {
            return;
        }
        if known != epoch {
            self.version.store(0, Ordering::Release);
            self.epoch.store(epoch, Ordering::Release);
        }
        self.version.fetch_max(version, Ordering::AcqRel);
    }

    /// The commit that the next read needs. What was seen of another past says nothing.
    pub fn needed(&self, epoch: u64) -> u64 {
        let version = self.version.load(Ordering::Acquire);
        if self.epoch.load(Ordering::Acquire) == epoch { version } else { 0 }
    }
}

/// How new the replica is, and how new a read wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freshness {
    /// The commit that the handle has seen.
    pub needed: u64,
    /// The commit that the replica has.
    pub version: u64,
    /// How long ago the replica had everything; `None`: never, as far as it knows.
    pub lag: Option<Duration>,
    /// How old a read may be; `None`: any age.
    pub max_lag: Option<Duration>,
}

/// The source of the answer of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Here and now.
    Local,
    /// Here, once the replica has this commit.
    WaitFor(u64),
    /// By the server.
    Primary,
    /// Nowhere: it would be too old here, and the server cannot be reached.
    Reject,
}

/// Decides about a read that may be old. `inside`: the replica has all of its keys.
pub fn choose(inside: bool, freshness: Freshness, reachable: bool) -> Choice {
    let Freshness { needed, version, lag, max_lag } = freshness;
    if !inside {
        return Choice::Primary;
    }
    if let Some(max_lag) = max_lag
        && lag.is_none_or(|lag| lag > max_lag)
    {
        return if reachable { Choice::Primary } else { Choice::Reject };
    }
    if version < needed { Choice::WaitFor(needed) } else { Choice::Local }
}

/// Whether a replica with these prefixes has all keys from `start` (included) to `end` (excluded).
pub fn covers(prefixes: &[Key], start: &[u8], end: &[u8]) -> bool {
    prefixes.is_empty()
        || prefixes.iter().map(Key::as_bytes).any(|prefix| {
            let behind = [prefix, &[u8::MAX]].concat();
            start.starts_with(prefix) && end <= behind.as_slice()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_commit_of_the_present_past_counts() {
        let seen = Seen::default();
        assert_eq!(seen.needed(0), 0);
        seen.note(0, 9);
        seen.note(0, 5);
        assert_eq!((seen.needed(0), seen.needed(1)), (9, 0));
        seen.note(1, 3);
        // An answer from before the exchange.
        seen.note(0, 9);
        assert_eq!((seen.needed(0), seen.needed(1)), (0, 3));
    }

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn freshness(needed: u64, lag: Option<u64>, max_lag: Option<u64>) -> Freshness {
        Freshness { needed, version: 10, lag: lag.map(MS), max_lag: max_lag.map(MS) }
    }

    #[test]
    fn reads_outside_go_to_the_server() {
        let fresh = freshness(0, Some(0), None);
        assert_eq!(choose(true, fresh, true), Choice::Local);
        assert_eq!(choose(false, fresh, true), Choice::Primary);
        assert_eq!(choose(false, fresh, false), Choice::Primary);
    }

    #[test]
    fn a_read_waits_for_what_the_handle_has_seen() {
        assert_eq!(choose(true, freshness(10, None, None), false), Choice::Local);
        assert_eq!(choose(true, freshness(11, None, None), false), Choice::WaitFor(11));
    }

    #[test]
    fn a_read_that_would_be_too_old_goes_to_the_server_or_fails() {
        for (lag, reachable, expected) in [
            (Some(100), true, Choice::Local),
            (Some(101), true, Choice::Primary),
            (Some(101), false, Choice::Reject),
            (None, true, Choice::Primary),
            (None, false, Choice::Reject),
        ] {
            let freshness = freshness(0, lag, Some(100));
            assert_eq!(choose(true, freshness, reachable), expected, "{lag:?} {reachable}");
        }
        let unseen = freshness(11, Some(5), Some(100));
        assert_eq!(choose(true, unseen, true), Choice::WaitFor(11));
    }

    #[test]
    fn a_range_is_covered_if_it_lies_under_one_prefix() {
        let key = |bytes: &[u8]| Key::from_encoded(bytes.to_vec());
        let prefixes = [key(&[2, 97, 0]), key(&[2, 98, 0])];
        for (start, end, expected) in [
            (&[2, 97, 0][..], &[2, 97, 0, 255][..], true),
            (&[2, 97, 0, 2, 1, 0], &[2, 97, 0, 2, 1, 0, 0], true),
            (&[2, 97, 0], &[2, 98, 0], false),
            (&[2, 97], &[2, 97, 0, 255], false),
            (&[2, 99, 0], &[2, 99, 0, 0], false),
        ] {
            assert_eq!(covers(&prefixes, start, end), expected, "{start:?} {end:?}");
        }
        assert!(covers(&[], &[0], &[255]));
    }
}
