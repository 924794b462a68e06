//! Queues as a snapshot and the timers see them.

use tokio_postgres::Row;

use super::Shared;
use super::cells::{Cells, first};
use super::line::Value;
use super::link::Link;
use crate::Queues;
use openkv_core::model::{
    DeadLetter, GROUP_QUEUES, LIMITED_QUEUES, MessagePlace, MessageState, PAUSED_QUEUES,
    POSTGRES_PAGE_ROWS_MAX, PRIORITY_MAX, Peek, PeekCursor, Peeked, QueueStats, Reason, Result,
    groups_range, turns_queue,
};

/// The earliest end of a dead letter's retention.
pub(super) const EARLIEST_PURGE: &str = "\
SELECT purge_ms FROM openkv.dead WHERE db + 0 = $1 AND purge_ms IS NOT NULL \
ORDER BY purge_ms LIMIT 1";

/// The earliest time of each priority, of the queue and of the turns of its groups, unless the queue is paused and not
/// before its limits let it deliver again; and the earliest end of a lock, of its groups too.
const NEXT: &str = "\
SELECT min(m.at_ms) FROM (SELECT greatest(w.due_ms, (SELECT due_ms FROM openkv.messages \
WHERE db = $1 AND queue = $5 AND dedup = $2)) AS at_ms FROM unnest(ARRAY[$2, $6]::bytea[]) AS q(queue) \
CROSS JOIN generate_series($3::int4, 0, -1) AS p(priority) \
CROSS JOIN LATERAL (SELECT due_ms FROM openkv.messages WHERE db = $1 AND queue = q.queue \
AND NOT locked AND priority = p.priority::int2 ORDER BY due_ms LIMIT 1) AS w \
WHERE NOT EXISTS (SELECT 1 FROM openkv.messages WHERE db = $1 AND queue = $4 AND dedup = $2) \
UNION ALL (SELECT lock_end_ms FROM openkv.messages WHERE db = $1 AND queue = $2 AND locked \
ORDER BY lock_end_ms LIMIT 1) UNION ALL (SELECT lock_end_ms FROM openkv.messages WHERE db = $1 \
AND queue > $7 AND queue < $8 AND locked ORDER BY lock_end_ms LIMIT 1)) AS m";

const DEPTH: &str = "\
SELECT (SELECT count(*) FROM openkv.messages WHERE db = $1 AND queue = $2) \
+ (SELECT count(*) FROM openkv.messages WHERE db = $1 AND queue > $3 AND queue < $4)";

const STATS: &str = "\
SELECT count(*) FILTER (WHERE NOT locked AND due_ms <= $3 OR locked AND lock_end_ms <= $3), \
count(*) FILTER (WHERE NOT locked AND due_ms > $3), \
count(*) FILTER (WHERE locked AND lock_end_ms > $3), \
(SELECT count(*) FROM openkv.dead WHERE db = $1 AND queue = $2), \
EXISTS (SELECT 1 FROM openkv.messages WHERE db = $1 AND queue = $4 AND dedup = $2) \
FROM (SELECT locked, due_ms, lock_end_ms FROM openkv.messages WHERE db = $1 AND queue = $2 UNION ALL \
SELECT locked, due_ms, lock_end_ms FROM openkv.messages WHERE db = $1 AND queue > $5 AND queue < $6) AS m";

/// Each step of the recursion finds the next name in the index, however many messages a queue has; one step passes
/// the queues of all groups.
const NAMES: &str = "\
WITH RECURSIVE live(queue) AS ((SELECT queue FROM openkv.messages WHERE db = $1 \
ORDER BY queue LIMIT 1) UNION ALL SELECT (SELECT m.queue FROM openkv.messages AS m WHERE m.db = $1 \
AND m.queue > live.queue AND m.queue > CASE WHEN live.queue >= $3 AND live.queue < $4 THEN $4::bytea \
ELSE live.queue END ORDER BY m.queue LIMIT 1) FROM live WHERE live.queue IS NOT NULL), \
dead(queue) AS ((SELECT queue FROM openkv.dead WHERE db = $1 \
ORDER BY queue LIMIT 1) UNION ALL SELECT (SELECT d.queue FROM openkv.dead AS d WHERE d.db = $1 \
AND d.queue > dead.queue ORDER BY d.queue LIMIT 1) FROM dead WHERE dead.queue IS NOT NULL) \
SELECT queue FROM (SELECT queue FROM live WHERE queue < $3 OR queue >= $4 UNION SELECT queue FROM dead \
UNION SELECT dedup FROM openkv.messages WHERE db = $1 AND queue = $5) AS named \
WHERE queue IS NOT NULL ORDER BY queue LIMIT $2";

