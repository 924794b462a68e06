//! Watches and feeds of a handle with a replica.
//!
//! Invariant: no state or change that the replica delivers is from before something that the handle had seen
//! when it requested it, and a feed begins after what the handle had seen.

use std::sync::{Arc, Weak};

use super::Replica;
use crate::database::HandleOptions;
use crate::replica::{LocalCopy, Seen, covers};
use openkv_core::model::{FeedReply, Id, Key, KeyRange, Kind, Result, Versionstamp, WatchReply};
use openkv_store::Store;

/// The mark of a feed or a watch of the server.
const OF_SERVER: u64 = 1 << 63;

/// The database that an id of a watch or a feed belongs to.
pub(in crate::database) enum Part {
    Local(u64),
    Server(u64),
}

pub(in crate::database) fn part_of(id: u64) -> Part {
    if id & OF_SERVER == 0 { Part::Local(id) } else { Part::Server(id & !OF_SERVER) }
}

fn of_server(id: u64) -> u64 {
    id | OF_SERVER
}

/// Whether a stream of a store has not ended.
type IsOpen = fn(&Store, Id) -> bool;

impl Replica {
    /// Whether a stream about these keys is served by the replica.
    fn streams(&self, start: &[u8], end: &[u8]) -> bool {
        self.copy.is_usable() && covers(self.copy.prefixes(), start, end)
    }

    pub(in crate::database) fn watch(&self, keys: Vec<Key>, raw: bool) -> Id {
        match keys.iter().all(|key| self.streams(key.as_bytes(), key.as_bytes())) {
            true => self.copy.store().watch(keys, raw, None),
            false => of_server(self.primary.watch(keys, raw)),
        }
    }

    pub(in crate::database) fn watch_next(
        &self,
        id: Id,
        options: &HandleOptions,
        reply: WatchReply,
    ) {
        match part_of(id) {
            Part::Server(id) => self.primary.watch_next(id, options, reply),
            Part::Local(id) => {
                self.once_caught_up(
                    id,
                    &options.seen,
                    Store::has_watch,
                    move |store| match store {
                        Ok(Some(store)) => store.watch_next(id, reply),
                        Ok(None) => reply(Ok(None)),
                        Err(error) => reply(Err(error)),
                    },
                );
            }
        }
    }

    /// A feed from now on begins after what the handle has seen, which the replica may not have yet.
    pub(in crate::database) fn feed(
        &self,
        range: KeyRange,
        since: Option<Versionstamp>,
        options: &HandleOptions,
    ) -> Id {
        // In this order: a copy is usable only after its beginning is known.
        let here = self.streams(range.start.as_bytes(), range.end.as_bytes())
            && since.is_none_or(|since| self.copy.may_reach(since.version()));
        if !here {
            return of_server(self.primary.feed(range, since, options));
        }
        let since = since.map(Versionstamp::version).or_else(|| self.copy.missing(&options.seen));
        self.copy.store().feed(range, since, None, options.busy, Box::new(drop))
    }

    pub(in crate::database) fn feed_next(&self, id: Id, options: &HandleOptions, reply: FeedReply) {
        match part_of(id) {
            Part::Server(id) => self.primary.feed_next(id, options, reply),
            Part::Local(id) => {
                self.once_caught_up(id, &options.seen, Store::has_feed, move |store| match store {
                    Ok(Some(store)) => store.feed_next(id, reply),
                    Ok(None) => reply(Ok(None)),
                    Err(error) => reply(Err(error)),
                });
            }
        }
    }

    /// Calls `then` with the store once it has what the handle has seen; with `None` if the stream has ended.
    fn once_caught_up(
        &self,
        id: Id,
        seen: &Arc<Seen>,
        is_open: IsOpen,
        then: impl FnOnce(Result<Option<&Store>>) + Send + 'static,
    ) {
        let copy = Arc::downgrade(&self.copy);
        let waiting = copy.clone();
        let wanted = move || with_store(&waiting, |store| is_open(store, id)).unwrap_or(false);
        self.copy.caught_up(seen, wanted, move |arrived| match arrived {
            Ok(()) => match copy.upgrade() {
                Some(copy) => then(Ok(Some(copy.store()))),
                None => then(Ok(None)),
            },
            Err(error) if error.kind() == Kind::Closed => then(Ok(None)),
            Err(error) => then(Err(error)),
        });
    }
}

fn with_store<T>(copy: &Weak<LocalCopy>, ask: impl FnOnce(&Store) -> T) -> Option<T> {
    copy.upgrade().map(|copy| ask(copy.store()))
}
