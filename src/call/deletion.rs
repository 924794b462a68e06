//! Deletions of many entries: one commit after the other, until all are deleted.
//!
//! With a filter, a thread for long reads compares the entries before each commit. So no write waits for
//! a filter, and the work ends when its caller is gone.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::{Call, Fault, Reply};
use crate::filter::Filter;
use crate::model::{
    Among, AtomicWrite, Beyond, DELETE_STEP_ROWS_MAX, DELETE_WHOLE_ROWS_MAX,
    DELETE_WHOLE_TRIES_MAX, Decision, Deleted, Deletion, Error, Key, Limits, Result, Versionstamp,
    WriteParts,
};
use crate::protocol::frame::{deleted_answer, parse_deletion};
use crate::store::{Caller, Look, Patience, Store};

/// A deletion under way.
struct Progress {
    store: Weak<Store>,
    reply: Reply,
    durable: bool,
    busy: Duration,
    limits: Limits,
    /// The rest of the deletion.
    deletion: Deletion,
    atomic: bool,
    /// Keys for later commits, in reverse order.
    keys: Vec<Key>,
    count: u64,
    stamp: Option<Versionstamp>,
    /// The bounds of the call.
    patience: Arc<Patience>,
    /// With a filter: the search before each commit.
    look: Option<Look>,
}

/// Frame: a deletion. Answer: f64 count, u8 whether anything was committed, stamp(20) of the last
/// commit.
pub(super) fn delete_many(frame: &[u8], call: Call) {
    let patience = call.patience("kv.deleteMany");
    let prepared = prepared(frame, &call.store);
    let Some(((deletion, filter, atomic), call)) = call.parsed(prepared) else { return };
    let Call { store, reply, durable, busy, limits, .. } = call;
    // A read-only database is not searched: the commit is refused.
    let filter = filter.filter(|_| !store.is_readonly());
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
        look: filter.map(|filter| Look::new(filter, patience.clone())),
        patience,
    };
    if !atomic && let Among::Keys(keys) = &mut progress.deletion.among {
        progress.keys = std::mem::take(keys);
        progress.keys.reverse();
        progress.take_keys();
    }
    if progress.look.is_none() {
        return progress.go_on(&store);
    }
    // Queued behind the writes that were submitted before, so that it sees them.
    let begin = move |_| progress.with_store(Progress::look_on);
    store.commit(Vec::new(), false, busy, Box::new(begin));
}

fn prepared(frame: &[u8], store: &Store) -> Result<(Deletion, Option<Filter>, bool), Fault> {
    let (mut deletion, atomic) = parse_deletion(frame)?;
    deletion.now_ms = store.now_ms();
    let filter = deletion.filter.as_deref().map(|bytes| Filter::parse(bytes, deletion.now_ms));
    Ok((deletion, filter.transpose()?, atomic))
}

