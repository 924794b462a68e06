//! Deletions of many entries: what a range holds is decided inside the transaction, in steps that
//! leave room for the writes of others.
//!
//! A filter may take long over a value. So entries are held against it before the transaction, and
//! what was found counts as long as the entry is of the same commit ([`Known`]); inside, only entries
//! that have changed since are, up to [`DELETE_UNKNOWN_VISITS_MAX`].

use std::cell::Cell;

use super::evaluate::Evaluation;
use super::left::Left;
use crate::filter::Filter;
use crate::model::{
    Among, Beyond, DELETE_STEP_ROWS_MAX, DELETE_UNKNOWN_VISITS_MAX, DELETE_WHOLE_ROWS_MAX,
    Decision, Deleted, Deletion, Error, FILTER_VISIT_BYTES, Key, Kind, Known, Result, Step,
    Versionstamp, Walk,
};

/// What a look at a range has found.
#[derive(Default)]
struct Found {
    /// In key order.
    doomed: Vec<Key>,
    /// The first key that was not looked at.
    resume: Option<Key>,
    /// The filter has come by as many items as it may; `resume` is where.
    spent: bool,
    /// Why the look ended early.
    failure: Option<Error>,
}

/// What values have to meet, what is known of them, and what the filter has cost so far.
struct Judge<'f> {
    filter: Option<&'f Filter>,
    known: &'f Known,
    visits: Cell<usize>,
}

