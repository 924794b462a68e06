//! The number of messages of each queue: counted once, then kept up to date.
//!
//! A server's quota reads this number before every message, and counting reads all messages. A
//! number in the file would add a row change to every enqueue, so the numbers are in memory and
//! follow the changes of this writer. `PRAGMA data_version` shows whether another connection has
//! committed; then all numbers are dropped and counted again on the next read. Nothing is kept
//! before the first read.

use std::collections::HashMap;

use rusqlite::Connection;

use super::statement::Statement;
use openkv_core::model::{DEPTHS_KEPT_MAX, Result, groups_range, queue_of_callers};

/// The known numbers. The owner must drop them when a transaction rolls back.
pub(super) struct Depths {
    known: HashMap<String, u64>,
    data_version: Statement,
    /// The `data_version` for which they are valid.
    seen: i64,
    count: Statement,
    #[cfg(test)]
    counts: usize,
}

macro_rules! count {
    ($more:literal) => {
        concat!(
            "SELECT (SELECT count(*) FROM openkv_queue WHERE lock = 0 AND queue = ?1) \
             + (SELECT count(*) FROM openkv_queue WHERE lock <> 0 AND queue = ?1) \
             + (SELECT count(*) FROM openkv_queue WHERE lock = 0 AND queue > ?2 AND queue < ?3) \
             + (SELECT count(*) FROM openkv_queue WHERE lock <> 0 AND queue > ?2 AND queue < ?3) ",
            $more
        )
    };
}

impl Depths {
    /// `is_denos`: Deno keeps the messages of its queue in tables of its own.
    pub(super) fn new(connection: &Connection, is_denos: bool) -> Result<Self> {
        let prepare = |sql| Statement::prepare(connection, sql);
        Ok(Self {
            known: HashMap::new(),
            data_version: prepare("PRAGMA data_version")?,
            seen: 0,
            // Each of the counts reads one index.
            count: prepare(match is_denos {
                true => {
                    count!(
                        "+ iif(?1 = '', (SELECT count(*) FROM queue) \
                            + (SELECT count(*) FROM queue_running), 0)"
                    )
                }
                false => count!(""),
            })?,
            #[cfg(test)]
            counts: 0,
        })
    }

    /// Whether any are kept; otherwise changes need no update.
    pub(super) fn are_kept(&self) -> bool {
        !self.known.is_empty()
    }

    /// Drops them if another connection has committed. Must be called in every transaction before
    /// it changes messages.
    pub(super) fn begin(&mut self) -> Result<()> {
        if !self.are_kept() {
            return Ok(());
        }
        let now = self.read_data_version()?;
        if now != self.seen {
            self.forget();
            self.seen = now;
        }
        Ok(())
    }

    fn read_data_version(&mut self) -> Result<i64> {
        Ok(self.data_version.run().first_int()?.unwrap_or(0))
    }

    pub(super) fn forget(&mut self) {
        self.known.clear();
    }

    /// Counts a message that was added to a queue, or to one of its groups.
    pub(super) fn came(&mut self, queue: &str) {
        if let Some(depth) = self.known.get_mut(queue_of_callers(queue)) {
            *depth += 1;
        }
    }

    /// Counts a message that was removed from a queue.
    pub(super) fn left(&mut self, queue: &str) {
        if let Some(depth) = self.known.get_mut(queue_of_callers(queue)) {
            *depth = depth.saturating_sub(1);
        }
    }

    /// The number of messages of a queue that wait or are locked. Must be called outside a
    /// transaction.
    pub(super) fn of(&mut self, queue: &str, kept: bool) -> Result<u64> {
        // Read before the count: a commit in between is included in the count and detected by the
        // next call.
        let now = self.read_data_version()?;
        if now != self.seen {
            self.forget();
            self.seen = now;
        }
        if let Some(depth) = self.known.get(queue) {
            return Ok(*depth);
        }
        #[cfg(test)]
        {
            self.counts += 1;
        }
        let (from, to) = groups_range(queue);
        let run = self.count.run().text(1, queue).text(2, &from).text(3, &to);
        let depth = run.first_int()?.unwrap_or(0).cast_unsigned();
        if kept {
            if self.known.len() >= DEPTHS_KEPT_MAX {
                self.forget();
            }
            self.known.insert(queue.to_owned(), depth);
        }
        Ok(depth)
    }

    #[cfg(test)]
    pub(super) fn counts(&self) -> usize {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::{Duration, Instant};

    use crate::sqlite::{SqliteEngine, SqliteWriter};
    use crate::{Engine, Work, Writer};
    use openkv_core::model::{
        AtomicWrite, Claim, Limits, Message, Outcome, Settlement, WriteParts,
    };

    fn writer(path: &Path) -> (SqliteEngine, SqliteWriter) {
        let engine = SqliteEngine::open(path, false, Duration::from_secs(5)).unwrap();
        let writer = engine.writer().unwrap();
        (engine, writer)
    }

    fn apply(writer: &mut SqliteWriter, work: Work) -> crate::Report {
        writer.apply(work, 0, Instant::now() + Duration::from_secs(5)).unwrap()
    }

    fn enqueue(writer: &mut SqliteWriter) {
        let messages = vec![Message { queue: "mail".into(), value: vec![1], ..Message::default() }];
        let parts = WriteParts { messages, ..WriteParts::default() };
        let writes = vec![AtomicWrite::new(parts, &Limits::default()).unwrap()];
        apply(writer, Work { writes, ..Work::default() });
    }

    /// Every enqueue under a quota once counted the whole queue.
    #[test]
    fn a_queue_is_counted_once_and_again_when_another_connection_has_committed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kv");
        let (_engine, mut ours) = writer(&path);
        for before in 0..10 {
            assert_eq!(ours.queue_depth("mail").unwrap(), before);
            enqueue(&mut ours);
        }
        assert_eq!(ours.depths().counts(), 1);
        let (_other_engine, mut theirs) = writer(&path);
        assert_eq!(theirs.queue_depth("mail").unwrap(), 10);
        enqueue(&mut theirs);
        enqueue(&mut ours);
        assert_eq!(ours.queue_depth("mail").unwrap(), 12);
        assert_eq!(ours.depths().counts(), 2);
        let claims = vec![Claim { queue: "mail".into(), max: 1, lock_ms: 1000, lock: 7 }];
        let taken = apply(&mut theirs, Work { claims, ..Work::default() });
        let id = taken.deliveries[0][0].id;
        let settlements = vec![Settlement::new(id, 7, Outcome::Done)];
        apply(&mut theirs, Work { settlements, durable: true, ..Work::default() });
        assert_eq!(ours.queue_depth("mail").unwrap(), 11);
        assert_eq!(theirs.queue_depth("mail").unwrap(), 11);
    }

    /// A message of a rolled back transaction was once counted.
    #[test]
    fn a_rolled_back_transaction_does_not_change_the_depth() {
        let directory = tempfile::tempdir().unwrap();
        let (_engine, mut ours) = writer(&directory.path().join("kv"));
        assert_eq!(ours.queue_depth("mail").unwrap(), 0);
        ours.begin_transaction(Instant::now()).unwrap();
        ours.depths().came("mail");
        ours.roll_back();
        assert_eq!(ours.queue_depth("mail").unwrap(), 0);
    }
}
