//! The consumers of a handle: its listeners, and its pending calls of `receive`.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::events::{Event, Events};
use crate::database::Database;
use crate::model::{Error, Id};

/// The consumers, by the ids of JavaScript.
#[derive(Default)]
pub(super) struct Consumers {
    pub(super) listeners: HashMap<u64, (Id, Arc<Ended>)>,
    pub(super) receivers: Arc<Mutex<HashMap<u64, Id>>>,
}

/// Whether LISTEN_END has been sent. No DELIVERY may follow it: JavaScript would not settle it.
#[derive(Default)]
pub(super) struct Ended(Mutex<bool>);

impl Ended {
    /// Held while a DELIVERY is sent.
    pub(super) fn lock(&self) -> MutexGuard<'_, bool> {
        self.0.lock()
    }

    pub(super) fn end(&self, events: &Events, id: f64, why: Result<(), Error>) {
        let mut ended = self.0.lock();
        if std::mem::replace(&mut *ended, true) {
            return;
        }
        match why {
            Ok(()) => events.send(Event::ListenEnd, id, None),
            Err(error) => events.send_error(Event::ListenEnd, id, &error),
        }
    }
}

impl Consumers {
    /// Ends all consumers: LISTEN_END for listeners, the error of a closed handle for receivers.
    /// Messages in handlers of a local database may still be settled. For a remote one, LISTEN_END
    /// follows once the server has all settlements.
    pub(super) fn close(&self, events: &Events, database: &Database) {
        let receivers: Vec<Id> = self.receivers.lock().drain().map(|(_, id)| id).collect();
        let listeners = self.listeners.values().map(|(listener, _)| *listener);
        if !database.end_consumers(listeners, receivers.into_iter()) {
            return;
        }
        for (id, (_, ended)) in &self.listeners {
            ended.end(events, *id as f64, Ok(()));
        }
    }
}
