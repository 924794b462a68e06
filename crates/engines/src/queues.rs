//! The queues in one snapshot, and those of an engine without queues.

use super::no_messages::{NoMessages, no_queues};
use openkv_core::model::{DeadLetter, Peek, PeekCursor, Peeked, QueueStats, Result};

/// The messages of the queues in one snapshot.
pub trait Queues {
    /// The number of messages of a queue in each state, without reading them.
    fn stats(&mut self, queue: &str) -> Result<QueueStats>;

    /// The names of the queues with any message or dead letter, the first `count_max`; those of openkv's own too.
    fn names(&mut self, count_max: usize) -> Result<Vec<String>>;

    /// Visits the messages of a queue in the order of [`MessagePlace`](openkv_core::model::MessagePlace), until `visit` returns `false`. Changes
    /// none of them. `visit` also gets the cursor behind each.
    ///
    /// # Errors
    /// `Unsupported` where another program keeps the messages; errors of the medium.
    fn peek(
        &mut self,
        queue: &str,
        peek: Peek,
        visit: &mut dyn FnMut(Peeked, PeekCursor) -> bool,
    ) -> Result<()>;

    /// Visits the dead letters of a queue after `after`, by time of death and number, until `visit`
    /// returns `false`. Omits those whose retention is over.
    fn dead_letters(
        &mut self,
        queue: &str,
        after: (i64, i64),
        visit: &mut dyn FnMut(DeadLetter) -> bool,
    ) -> Result<()>;

    /// The dead letter with this number, if it belongs to this queue.
    fn dead_letter(&mut self, queue: &str, id: i64) -> Result<Option<DeadLetter>>;
}

impl Queues for NoMessages {
    fn stats(&mut self, _queue: &str) -> Result<QueueStats> {
        Err(no_queues())
    }

    fn names(&mut self, _count_max: usize) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn peek(
        &mut self,
        _queue: &str,
        _peek: Peek,
        _visit: &mut dyn FnMut(Peeked, PeekCursor) -> bool,
    ) -> Result<()> {
        Err(no_queues())
    }

    fn dead_letters(
        &mut self,
        _queue: &str,
        _after: (i64, i64),
        _visit: &mut dyn FnMut(DeadLetter) -> bool,
    ) -> Result<()> {
        Err(no_queues())
    }

    fn dead_letter(&mut self, _queue: &str, _id: i64) -> Result<Option<DeadLetter>> {
        Err(no_queues())
    }
}
