//! The choice between the replica and the server.

use std::time::Duration;

use openkv_core::model::Key;

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

/// Decides. `eventual`: the read may be old; `inside`: the replica has all of its keys.
pub fn choose(eventual: bool, inside: bool, freshness: Freshness, reachable: bool) -> Choice {
    let Freshness { needed, version, lag, max_lag } = freshness;
    if !eventual || !inside {
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

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn freshness(needed: u64, lag: Option<u64>, max_lag: Option<u64>) -> Freshness {
        Freshness { needed, version: 10, lag: lag.map(MS), max_lag: max_lag.map(MS) }
    }

    #[test]
    fn strong_reads_and_reads_outside_go_to_the_server() {
        let fresh = freshness(0, Some(0), None);
        assert_eq!(choose(true, true, fresh, true), Choice::Local);
        assert_eq!(choose(false, true, fresh, true), Choice::Primary);
        assert_eq!(choose(true, false, fresh, true), Choice::Primary);
        assert_eq!(choose(true, false, fresh, false), Choice::Primary);
    }

    #[test]
    fn a_read_waits_for_what_the_handle_has_seen() {
        assert_eq!(choose(true, true, freshness(10, None, None), false), Choice::Local);
        assert_eq!(choose(true, true, freshness(11, None, None), false), Choice::WaitFor(11));
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
            assert_eq!(choose(true, true, freshness, reachable), expected, "{lag:?} {reachable}");
        }
        let unseen = freshness(11, Some(5), Some(100));
        assert_eq!(choose(true, true, unseen, true), Choice::WaitFor(11));
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
