//! Merged objects: leaders make them, and readers take them.

use openkv::chain::{ChainDefect, Merged, Merging};

use super::store::Ask;
use super::{Doing, LEASE_MS, World};

/// Objects at which a leader copies some.
const MERGED_OBJECTS: u64 = 3;

impl World {
    /// A leader copies what it knows to be in the log, once there is enough.
    pub(super) fn copy_log(&mut self, at: usize) {
        let copies_unconfirmed = self.is(ChainDefect::MergesUnconfirmed);
        let Doing::Leading(leading) = &mut self.processes[at].doing else { return };
        let next = leading.window.position().next;
        if let Some(from) = leading.merge_from.filter(|from| next >= from + MERGED_OBJECTS) {
            // A part, so that the next one overlaps it at times.
            let last = from + self.rng.below(next - from);
            leading.merge_from = Some(last + 1 - self.rng.below(2).min(last - from));
            return self.ask(at, Ask::ReadAll(from, last));
        }
        if copies_unconfirmed {
            let mut merging = Merging::default();
            for (_, bytes) in leading.sent.range(next..) {
                if merging.add(bytes).is_err() {
                    break;
                }
            }
            if let Some((merged, bytes)) = merging.finish() {
                self.ask(at, Ask::Merge(merged, bytes));
            }
        }
    }

    /// A leader has read what it copies.
    pub(super) fn merge(&mut self, at: usize, found: Vec<Option<Vec<u8>>>) {
        if !matches!(self.processes[at].doing, Doing::Leading(_)) {
            return;
        }
        let mut merging = Merging::default();
        // One that is not there was deleted, or is not visible yet.
        for object in found.iter().map_while(Option::as_ref) {
            if merging.add(object).is_err() {
                return self.fails(14, "an object of the log cannot be merged");
            }
        }
        if let Some((merged, bytes)) = merging.finish() {
            self.ask(at, Ask::Merge(merged, bytes));
        }
    }

    pub(super) fn listed_merged(&mut self, at: usize, listed: &[(Merged, Vec<u8>)]) {
        let clock = self.clock(at);
        let process = &mut self.processes[at];
        if !matches!(process.doing, Doing::Following | Doing::Claiming(..)) {
            return;
        }
        if !process.end.trusts(clock, LEASE_MS) {
            process.walking = true;
            return self.ask(at, Ask::List);
        }
        process.walking = false;
        let is_read = process.copy.take_merged(listed);
        self.states.push(process.copy.writes.clone());
        if !is_read {
            self.fails(14, "a merged object cannot be read");
        }
    }
}
