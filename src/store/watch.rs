//! Watches: told of commits by key, answered with entries.
//!
//! A watch is pulled: it answers one state for each call of `next`, so a slow reader costs nothing
//! and sees the newest state when it comes back. A commit only marks it; whether anything visible
//! changed is decided by reading and comparing stamps, on the writer thread after a commit of our
//! own, else on the reader thread.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::Id;
use super::read::{ReadJob, Reads};
use crate::engine::{ForeignWatch, Snapshot};
use crate::model::{EncodedValue, Env, Key, Result, Versionstamp};

/// An entry of a watched key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Stamp of the commit that wrote it.
    pub stamp: Versionstamp,
    /// Its value.
    pub value: EncodedValue,
}

/// Gets the entries of the watched keys, all of one snapshot; `None` when the watch has ended.
pub type WatchReply = Box<dyn FnOnce(Result<Option<Vec<Option<Entry>>>>) + Send>;

type StartForeign = Box<dyn Fn(Weak<Watches>) -> Result<Option<ForeignWatch>> + Send + Sync>;

/// All watches of a store.
pub(super) struct Watches {
    registry: Mutex<Registry>,
    reads: Reads,
    env: Arc<dyn Env>,
    start_foreign: StartForeign,
    myself: Weak<Watches>,
}

#[derive(Default)]
struct Registry {
    next_id: Id,
    watches: HashMap<Id, Watch>,
    by_key: HashMap<Key, Vec<Id>>,
    /// Watches and listeners that want to know of other processes.
    holders: usize,
    foreign: Option<ForeignWatch>,
    closed: bool,
}

struct Watch {
    keys: Arc<[Key]>,
    raw: bool,
    /// Stamps of the last answer; `None` before the first.
    last: Option<Vec<Option<Versionstamp>>>,
    state: State,
    /// Something may have happened since the last read began.
    dirty: bool,
    /// One of its keys was written by this process since the last read began: news for a raw watch,
    /// whatever there is to see.
    touched: bool,
}

enum State {
    /// Nobody asks.
    Idle,
    /// Asked, and nothing to say yet.
    Asked(WatchReply),
    /// Somebody is looking.
    Reading,
}

impl Watches {
    pub(super) fn new(
        reads: Reads,
        env: Arc<dyn Env>,
        start_foreign: impl Fn(Weak<Self>) -> Result<Option<ForeignWatch>> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new_cyclic(|myself| Self {
            registry: Mutex::default(),
            reads,
            env,
            start_foreign: Box::new(start_foreign),
            myself: myself.clone(),
        })
    }

    pub(super) fn add(&self, keys: Vec<Key>, raw: bool) -> Id {
        let id = {
            let mut registry = self.registry.lock();
            registry.next_id += 1;
            let id = registry.next_id;
            for key in &keys {
                registry.by_key.entry(key.clone()).or_default().push(id);
            }
            let watch = Watch {
                keys: keys.into(),
                raw,
                last: None,
                state: State::Idle,
                dirty: true,
                touched: false,
            };
            registry.watches.insert(id, watch);
            id
        };
        self.hold_foreign();
        id
    }

    pub(super) fn len(&self) -> usize {
        self.registry.lock().watches.len()
    }

    pub(super) fn next(&self, id: Id, reply: WatchReply) {
        let mut registry = self.registry.lock();
        match registry.watches.get_mut(&id) {
            Some(watch) => {
                watch.state = State::Asked(reply);
                if watch.dirty {
                    self.send(self.look(id, watch));
                }
            }
            None => {
                drop(registry);
                reply(Ok(None));
            }
        }
    }

    pub(super) fn cancel(&self, id: Id) {
        let removed = {
            let mut registry = self.registry.lock();
            let removed = registry.watches.remove(&id);
            for key in removed.iter().flat_map(|watch| watch.keys.iter()) {
                if let Some(ids) = registry.by_key.get_mut(key) {
                    ids.retain(|other| *other != id);
                    if ids.is_empty() {
                        registry.by_key.remove(key);
                    }
                }
            }
            removed
        };
        if let Some(watch) = removed {
            self.release_foreign();
            if let State::Asked(reply) = watch.state {
                reply(Ok(None));
            }
        }
    }

    /// Tells the watches of these keys that something was committed. Answers the looks that those
    /// who wait now need, to be taken by the caller: the writer thread is awake, the reader's would
    /// have to be woken.
    pub(super) fn announce(&self, touched: &[Key]) -> Vec<ReadJob> {
        let mut registry = self.registry.lock();
        let Registry { watches, by_key, .. } = &mut *registry;
        if by_key.is_empty() {
            return Vec::new();
        }
        let mut looks = Vec::new();
        for id in touched.iter().filter_map(|key| by_key.get(key)).flatten() {
            if let Some(watch) = watches.get_mut(id) {
                watch.dirty = true;
                watch.touched = true;
                looks.extend(self.look(*id, watch));
            }
        }
        looks
    }