impl Evaluation<'_> {
    /// Decides a deletion, over the rows of the base and what the batch has left so far.
    pub(super) fn delete_many(&mut self, deletion: Deletion) -> Result<Decision> {
        let filter = match &deletion.filter {
            None => None,
            Some(bytes) => match Filter::parse(bytes, deletion.now_ms) {
                Ok(filter) => Some(filter),
                Err(error) => return Ok(Decision::Rejected(error)),
            },
        };
        let (filter, known) = (filter.as_ref(), &deletion.known);
        let judge = Judge { filter, known, visits: Cell::new(0) };
        let wanted = match deletion.beyond {
            Beyond::Resume => deletion.count_max,
            // One more, to see whether there is one.
            Beyond::Refuse(max) => deletion.count_max.min(max.saturating_add(1)),
        };
        let found = match deletion.among {
            Among::Keys(keys) => self.choose_among(keys, &judge, wanted)?,
            Among::Span { start, end } => {
                self.choose_within((&start, &end), &judge, wanted, deletion.beyond)?
            }
        };
        if let Some(error) = found.failure {
            return Ok(Decision::Rejected(error));
        }
        if found.spent && deletion.beyond != Beyond::Resume {
            let resume = found.resume;
            return Ok(Decision::Deleted(Deleted { count: 0, stamp: None, resume }));
        }
        if let Beyond::Refuse(max) = deletion.beyond
            && (found.doomed.len() > max || found.resume.is_some())
        {
            return Ok(Decision::Rejected(too_many(max, found.doomed.len())));
        }
        let count = found.doomed.len();
        let mut stamp = None;
        if count > 0 {
            self.version += 1;
            stamp = Some(Versionstamp::new(self.version));
            for key in found.doomed {
                self.journal.note(&key, &Left::Removed, self.version);
                self.rows.insert(key, Left::Removed);
            }
            self.journal.keep(self.version);
        }
        Ok(Decision::Deleted(Deleted { count, stamp, resume: found.resume }))
    }

    fn choose_among(&mut self, keys: Vec<Key>, judge: &Judge<'_>, wanted: usize) -> Result<Found> {
        let mut found = Found::default();
        let mut met = std::collections::HashSet::new();
        for key in keys {
            if found.doomed.len() == wanted {
                break;
            }
            match self.chosen(&key, judge)? {
                Ok(Some(true)) if met.insert(key.clone()) => found.doomed.push(key),
                Ok(Some(_)) => {}
                Ok(None) => return Ok(Found { resume: Some(key), spent: true, ..found }),
                Err(error) => return Ok(Found { failure: Some(error), ..found }),
            }
        }
        Ok(found)
    }

    /// Whether there is an entry under a key that meets the filter, by what the batch has left; `None`
    /// when the filter would have to come by too many items to tell.
    fn chosen(&mut self, key: &Key, judge: &Judge<'_>) -> Result<Result<Option<bool>>> {
        let version = self.version_of(key)?;
        let Some(filter) = judge.filter.filter(|_| version.is_some()) else {
            return Ok(Ok(Some(version.is_some())));
        };
        if let Some((seen, met)) = judge.known.get(key)
            && version == Some(*seen)
        {
            return Ok(Ok(Some(*met)));
        }
        Ok(match self.entry_of(key)? {
            Ok(None) => Ok(Some(false)),
            Ok(Some(row)) => {
                let value = &row.value;
                let within = judge.spend(1 + value.bytes.len() / FILTER_VISIT_BYTES);
                let met = || {
                    filter.matches_while(value.encoding, &value.bytes, &|work| judge.spend(work))
                };
                if within { met().map_err(|error| unreadable(&error)) } else { Ok(None) }
            }
            Err(error) => Err(error),
        })
    }

    fn choose_within(
        &mut self,
        (start, end): (&Key, &Key),
        judge: &Judge<'_>,
        wanted: usize,
        beyond: Beyond,
    ) -> Result<Found> {
        let mut found = Found::default();
        let mut rows = 0;
        let rows_max = match beyond {
            Beyond::Resume => DELETE_STEP_ROWS_MAX,
            Beyond::Refuse(_) => DELETE_WHOLE_ROWS_MAX,
        };
        let touched = &self.rows;
        // Entries that have to be looked at again.
        let mut open = Vec::new();
        let walk =
            Walk { start: start.as_bytes(), end: end.as_bytes(), reverse: false, values: false };
        self.base.walk(walk, &mut |seen| {
            let row = seen.row;
            if found.doomed.len() == wanted {
                return Step::Stop;
            }
            let key = Key::from_encoded(row.key.to_vec());
            if rows == rows_max {
                found.resume = Some(key);
                return Step::Stop;
            }
            rows += 1;
            // What the batch has touched is looked at below.
            if touched.contains_key(row.key) {
                return Step::Next;
            }
            match judge.verdict(&key, row.stamp.version()) {
                Some(true) => found.doomed.push(key),
                Some(false) => {}
                None => open.push(key),
            }
            Step::Next
        })?;
        let last = found.resume.as_ref().unwrap_or(end);
        let within = |key: &&Key| start <= *key && *key < last;
        open.extend(self.rows.keys().filter(within).cloned());
        if !open.is_empty() {
            open.sort_unstable();
            self.look_again(open, judge, &mut found)?;
            if found.failure.is_some() {
                return Ok(found);
            }
            found.doomed.sort_unstable();
            if found.doomed.len() > wanted {
                found.doomed.truncate(wanted);
                (found.resume, found.spent) = (None, false);
            }
        }
        if beyond == Beyond::Resume && found.doomed.len() == wanted {
            // There may be more behind the last one.
            found.resume = found.doomed.last().map(|key| {
                let mut next = key.as_bytes().to_vec();
                next.push(0);
                Key::from_encoded(next)
            });
        }
        Ok(found)
    }

    /// Decides the entries of these keys, in their order, as far as the filter may go.
    fn look_again(&mut self, keys: Vec<Key>, judge: &Judge<'_>, found: &mut Found) -> Result<()> {
        for key in keys {
            match self.chosen(&key, judge)? {
                Ok(Some(true)) => found.doomed.push(key),
                Ok(Some(false)) => {}
                Ok(None) => {
                    found.doomed.retain(|doomed| *doomed < key);
                    found.resume = Some(key);
                    found.spent = true;
                    break;
                }
                Err(error) => {
                    found.failure = Some(error);
                    break;
                }
            }
        }
        Ok(())
    }
}

impl Judge<'_> {
    /// What is known of an entry of this commit without its value.
    fn verdict(&self, key: &Key, version: u64) -> Option<bool> {
        if self.filter.is_none() {
            return Some(true);
        }
        self.known.get(key).filter(|(seen, _)| *seen == version).map(|(_, met)| *met)
    }

    /// Whether the filter may come by so many more items.
    fn spend(&self, visits: usize) -> bool {
        self.visits.set(self.visits.get().saturating_add(visits));
        self.visits.get() <= DELETE_UNKNOWN_VISITS_MAX
    }
}

fn unreadable(error: &crate::codec::Malformed) -> Error {
    Error::corrupt(format!("a value could not be compared with where: {error}"))
}

fn too_many(max: usize, found: usize) -> Error {
    if found > max {
        return Error::new(
            Kind::Invalid,
            format!(
                "kv.deleteMany: atomic: true deletes at most limits.mutationsMax (max {max}) \
                 entries, and there are more; raise limits.mutationsMax of openKv to allow it, \
                 give a limit, or leave atomic out"
            ),
        );
    }
    Error::new(
        Kind::Invalid,
        format!(
            "kv.deleteMany: atomic: true looks at most at {DELETE_WHOLE_ROWS_MAX} entries, and \
             there are more; choose a smaller range, or leave atomic out"
        ),
    )
}
