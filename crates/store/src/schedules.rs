//! The schedules of queues: reading them, and the step of the writer thread that makes their messages.

use std::sync::Arc;

use super::{Caller, Patience, Store};
use openkv_core::codec::schedule::{self, KeptSchedule};
use openkv_core::model::{Peek, PeekCursor, Peeked, SCHEDULES_QUEUE};

/// A schedule in a list.
#[derive(Clone, Debug)]
pub struct ListedSchedule {
    /// The message that keeps it, which is due at the next due time.
    pub row: Peeked,
    /// What it is.
    pub kept: KeptSchedule,
    /// The place behind it.
    pub cursor: PeekCursor,
}

impl Store {
    /// Visits the schedules of a queue after `after` by their next due times, until `visit` returns `false`. It looks
    /// at those of all queues. One that this version cannot read is left out.
    pub fn schedules<C: Caller<()>>(
        &self,
        queue: String,
        after: Option<PeekCursor>,
        patience: Arc<Patience>,
        caller: C,
        mut visit: impl FnMut(&mut C, ListedSchedule) -> bool + Send + 'static,
    ) {
        self.read(Some(patience), caller, move |snapshot, caller| {
            let mut shown = |row: Peeked, cursor| {
                if !schedule::is_of(&row.value, &queue) {
                    return true;
                }
                let Ok(kept) = schedule::decode(&row.value) else { return true };
                visit(caller, ListedSchedule { row, kept, cursor })
            };
            snapshot.queues()?.peek(SCHEDULES_QUEUE, Peek { state: None, after }, &mut shown)
        });
    }
}
