//! A database of a handle: a store of this process, the client of a server, a replica with its primary, or a store that
//! reads with the client of its leader.
//!
//! Duty: one method for each request of a handle, and the choice among the four.
//! Invariant: reads inside a turn go through the store's own lane, so they pay nothing for the choice.
//! Never: a decision about a read, a write or a message.

mod backup;
mod pages;
mod replica;
mod requests;

use std::sync::{Arc, Weak};

use crate::remote;
use openkv_core::model::{
    Capabilities, Capability, ConsumeOptions, Deliver, Error, FeedReply, Id, Key, KeyRange,
    ListenerEnd, LockLost, Outcome, Reason, Receive, Result, Versionstamp, WatchReply,
};
use openkv_engines::{GoesOn, Reader, Snapshot};
use openkv_store::metrics::Metrics;
use openkv_store::{ParkedLane, Store};

pub use replica::{Gate, Replica};
use replica::{Part, part_of};
pub use requests::HandleOptions;

/// An open database.
#[derive(Clone)]
pub enum Database {
    /// In this process: a file, or memory.
    Store(Arc<Store>),
    /// Behind a URL.
    Remote(Arc<remote::Client>),
    /// Behind a URL or on a PostgreSQL server, with a local copy.
    Replica(Arc<Replica>),
    /// In an object store, where a server leads it.
    Led(Arc<Led>),
}

/// A store that follows a database in an object store, and the server that leads it. The store reads: its strong reads see
/// every commit that was answered before. Everything that writes goes to the server.
pub struct Led {
    pub(crate) store: Arc<Store>,
    pub(crate) leader: Arc<remote::Client>,
}

/// Calls the method of this name of the store or of the client.
macro_rules! either {
    ($database:ident . $method:ident ( $($argument:expr),* )) => {
        match $database {
            Self::Store(store) => store.$method($($argument),*),
            Self::Remote(client) => client.$method($($argument),*),
            Self::Replica(replica) => replica.primary.$method($($argument),*),
            Self::Led(led) => led.leader.$method($($argument),*),
        }
    };
}

/// Calls the method of this name of the database to which a watch or a feed belongs.
macro_rules! by_part {
    ($database:ident . $method:ident ( $id:ident $(, $argument:expr)* )) => {
        match $database {
            Self::Store(store) => store.$method($id $(, $argument)*),
            Self::Remote(client) => client.$method($id $(, $argument)*),
            Self::Replica(replica) => match part_of($id) {
                Part::Local(id) => replica.copy.store().$method(id $(, $argument)*),
                Part::Server(id) => replica.primary.$method(id $(, $argument)*),
            },
            Self::Led(led) => led.store.$method($id $(, $argument)*),
        }
    };
}

impl Database {
    /// The capabilities of the database.
    pub fn capabilities(&self) -> Capabilities {
        match self {
            Self::Store(store) => store.capabilities(),
            Self::Remote(_) => Capabilities::REMOTE,
            Self::Replica(_) => Replica::capabilities(),
            Self::Led(led) => led.store.capabilities(),
        }
    }

    /// Reads on the caller's own thread. They never wait for a network, so a database without
    /// [`Capability::SynchronousReads`] refuses each of them with `Unavailable`.
    pub fn lane(&self) -> Box<dyn Reader> {
        match self {
            Self::Store(store) if store.capabilities().has(Capability::SynchronousReads) => {
                store.lane()
            }
            Self::Replica(replica) => replica.copy.store().lane(),
            Self::Led(led) => Self::Store(led.store.clone()).lane(),
            Self::Store(_) | Self::Remote(_) => Box::new(NoSyncReads),
        }
    }

    /// The gate for reads of a handle on [`Database::lane`]; `None`: all are admitted.
    pub fn gate(&self, options: &HandleOptions) -> Option<Gate> {
        match self {
            Self::Replica(replica) => Some(replica.gate(&options.seen)),
            Self::Store(_) | Self::Remote(_) | Self::Led(_) => None,
        }
    }

    /// Adds the lane of a handle, whose reader [`Database::lane`] has made.
    pub fn add_lane(&self, lane: Weak<dyn ParkedLane>) {
        match self {
            Self::Store(store) => store.add_lane(lane),
            Self::Remote(_) => {}
            Self::Replica(replica) => replica.copy.store().add_lane(lane),
            Self::Led(led) => led.store.add_lane(lane),
        }
    }

