//! The end of a world: everything that was answered, refused and seen, against the chain.

use std::collections::BTreeSet;

use openkv::chain::decode;

use super::World;
use super::store::Copy;

impl World {
    /// Compares everything with the chain.
    pub(super) fn check_all(&mut self) {
        let mut truth = Copy::default();
        while let Some(bytes) = self.store.ever.get(&truth.position.next) {
            let Ok((entry, content, digest)) = decode(bytes) else { break };
            truth.take(&entry, content, digest);
        }
        let chain = &truth.writes;
        if let Some(lost) = self.answered.iter().find(|write| !chain.contains(write)) {
            self.fails(1, format!("the answered write {lost} is not in the chain"));
        }
        let only = |write: &u64| self.attempts.get(write) == Some(&1);
        let done = self.refused.iter().find(|write| only(write) && chain.contains(write)).copied();
        if let Some(done) = done {
            self.fails(2, format!("the refused write {done} is in the chain"));
        }
        if let Some(state) = self.states.iter().find(|state| !chain.starts_with(state)) {
            let state = state.clone();
            self.fails(3, format!("a state is no beginning of the chain: {state:?}"));
        }
        let once: BTreeSet<_> = chain.iter().collect();
        if once.len() != chain.len() {
            self.fails(7, "a write with an id is in the chain twice");
        }
        let newest = self.store.snapshots.values().last().map(|(copy, _)| copy.clone());
        let mut fresh = newest.unwrap_or_default();
        let merged: Vec<_> =
            self.store.merged.iter().map(|(merged, (bytes, _))| (*merged, bytes.clone())).collect();
        if !fresh.take_merged(&merged) {
            self.fails(14, "a merged object cannot be read");
        }
        while let Some(bytes) = self.store.log.get(&fresh.position.next) {
            let Ok((entry, content, digest)) = decode(bytes) else { break };
            fresh.take(&entry, content, digest);
        }
        if fresh.writes != *chain {
            let found = fresh.writes.len();
            self.fails(5, format!("a new reader finds {found} of {} writes", chain.len()));
        }
    }
}
