//! Dead letters: written in the transaction of the writer, read by any connection.

use rusqlite::Connection;

use super::deno_queue::DenoCounts;
use super::peek::PeekReader;
use super::statement::{Run, Statement};
use crate::Queues;
use openkv_core::model::{
    DeadLetter, DeadLetterChange, Error, GROUP_QUEUES, LIMITED_QUEUES, PAUSED_QUEUES, Peek,
    PeekCursor, Peeked, QueueStats, Reason, Result, groups_range,
};

/// A dead letter keeps all fields of its message, so that it can be requeued.
pub(super) const TABLES: &str = "
CREATE TABLE openkv_dead (
  id INTEGER PRIMARY KEY,
  queue TEXT NOT NULL,
  priority INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  enqueued_ms INTEGER NOT NULL,
  first_ms INTEGER NOT NULL,
  last_ms INTEGER NOT NULL,
  died_ms INTEGER NOT NULL,
  error_name TEXT NOT NULL,
  error_message TEXT NOT NULL,
  purge_ms INTEGER,
  dedup TEXT,
  dead_retention_ms INTEGER,
  backoff_ms BLOB NOT NULL,
  undelivered BLOB NOT NULL,
  v BLOB NOT NULL
);
CREATE INDEX openkv_dead_list ON openkv_dead (queue, died_ms);
CREATE INDEX openkv_dead_purge ON openkv_dead (purge_ms) WHERE purge_ms IS NOT NULL;
";

/// The writer's statements on `openkv_dead`.
pub(super) struct DeadLetters {
    insert: Statement,
    requeue: Statement,
    delete: Statement,
    purge_old: Statement,
    purge: Statement,
    first_purge: Statement,
}

impl DeadLetters {
    pub(super) fn new(connection: &Connection) -> Result<Self> {
        let prepare = |sql| Statement::prepare(connection, sql);
        Ok(Self {
            insert: prepare(
                "INSERT OR REPLACE INTO openkv_dead \
                 SELECT id, ?5, priority, attempts, enqueued_ms, coalesce(first_ms, ?2), \
                 coalesce(last_ms, ?2), ?2, ?3, ?4, ?2 + dead_retention_ms, \
                 dedup, dead_retention_ms, backoff_ms, undelivered, v \
                 FROM openkv_queue WHERE id = ?1",
            )?,
            // If another message has the deduplication key meanwhile, that message keeps it.
            requeue: prepare(
                "INSERT INTO openkv_queue (id, queue, priority, due_ms, enqueued_ms, dedup, \
                 dead_retention_ms, backoff_ms, undelivered, v) \
                 SELECT id, queue, priority, ?3, ?3, \
                 iif(EXISTS (SELECT 1 FROM openkv_queue AS live WHERE live.queue = dead.queue \
                 AND live.dedup = dead.dedup AND live.dedup IS NOT NULL), NULL, dedup), \
                 dead_retention_ms, backoff_ms, undelivered, v \
                 FROM openkv_dead AS dead WHERE id = ?1 AND queue = ?2",
            )?,
            delete: prepare("DELETE FROM openkv_dead WHERE id = ?1 AND queue = ?2")?,
            purge_old: prepare(
                "DELETE FROM openkv_dead WHERE id IN (SELECT id FROM openkv_dead \
                 WHERE queue = ?1 AND died_ms < ?2 ORDER BY died_ms, id LIMIT ?3) RETURNING id",
            )?,
            purge: prepare(
                "DELETE FROM openkv_dead WHERE id IN (SELECT id FROM openkv_dead \
                 WHERE purge_ms IS NOT NULL AND purge_ms <= ?1 ORDER BY purge_ms LIMIT ?2)",
            )?,
            first_purge: prepare(
                "SELECT min(purge_ms) FROM openkv_dead WHERE purge_ms IS NOT NULL",
            )?,
        })
    }

    /// Copies a message's row from `openkv_queue`, as one of `queue`.
    pub(super) fn insert(
        &mut self,
        id: i64,
        queue: &str,
        reason: &Reason,
        now_ms: i64,
    ) -> Result<()> {
        let run = self.insert.run().int(1, id).int(2, now_ms);
        run.text(3, reason.name()).text(4, reason.message()).text(5, queue).finish()
    }

    pub(super) fn earliest_purge(&mut self) -> Result<Option<i64>> {
        self.first_purge.run().first_int()
    }

    /// Deletes dead letters whose retention is over; returns their number.
    pub(super) fn purge(&mut self, max: usize, now_ms: i64) -> Result<usize> {
        if max == 0 {
            return Ok(0);
        }
        self.purge.run().int(1, now_ms).int(2, max as i64).changes()
    }