    /// Begins to note for a handle what it has seen, if the database has a replica. Each handle has
    /// a client of its own.
    pub fn note_answers(&self, options: &HandleOptions) {
        if let Self::Replica(replica) = self {
            replica.note_answers(&options.seen);
        }
    }

    /// The counters of reads through [`Database::lane`].
    pub fn metrics(&self) -> Arc<Metrics> {
        match self {
            Self::Store(store) => store.metrics().clone(),
            // Its lane answers no read.
            Self::Remote(_) => Arc::default(),
            Self::Replica(replica) => replica.copy.store().metrics().clone(),
            Self::Led(led) => led.store.metrics().clone(),
        }
    }

    /// Sets the trace context of the requests that are sent next, if they go to a server.
    pub fn trace(&self, headers: &str) {
        match self {
            Self::Store(_) => {}
            Self::Remote(client) => client.trace(headers),
            Self::Replica(replica) => replica.primary.trace(headers),
            Self::Led(led) => led.leader.trace(headers),
        }
    }

    /// The store of a database in this process.
    ///
    /// # Errors
    /// `Unsupported`, naming `what`, which a remote database does not offer.
    pub fn store(&self, what: &str) -> Result<&Arc<Store>> {
        match self {
            Self::Store(store) => Ok(store),
            Self::Remote(_) => Err(Error::unsupported(format!(
                "{what}: not over a URL, of whichever server: it needs the database in this process. \
                 Call it where the database is opened as a file or on PostgreSQL"
            ))),
            Self::Replica(replica) => replica.primary.store(what),
            Self::Led(led) => Ok(&led.store),
        }
    }

    /// A reference that does not keep a store open.
    pub fn downgrade(&self) -> WeakDatabase {
        match self {
            Self::Store(store) => WeakDatabase(Arc::downgrade(store)),
            Self::Remote(_) | Self::Led(_) => WeakDatabase::default(),
            Self::Replica(replica) => replica.primary.downgrade(),
        }
    }

    /// Starts watching keys; see [`Store::watch`].
    #[must_use]
    pub fn watch(&self, keys: Vec<Key>, raw: bool) -> Id {
        match self {
            Self::Store(store) => store.watch(keys, raw, None),
            Self::Remote(client) => client.watch(keys, raw),
            Self::Replica(replica) => replica.watch(keys, raw),
            Self::Led(led) => led.store.watch(keys, raw, None),
        }
    }

    /// Asks for the next state of a watch; see [`Store::watch_next`]. One of a replica is not older than
    /// what the handle has seen.
    pub fn watch_next(&self, id: Id, options: &HandleOptions, reply: WatchReply) {
        match self {
            Self::Store(store) => store.watch_next(id, reply),
            Self::Remote(client) => client.watch_next(id, reply),
            Self::Replica(replica) => replica.watch_next(id, options, reply),
            Self::Led(led) => led.store.watch_next(id, reply),
        }
    }

    /// Ends a watch; a reply that waits gets `None`.
    pub fn watch_cancel(&self, id: Id) {
        by_part!(self.watch_cancel(id))
    }

    /// Follows the changes of a range; see [`Store::feed`] and [`remote::Client::feed`].
    #[must_use]
    pub fn feed(
        &self,
        range: KeyRange,
        since: Option<Versionstamp>,
        options: &HandleOptions,
    ) -> Id {
        match self {
            Self::Store(store) => {
                let since = since.map(Versionstamp::version);
                store.feed(range, since, None, options.busy, Box::new(drop))
            }
            Self::Remote(client) => client.feed(range, since),
            Self::Replica(replica) => replica.feed(range, since, options),
            Self::Led(led) => Self::Store(led.store.clone()).feed(range, since, options),
        }
    }

    /// Asks for the next changes of a feed; see [`Store::feed_next`].
    pub fn feed_next(&self, id: Id, options: &HandleOptions, reply: FeedReply) {
        match self {
            Self::Store(store) => store.feed_next(id, reply),
            Self::Remote(client) => client.feed_next(id, reply),
            Self::Replica(replica) => replica.feed_next(id, options, reply),
            Self::Led(led) => led.store.feed_next(id, reply),
        }
    }

