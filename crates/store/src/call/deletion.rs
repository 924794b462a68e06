//! Deletions of many entries: one commit after the other, until all are deleted.
//!
//! With a filter, a thread for long reads compares the entries before each commit. So no write waits for
//! a filter, and the work ends when its caller is gone.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::{Call, Fault};
use crate::metrics::Subject;
use crate::{Caller, Look, Patience, Store};
use openkv_core::filter::Filter;
use openkv_core::model::{
    Among, AtomicWrite, Beyond, DELETE_STEP_ROWS_MAX, DELETE_WHOLE_ROWS_MAX,
    DELETE_WHOLE_TRIES_MAX, Decision, Deleted, Deletion, Error, Key, Limits, Result, Versionstamp,
    WriteParts,
};
use openkv_wire::protocol::frame::{deleted_answer, parse_deletion};

/// A deletion of many entries, and how it is executed.
pub struct ManyDeletion {
    /// Which entries.
    pub deletion: Deletion,
    /// Whether all of it is one commit.
    pub atomic: bool,
    /// Whether its commits wait for the disk.
    pub durable: bool,
    /// Longest wait for other processes.
    pub busy: Duration,
    /// The limits of its commits.
    pub limits: Limits,
    /// Its bounds.
    pub patience: Arc<Patience>,
}

/// The number of deleted entries, and the last commit, if there was one.
type Outcome = Result<(u64, Option<Versionstamp>), Fault>;

/// A deletion under way.
struct Progress {
    store: Weak<Store>,
    /// Gets the outcome.
    end: Box<dyn FnOnce(Outcome) + Send>,
    /// The rest of the deletion.
    rest: ManyDeletion,
    /// Keys for later commits, in reverse order.
    keys: Vec<Key>,
    count: u64,
    stamp: Option<Versionstamp>,
    /// With a filter: the search before each commit.
    look: Option<Look>,
}

/// Frame: a deletion. Answer: f64 count, u8 whether anything was committed, stamp(20) of the last
/// commit.
pub(super) fn delete_many(frame: &[u8], call: Call) {
    let patience = call.patience("kv.deleteMany");
    let Some(((mut deletion, atomic), call)) = call.parsed(parse_deletion(frame)) else { return };
    let Call { store, mut reply, durable, busy, limits, .. } = call;
    reply.about(subject_of(&deletion.among));
    deletion.now_ms = store.now_ms();
    let request = ManyDeletion { deletion, atomic, durable, busy, limits, patience };
    delete(&store, request, move |outcome| {
        reply.tell(outcome.map(|(count, stamp)| deleted_answer(count, stamp)));
    });
}

/// What a deletion is about: its range, or its first key.
#[must_use]
pub fn subject_of(among: &Among) -> Subject {
    match among {
        Among::Span { start, end } => Subject::span(start.as_bytes(), end.as_bytes()),
        Among::Keys(keys) => keys.first().map_or(Subject::NONE, |key| Subject::key(key.as_bytes())),
    }
}

