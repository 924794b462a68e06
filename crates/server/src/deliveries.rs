//! The messages that event streams have delivered, until they end.
//!
//! Invariant: a stream has at most its number of messages under way. A message ends when its client reports it, or with
//! its lock. The server renews no lock.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use openkv_core::model::{Delivery, Id};
use openkv_store::Store;

/// The number and the lock of a message.
pub(super) type Name = (i64, i64);

/// The deliveries of one database.
#[derive(Default)]
pub(super) struct Deliveries(Mutex<Table>);

#[derive(Default)]
struct Table {
    /// By stream.
    streams: HashMap<Id, Stream>,
    /// The stream of each message.
    messages: HashMap<Name, Id>,
}

#[derive(Default)]
struct Stream {
    /// When the lock of each message ends.
    locks: HashMap<Name, Instant>,
    /// Credits since the beginning of the stream.
    granted: u64,
}

impl Deliveries {
    /// Begins a stream with so many credits.
    pub(super) fn begin(&self, stream: Id, credits: u64) {
        let begun = Stream { granted: credits, ..Stream::default() };
        self.0.lock().streams.insert(stream, begun);
    }

    /// Ends a stream.
    pub(super) fn end(&self, stream: Id) {
        let mut table = self.0.lock();
        if let Some(ended) = table.streams.remove(&stream) {
            table.messages.retain(|name, _| !ended.locks.contains_key(name));
        }
    }

    /// Records messages that a stream delivers.
    pub(super) fn add(&self, stream: Id, drawn: &[Delivery], lock: Duration) {
        let mut table = self.0.lock();
        let Table { streams, messages } = &mut *table;
        let Some(found) = streams.get_mut(&stream) else { return };
        for delivery in drawn {
            let name = (delivery.id, delivery.lock);
            found.locks.insert(name, Instant::now() + lock);
            messages.insert(name, stream);
        }
    }

    /// Records that a client has extended the lock of a message.
    pub(super) fn extended(&self, name: Name, lock: Duration) {
        let mut table = self.0.lock();
        let Table { streams, messages } = &mut *table;
        let stream = messages.get(&name).and_then(|stream| streams.get_mut(stream));
        if let Some(end) = stream.and_then(|stream| stream.locks.get_mut(&name)) {
            *end = Instant::now() + lock;
        }
    }

    /// Records the end of a message, and gives its stream another one.
    pub(super) fn ended(&self, store: &Store, name: Name) {
        let mut table = self.0.lock();
        let Some(id) = table.messages.remove(&name) else { return };
        let Some(stream) = table.streams.get_mut(&id) else { return };
        stream.locks.remove(&name);
        stream.granted += 1;
        let granted = stream.granted;
        drop(table);
        store.grant(id, granted);
    }

    /// Ends the messages of a stream whose locks have expired.
    pub(super) fn expire(&self, store: &Store, stream: Id) {
        let now = Instant::now();
        let table = self.0.lock();
        let Some(found) = table.streams.get(&stream) else { return };
        let late = found.locks.iter().filter(|(_, end)| **end <= now);
        let late: Vec<Name> = late.map(|(name, _)| *name).collect();
        drop(table);
        late.into_iter().for_each(|name| self.ended(store, name));
    }
}