    /// Ends a feed; a reply that waits gets `None`.
    pub fn feed_cancel(&self, id: Id) {
        by_part!(self.feed_cancel(id))
    }

    /// Becomes a consumer of a queue that handles up to `credits` messages at a time. `end` is called
    /// when the listener ends by itself, and for a remote database also when it was ended and the
    /// server has heard of everything that was settled.
    pub fn listen(
        &self,
        options: ConsumeOptions,
        credits: u32,
        deliver: Deliver,
        end: ListenerEnd,
    ) -> Result<Id> {
        match self {
            Self::Store(store) => {
                let lost = Box::new(move |error| end(Err(error)));
                store.listen(options, credits as usize, deliver, lost)
            }
            Self::Remote(client) => Ok(client.listen(options, credits, deliver, end)),
            Self::Replica(replica) => replica.primary.listen(options, credits, deliver, end),
            Self::Led(led) => Ok(led.leader.listen(options, credits, deliver, end)),
        }
    }

    /// Stops consuming. What is being handled keeps its lock until it is settled.
    pub fn stop_listening(&self, listener: Id) {
        either!(self.stop_listening(listener))
    }

    /// Ends a listener whose handlers are not waited for: the locks of their messages are renewed no more.
    pub fn unlisten(&self, listener: Id) {
        either!(self.unlisten(listener))
    }

    /// Ends a delivery to a listener.
    pub fn settle(&self, listener: Id, number: i64, outcome: Outcome, reason: Option<Reason>) {
        either!(self.settle(listener, number, outcome, reason))
    }

    /// Sets the receiver of locks that a listener loses; see [`Store::on_lock_lost`].
    pub fn on_lock_lost(&self, listener: Id, on_lost: LockLost) {
        either!(self.on_lock_lost(listener, on_lost))
    }

    /// Ends a delivery that a commit has acknowledged.
    pub fn release(&self, listener: Id, number: i64) {
        either!(self.release(listener, number))
    }

    /// A number for [`Database::receive`].
    #[must_use]
    pub fn new_receiver(&self) -> Id {
        either!(self.new_receiver())
    }

    /// Asks for one message; see [`Store::receive`].
    pub fn receive(&self, id: Id, options: ConsumeOptions, once: bool, reply: Receive) {
        either!(self.receive(id, options, once, reply))
    }

    /// Waits no longer for a message: a reply that waits gets `None`.
    pub fn receive_cancel(&self, id: Id) {
        either!(self.receive_cancel(id))
    }

    /// Ends the consumers of a handle that closes. Answers whether the listeners have ended: those of
    /// a remote database end one by one, when the server has heard of everything that was settled.
    #[must_use]
    pub fn end_consumers(
        &self,
        listeners: impl Iterator<Item = Id>,
        receivers: impl Iterator<Item = Id>,
    ) -> bool {
        match self {
            Self::Store(store) => {
                listeners.for_each(|listener| store.unlisten(listener));
                receivers.for_each(|receiver| store.receive_cancel(receiver));
                true
            }
            Self::Remote(client) => {
                client.close_consumers();
                false
            }
            Self::Replica(replica) => replica.primary.end_consumers(listeners, receivers),
            Self::Led(led) => {
                led.leader.close_consumers();
                false
            }
        }
    }
}

/// A store that other references keep open. Messages that a closed handle was delivered are settled
/// through it.
#[derive(Default)]
pub struct WeakDatabase(Weak<Store>);

impl WeakDatabase {
    /// The database, if it is still open.
    pub fn upgrade(&self) -> Option<Database> {
        self.0.upgrade().map(Database::Store)
    }
}

/// The lane of a database behind a network: an answer is never at hand.
struct NoSyncReads;

impl Reader for NoSyncReads {
    fn read_within(
        &mut self,
        _now_ms: i64,
        _goes_on: Option<&GoesOn>,
        _job: &mut dyn FnMut(&mut dyn Snapshot) -> Result<()>,
    ) -> Result<()> {
        Err(Error::unavailable("the database is behind a network"))
    }
}