macro_rules! letters_where {
    ($condition:literal) => {
        concat!(
            "SELECT id, v, attempts, enqueued_ms, first_ms, last_ms, died_ms, error_name, \
             error_message FROM openkv.dead WHERE db = $1 AND queue = $2 \
             AND (purge_ms IS NULL OR purge_ms > $3) AND ",
            $condition
        )
    };
}

const LETTERS: &str = letters_where!("(died_ms, id) > ($4, $5) ORDER BY died_ms, id LIMIT $6");

/// The inner query makes the planner look up the number, and not the retention.
const LETTER: &str = "\
SELECT id, v, attempts, enqueued_ms, first_ms, last_ms, died_ms, error_name, error_message \
FROM (SELECT * FROM openkv.dead WHERE db = $1 AND id = $4 OFFSET 0) AS d \
WHERE queue = $2 AND (purge_ms IS NULL OR purge_ms > $3)";

macro_rules! peeked_columns {
    () => {
        "id, v, priority, attempts, enqueued_ms, due_ms, lock_end_ms, locked"
    };
}

/// A page of each state behind a place. $3 is the moment, $4 to $6 are the time, the priority and the number of the
/// place, $7 is the number of rows. Waiting messages are read one priority after the other, as in a claim: in the
/// priority of the place behind it, of the lower ones all.
const PEEK_PENDING: &str = concat!(
    "SELECT * FROM ((SELECT m.* FROM generate_series($5::int4, 0, -1) AS p(priority) \
     CROSS JOIN LATERAL (SELECT ",
    peeked_columns!(),
    ", due_ms AS at_ms FROM openkv.messages WHERE db = $1 AND queue = $2 AND NOT locked \
     AND priority = p.priority::int2 AND due_ms <= $3 \
     AND (p.priority < $5 OR (due_ms, id) > ($4, $6)) ORDER BY due_ms, id LIMIT $7) AS m \
     ORDER BY p.priority DESC, m.due_ms, m.id LIMIT $7) UNION ALL (SELECT ",
    peeked_columns!(),
    ", due_ms AS at_ms FROM openkv.messages WHERE db = $1 AND queue > $8 AND queue < $9 \
     AND NOT locked AND due_ms <= $3 AND (-priority, due_ms, id) > (-$5, $4, $6) \
     ORDER BY priority DESC, due_ms, id LIMIT $7) UNION ALL (SELECT ",
    peeked_columns!(),
    ", lock_end_ms AS at_ms FROM openkv.messages WHERE db = $1 \
     AND (queue = $2 OR queue > $8 AND queue < $9) AND locked \
     AND lock_end_ms <= $3 AND (-priority, lock_end_ms, id) > (-$5, $4, $6) \
     ORDER BY priority DESC, lock_end_ms, id LIMIT $7)) AS m \
     ORDER BY priority DESC, at_ms, id LIMIT $7"
);

