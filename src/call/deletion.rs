//! Deletions of many entries: commit after commit, until all are gone.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::{Call, Fault, Reply};
use crate::codec::frame::{deleted_answer, parse_deletion};
use crate::filter::Filter;
use crate::model::{
    Among, AtomicWrite, Beyond, DELETE_STEP_ROWS_MAX, Decision, Deleted, Deletion, Error, Key,
    Limits, Result, Versionstamp, WriteParts,
};
use crate::store::Store;

/// A deletion on its way.
struct Progress {
    store: Weak<Store>,
    reply: Reply,
    durable: bool,
    busy: Duration,
    limits: Limits,
    /// What is left to do.
    deletion: Deletion,
    atomic: bool,
    /// Keys that are left for later commits, last ones first.
    keys: Vec<Key>,
    count: u64,
    stamp: Option<Versionstamp>,
}

/// Frame: a deletion. Answer: f64 count, u8 whether anything was committed, stamp(20) of the last
/// commit.
pub(super) fn delete_many(frame: &[u8], call: Call) {
    let Call { store, reply, durable, busy, limits, .. } = call;
    let (deletion, atomic) = match prepared(frame, &store) {
        Ok(prepared) => prepared,
        Err(error) => return reply.bad(error),
    };
    let mut progress = Progress {
        store: Arc::downgrade(&store),
        reply,
        durable,
        busy,
        limits,
        deletion,
        atomic,
        keys: Vec::new(),
        count: 0,
        stamp: None,
    };
    if !atomic && let Among::Keys(keys) = &mut progress.deletion.among {
        progress.keys = std::mem::take(keys);
        progress.keys.reverse();
        progress.take_keys();
    }
    progress.go_on(&store);
}

fn prepared(frame: &[u8], store: &Store) -> Result<(Deletion, bool), Fault> {
    let (mut deletion, atomic) = parse_deletion(frame)?;
    deletion.now_ms = store.now_ms();
    if let Some(bytes) = &deletion.filter {
        Filter::parse(bytes, deletion.now_ms)?;
    }
    Ok((deletion, atomic))
}

/// Why a deletion ends that has deleted so many by then.
fn fault(error: Error, count: u64) -> Fault {
    if count == 0 {
        return Fault::Told(error);
    }
    let words = format!("{} ({count} entries have been deleted before)", error.message());
    Fault::Begun(Error::new(error.kind(), words))
}

impl Progress {
    /// The next commit's share of the keys.
    fn take_keys(&mut self) {
        let at = self.keys.len().saturating_sub(DELETE_STEP_ROWS_MAX);
        let mut next = self.keys.split_off(at);
        next.reverse();
        self.deletion.among = Among::Keys(next);
    }

    /// One commit, and behind the writes that wait by then the next one.
    fn go_on(self, store: &Store) {
        let deletion = Deletion {
            count_max: match self.atomic {
                true => self.deletion.count_max,
                false => self.deletion.count_max.min(DELETE_STEP_ROWS_MAX),
            },
            beyond: match self.atomic {
                true => Beyond::Refuse(self.limits.mutations_max),
                false => Beyond::Resume,
            },
            ..self.deletion.clone()
        };
        let parts = WriteParts { deletion: Some(Box::new(deletion)), ..WriteParts::default() };
        let writes = vec![AtomicWrite::new(parts, &self.limits)];
        let (durable, busy) = (self.durable, self.busy);
        store.commit(writes, durable, busy, Box::new(move |decisions| self.decided(decisions)));
    }

    fn decided(mut self, decisions: Vec<Decision>) {
        match decisions.into_iter().next() {
            Some(Decision::Deleted(Deleted { count, stamp, resume })) => {
                self.count += count as u64;
                self.stamp = stamp.or(self.stamp);
                let limit = &mut self.deletion.count_max;
                if *limit != usize::MAX {
                    *limit = limit.saturating_sub(count);
                }
                let more = match (&mut self.deletion.among, resume) {
                    (Among::Keys(_), _) => !self.keys.is_empty(),
                    (Among::Span { start, .. }, Some(resume)) => {
                        *start = resume;
                        true
                    }
                    (Among::Span { .. }, None) => false,
                };
                if !more || self.atomic || self.deletion.count_max == 0 {
                    return self.reply.good(deleted_answer(self.count, self.stamp));
                }
                if matches!(self.deletion.among, Among::Keys(_)) {
                    self.take_keys();
                }
                match self.store.upgrade() {
                    Some(store) => self.go_on(&store),
                    None => self.fail(Error::closed()),
                }
            }
            Some(Decision::Rejected(error)) => self.fail(error),
            _ => self.fail(Error::internal("a deletion was not decided")),
        }
    }

    fn fail(self, error: Error) {
        self.reply.bad(fault(error, self.count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Kind;

    /// A client asked a second time for all of a deletion of which a part was committed, since the
    /// file had been busy: more was deleted than its limit.
    #[test]
    fn what_has_begun_is_not_told_like_what_has_not() {
        let busy = || Error::new(Kind::Unavailable, "busy");
        assert_eq!(fault(busy(), 0), Fault::Told(busy()));
        let Fault::Begun(error) = fault(busy(), 5) else { panic!("as if nothing had been done") };
        assert_eq!(error.kind(), Kind::Unavailable);
        assert!(error.message().contains("5 entries"), "{error}");
    }
}
