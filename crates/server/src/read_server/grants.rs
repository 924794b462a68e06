//! The answers of the primary about tokens.
//!
//! Invariant: a token that the primary has refused is unknown. An answer about a token is valid for
//! [`READ_SERVER_TOKEN_MS_MAX`], and while the primary cannot be reached for
//! [`READ_SERVER_OUTAGE_MS_MAX`](openkv_core::model::READ_SERVER_OUTAGE_MS_MAX); but a token of the data path
//! ends at its time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;
use tokio::time::Instant;

use crate::auth::{Rights, TokenHash};
use openkv_core::model::{READ_SERVER_RETRY_MS, READ_SERVER_TOKEN_MS_MAX, READ_SERVER_TOKENS_MAX};

/// The answer of the primary about a token.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) rights: Rights,
    /// When it ends, whatever the primary says.
    pub(super) ends: Instant,
    /// The token of the data path, for which the primary grants the rights, and its end.
    pub(super) data_token: Arc<str>,
    pub(super) data_ends: Instant,
}

/// Marks the requests and streams of a token.
#[derive(Clone, Debug, Default)]
pub(crate) struct InUse(Arc<()>);

struct Entry {
    hash: TokenHash,
    known: Known,
    in_use: InUse,
    /// When the rights are requested from the primary again.
    asks: Instant,
}

impl Entry {
    /// Whether a request or a stream uses the token.
    fn is_used(&self) -> bool {
        Arc::strong_count(&self.in_use.0) > 1
    }

    fn found(&self) -> (Known, InUse) {
        (self.known.clone(), self.in_use.clone())
    }
}

/// The known tokens, by their fingerprints.
#[derive(Default)]
pub(super) struct Grants(HashMap<[u8; 8], Entry, RandomState>);

impl Grants {
    /// The known answer about a token, if it is fresh enough.
    pub(super) fn fresh(&self, hash: &TokenHash, now: Instant) -> Option<(Known, InUse)> {
        self.entry(hash, now).filter(|entry| entry.asks > now).map(Entry::found)
    }

    /// The known answer about a token, fresh or not, for a request about it.
    pub(super) fn known(&self, hash: &TokenHash, now: Instant) -> Option<Known> {
        self.entry(hash, now).map(|entry| entry.known.clone())
    }

    /// The known answer about a token, while the primary cannot be reached; the next request to the primary comes after a pause.
    pub(super) fn postponed(&mut self, hash: &TokenHash, now: Instant) -> Option<(Known, InUse)> {
        let found = self.entry(hash, now).map(Entry::found)?;
        let entry = self.0.get_mut(&hash.fingerprint())?;
        entry.asks = now + Duration::from_millis(READ_SERVER_RETRY_MS);
        Some(found)
    }

    /// Whether a token with this fingerprint is known.
    pub(super) fn has(&self, fingerprint: [u8; 8], now: Instant) -> bool {
        self.0.get(&fingerprint).is_some_and(|entry| entry.known.ends > now)
    }

    /// Keeps what the primary has said.
    pub(super) fn keep(&mut self, hash: TokenHash, known: Known, now: Instant) -> (Known, InUse) {
        if self.0.len() >= READ_SERVER_TOKENS_MAX {
            self.make_room(now);
        }
        let before = self.0.remove(&hash.fingerprint()).filter(|entry| entry.hash.is(&hash));
        let in_use = before.map(|entry| entry.in_use).unwrap_or_default();
        let asks = now + Duration::from_millis(READ_SERVER_TOKEN_MS_MAX);
        let entry = Entry { hash, known, in_use, asks };
        let found = entry.found();
        self.0.insert(hash.fingerprint(), entry);
        found
    }

    /// Forgets a token that the primary has refused.
    pub(super) fn forget(&mut self, hash: &TokenHash) {
        self.0.remove(&hash.fingerprint());
    }

    /// The tokens of streams whose rights are to be requested again.
    pub(super) fn used(&self, now: Instant) -> Vec<(TokenHash, Known)> {
        let is_due = |entry: &Entry| entry.asks <= now && entry.known.data_ends > now;
        let due = self.0.values().filter(|entry| is_due(entry) && entry.is_used());
        due.map(|entry| (entry.hash, entry.known.clone())).collect()
    }

    fn entry(&self, hash: &TokenHash, now: Instant) -> Option<&Entry> {
        let entry = self.0.get(&hash.fingerprint());
        entry.filter(|entry| entry.hash.is(hash) && entry.known.ends > now)
    }

    /// Forgets the ended tokens, or else those whose rights were requested longest ago.
    fn make_room(&mut self, now: Instant) {
        self.0.retain(|_, entry| entry.known.ends > now);
        if self.0.len() < READ_SERVER_TOKENS_MAX {
            return;
        }
        let mut times: Vec<_> = self.0.values().map(|entry| entry.asks).collect();
        let middle = times.len() / 2;
        let (_, median, _) = times.select_nth_unstable(middle);
        let median = *median;
        self.0.retain(|_, entry| entry.asks > median || entry.is_used());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn known(now: Instant) -> Known {
        let (ends, data_ends) = (now + HOUR, now + HOUR);
        Known { rights: Rights::Read, ends, data_token: Arc::default(), data_ends }
    }

    #[tokio::test]
    async fn the_rights_of_a_token_are_requested_again_and_end() {
        let (mut grants, now) = (Grants::default(), Instant::now());
        let (hash, other) = (TokenHash::of("a"), TokenHash::of("b"));
        grants.keep(hash, known(now), now);
        assert!(grants.fresh(&hash, now).is_some() && grants.fresh(&other, now).is_none());
        let later = now + Duration::from_millis(READ_SERVER_TOKEN_MS_MAX);
        assert!(grants.fresh(&hash, later).is_none() && grants.known(&hash, later).is_some());
        assert!(grants.postponed(&hash, later).is_some());
        assert!(
            grants.fresh(&hash, later).is_some(),
            "no request to the primary for each one of a client"
        );
        let pause = Duration::from_millis(READ_SERVER_RETRY_MS);
        assert!(grants.fresh(&hash, later + pause).is_none());
        assert!(grants.postponed(&hash, now + HOUR).is_none(), "it has ended");
        assert!(!grants.has(hash.fingerprint(), now + HOUR));
        assert!(grants.has(hash.fingerprint(), later));
        grants.forget(&hash);
        assert!(!grants.has(hash.fingerprint(), later));
    }

    #[tokio::test]
    async fn the_rights_of_tokens_of_streams_are_requested_and_stay() {
        let (mut grants, now) = (Grants::default(), Instant::now());
        let stream = grants.keep(TokenHash::of("stream"), known(now), now);
        let second = now + Duration::from_secs(1);
        for n in 0..READ_SERVER_TOKENS_MAX {
            grants.keep(TokenHash::of(&n.to_string()), known(now), second);
        }
        assert!(grants.0.len() <= READ_SERVER_TOKENS_MAX);
        assert!(grants.has(TokenHash::of("stream").fingerprint(), now));
        // Another request has renewed its rights.
        grants.keep(TokenHash::of("stream"), known(now), second);
        let later = second + Duration::from_millis(READ_SERVER_TOKEN_MS_MAX);
        assert_eq!(grants.used(later).len(), 1);
        drop(stream);
        assert!(grants.used(later).is_empty());
    }
}
