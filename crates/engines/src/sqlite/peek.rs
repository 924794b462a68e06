//! Messages that are looked at, in the order of [`MessagePlace`](openkv_core::model::MessagePlace). They are read by any connection, and none is
//! changed.

use super::statement::{Run, Statement};
use openkv_core::model::{
    MessageState, PRIORITY_MAX, Peek, PeekCursor, Peeked, Result, groups_range,
};

/// A reader's statements, prepared on first use since most readers need none.
#[derive(Default)]
pub(super) struct PeekReader(Option<Statements>);

/// One for each state.
struct Statements {
    pending: Statement,
    delayed: Statement,
    processing: Statement,
}

/// A lock that was extended while its consumer was away ends half a millisecond later.
macro_rules! lock_end {
    () => {
        "CAST(lock_end_ms + 0.5 AS INTEGER)"
    };
}

macro_rules! select {
    ($at:expr) => {
        concat!(
            "SELECT id, v, priority, attempts, enqueued_ms, due_ms, iif(lock = 0, NULL, ",
            lock_end!(),
            ") AS end_ms, ",
            $at,
            " AS at_ms FROM openkv_queue WHERE "
        )
    };
}

/// Delivered messages, behind a condition on the end of the lock beside ?2, the moment.
macro_rules! locked {
    ($end:literal) => {
        concat!(
            "SELECT * FROM (",
            select!(lock_end!()),
            "queue = ?1 AND lock <> 0 AND lock_end_ms ",
            $end,
            " ?2 UNION ALL ",
            select!(lock_end!()),
            "queue > ?6 AND queue < ?7 AND lock <> 0 AND lock_end_ms ",
            $end,
            " ?2)"
        )
    };
}

/// Waiting messages of groups, behind a condition on the due time beside ?2, the moment. They are sorted.
macro_rules! of_groups {
    ($due:literal) => {
        concat!(
            "SELECT * FROM (",
            select!("due_ms"),
            "queue > ?6 AND queue < ?7 AND lock = 0 AND due_ms ",
            $due,
            " ?2)"
        )
    };
}

type Visit<'a> = &'a mut dyn FnMut(Peeked, PeekCursor) -> bool;

/// Waiting messages by a condition on the due time beside ?2, the moment: a part for each priority, since that is the
/// order of the index, behind a place of it. SQLite reads the parts side by side, in the order of the whole.
fn waiting(due: &str, behind: impl Fn(u8) -> String) -> Vec<String> {
    let select = select!("due_ms");
    (0..=PRIORITY_MAX)
        .rev()
        .map(|priority| {
            let behind = behind(priority);
            format!(
                "{select}queue = ?1 AND lock = 0 AND priority = {priority} AND due_ms {due} ?2 \
                 AND (due_ms, id) > {behind}"
            )
        })
        .collect()
}

/// The least and the greatest number of SQL.
const LEAST: i64 = i64::MIN;
const MOST: i64 = i64::MAX;

impl Statements {
    /// ?3 to ?5 are the time, the priority and the number of the place behind which a list continues.
    fn beside(on: &Statement) -> Result<Self> {
        // In the priority of the place behind it, of the lower ones all, of the higher ones none.
        let mut pending = waiting("<=", |of| {
            format!(
                "(CASE WHEN {of} = ?4 THEN ?3 WHEN {of} < ?4 THEN {LEAST} ELSE {MOST} END, \
                 iif({of} = ?4, ?5, {MOST}))"
            )
        });
        const PENDING: &str = " WHERE (-priority, at_ms, id) > (-?4, ?3, ?5)";
        pending.push(locked!("<=").to_owned() + PENDING);
        pending.push(of_groups!("<=").to_owned() + PENDING);
        let pending = pending.join(" UNION ALL ") + " ORDER BY priority DESC, at_ms, id";
        // At the time of the place also behind it, of the lower priorities all, of the higher ones none.
        let mut delayed = waiting(">", |of| {
            format!("(?3, CASE WHEN {of} = ?4 THEN ?5 WHEN {of} < ?4 THEN {LEAST} ELSE {MOST} END)")
        });
        const DELAYED: &str = " WHERE (at_ms, -priority, id) > (?3, -?4, ?5)";
        delayed.push(of_groups!(">").to_owned() + DELAYED);
        let delayed = delayed.join(" UNION ALL ") + " ORDER BY at_ms, priority DESC, id";
        let processing = concat!(
            locked!(">"),
            " WHERE (at_ms, -priority, id) > (?3, -?4, ?5) ORDER BY at_ms, priority DESC, id"
        );
        Ok(Self {
            pending: on.beside(&pending)?,
            delayed: on.beside(&delayed)?,
            processing: on.beside(processing)?,
        })
    }

    fn of(&mut self, state: MessageState) -> &mut Statement {
        match state {
            MessageState::Pending => &mut self.pending,
            MessageState::Delayed => &mut self.delayed,
            MessageState::Processing => &mut self.processing,
        }
    }
}

impl PeekReader {
    /// As [`crate::Queues::peek`].
    pub(super) fn visit(
        &mut self,
        on: &Statement,
        queue: &str,
        peek: Peek,
        now_ms: i64,
        visit: Visit<'_>,
    ) -> Result<()> {
        let statements = match self.0.take() {
            Some(statements) => statements,
            None => Statements::beside(on)?,
        };
        let statements = self.0.insert(statements);
        let as_of_ms = peek.as_of_ms(now_ms);
        let (from, to) = groups_range(queue);
        for start in peek.starts() {
            let (at_ms, priority, id) = start.parts();
            let run = statements.of(start.state()).run().text(1, queue).int(2, as_of_ms);
            let run = run.int(3, at_ms).int(4, priority.into()).int(5, id);
            let mut run = run.text(6, &from).text(7, &to);
            while run.step()? {
                let message = peeked(&run);
                let place = message.place(as_of_ms);
                if !visit(message, PeekCursor { as_of_ms, place }) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

fn peeked(run: &Run<'_, '_>) -> Peeked {
    Peeked {
        id: run.column_int(0),
        value: run.column_blob(1).to_vec(),
        priority: u8::try_from(run.column_int(2)).unwrap_or(u8::MAX),
        attempts: u32::try_from(run.column_int(3)).unwrap_or(u32::MAX),
        enqueued_ms: run.column_int(4),
        due_ms: run.column_int(5),
        lock_end_ms: run.column_int_or_null(6),
    }
}
