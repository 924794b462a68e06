//! Messages that are looked at and not taken: the order in which they are listed, and the pages of the list.

use super::{MessageState, PRIORITY_MAX};

/// The place of a message in its queue at a moment: **the order of delivery**, which is stated here alone.
///
/// First the pending messages, in the order in which a consumer that takes one after the other at that moment gets
/// them. Then the delayed ones, in the order in which they become due. Then those that a consumer has, by the end of
/// their lock. Claims deliver in the order of the first two; [`MessagePlace::of`] says where a message is.
///
/// ```
/// use openkv_core::model::MessagePlace;
/// let urgent_later = MessagePlace::Delayed { due_ms: 20, rank: 0, id: 1 };
/// let due = MessagePlace::Pending { rank: 9, due_ms: 10, id: 2 };
/// assert!(due < urgent_later);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MessagePlace {
    /// Due, and without a consumer whose lock holds.
    Pending {
        /// 0 for the highest priority.
        rank: u8,
        /// Since when it is due, in ms since the epoch: its due time or, after a delivery whose lock has expired,
        /// the end of the lock.
        due_ms: i64,
        /// Its number: the order of enqueueing.
        id: i64,
    },
    /// Not due yet.
    Delayed {
        /// When it is due, in ms since the epoch.
        due_ms: i64,
        /// 0 for the highest priority.
        rank: u8,
        /// Its number.
        id: i64,
    },
    /// Delivered, with a lock that has not expired.
    Processing {
        /// The end of its lock, in ms since the epoch.
        end_ms: i64,
        /// 0 for the highest priority.
        rank: u8,
        /// Its number.
        id: i64,
    },
}

impl MessagePlace {
    /// The place at `now_ms` of a message that is due at `due_ms`, with the end of its lock if it is delivered.
    pub fn of(id: i64, priority: u8, due_ms: i64, lock_end_ms: Option<i64>, now_ms: i64) -> Self {
        let (state, at_ms) = match lock_end_ms {
            Some(end_ms) if end_ms > now_ms => (MessageState::Processing, end_ms),
            Some(end_ms) => (MessageState::Pending, end_ms),
            None if due_ms > now_ms => (MessageState::Delayed, due_ms),
            None => (MessageState::Pending, due_ms),
        };
        Self::new(state, at_ms, priority, id)
    }

    /// The place in a state of a time, a priority and a number.
    pub const fn new(state: MessageState, at_ms: i64, priority: u8, id: i64) -> Self {
        let rank = PRIORITY_MAX.saturating_sub(priority);
        match state {
            MessageState::Pending => Self::Pending { rank, due_ms: at_ms, id },
            MessageState::Delayed => Self::Delayed { due_ms: at_ms, rank, id },
            MessageState::Processing => Self::Processing { end_ms: at_ms, rank, id },
        }
    }

    /// Before all places of a state.
    pub const fn first(state: MessageState) -> Self {
        Self::new(state, i64::MIN, PRIORITY_MAX, i64::MIN)
    }

    /// The state of a message at this place.
    pub const fn state(self) -> MessageState {
        match self {
            Self::Pending { .. } => MessageState::Pending,
            Self::Delayed { .. } => MessageState::Delayed,
            Self::Processing { .. } => MessageState::Processing,
        }
    }

    /// The time by which it is ordered, in ms since the epoch; its priority; its number.
    pub const fn parts(self) -> (i64, u8, i64) {
        let (at_ms, rank, id) = match self {
            Self::Pending { rank, due_ms: at_ms, id }
            | Self::Delayed { due_ms: at_ms, rank, id }
            | Self::Processing { end_ms: at_ms, rank, id } => (at_ms, rank, id),
        };
        (at_ms, PRIORITY_MAX.saturating_sub(rank), id)
    }
}

/// A place in a list of messages. All pages of a list have the order and the states of the moment of its first page,
/// so that a message that becomes due between two pages keeps its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeekCursor {
    /// The moment, in ms since the epoch.
    pub as_of_ms: i64,
    /// The place.
    pub place: MessagePlace,
}

impl PeekCursor {
    /// The cursor as a text, and nothing else: `pending.1700000000500.1700000000000.0.12`.
    ///
    /// ```
    /// use openkv_core::model::{MessagePlace, PeekCursor};
    /// let place = MessagePlace::Pending { rank: 9, due_ms: 1_700_000_000_000, id: 12 };
    /// let cursor = PeekCursor { as_of_ms: 1_700_000_000_500, place };
    /// assert_eq!(PeekCursor::parse(&cursor.text()), Some(cursor));
    /// assert_eq!(PeekCursor::parse("pending.1.x.0.1"), None);
    /// ```
    #[must_use]
    pub fn text(self) -> String {
        let (at_ms, priority, id) = self.place.parts();
        format!("{}.{}.{at_ms}.{priority}.{id}", self.place.state().name(), self.as_of_ms)
    }

