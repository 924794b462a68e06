//! Deletions of many entries: what a range holds is decided inside the transaction, in steps that
//! leave room for the writes of others.

use super::evaluate::Evaluation;
use super::left::Left;
use crate::filter::Filter;
use crate::model::{
    Among, Beyond, DELETE_STEP_BYTES_MAX, DELETE_STEP_ROWS_MAX, DELETE_WHOLE_ROWS_MAX, Decision,
    Deleted, Deletion, Error, Key, Kind, Result, Step, Versionstamp, Walk,
};

/// What a look at a range has found.
#[derive(Default)]
struct Found {
    /// In key order.
    doomed: Vec<Key>,
    /// The first key that was not looked at.
    resume: Option<Key>,
    /// Why the look ended early.
    failure: Option<Error>,
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
        let filter = filter.as_ref();
        let wanted = match deletion.beyond {
            Beyond::Resume => deletion.count_max,
            // One more, to see whether there is one.
            Beyond::Refuse(max) => deletion.count_max.min(max.saturating_add(1)),
        };
        let found = match deletion.among {
            Among::Keys(keys) => self.choose_among(keys, filter, wanted)?,
            Among::Span { start, end } => {
                self.choose_within(&start, &end, filter, wanted, deletion.beyond)?
            }
        };
        if let Some(error) = found.failure {
            return Ok(Decision::Rejected(error));
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

    fn choose_among(
        &mut self,
        keys: Vec<Key>,
        filter: Option<&Filter>,
        wanted: usize,
    ) -> Result<Found> {
        let mut found = Found::default();
        let mut met = std::collections::HashSet::new();
        for key in keys {
            if found.doomed.len() == wanted {
                break;
            }
            match self.chosen(&key, filter)? {
                Ok(true) if met.insert(key.clone()) => found.doomed.push(key),
                Ok(_) => {}
                Err(error) => return Ok(Found { failure: Some(error), ..found }),
            }
        }
        Ok(found)
    }

    /// Whether there is an entry under a key that meets the filter, by what the batch has left.
    fn chosen(&mut self, key: &Key, filter: Option<&Filter>) -> Result<Result<bool>> {
        let Some(filter) = filter else { return Ok(Ok(self.version_of(key)?.is_some())) };
        Ok(match self.entry_of(key)? {
            Ok(None) => Ok(false),
            Ok(Some(row)) => filter
                .matches(row.value.encoding, &row.value.bytes)
                .map_err(|error| unreadable(&error)),
            Err(error) => Err(error),
        })
    }

    fn choose_within(
        &mut self,
        start: &Key,
        end: &Key,
        filter: Option<&Filter>,
        wanted: usize,
        beyond: Beyond,
    ) -> Result<Found> {
        let mut found = Found::default();
        let (mut rows, mut bytes) = (0, 0);
        let rows_max = match beyond {
            Beyond::Resume => DELETE_STEP_ROWS_MAX,
            Beyond::Refuse(_) => DELETE_WHOLE_ROWS_MAX,
        };
        let touched = &self.rows;
        let walk = Walk {
            start: start.as_bytes(),
            end: end.as_bytes(),
            reverse: false,
            values: filter.is_some(),
        };
        self.base.walk(walk, &mut |seen| {
            let row = seen.row;
            if found.doomed.len() == wanted {
                return Step::Stop;
            }
            let spent = beyond == Beyond::Resume && bytes >= DELETE_STEP_BYTES_MAX;
            if rows == rows_max || spent {
                found.resume = Some(Key::from_encoded(row.key.to_vec()));
                return Step::Stop;
            }
            rows += 1;
            bytes += row.value.len();
            // What the batch has touched is looked at below.
            if touched.contains_key(row.key) {
                return Step::Next;
            }
            let met = filter.map_or(Ok(true), |filter| filter.matches(row.encoding, row.value));
            match met {
                Ok(true) => found.doomed.push(Key::from_encoded(row.key.to_vec())),
                Ok(false) => {}
                Err(error) => {
                    found.failure = Some(unreadable(&error));
                    return Step::Stop;
                }
            }
            Step::Next
        })?;
        if found.failure.is_some() {
            return Ok(found);
        }
        let last = found.resume.as_ref().unwrap_or(end);
        let within = |key: &&Key| start <= *key && *key < last;
        let touched: Vec<Key> = self.rows.keys().filter(within).cloned().collect();
        if !touched.is_empty() {
            for key in touched {
                match self.chosen(&key, filter)? {
                    Ok(true) => found.doomed.push(key),
                    Ok(false) => {}
                    Err(error) => return Ok(Found { failure: Some(error), ..found }),
                }
            }
            found.doomed.sort_unstable();
            if found.doomed.len() > wanted {
                found.doomed.truncate(wanted);
                found.resume = None;
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
