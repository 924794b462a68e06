//! The writer of a store, closed while its database is parked.
//!
//! Duty: open the engine's writer for the first call after it was parked.
//! Invariant: it is parked only between two calls, and only if the writer agrees.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{
    DeadLettersChanged, Engine, GoesOn, Indexer, NextDeadlines, NextEntries, Progress, Report,
    Ticket, Wake, Work, Writer,
};
use openkv_core::model::{
    Checkpoint, DeadLetterChange, Followed, IndexChoice, IndexInfo, IndexRequest, LogSegment,
    LogSettings, LoggedMessage, MessageDeletion, Origin, QueueChange, QueueChanged, Replacement,
    Result, Vacuumed, ValueIndexInfo, ValueIndexRequest,
};

/// The writer of an engine, which [`ParkableWriter::park`] closes until its next call.
pub struct ParkableWriter<E: Engine> {
    // Closed before the engine may be.
    open: Option<E::Writer>,
    engine: Arc<E>,
}

impl<E: Engine> ParkableWriter<E> {
    /// The writer, opened.
    ///
    /// # Errors
    /// Those of [`Engine::writer`].
    pub fn open(engine: Arc<E>) -> Result<Self> {
        Ok(Self { open: Some(engine.writer()?), engine })
    }

    fn writer(&mut self) -> Result<&mut E::Writer> {
        match &mut self.open {
            Some(writer) => Ok(writer),
            none => Ok(none.insert(self.engine.writer()?)),
        }
    }
}

/// Methods that open the writer and call its method of the same name.
macro_rules! forwarded {
    ($($name:ident($($argument:ident: $kind:ty),*) -> $answer:ty;)*) => {
        $(fn $name(&mut self, $($argument: $kind),*) -> Result<$answer> {
            self.writer()?.$name($($argument),*)
        })*
    };
}

impl<E: Engine> Indexer for ParkableWriter<E> {
    forwarded! {
        create_index(request: &IndexRequest, deadline: Instant) -> IndexInfo;
        create_value_index(request: &ValueIndexRequest, deadline: Instant) -> ValueIndexInfo;
        drop_index(choice: &IndexChoice, deadline: Instant) -> bool;
        build_indexes(now_ms: i64, deadline: Instant) -> bool;
    }
}

impl<E: Engine> Writer for ParkableWriter<E> {
    forwarded! {
        begin(work: Work, now_ms: i64, deadline: Instant) -> Progress;
        log_changes(origin: Origin, now_ms: i64, deadline: Instant) -> u64;
        set_log(settings: &LogSettings, origin: Origin, now_ms: i64, deadline: Instant) -> u64;
        replay(segment: LogSegment<'_>, deadline: Instant) -> Report;
        followed() -> Option<Followed>;
        follow(after: &Followed, segments: &[LogSegment<'_>], deadline: Instant) -> Report;
        replace_all(replacement: &Replacement, entries: NextEntries<'_>, deadline: Instant) -> Report;
        add_messages(messages: &[LoggedMessage], deadline: Instant) -> ();
        keep_metrics(merge: &mut dyn FnMut(Option<&str>) -> String, deadline: Instant) -> ();
        next_deadlines() -> NextDeadlines;
        next_message_ms(queue: &str) -> Option<i64>;
        queue_depth(queue: &str) -> u64;
        change_dead_letters(
            queue: &str, change: &DeadLetterChange, now_ms: i64, deadline: Instant
        ) -> DeadLettersChanged;
        delete_message(queue: &str, id: i64, now_ms: i64, deadline: Instant) -> MessageDeletion;
        bound_times(queue: &str, now_ms: i64, deadline: Instant) -> ();
        change_queue(
            queue: &str, change: QueueChange, now_ms: i64, deadline: Instant
        ) -> QueueChanged;
        checkpoint() -> Checkpoint;
        empty_log() -> ();
        vacuum(deadline: Instant, goes_on: &GoesOn) -> Vacuumed;
    }

    /// A parked writer is opened by the writer thread.
    fn begin_at_once(&mut self, durable: bool) -> bool {
        self.open.as_mut().is_some_and(|writer| writer.begin_at_once(durable))
    }

    fn rest(&mut self) {
        if let Some(writer) = &mut self.open {
            writer.rest();
        }
    }

    fn park(&mut self) -> bool {
        let parks = self.open.as_mut().is_none_or(Writer::park);
        if parks {
            self.open = None;
        }
        parks
    }

    fn has_room(&self) -> bool {
        self.open.as_ref().is_none_or(Writer::has_room)
    }

    fn lingers(&self, since: Instant, writes: usize) -> Duration {
        self.open.as_ref().map_or(Duration::ZERO, |writer| writer.lingers(since, writes))
    }

    fn ended(&mut self) -> Option<(Ticket, Result<Report>)> {
        self.open.as_mut()?.ended()
    }

    fn on_ended(&mut self, wake: Wake) {
        if let Some(writer) = &mut self.open {
            writer.on_ended(wake);
        }
    }
}