    /// Returns whether there was such a letter, as 1 or 0.
    fn requeue(&mut self, queue: &str, id: i64, now_ms: i64) -> Result<usize> {
        let requeued = self.requeue.run().int(1, id).text(2, queue).int(3, now_ms).changes()?;
        self.delete.run().int(1, id).text(2, queue).finish()?;
        Ok(requeued)
    }

    /// Returns the numbers of the dead letters that it has changed.
    pub(super) fn change(
        &mut self,
        queue: &str,
        change: &DeadLetterChange,
        now_ms: i64,
    ) -> Result<Vec<i64>> {
        let one = |id: i64, count: usize| if count > 0 { vec![id] } else { Vec::new() };
        match change {
            DeadLetterChange::Requeue(id) => Ok(one(*id, self.requeue(queue, *id, now_ms)?)),
            DeadLetterChange::RequeueAll { before_ms, max } => {
                let mut old = self.purge_old.beside(
                    "SELECT id FROM openkv_dead WHERE queue = ?1 AND died_ms < ?2 \
                     AND (purge_ms IS NULL OR purge_ms > ?4) ORDER BY died_ms, id LIMIT ?3",
                )?;
                let run = old.run().text(1, queue).int(2, *before_ms).int(3, *max as i64);
                let ids = run.int(4, now_ms).all(|run| run.column_int(0))?;
                for id in &ids {
                    self.requeue(queue, *id, now_ms)?;
                }
                Ok(ids)
            }
            DeadLetterChange::Delete(id) => {
                Ok(one(*id, self.delete.run().int(1, *id).text(2, queue).changes()?))
            }
            DeadLetterChange::Purge { before_ms, max } => {
                let run = self.purge_old.run().text(1, queue).int(2, *before_ms);
                run.int(3, *max as i64).all(|run| run.column_int(0))
            }
        }
    }
}

/// A reader's statements about queues, prepared on first use since most readers need none.
pub(super) struct QueueReader {
    /// Whether Deno keeps the messages of its queue in this file.
    is_denos: bool,
    prepared: Option<Statements>,
    peek: PeekReader,
}

struct Statements {
    waiting: Statement,
    locked: Statement,
    dead: Statement,
    paused: Statement,
    list: Statement,
    one: Statement,
    denos: Option<DenoCounts>,
}

macro_rules! letters_where {
    ($condition:literal) => {
        concat!(
            "SELECT id, v, attempts, enqueued_ms, first_ms, last_ms, died_ms, error_name, \
             error_message FROM openkv_dead WHERE (purge_ms IS NULL OR purge_ms > ?1) AND ",
            $condition
        )
    };
}

macro_rules! names {
    ($more:literal) => {
        concat!(
            "SELECT DISTINCT queue FROM openkv_queue WHERE lock = 0 AND queue < ?2 \
             UNION SELECT DISTINCT queue FROM openkv_queue WHERE lock = 0 AND queue >= ?3 \
             UNION SELECT DISTINCT queue FROM openkv_queue WHERE lock <> 0 AND queue < ?2 \
             UNION SELECT DISTINCT queue FROM openkv_queue WHERE lock <> 0 AND queue >= ?3 \
             UNION SELECT dedup FROM openkv_queue WHERE queue = ?4 AND dedup IS NOT NULL \
             UNION SELECT DISTINCT queue FROM openkv_dead ",
            $more,
            "ORDER BY 1 LIMIT ?1"
        )
    };
}

impl QueueReader {
    pub(super) fn new(is_denos: bool) -> Self {
        Self { is_denos, prepared: None, peek: PeekReader::default() }
    }

    /// Prepares them on the connection of `on`.
    fn statements(&mut self, on: &Statement) -> Result<&mut Statements> {
        let statements = match self.prepared.take() {
            Some(statements) => statements,
            None => Statements {
                waiting: on.beside(
                    "SELECT sum(n), total(due) FROM (\
                     SELECT count(*) AS n, total(due_ms <= ?2) AS due FROM openkv_queue \
                     WHERE lock = 0 AND queue = ?1 UNION ALL \
                     SELECT count(*), total(due_ms <= ?2) FROM openkv_queue \
                     WHERE lock = 0 AND queue > ?3 AND queue < ?4)",
                )?,
                locked: on.beside(
                    "SELECT sum(n), total(lost) FROM (\
                     SELECT count(*) AS n, total(lock_end_ms <= ?2) AS lost FROM openkv_queue \
                     WHERE lock <> 0 AND queue = ?1 UNION ALL \
                     SELECT count(*), total(lock_end_ms <= ?2) FROM openkv_queue \
                     WHERE lock <> 0 AND queue > ?3 AND queue < ?4)",
                )?,
                dead: on.beside("SELECT count(*) FROM openkv_dead WHERE queue = ?1")?,
                paused: on.beside("SELECT id FROM openkv_queue WHERE queue = ?1 AND dedup = ?2")?,
                list: on.beside(letters_where!(
                    "queue = ?2 AND (died_ms, id) > (?3, ?4) ORDER BY died_ms, id"
                ))?,
                one: on.beside(letters_where!("queue = ?2 AND id = ?3"))?,
                denos: self.is_denos.then(|| DenoCounts::beside(on)).transpose()?,
            },
        };
        Ok(self.prepared.insert(statements))
    }
}