/// At the time of the place also behind it, of the lower priorities all, of the higher ones none. $10 is the highest one.
const PEEK_DELAYED: &str = concat!(
    "SELECT * FROM ((SELECT m.* FROM generate_series($10::int4, 0, -1) AS p(priority) CROSS JOIN LATERAL (SELECT ",
    peeked_columns!(),
    " FROM openkv.messages WHERE db = $1 AND queue = $2 AND NOT locked \
     AND priority = p.priority::int2 AND due_ms > $3 AND (due_ms, id) > ($4, CASE \
     WHEN p.priority = $5::int4 THEN $6::int8 WHEN p.priority < $5 THEN -9223372036854775808 \
     ELSE 9223372036854775807 END) ORDER BY due_ms, id LIMIT $7) AS m \
     ORDER BY m.due_ms, p.priority DESC, m.id LIMIT $7) UNION ALL (SELECT ",
    peeked_columns!(),
    " FROM openkv.messages WHERE db = $1 AND queue > $8 AND queue < $9 AND NOT locked \
     AND due_ms > $3 AND (due_ms, -priority, id) > ($4, -$5::int4, $6) \
     ORDER BY due_ms, priority DESC, id LIMIT $7)) AS m ORDER BY due_ms, priority DESC, id LIMIT $7"
);

const PEEK_PROCESSING: &str = concat!(
    "SELECT ",
    peeked_columns!(),
    " FROM openkv.messages WHERE db = $1 AND (queue = $2 OR queue > $8 AND queue < $9) AND locked \
     AND lock_end_ms > $3 \
     AND (lock_end_ms, -priority, id) > ($4, -$5::int4, $6) \
     ORDER BY lock_end_ms, priority DESC, id LIMIT $7"
);

pub(super) fn next_message_ms(shared: &Shared, queue: &str) -> Result<Option<i64>> {
    let top = i32::from(PRIORITY_MAX);
    let ((from, to), turns) = (groups_range(queue), turns_queue(queue));
    let (queue, paused) = (queue.as_bytes(), PAUSED_QUEUES.as_bytes());
    let (limited, turns) = (LIMITED_QUEUES.as_bytes(), turns.as_bytes());
    let (from, to) = (from.as_bytes(), to.as_bytes());
    let values: Vec<&Value<'_>> =
        vec![&shared.db, &queue, &top, &paused, &limited, &turns, &from, &to];
    let rows = shared.query((NEXT, values))?;
    first("messages", &rows)
}

pub(super) fn depth(shared: &Shared, queue: &str) -> Result<u64> {
    let (from, to) = groups_range(queue);
    let (queue, from, to) = (queue.as_bytes(), from.as_bytes(), to.as_bytes());
    let rows = shared.query((DEPTH, vec![&shared.db, &queue, &from, &to]))?;
    Ok(first("messages", &rows)?.map_or(0, i64::cast_unsigned))
}

/// Queues in a snapshot.
pub(super) struct QueueReader<'s> {
    pub(super) link: &'s Link,
    pub(super) db: i64,
    pub(super) now_ms: i64,
}

impl QueueReader<'_> {
    /// The next page of the messages in the state of a place, behind it.
    fn page(&self, queue: &str, as_of_ms: i64, after: MessagePlace) -> Result<Vec<Row>> {
        let sql = match after.state() {
            MessageState::Pending => PEEK_PENDING,
            MessageState::Delayed => PEEK_DELAYED,
            MessageState::Processing => PEEK_PROCESSING,
        };
        let (at_ms, priority, id) = after.parts();
        let (priority, top) = (i32::from(priority), i32::from(PRIORITY_MAX));
        let (from, to) = groups_range(queue);
        let (queue, max) = (queue.as_bytes(), POSTGRES_PAGE_ROWS_MAX);
        let (from, to) = (from.as_bytes(), to.as_bytes());
        let mut values: Vec<&Value<'_>> =
            vec![&self.db, &queue, &as_of_ms, &at_ms, &priority, &id, &max, &from, &to];
        if after.state() == MessageState::Delayed {
            values.push(&top);
        }
        self.link.query((sql, values))
    }
}

