//! A store that is a copy of another database: only its follower writes to it.
//!
//! Invariant: a copy refuses every write, message and index of a caller, and removes no expired entry
//! itself: its commits are those of the database that it follows.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::log_tail::indexes_of;
use super::{Store, Use};
use openkv_core::model::{
    BUSY_TIMEOUT_MS_DEFAULT, CopiedEntry, CopiedIndexes, Env, Error, Followed, IndexChoice,
    IndexRequest, Key, Replacement, Result, Segment, ValueIndexRequest,
};
use openkv_engines::{Engine, Writer};

/// Work of the follower on the writer thread. What it reports is announced to watches and feeds.
pub(super) type CopyWork = Box<dyn FnOnce(Result<&mut dyn Writer>) -> Announced + Send>;

/// The entries of a copy, page by page; `None` after the last ones. It may wait.
pub type Pages = Box<dyn FnMut() -> Result<Option<Vec<CopiedEntry>>> + Send>;

/// The changes by work of the follower.
pub(super) enum Announced {
    Nothing,
    /// The entries of these keys, by the commits after the first version up to the second.
    Changes(Vec<Key>, (u64, u64)),
    /// Any entry.
    Everything,
}

/// The error of a write to a copy.
pub(super) fn only_follows() -> Error {
    Error::denied(
        "the database is a replica: write to the database that it follows, or make the replica a database \
         of its own with openkv promote",
    )
}

fn soon() -> Instant {
    Instant::now() + Duration::from_millis(BUSY_TIMEOUT_MS_DEFAULT)
}

impl Store {
    /// As [`Store::start`], for a copy of another database.
    pub fn start_copy<E: Engine>(engine: E, env: Arc<dyn Env>) -> Result<Self> {
        Self::start_for(engine, env, Use::Copies)
    }

    /// The position of the copy; `None`: it has none yet.
    pub fn followed(&self, reply: impl FnOnce(Result<Option<Followed>>) + Send + 'static) {
        self.copy_work(move |writer| {
            reply(writer.and_then(Writer::followed));
            Announced::Nothing
        });
    }

    /// Repeats segments; see [`Writer::follow`]. The reply gets the last commit.
    pub fn follow(
        &self,
        after: Followed,
        segments: Vec<Segment>,
        reply: impl FnOnce(Result<u64>) + Send + 'static,
    ) {
        self.copy_work(move |writer| {
            let borrowed: Vec<_> = segments.iter().map(Segment::borrowed).collect();
            match writer.and_then(|writer| writer.follow(&after, &borrowed, soon())) {
                Ok(report) => {
                    reply(Ok(report.versions.1));
                    Announced::Changes(report.touched, report.versions)
                }
                Err(error) => {
                    reply(Err(error));
                    Announced::Nothing
                }
            }
        });
    }

    /// Replaces all entries; see [`Writer::replace_all`]. The writer thread waits for the pages.
    pub fn replace_all(
        &self,
        replacement: Replacement,
        mut pages: Pages,
        reply: impl FnOnce(Result<()>) + Send + 'static,
    ) {
        self.copy_work(move |writer| {
            let done = writer
                .and_then(|writer| writer.replace_all(&replacement, &mut *pages, soon()).map(drop));
            drop(pages);
            let announced = if done.is_ok() { Announced::Everything } else { Announced::Nothing };
            reply(done);
            announced
        });
    }

    /// Makes the indexes those of the followed database. The writer builds them, without a check of unique ones.
    pub fn copy_indexes(
        &self,
        wanted: CopiedIndexes,
        reply: impl FnOnce(Result<()>) + Send + 'static,
    ) {
        let writes = Arc::downgrade(&self.writes);
        let then = move |here: Result<CopiedIndexes>| {
            let Some(writes) = writes.upgrade() else { return reply(Err(Error::closed())) };
            let here = match here {
                Ok(here) => here,
                Err(error) => return reply(Err(error)),
            };
            writes.copy(Box::new(move |writer| {
                reply(writer.and_then(|writer| exchange_indexes(writer, &here, &wanted)));
                Announced::Nothing
            }));
        };
        self.read(None, then, |snapshot, _| indexes_of(snapshot, false));
    }

    /// Refuses a change by a caller, if the store is a copy.
    pub(super) fn refuse_in_copy(&self) -> Result<()> {
        if self.writes.waiting.lock().follows { Err(only_follows()) } else { Ok(()) }
    }

    fn copy_work(&self, work: impl FnOnce(Result<&mut dyn Writer>) -> Announced + Send + 'static) {
        self.writes.copy(Box::new(work));
    }
}

/// Drops what is not wanted, and then creates what is missing: a name may change from one type to the other.
fn exchange_indexes(
    writer: &mut dyn Writer,
    here: &CopiedIndexes,
    wanted: &CopiedIndexes,
) -> Result<()> {
    let values = here.values.as_deref().unwrap_or_default();
    // A server that does not tell value indexes leaves those that there are.
    let wanted_values = wanted.values.as_deref().unwrap_or(values);
    let texts = here.texts.iter().filter(|spec| !wanted.texts.contains(spec));
    let values_to_drop = values.iter().filter(|spec| !wanted_values.contains(spec));
    let names = texts.map(|spec| &spec.name).chain(values_to_drop.map(|spec| &spec.name));
    for name in names {
        writer.drop_index(&IndexChoice::Name(name.clone()), soon())?;
    }
    for spec in wanted.texts.iter().filter(|spec| !here.texts.contains(spec)) {
        writer.create_index(&IndexRequest::exact(spec.clone()), soon())?;
    }
    for spec in wanted_values.iter().filter(|spec| !values.contains(spec)) {
        let request = ValueIndexRequest { spec: spec.clone(), replace: false };
        writer.create_value_index(&request, soon())?;
    }
    Ok(())
}