    /// Tells all watches that anything may have been committed.
    pub(super) fn wake_all(&self) {
        for (id, watch) in &mut self.registry.lock().watches {
            watch.dirty = true;
            self.send(self.look(*id, watch));
        }
    }

    /// Ends everything.
    pub(super) fn close(&self) {
        let ids: Vec<Id> = {
            let mut registry = self.registry.lock();
            registry.closed = true;
            registry.watches.keys().copied().collect()
        };
        for id in ids {
            self.cancel(id);
        }
        let foreign = self.registry.lock().foreign.take();
        drop(foreign);
    }

    /// Somebody wants to know of other processes' commits.
    pub(super) fn hold_foreign(&self) {
        let mut registry = self.registry.lock();
        registry.holders += 1;
        if registry.holders > 1 {
            return;
        }
        drop(registry);
        // Opening a connection and a thread is the reader thread's to do, not the caller's.
        let myself = self.myself.clone();
        self.reads.send(
            self.env.clone(),
            Box::new(move |_snapshot| {
                if let Some(watches) = myself.upgrade() {
                    watches.start_foreign();
                }
            }),
        );
    }

    /// One who wanted to know no longer does.
    pub(super) fn release_foreign(&self) {
        let mut registry = self.registry.lock();
        registry.holders = registry.holders.saturating_sub(1);
        let unused = if registry.holders == 0 { registry.foreign.take() } else { None };
        drop(registry);
        if let Some(unused) = unused {
            // Ending it waits for its thread: again not the caller's to do.
            self.reads.send(self.env.clone(), Box::new(move |_snapshot| drop(unused)));
        }
    }

    fn start_foreign(&self) {
        let wanted = {
            let registry = self.registry.lock();
            registry.holders > 0 && registry.foreign.is_none() && !registry.closed
        };
        if !wanted {
            return;
        }
        match (self.start_foreign)(self.myself.clone()) {
            // Whoever asked for it reads after this, on this same thread, so there is nobody to wake
            // for what was committed meanwhile.
            Ok(foreign) => self.registry.lock().foreign = foreign,
            Err(error) => tracing::error!(%error, "watching for other processes"),
        }
    }

    fn send(&self, look: Option<ReadJob>) {
        if let Some(look) = look {
            self.reads.send(self.env.clone(), look);
        }
    }

    /// What answers a watch that was asked. The registry is locked by the caller.
    fn look(&self, id: Id, watch: &mut Watch) -> Option<ReadJob> {
        if !matches!(watch.state, State::Asked(_)) {
            return None;
        }
        let State::Asked(reply) = std::mem::replace(&mut watch.state, State::Reading) else {
            return None;
        };
        watch.dirty = false;
        let touched = watch.raw && std::mem::take(&mut watch.touched);
        let (keys, myself) = (watch.keys.clone(), self.myself.clone());
        Some(Box::new(move |snapshot| {
            let entries = snapshot.and_then(|snapshot| read(snapshot, &keys));
            match myself.upgrade() {
                Some(watches) => watches.looked(id, entries, touched, reply),
                None => reply(Ok(None)),
            }
        }))
    }

    fn looked(
        &self,
        id: Id,
        entries: Result<Vec<Option<Entry>>>,
        touched: bool,
        reply: WatchReply,
    ) {
        let answer = {
            let mut registry = self.registry.lock();
            let watch = registry.watches.get_mut(&id);
            match (watch, entries) {
                (None, _) => Ok(None),
                (Some(watch), Err(error)) => {
                    watch.state = State::Idle;
                    // What could not be read is still to be told.
                    watch.dirty = true;
                    watch.touched |= touched;
                    Err(error)
                }
                (Some(watch), Ok(entries)) => {
                    let stamps: Vec<_> =
                        entries.iter().map(|e| e.as_ref().map(|e| e.stamp)).collect();
                    let news = touched || watch.last.as_ref() != Some(&stamps);
                    if !news {
                        watch.state = State::Asked(reply);
                        if watch.dirty {
                            self.send(self.look(id, watch));
                        }
                        return;
                    }
                    watch.last = Some(stamps);
                    watch.state = State::Idle;
                    Ok(Some(entries))
                }
            }
        };
        reply(answer);
    }
}

fn read(snapshot: &mut dyn Snapshot, keys: &[Key]) -> Result<Vec<Option<Entry>>> {
    let mut entries = Vec::with_capacity(keys.len());
    for key in keys {
        let mut entry = None;
        snapshot.get(key.as_bytes(), &mut |row| {
            let value = EncodedValue { encoding: row.encoding, bytes: row.value.to_vec() };
            entry = Some(Entry { stamp: row.stamp, value });
        })?;
        entries.push(entry);
    }
    Ok(entries)
}