impl Queues for QueueReader<'_> {
    fn stats(&mut self, queue: &str) -> Result<QueueStats> {
        let (from, to) = groups_range(queue);
        let (queue, paused) = (queue.as_bytes(), PAUSED_QUEUES.as_bytes());
        let (from, to) = (from.as_bytes(), to.as_bytes());
        let values: Vec<&Value<'_>> = vec![&self.db, &queue, &self.now_ms, &paused, &from, &to];
        let rows = self.link.query((STATS, values))?;
        let Some(row) = rows.first() else { return Ok(QueueStats::default()) };
        let cells = Cells::of("messages", row);
        let (pending, delayed) = (cells.unsigned(0)?, cells.unsigned(1)?);
        Ok(QueueStats {
            pending,
            delayed,
            processing: cells.unsigned(2)?,
            dead: cells.unsigned(3)?,
            paused: cells.get(4)?,
        })
    }

    fn names(&mut self, count_max: usize) -> Result<Vec<String>> {
        let max = i64::try_from(count_max).unwrap_or(i64::MAX);
        let (from, to) = (GROUP_QUEUES.0.as_bytes(), GROUP_QUEUES.1.as_bytes());
        let limited = LIMITED_QUEUES.as_bytes();
        let rows = self.link.query((NAMES, vec![&self.db, &max, &from, &to, &limited]))?;
        rows.iter().map(|row| Cells::of("messages", row).text(0)).collect()
    }

    fn peek(
        &mut self,
        queue: &str,
        peek: Peek,
        visit: &mut dyn FnMut(Peeked, PeekCursor) -> bool,
    ) -> Result<()> {
        let as_of_ms = peek.as_of_ms(self.now_ms);
        for start in peek.starts() {
            let mut after = start;
            loop {
                let rows = self.page(queue, as_of_ms, after)?;
                for row in &rows {
                    let message = peeked_of(row)?;
                    after = message.place(as_of_ms);
                    if !visit(message, PeekCursor { as_of_ms, place: after }) {
                        return Ok(());
                    }
                }
                if i64::try_from(rows.len()).is_ok_and(|count| count < POSTGRES_PAGE_ROWS_MAX) {
                    break;
                }
            }
        }
        Ok(())
    }

    fn dead_letters(
        &mut self,
        queue: &str,
        mut after: (i64, i64),
        visit: &mut dyn FnMut(DeadLetter) -> bool,
    ) -> Result<()> {
        let (db, now_ms, max) = (self.db, self.now_ms, POSTGRES_PAGE_ROWS_MAX);
        loop {
            let queue = queue.as_bytes();
            let rows =
                self.link.query((LETTERS, vec![&db, &queue, &now_ms, &after.0, &after.1, &max]))?;
            for row in &rows {
                let letter = letter_of(row)?;
                after = (letter.died_ms, letter.id);
                if !visit(letter) {
                    return Ok(());
                }
            }
            if i64::try_from(rows.len()).is_ok_and(|count| count < max) {
                return Ok(());
            }
        }
    }

    fn dead_letter(&mut self, queue: &str, id: i64) -> Result<Option<DeadLetter>> {
        let queue = queue.as_bytes();
        let rows = self.link.query((LETTER, vec![&self.db, &queue, &self.now_ms, &id]))?;
        rows.first().map(letter_of).transpose()
    }
}

fn peeked_of(row: &Row) -> Result<Peeked> {
    let cells = Cells::of("messages", row);
    let lock_end_ms = cells.get(6)?;
    Ok(Peeked {
        id: cells.get(0)?,
        value: cells.get(1)?,
        priority: u8::try_from(cells.get::<i16>(2)?).unwrap_or(u8::MAX),
        attempts: cells.get::<i32>(3)?.cast_unsigned(),
        enqueued_ms: cells.get(4)?,
        due_ms: cells.get(5)?,
        lock_end_ms: cells.get::<bool>(7)?.then_some(lock_end_ms),
    })
}

fn letter_of(row: &Row) -> Result<DeadLetter> {
    let cells = Cells::of("dead", row);
    Ok(DeadLetter {
        id: cells.get(0)?,
        value: cells.get(1)?,
        attempts: cells.get::<i32>(2)?.cast_unsigned(),
        enqueued_ms: cells.get(3)?,
        first_ms: cells.get(4)?,
        last_ms: cells.get(5)?,
        died_ms: cells.get(6)?,
        reason: Reason::new(&cells.text(7)?, &cells.text(8)?),
    })
}