/// Deletes entries, commit by commit. `end` gets the outcome. After a panic it is dropped instead.
pub fn delete(
    store: &Arc<Store>,
    request: ManyDeletion,
    end: impl FnOnce(Outcome) + Send + 'static,
) {
    let Deletion { filter, now_ms, .. } = &request.deletion;
    let filter = match filter.as_deref().map(|bytes| Filter::parse(bytes, *now_ms)).transpose() {
        // A read-only database is not searched: the commit is refused.
        Ok(filter) => filter.filter(|_| !store.is_readonly()),
        Err(error) => return end(Err(error.into())),
    };
    let busy = request.busy;
    let mut progress = Progress {
        store: Arc::downgrade(store),
        end: Box::new(end),
        keys: Vec::new(),
        count: 0,
        stamp: None,
        look: filter.map(|filter| Look::new(filter, request.patience.clone())),
        rest: request,
    };
    if !progress.rest.atomic
        && let Among::Keys(keys) = &mut progress.rest.deletion.among
    {
        progress.keys = std::mem::take(keys);
        progress.keys.reverse();
        progress.take_keys();
    }
    if progress.look.is_none() {
        return progress.go_on(store);
    }
    // Queued behind the writes that were submitted before, so that it sees them.
    let begin = move |_| progress.with_store(Progress::look_on);
    store.commit(Vec::new(), false, busy, Box::new(begin));
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
        self.rest.deletion.among = Among::Keys(next);
    }

    /// Searches the candidates of the next commit, then goes on.
    fn look_on(mut self, store: &Store) {
        let Some(look) = self.look.take() else { return self.go_on(store) };
        let rows_max = if self.rest.atomic { DELETE_WHOLE_ROWS_MAX } else { DELETE_STEP_ROWS_MAX };
        let bounds = (rows_max, self.rest.deletion.count_max.min(rows_max));
        let among = std::mem::replace(&mut self.rest.deletion.among, Among::Keys(Vec::new()));
        store.look_for_deletion(look, among, bounds, self);
    }

    /// Ends a search: commits if there is anything to delete.
    fn looked(mut self, store: &Store) {
        // A commit is refused if there are more entries than it may read.
        let beyond = |look: &Look| self.rest.atomic && look.bound.is_some();
        if self.look.as_ref().is_none_or(|look| look.met > 0 || beyond(look)) {
            return self.go_on(store);
        }
        let resume = self.look.as_mut().and_then(|look| look.bound.take());
        self.committed(Deleted { count: 0, stamp: None, resume });
    }

    /// Does one commit, and queues the next one behind the writes that wait by then. Does none when the
    /// caller is gone.
    fn go_on(mut self, store: &Store) {
        if !self.rest.patience.is_wanted() {
            return self.fail(Error::closed());
        }
        let known = self.look.as_mut().map(|look| std::mem::take(&mut look.known));
        let mut deletion = Deletion {
            known: known.unwrap_or_default(),
            count_max: match self.rest.atomic {
                true => self.rest.deletion.count_max,
                false => self.rest.deletion.count_max.min(DELETE_STEP_ROWS_MAX),
            },
            beyond: match self.rest.atomic {
                true => Beyond::Refuse(self.rest.limits.mutations_max),
                false => Beyond::Resume,
            },
            ..self.rest.deletion.clone()
        };
        // Not beyond the searched part.
        let bound = self.look.as_ref().and_then(|look| look.bound.clone());
        if let (Among::Span { end, .. }, Some(bound), false) =
            (&mut deletion.among, bound, self.rest.atomic)
        {
            *end = bound;
        }
        let parts = WriteParts { deletion: Some(Box::new(deletion)), ..WriteParts::default() };
        let writes = vec![AtomicWrite::new(parts, &self.rest.limits)];
        let (durable, busy) = (self.rest.durable, self.rest.busy);
        store.commit(writes, durable, busy, Box::new(move |decisions| self.decided(decisions)));
    }

    fn decided(mut self, decisions: Vec<Decision>) {
        match decisions.into_iter().next() {
            Some(Decision::Deleted(done)) if self.rest.atomic && done.resume.is_some() => {
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
        let limit = &mut self.rest.deletion.count_max;
        if *limit != usize::MAX {
            *limit = limit.saturating_sub(count);
        }
        let more = match (&mut self.rest.deletion.among, resume) {
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
        if !more || self.rest.atomic || self.rest.deletion.count_max == 0 {
            return (self.end)(Ok((self.count, self.stamp)));
        }
        if matches!(self.rest.deletion.among, Among::Keys(_)) {
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
        (self.end)(Err(fault(error, self.count)));
    }
}

/// The caller of a search.
impl Caller<(Look, Among)> for Progress {
    fn end(mut self, looked: Result<(Look, Among)>) {
        let (look, among) = match looked {
            Ok(looked) => looked,
            Err(error) if self.count == 0 => {
                return (self.end)(Err(Fault::of_long(&self.rest.patience, error)));
            }
            Err(error) => {
                let ended = self.rest.patience.check().err().unwrap_or(error);
                return self.fail(ended);
            }
        };
        (self.look, self.rest.deletion.among) = (Some(look), among);
        self.with_store(Self::looked);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openkv_core::model::Kind;

    /// A part of a deletion was committed before the file was busy. The client requested all of it a second
    /// time, and deleted more than its limit.
    #[test]
    fn a_deletion_that_has_begun_fails_unlike_one_that_has_not() {
        let busy = || Error::unavailable("busy");
        assert_eq!(fault(busy(), 0), Fault::Failed(busy()));
        let Fault::Begun(error) = fault(busy(), 5) else { panic!("as if nothing had been done") };
        assert_eq!(error.kind(), Kind::Unavailable);
        assert!(error.message().contains("5 entries"), "{error}");
    }
}
