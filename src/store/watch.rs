//! Watches: told of commits by key, answered with entries.
//!
//! A watch is pulled: it answers one state for each call of `next`, so a slow reader costs nothing
//! and sees the newest state when it comes back. A commit only marks it; whether anything visible
//! changed is decided by reading and comparing stamps, on the writer thread after a commit of our
//! own, else on the reader thread. A watch of many keys keeps what it has read, so that a commit that
//! touched one of them is one read.

mod known;

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::Id;
use super::external::{External, Means};
use super::health::{Health, Part, Tries, may_pass};
use super::inbox::Inbox;
use super::read::{ReadJob, Reads, Room};
use crate::engine::Snapshot;
use crate::model::{EncodedValue, Env, Error, Key, Result, Versionstamp};
use known::{Changed, Known, Span};

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

/// All watches of a store.
pub(super) struct Watches {
    registry: Mutex<Registry>,
    reads: Reads,
    env: Arc<dyn Env>,
    external: Arc<External>,
    health: Arc<Health>,
    myself: Weak<Watches>,
}

#[derive(Default)]
struct Registry {
    next_id: Id,
    watches: HashMap<Id, Watch>,
    /// The watches of each key, and which of their keys it is.
    by_key: HashMap<Key, Vec<(Id, usize)>>,
    /// The commits that were announced one after the other, with nobody else's between them.
    announced: Span,
}

