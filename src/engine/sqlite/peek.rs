//! Messages that are looked at: those that wait in the order of delivery, then those that are
//! delivered. They are read by any connection, and none is changed.

use super::statement::{Run, Statement};
use crate::model::{MessagePlace, MessageState, Peeked, Result};

/// A reader's statements, prepared on first use since most readers need none.
#[derive(Default)]
pub(super) struct PeekReader(Option<Statements>);

struct Statements {
    waiting: Statement,
    locked: Statement,
}

/// A lock that was extended while its consumer was away ends half a millisecond later.
macro_rules! lock_end {
    () => {
        "CAST(lock_end_ms + 0.5 AS INTEGER)"
    };
}

macro_rules! messages_where {
    ($condition:expr) => {
        concat!(
            "SELECT id, v, priority, attempts, enqueued_ms, due_ms, iif(lock = 0, NULL, ",
            lock_end!(),
            ") FROM openkv_queue WHERE queue = ?1 AND ",
            $condition
        )
    };
}

type Visit<'a> = &'a mut dyn FnMut(Peeked, MessageState) -> bool;

impl PeekReader {
    /// Prepares them on the connection of `on`.
    fn statements(&mut self, on: &Statement) -> Result<&mut Statements> {
        let statements = match self.0.take() {
            Some(statements) => statements,
            None => Statements {
                waiting: on.beside(messages_where!(
                    "lock = 0 AND priority = ?2 AND due_ms > ?3 AND due_ms <= ?4 \
                     AND (due_ms, id) > (?5, ?6) ORDER BY due_ms, id"
                ))?,
                locked: on.beside(messages_where!(concat!(
                    "lock <> 0 AND ",
                    lock_end!(),
                    " > ?2 AND ",
                    lock_end!(),
                    " <= ?3 AND (",
                    lock_end!(),
                    ", id) > (?4, ?5) ORDER BY ",
                    lock_end!(),
                    ", id"
                )))?,
            },
        };
        Ok(self.0.insert(statements))
    }

    /// As [`crate::engine::Snapshot::peek`].
    pub(super) fn visit(
        &mut self,
        on: &Statement,
        queue: &str,
        state: Option<MessageState>,
        mut after: MessagePlace,
        now_ms: i64,
        visit: Visit<'_>,
    ) -> Result<()> {
        let Statements { waiting, locked } = self.statements(on)?;
        let due = MessageState::due_between(state, now_ms).filter(|_| !after.is_locked);
        if let Some((due_after, due_until)) = due {
            // One priority after the other, as in a claim: that is the order of the index.
            for priority in (0..=after.priority()).rev() {
                let run = waiting.run().text(1, queue).int(2, priority.into());
                let run = run.int(3, due_after).int(4, due_until);
                if !shown(run.int(5, after.at_ms).int(6, after.id), now_ms, visit)? {
                    return Ok(());
                }
                after = MessagePlace::START;
            }
        }
        if !after.is_locked {
            after = MessagePlace::START;
        }
        if let Some((end_after, end_until)) = MessageState::lock_end_between(state, now_ms) {
            let run = locked.run().text(1, queue).int(2, end_after).int(3, end_until);
            shown(run.int(4, after.at_ms).int(5, after.id), now_ms, visit)?;
        }
        Ok(())
    }
}

/// Passes the rows to the visitor; returns whether it wants more.
fn shown(mut run: Run<'_, '_>, now_ms: i64, visit: Visit<'_>) -> Result<bool> {
    while run.step()? {
        let message = Peeked {
            id: run.column_int(0),
            value: run.column_blob(1).to_vec(),
            priority: u8::try_from(run.column_int(2)).unwrap_or(u8::MAX),
            attempts: u32::try_from(run.column_int(3)).unwrap_or(u32::MAX),
            enqueued_ms: run.column_int(4),
            due_ms: run.column_int(5),
            lock_end_ms: run.column_int_or_null(6),
        };
        let state = message.state(now_ms);
        if !visit(message, state) {
            return Ok(false);
        }
    }
    Ok(true)
}