/// The queues in a snapshot, by the statements of a reader.
pub(super) struct QueueView<'s> {
    pub(super) reader: &'s mut QueueReader,
    /// A statement of the same connection.
    pub(super) on: &'s Statement,
    pub(super) now_ms: i64,
}

impl Queues for QueueView<'_> {
    fn stats(&mut self, queue: &str) -> Result<QueueStats> {
        let Statements { waiting, locked, dead, paused, denos, .. } =
            self.reader.statements(self.on)?;
        let denos = denos.as_mut().filter(|_| queue.is_empty());
        let of_deno = denos.map(|denos| denos.stats(self.now_ms)).transpose()?.unwrap_or_default();
        let (waiting, due) = counts(waiting, queue, self.now_ms)?;
        let (locked, lost) = counts(locked, queue, self.now_ms)?;
        let dead = dead.run().text(1, queue).first_int()?.unwrap_or(0).cast_unsigned();
        let mark = paused.run().text(1, PAUSED_QUEUES).text(2, queue).first_int()?;
        Ok(QueueStats {
            pending: due + lost + of_deno.pending,
            delayed: waiting - due + of_deno.delayed,
            processing: locked - lost + of_deno.processing,
            dead,
            paused: mark.is_some(),
        })
    }

    fn names(&mut self, count_max: usize) -> Result<Vec<String>> {
        let mut names = self.on.beside(match self.reader.is_denos {
            true => names!(
                "UNION SELECT '' WHERE EXISTS (SELECT 1 FROM queue) \
                 OR EXISTS (SELECT 1 FROM queue_running) "
            ),
            false => names!(""),
        })?;
        let (from, to) = GROUP_QUEUES;
        let run = names.run().int(1, i64::try_from(count_max).unwrap_or(i64::MAX));
        let run = run.text(2, from).text(3, to).text(4, LIMITED_QUEUES);
        run.all(|run| run.column_text(0))
    }

    fn peek(
        &mut self,
        queue: &str,
        peek: Peek,
        visit: &mut dyn FnMut(Peeked, PeekCursor) -> bool,
    ) -> Result<()> {
        if self.reader.is_denos && queue.is_empty() {
            return Err(Error::unsupported(
                "peek: Deno keeps the messages of the default queue of this file; name a queue",
            ));
        }
        self.reader.peek.visit(self.on, queue, peek, self.now_ms, visit)
    }

    fn dead_letters(
        &mut self,
        queue: &str,
        after: (i64, i64),
        visit: &mut dyn FnMut(DeadLetter) -> bool,
    ) -> Result<()> {
        let run = self.reader.statements(self.on)?.list.run().int(1, self.now_ms).text(2, queue);
        let mut run = run.int(3, after.0).int(4, after.1);
        while run.step()? {
            if !visit(letter_of(&run)) {
                break;
            }
        }
        Ok(())
    }

    fn dead_letter(&mut self, queue: &str, id: i64) -> Result<Option<DeadLetter>> {
        let run = self
            .reader
            .statements(self.on)?
            .one
            .run()
            .int(1, self.now_ms)
            .text(2, queue)
            .int(3, id);
        run.first(letter_of)
    }
}

/// The number of messages of a queue and of its groups in a state, and of those whose time has passed.
fn counts(statement: &mut Statement, queue: &str, now_ms: i64) -> Result<(u64, u64)> {
    let (from, to) = groups_range(queue);
    let mut run = statement.run().text(1, queue).int(2, now_ms).text(3, &from).text(4, &to);
    run.step()?;
    Ok((run.column_int(0).cast_unsigned(), run.column_int(1).cast_unsigned()))
}

fn letter_of(run: &Run<'_, '_>) -> DeadLetter {
    DeadLetter {
        id: run.column_int(0),
        attempts: u32::try_from(run.column_int(2)).unwrap_or(u32::MAX),
        enqueued_ms: run.column_int(3),
        first_ms: run.column_int(4),
        last_ms: run.column_int(5),
        died_ms: run.column_int(6),
        reason: Reason::new(&run.column_text(7), &run.column_text(8)),
        value: run.column_blob(1).to_vec(),
    }
}