struct Watch {
    keys: Arc<[Key]>,
    raw: bool,
    /// How long a state may get, if that is bounded.
    room: Option<Arc<dyn Room>>,
    /// Stamps of the last answer; `None` before the first.
    last: Option<Vec<Option<Versionstamp>>>,
    state: State,
    /// Something may have happened since the last read began.
    dirty: bool,
    /// One of its keys was written by this process since the last read began: news for a raw watch,
    /// whatever there is to see.
    touched: bool,
    /// Which of its keys were written by this process since the last read began.
    changed: Changed,
    /// What the last read has found, if it is worth keeping and nobody is looking.
    known: Option<Known>,
    /// Looks on end that have failed.
    tries: Tries,
    /// Number of the last look that was begun.
    looks: u64,
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
        health: Arc<Health>,
        means: impl FnOnce(Weak<Self>) -> Means,
    ) -> Arc<Self> {
        Arc::new_cyclic(|myself| {
            let means = means(myself.clone());
            Self {
                registry: Mutex::default(),
                external: External::new(reads.clone(), env.clone(), health.clone(), means),
                reads,
                env,
                health,
                myself: myself.clone(),
            }
        })
    }

    /// What notices other processes' commits.
    pub(super) fn external(&self) -> &External {
        &self.external
    }

    pub(super) fn add(&self, keys: Vec<Key>, raw: bool, room: Option<Arc<dyn Room>>) -> Id {
        let id = {
            let mut registry = self.registry.lock();
            registry.next_id += 1;
            let id = registry.next_id;
            for (at, key) in keys.iter().enumerate() {
                registry.by_key.entry(key.clone()).or_default().push((id, at));
            }
            let watch = Watch {
                keys: keys.into(),
                raw,
                room,
                last: None,
                state: State::Idle,
                dirty: true,
                touched: false,
                changed: Changed::default(),
                known: None,
                tries: Tries::default(),
                looks: 0,
            };
            registry.watches.insert(id, watch);
            id
        };
        self.external.hold();
        id
    }

    pub(super) fn len(&self) -> usize {
        self.registry.lock().watches.len()
    }

    pub(super) fn next(&self, id: Id, reply: WatchReply) {
        let mut registry = self.registry.lock();
        let Some(watch) = registry.watches.get_mut(&id) else {
            drop(registry);
            reply(Ok(None));
            return;
        };
        watch.state = State::Asked(reply);
        let look = if watch.dirty { self.look(id, watch) } else { None };
        drop(registry);
        self.send(look);
    }

    pub(super) fn cancel(&self, id: Id) {
        let removed = {
            let mut registry = self.registry.lock();
            let removed = registry.watches.remove(&id);
            for key in removed.iter().flat_map(|watch| watch.keys.iter()) {
                if let Some(ids) = registry.by_key.get_mut(key) {
                    ids.retain(|(other, _)| *other != id);
                    if ids.is_empty() {
                        registry.by_key.remove(key);
                    }
                }
            }
            removed
        };
        if let Some(watch) = removed {
            self.external.release();
            if watch.tries.have_failed() {
                self.health.works(Part::Streams);
            }
            if let State::Asked(reply) = watch.state {
                reply(Ok(None));
            }
        }
    }

    /// Tells the watches of these keys that something was committed, by the commits from the one
    /// after `versions.0` to `versions.1`. Answers the looks that those who wait now need, to be taken
    /// by the caller: the writer thread is awake, the reader's would have to be woken.
    pub(super) fn announce(&self, touched: &[Key], versions: (u64, u64)) -> Vec<ReadJob> {
        let mut registry = self.registry.lock();
        registry.announced.add(versions);
        let Registry { watches, by_key, .. } = &mut *registry;
        if by_key.is_empty() {
            return Vec::new();
        }
        let mut told = Vec::new();
        for (id, at) in touched.iter().filter_map(|key| by_key.get(key)).flatten() {
            if let Some(watch) = watches.get_mut(id) {
                watch.dirty = true;
                watch.touched = true;
                watch.changed.add(*at, versions.1, watch.keys.len());
                told.push(*id);
            }
        }
        // Only when all is noted: a look at a part of a commit would show what never was.
        told.dedup();
        let look = |id: Id| watches.get_mut(&id).and_then(|watch| self.look(id, watch));
        told.into_iter().filter_map(look).collect()
    }

    /// Tells all watches that anything may have been committed.
    pub(super) fn wake_all(&self) {
        let mut looks = Vec::new();
        for (id, watch) in &mut self.registry.lock().watches {
            watch.dirty = true;
            looks.extend(self.look(*id, watch));
        }
        for look in looks {
            self.send(Some(look));
        }
    }

    /// Ends everything.
    pub(super) fn close(&self) {
        let ids: Vec<Id> = {
            let registry = self.registry.lock();
            registry.watches.keys().copied().collect()
        };
        for id in ids {
            self.cancel(id);
        }
        self.external.close();
    }

    /// Nobody can know whether there is news: whoever waits for it is told.
    pub(super) fn refuse_all(&self, error: &Error) {
        let mut told = Vec::new();
        for watch in self.registry.lock().watches.values_mut() {
            match std::mem::replace(&mut watch.state, State::Idle) {
                State::Asked(reply) => {
                    watch.dirty = true;
                    told.push(reply);
                }
                other => watch.state = other,
            }
        }
        told.into_iter().for_each(|reply| reply(Err(error.clone())));
    }

    /// Ends the listeners of this process: there is no hope of messages.
    pub(super) fn refuse_listeners(&self, writes: &Inbox, error: &Error) {
        let ended = writes.refuse_listeners(error);
        (0..ended).for_each(|_| self.external.release());
    }

    /// Has looks taken on the reader thread.
    pub(super) fn send_all(&self, looks: Vec<ReadJob>) {
        for look in looks {
            self.send(Some(look));
        }
    }

    fn later(&self, id: Id, pause: Duration) {
        let myself = self.myself.clone();
        let again = Box::new(move |_snapshot: Result<&mut dyn Snapshot>| {
            if let Some(watches) = myself.upgrade() {
                watches.look_again(id);
            }
        });
        self.reads.send_after(pause, self.env.clone(), again);
    }

    /// Another look at a watch whose last one has failed, if it is still asked.
    fn look_again(&self, id: Id) {
        let look = {
            let mut registry = self.registry.lock();
            registry.watches.get_mut(&id).and_then(|watch| self.look(id, watch))
        };
        self.send(look);
    }

    /// Never under the registry's lock: a closed reader runs what it gets at once.
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
        watch.looks += 1;
        let number = watch.looks;
        let touched = watch.raw && std::mem::take(&mut watch.touched);
        let (keys, myself) = (watch.keys.clone(), self.myself.clone());
        let room = watch.room.clone();
        Some(Box::new(move |snapshot| match myself.upgrade() {
            Some(watches) => {
                let found = snapshot.and_then(|snapshot| {
                    let known = |version| watches.known(id, version);
                    known::read(snapshot, &keys, room.as_deref(), known)
                });
                watches.looked((id, number), found, touched, reply);
            }
            None => reply(Ok(None)),
        }))
    }

    /// What a watch still knows of its entries in a snapshot of that commit, and the places of those
    /// that it has to read again.
    fn known(&self, id: Id, version: u64) -> Option<(Known, Vec<usize>)> {
        let mut registry = self.registry.lock();
        let announced = registry.announced;
        let watch = registry.watches.get_mut(&id)?;
        // Gone whatever comes of it: a read that fails leaves nothing to build on.
        let known = watch.known.take();
        let changed = watch.changed.up_to(version)?;
        let known = known?;
        known.holds(version, announced, self.env.now_ms()).then_some((known, changed))
    }

    fn looked(
        &self,
        (id, number): (Id, u64),
        found: Result<(Vec<Option<Entry>>, Option<Known>)>,
        touched: bool,
        reply: WatchReply,
    ) {
        let answer = {
            let mut registry = self.registry.lock();
            let watch = registry.watches.get_mut(&id);
            match (watch, found) {
                (None, _) => Ok(None),
                // Asked again meanwhile: what this look found is for the newer question.
                (Some(watch), _)
                    if watch.looks != number || !matches!(watch.state, State::Reading) =>
                {
                    watch.dirty = true;
                    watch.touched |= touched;
                    let look = self.look(id, watch);
                    drop(registry);
                    self.send(look);
                    return;
                }
                (Some(watch), Err(error)) => {
                    // What could not be read is still to be told.
                    watch.dirty = true;
                    watch.touched |= touched;
                    // Who bounds the room for an answer asks again by itself.
                    if may_pass(&error) && watch.room.is_none() {
                        let now = Instant::now();
                        self.health.failed(Part::Streams, &error, self.env.now_ms());
                        let pause = watch.tries.failed(now);
                        if !watch.tries.is_lost(now) {
                            watch.state = State::Asked(reply);
                            drop(registry);
                            self.later(id, pause);
                            return;
                        }
                        // Its caller is told.
                        watch.tries = Tries::default();
                        self.health.works(Part::Streams);
                    }
                    watch.state = State::Idle;
                    Err(error)
                }
                (Some(watch), Ok((entries, known))) => {
                    if watch.tries.have_failed() {
                        watch.tries = Tries::default();
                        self.health.works(Part::Streams);
                    }
                    watch.known = known;
                    let stamps: Vec<_> =
                        entries.iter().map(|e| e.as_ref().map(|e| e.stamp)).collect();
                    let news = touched || watch.last.as_ref() != Some(&stamps);
                    if !news {
                        watch.state = State::Asked(reply);
                        let look = if watch.dirty { self.look(id, watch) } else { None };
                        drop(registry);
                        self.send(look);
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
