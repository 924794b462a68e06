//! Deletions of many entries. Transactions select the entries in steps, so that other writes run in
//! between.
//!
//! A filter may take long for a value. So the caller evaluates it before the transaction, and a
//! result is valid while the entry has the same version ([`FilterResults`]). Inside the transaction
//! only entries that have changed since are evaluated, up to [`DELETE_UNKNOWN_VISITS_MAX`].

use std::cell::Cell;

use super::effect::RowEffect;
use super::evaluate::Evaluation;
use crate::filter::Filter;
use crate::index::{Gathered, gather, plan_keys};
use crate::model::{
    Among, Beyond, DELETE_STEP_ROWS_MAX, DELETE_UNKNOWN_VISITS_MAX, DELETE_WHOLE_ROWS_MAX,
    Decision, Deleted, Deletion, Error, FILTER_VISIT_BYTES, FilterResults, Key, Result, Step,
    Versionstamp, Walk,
};

/// The selected entries of one step.
#[derive(Default)]
struct Chosen {
    /// In key order.
    selected: Vec<Key>,
    /// The first key that was not visited.
    resume: Option<Key>,
    /// Whether the filter has reached its bound of visited items, at `resume`.
    spent: bool,
    /// Why the step ended early.
    failure: Option<Error>,
}

/// The filter of a deletion, its known results, and its cost so far.
struct FilterState<'f> {
    filter: Option<&'f Filter>,
    known: &'f FilterResults,
    visits: Cell<usize>,
}

impl Chosen {
    /// At most so many of the selected entries.
    fn within(mut self, wanted: usize, beyond: Beyond) -> Self {
        if self.failure.is_some() {
            return self;
        }
        self.selected.sort_unstable();
        if self.selected.len() > wanted {
            self.selected.truncate(wanted);
            (self.resume, self.spent) = (None, false);
        }
        if beyond == Beyond::Resume && self.selected.len() == wanted {
            // More entries may follow the last one.
            self.resume = self.selected.last().map(behind);
        }
        self
    }
}

/// The first key behind a key.
fn behind(key: &Key) -> Key {
    Key::from_encoded([key.as_bytes(), &[0]].concat())
}

/// The entries that a deletion may look at.
fn rows_max(beyond: Beyond) -> usize {
    match beyond {
        Beyond::Resume => DELETE_STEP_ROWS_MAX,
        Beyond::Refuse(_) => DELETE_WHOLE_ROWS_MAX,
    }
}

