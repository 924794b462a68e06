//! Whole messages, for the replication log and for followers, which repeat it.
//!
//! Invariant: a message is in `openkv_queue` or in `openkv_dead`, never in both.
//! Never: a lock. A message that is repeated waits.

use super::statement::{Run, Statement};
use crate::packed::{pack_intervals, pack_keys, unpack_intervals, unpack_keys};
use openkv_core::model::{KeptMessage, KeptState, LoggedMessage, Reason, Result};

/// The statements on whole messages.
pub(super) struct MessageCopies {
    live: Statement,
    dead: Statement,
    remove_live: Statement,
    remove_dead: Statement,
    insert_live: Statement,
    insert_dead: Statement,
}

/// The columns that both tables have, for [`kept_of`].
macro_rules! columns_of {
    ($table:literal, $more:literal) => {
        concat!(
            "SELECT queue, priority, attempts, enqueued_ms, first_ms, last_ms, dedup, \
             dead_retention_ms, backoff_ms, undelivered, v, ",
            $more,
            " FROM ",
            $table,
            " WHERE id = ?1"
        )
    };
}

impl MessageCopies {
    pub(super) fn beside(on: &Statement) -> Result<Self> {
        Ok(Self {
            live: on.beside(columns_of!("openkv_queue", "due_ms"))?,
            dead: on.beside(columns_of!(
                "openkv_dead",
                "died_ms, error_name, error_message, purge_ms"
            ))?,
            remove_live: on.beside("DELETE FROM openkv_queue WHERE id = ?1")?,
            remove_dead: on.beside("DELETE FROM openkv_dead WHERE id = ?1")?,
            insert_live: on.beside(
                "INSERT INTO openkv_queue (id, queue, priority, attempts, enqueued_ms, first_ms, \
                 last_ms, dedup, dead_retention_ms, backoff_ms, undelivered, v, due_ms) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
            )?,
            insert_dead: on.beside(
                "INSERT INTO openkv_dead (id, queue, priority, attempts, enqueued_ms, first_ms, \
                 last_ms, dedup, dead_retention_ms, backoff_ms, undelivered, v, died_ms, \
                 error_name, error_message, purge_ms) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
            )?,
        })
    }

    /// The message with this number.
    pub(super) fn read(&mut self, id: i64) -> Result<Option<KeptMessage>> {
        let live = self
            .live
            .run()
            .int(1, id)
            .first(|run| kept_of(run, KeptState::Waiting { due_ms: run.column_int(11) }))?;
        if live.is_some() {
            return Ok(live);
        }
        self.dead.run().int(1, id).first(|run| {
            let reason = Reason::new(&run.column_text(12), &run.column_text(13));
            let purge_ms = run.column_int_or_null(14);
            kept_of(run, KeptState::Dead { died_ms: run.column_int(11), reason, purge_ms })
        })
    }

    /// Makes messages what the log says. All of them go before any comes, so that a deduplication key can
    /// pass from one to another.
    pub(super) fn replace(&mut self, messages: &[LoggedMessage]) -> Result<()> {
        for message in messages {
            self.remove_live.run().int(1, message.id).finish()?;
            self.remove_dead.run().int(1, message.id).finish()?;
        }
        for LoggedMessage { id, kept, .. } in messages {
            if let Some(kept) = kept {
                self.insert(*id, kept)?;
            }
        }
        Ok(())
    }

    fn insert(&mut self, id: i64, kept: &KeptMessage) -> Result<()> {
        let table = match &kept.state {
            KeptState::Waiting { .. } => &mut self.insert_live,
            KeptState::Dead { .. } => &mut self.insert_dead,
        };
        let backoff = pack_intervals(&kept.backoff_ms);
        let undelivered = pack_keys(&kept.keys_if_undelivered);
        let run = (table.run())
            .int(1, id)
            .text(2, &kept.queue)
            .int(3, kept.priority.into())
            .int(4, kept.attempts.into())
            .int(5, kept.enqueued_ms)
            .int_or_null(6, kept.first_ms)
            .int_or_null(7, kept.last_ms)
            .text_or_null(8, kept.deduplication_key.as_deref())
            .int_or_null(9, kept.dead_retention_ms)
            .blob(10, &backoff)
            .blob(11, &undelivered)
            .blob(12, &kept.value);
        match &kept.state {
            KeptState::Waiting { due_ms } => run.int(13, *due_ms).finish(),
            KeptState::Dead { died_ms, reason, purge_ms } => (run.int(13, *died_ms))
                .text(14, reason.name())
                .text(15, reason.message())
                .int_or_null(16, *purge_ms)
                .finish(),
        }
    }
}

fn kept_of(run: &Run<'_, '_>, state: KeptState) -> KeptMessage {
    KeptMessage {
        queue: run.column_text(0),
        priority: u8::try_from(run.column_int(1)).unwrap_or(0),
        attempts: u32::try_from(run.column_int(2)).unwrap_or(u32::MAX),
        enqueued_ms: run.column_int(3),
        first_ms: run.column_int_or_null(4),
        last_ms: run.column_int_or_null(5),
        deduplication_key: (!run.column_is_null(6)).then(|| run.column_text(6)),
        dead_retention_ms: run.column_int_or_null(7),
        backoff_ms: unpack_intervals(run.column_blob(8)),
        keys_if_undelivered: unpack_keys(run.column_blob(9)),
        value: run.column_blob(10).to_vec(),
        state,
    }
}