/// The fault of a deletion that has deleted so many entries.
fn fault(error: Error, count: u64) -> Fault {
    if count == 0 {
        return Fault::Failed(error);
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

    /// Searches the candidates of the next commit, then goes on.
    fn look_on(mut self, store: &Store) {
        let Some(look) = self.look.take() else { return self.go_on(store) };
        let rows_max = if self.atomic { DELETE_WHOLE_ROWS_MAX } else { DELETE_STEP_ROWS_MAX };
        let bounds = (rows_max, self.deletion.count_max.min(rows_max));
        let among = std::mem::replace(&mut self.deletion.among, Among::Keys(Vec::new()));
        store.look_for_deletion(look, among, bounds, self);
    }

    /// Ends a search: commits if there is anything to delete.
    fn looked(mut self, store: &Store) {
        // A commit is refused if there are more entries than it may read.
        let beyond = |look: &Look| self.atomic && look.bound.is_some();
        if self.look.as_ref().is_none_or(|look| look.met > 0 || beyond(look)) {
            return self.go_on(store);
        }
        let resume = self.look.as_mut().and_then(|look| look.bound.take());
        self.committed(Deleted { count: 0, stamp: None, resume });
    }

    /// Does one commit, and queues the next one behind the writes that wait by then. Does none when the
    /// caller is gone.
    fn go_on(mut self, store: &Store) {
        if !self.reply.is_wanted() {
            return self.fail(Error::closed());
        }
        let known = self.look.as_mut().map(|look| std::mem::take(&mut look.known));
        let mut deletion = Deletion {
            known: known.unwrap_or_default(),
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
        // Not beyond the searched part.
        let bound = self.look.as_ref().and_then(|look| look.bound.clone());
        if let (Among::Span { end, .. }, Some(bound), false) =
            (&mut deletion.among, bound, self.atomic)
        {
            *end = bound;
        }
        let parts = WriteParts { deletion: Some(Box::new(deletion)), ..WriteParts::default() };
        let writes = vec![AtomicWrite::new(parts, &self.limits)];
        let (durable, busy) = (self.durable, self.busy);
        store.commit(writes, durable, busy, Box::new(move |decisions| self.decided(decisions)));
    }

    fn decided(mut self, decisions: Vec<Decision>) {
        match decisions.into_iter().next() {
            Some(Decision::Deleted(done)) if self.atomic && done.resume.is_some() => {
                self.try_again();
            }
            Some(Decision::Deleted(mut done)) => {
                let bound = self.look.as_mut().and_then(|look| look.bound.take());
                done.resume = done.resume.or(bound);
                self.committed(done);
            }
            Some(Decision::Rejected(error)) => self.fail(error),
            _ => self.fail(Error::internal("a deletion was not decided")),
        }
    }

    /// Too much has changed since the search for a deletion in one commit.
    fn try_again(mut self) {
        let tries = self.look.as_mut().map_or(0, Look::start_again);
        if (1..DELETE_WHOLE_TRIES_MAX).contains(&tries) {
            return self.with_store(Self::look_on);
        }
        self.with_store(|this, _| {
            this.fail(Error::unavailable(format!(
                "kv.deleteMany: atomic: true: entries kept changing while they were held against \
                 where ({DELETE_WHOLE_TRIES_MAX} tries); choose a smaller range, or leave atomic out"
            )));
        });
    }

    fn committed(mut self, Deleted { count, stamp, resume }: Deleted) {
        self.count += count as u64;
        self.stamp = stamp.or(self.stamp);
        let limit = &mut self.deletion.count_max;
        if *limit != usize::MAX {
            *limit = limit.saturating_sub(count);
        }
        let more = match (&mut self.deletion.among, resume) {
            (Among::Keys(keys), Some(resume)) => {
                // The first key that was not searched, and those behind it.
                let done = keys.iter().position(|key| *key == resume).unwrap_or(keys.len());
                self.keys.extend(keys.drain(done..).rev());
                !self.keys.is_empty()
            }
            (Among::Keys(_), None) => !self.keys.is_empty(),
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
        if let Some(look) = &mut self.look {
            look.start_again();
        }
        self.with_store(Self::look_on);
    }

    /// Goes on if the store is still open.
    fn with_store(self, then: fn(Self, &Store)) {
        match self.store.upgrade() {
            Some(store) => then(self, &store),
            None => self.fail(Error::closed()),
        }
    }

    fn fail(self, error: Error) {
        self.reply.bad(fault(error, self.count));
    }
}

/// The caller of a search.
impl Caller<(Look, Among)> for Progress {
    fn end(mut self, looked: Result<(Look, Among)>) {
        let (look, among) = match looked {
            Ok(looked) => looked,
            Err(error) if self.count == 0 => {
                return self.reply.bad(Fault::of_long(&self.patience, error));
            }
            Err(error) => {
                let ended = self.patience.check().err().unwrap_or(error);
                return self.fail(ended);
            }
        };
        (self.look, self.deletion.among) = (Some(look), among);
        self.with_store(Self::looked);
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
        let busy = || Error::unavailable("busy");
        assert_eq!(fault(busy(), 0), Fault::Failed(busy()));
        let Fault::Begun(error) = fault(busy(), 5) else { panic!("as if nothing had been done") };
        assert_eq!(error.kind(), Kind::Unavailable);
        assert!(error.message().contains("5 entries"), "{error}");
    }
}