impl Evaluation<'_> {
    /// Decides a deletion, over the rows of the base with the batch's effects so far.
    pub(super) fn delete_many(&mut self, deletion: Deletion) -> Result<Decision> {
        let filter = match &deletion.filter {
            None => None,
            Some(bytes) => match Filter::parse(bytes, deletion.now_ms) {
                Ok(filter) => Some(filter),
                Err(error) => return Ok(Decision::Rejected(error)),
            },
        };
        let (filter, known) = (filter.as_ref(), &deletion.known);
        let filtering = FilterState { filter, known, visits: Cell::new(0) };
        let wanted = match deletion.beyond {
            Beyond::Resume => deletion.count_max,
            // One more shows whether the bound is exceeded.
            Beyond::Refuse(max) => deletion.count_max.min(max.saturating_add(1)),
        };
        let found = match deletion.among {
            Among::Keys(keys) => self.choose_among(keys, &filtering, wanted)?,
            Among::Span { start, end } => {
                let span = (&start, &end);
                match self.choose_by_index(span, &filtering, wanted, deletion.beyond)? {
                    Some(found) => found,
                    None => self.choose_within(span, &filtering, wanted, deletion.beyond)?,
                }
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
            && (found.selected.len() > max || found.resume.is_some())
        {
            return Ok(Decision::Rejected(too_many(max, found.selected.len())));
        }
        let count = found.selected.len();
        let mut stamp = None;
        if count > 0 {
            self.version += 1;
            stamp = Some(Versionstamp::new(self.version));
            for key in found.selected {
                self.journal.note(&key, &RowEffect::Removed, self.version);
                self.rows.insert(key, RowEffect::Removed);
            }
            self.journal.keep(self.version);
        }
        Ok(Decision::Deleted(Deleted { count, stamp, resume: found.resume }))
    }

    fn choose_among(
        &mut self,
        keys: Vec<Key>,
        filtering: &FilterState<'_>,
        wanted: usize,
    ) -> Result<Chosen> {
        let mut found = Chosen::default();
        let mut met = std::collections::HashSet::new();
        for key in keys {
            if found.selected.len() == wanted {
                break;
            }
            match self.chosen(&key, filtering)? {
                Ok(Some(true)) if met.insert(key.clone()) => found.selected.push(key),
                Ok(Some(_)) => {}
                Ok(None) => return Ok(Chosen { resume: Some(key), spent: true, ..found }),
                Err(error) => return Ok(Chosen { failure: Some(error), ..found }),
            }
        }
        Ok(found)
    }

    /// Whether a key has an entry that matches the filter, with the batch's effects so far; `None` if
    /// the filter would have to visit too many items.
    fn chosen(&mut self, key: &Key, filtering: &FilterState<'_>) -> Result<Result<Option<bool>>> {
        let version = self.version_of(key)?;
        let Some(filter) = filtering.filter.filter(|_| version.is_some()) else {
            return Ok(Ok(Some(version.is_some())));
        };
        if let Some((seen, met)) = filtering.known.get(key)
            && version == Some(*seen)
        {
            return Ok(Ok(Some(*met)));
        }
        Ok(match self.entry_of(key)? {
            Ok(None) => Ok(Some(false)),
            Ok(Some(row)) => {
                let value = &row.value;
                let within = filtering.spend(1 + value.bytes.len() / FILTER_VISIT_BYTES);
                let met = || {
                    filter
                        .matches_while(value.encoding, &value.bytes, &|work| filtering.spend(work))
                };
                if within { met().map_err(|error| unreadable(&error)) } else { Ok(None) }
            }
            Err(error) => Err(error),
        })
    }

    /// As [`Self::choose_within`], from a value index; `None` if none has the filter.
    fn choose_by_index(
        &mut self,
        (start, end): (&Key, &Key),
        filtering: &FilterState<'_>,
        wanted: usize,
        beyond: Beyond,
    ) -> Result<Option<Chosen>> {
        let indexes = filtering.filter.and(self.base.value_indexes());
        let (Some(filter), Some(indexes)) = (filtering.filter, indexes) else { return Ok(None) };
        let range = (start.as_bytes(), end.as_bytes());
        let Some(plan) = plan_keys(&indexes, filter, range.0, range.1) else { return Ok(None) };
        let rows_max = rows_max(beyond);
        let base = &mut *self.base;
        let gathered =
            gather(&indexes, &plan, range, false, rows_max, &mut |id, range, _, visit| {
                base.walk_index(id, range, visit)
            })?;
        let Some(Gathered { keys, is_complete, .. }) = gathered else { return Ok(None) };
        let mut keys: Vec<_> = keys.into_iter().map(Key::from_encoded).collect();
        let resume = match keys.get(rows_max) {
            Some(next) => Some(next.clone()),
            None if is_complete => None,
            None => keys.last().map(behind),
        };
        keys.truncate(rows_max);
        let last = resume.as_ref().unwrap_or(end);
        // The index has the entries before the batch.
        keys.extend(self.rows.keys().filter(|key| start <= *key && *key < last).cloned());
        keys.sort_unstable();
        keys.dedup();
        self.base.prefetch(&keys)?;
        let mut found = Chosen { resume, ..Chosen::default() };
        self.filter_again(keys, filtering, &mut found)?;
        Ok(Some(found.within(wanted, beyond)))
    }

    fn choose_within(
        &mut self,
        (start, end): (&Key, &Key),
        filtering: &FilterState<'_>,
        wanted: usize,
        beyond: Beyond,
    ) -> Result<Chosen> {
        let mut found = Chosen::default();
        let mut rows = 0;
        let rows_max = rows_max(beyond);
        let touched = &self.rows;
        // Entries whose values must be evaluated.
        let mut open = Vec::new();
        let walk =
            Walk { start: start.as_bytes(), end: end.as_bytes(), reverse: false, values: false };
        self.base.walk(walk, &mut |seen| {
            let row = seen.row;
            if found.selected.len() == wanted {
                return Step::Stop;
            }
            let key = Key::from_encoded(row.key.to_vec());
            if rows == rows_max {
                found.resume = Some(key);
                return Step::Stop;
            }
            rows += 1;
            // Entries that the batch has changed are handled below.
            if touched.contains_key(row.key) {
                return Step::Next;
            }
            match filtering.known_result(&key, row.stamp.version()) {
                Some(true) => found.selected.push(key),
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
            self.filter_again(open, filtering, &mut found)?;
        }
        Ok(found.within(wanted, beyond))
    }

    /// Evaluates the entries of these keys, in order, up to the bound of the filter.
    fn filter_again(
        &mut self,
        keys: Vec<Key>,
        filtering: &FilterState<'_>,
        found: &mut Chosen,
    ) -> Result<()> {
        for key in keys {
            match self.chosen(&key, filtering)? {
                Ok(Some(true)) => found.selected.push(key),
                Ok(Some(false)) => {}
                Ok(None) => {
                    found.selected.retain(|selected| *selected < key);
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

impl FilterState<'_> {
    /// The known result for an entry of this version.
    fn known_result(&self, key: &Key, version: u64) -> Option<bool> {
        if self.filter.is_none() {
            return Some(true);
        }
        self.known.get(key).filter(|(seen, _)| *seen == version).map(|(_, met)| *met)
    }

    /// Counts visited items; `false` at the bound.
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
        return Error::too_large(format!(
            "kv.deleteMany: atomic: true deletes at most limits.mutationsMax (max {max}) \
             entries, and there are more; raise limits.mutationsMax of openKv to allow it, \
             give a limit, or leave atomic out"
        ));
    }
    Error::too_large(format!(
        "kv.deleteMany: atomic: true looks at most at {DELETE_WHOLE_ROWS_MAX} entries, and \
         there are more; choose a smaller range, or leave atomic out"
    ))
}