    /// The cursor of a text.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(5, '.');
        let name = parts.next()?;
        let state = MessageState::ALL.into_iter().find(|state| state.name() == name)?;
        let (as_of_ms, at_ms) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let priority = parts.next()?.parse().ok().filter(|priority| *priority <= PRIORITY_MAX)?;
        let id = parts.next()?.parse().ok()?;
        Some(Self { as_of_ms, place: MessagePlace::new(state, at_ms, priority, id) })
    }
}

/// The messages that a list visits, from a place on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peek {
    /// Only messages in this state.
    pub state: Option<MessageState>,
    /// The list continues behind this place; `None` from the start.
    pub after: Option<PeekCursor>,
}

impl Peek {
    /// The moment of its order and states: that of the first page, or now.
    pub fn as_of_ms(&self, now_ms: i64) -> i64 {
        self.after.map_or(now_ms, |after| after.as_of_ms)
    }

    /// The states to visit in their order, each with the place behind which it continues.
    pub fn starts(&self) -> impl Iterator<Item = MessagePlace> {
        let Self { state: only, after } = *self;
        MessageState::ALL.into_iter().filter_map(move |state| {
            let first = MessagePlace::first(state);
            let start = after.map_or(first, |after| after.place.max(first));
            (start.state() == state && only.is_none_or(|only| only == state)).then_some(start)
        })
    }
}

/// A message that is looked at and not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peeked {
    /// Its number.
    pub id: i64,
    /// Its priority.
    pub priority: u8,
    /// The number of deliveries so far.
    pub attempts: u32,
    /// When it was enqueued, in ms since the epoch.
    pub enqueued_ms: i64,
    /// When it is due, or was due before its delivery, in ms since the epoch.
    pub due_ms: i64,
    /// The end of its lock if it is delivered, in ms since the epoch.
    pub lock_end_ms: Option<i64>,
    /// The value, always CBOR.
    pub value: Vec<u8>,
}

impl Peeked {
    /// Its place in its queue at a time.
    pub fn place(&self, now_ms: i64) -> MessagePlace {
        MessagePlace::of(self.id, self.priority, self.due_ms, self.lock_end_ms, now_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_in_the_order_of_delivery_and_then_of_locks() {
        let place = MessagePlace::new;
        let places = [
            place(MessageState::Pending, 20, 9, 1),
            place(MessageState::Pending, 10, 0, 3),
            place(MessageState::Pending, 10, 0, 4),
            place(MessageState::Pending, 11, 0, 2),
            place(MessageState::Delayed, 30, 0, 7),
            place(MessageState::Delayed, 31, 9, 9),
            place(MessageState::Delayed, 31, 9, 10),
            place(MessageState::Delayed, 31, 8, 6),
            place(MessageState::Processing, 5, 0, 8),
            place(MessageState::Processing, 6, 9, 5),
        ];
        assert!(places.is_sorted());
        for place in places {
            let cursor = PeekCursor { as_of_ms: -7, place };
            assert_eq!(PeekCursor::parse(&cursor.text()), Some(cursor));
        }
        for text in
            ["", "pending", "pending.1.1.10.1", "other.1.1.0.1", "delayed.1.1.0", "waiting-0-1-1"]
        {
            assert_eq!(PeekCursor::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_list_continues_in_the_state_of_its_cursor() {
        let starts = |state, after: Option<MessagePlace>| {
            let after = after.map(|place| PeekCursor { as_of_ms: 50, place });
            Peek { state, after }.starts().collect::<Vec<_>>()
        };
        let first = MessagePlace::first;
        let [pending, delayed, processing] = MessageState::ALL;
        assert_eq!(starts(None, None), MessageState::ALL.map(first));
        let place = MessagePlace::new(delayed, 60, 3, 1);
        assert_eq!(starts(None, Some(place)), [place, first(processing)]);
        assert_eq!(starts(Some(delayed), Some(place)), [place]);
        assert_eq!(starts(Some(processing), Some(place)), [first(processing)]);
        assert_eq!(starts(Some(pending), Some(place)), []);
    }
}
