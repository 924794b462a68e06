//! Watches: a commit marks those of its keys; a read answers them with entries.
//!
//! A caller pulls a watch: each call of `next` gets one state, so a slow caller costs nothing and
//! sees the newest state when it calls again. A commit only marks the watch. A read then compares
//! versionstamps to decide whether a visible entry changed: on the writer thread after a commit of
//! this process, otherwise on the reader thread.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;

use super::Store;
use super::external::{Callbacks, External};
use super::health::{Health, Tries, may_pass};
use super::read::{ReadJob, ReadThreads, Room};
use super::write_queue::WriteQueue;
use openkv_core::model::{
    EncodedValue, Entry, Env, Error, Id, Key, Needs, Result, Versionstamp, WatchReply,
};
use openkv_engines::{ExternalCommits, Snapshot};

impl Store {
    /// Starts a watch of keys. It answers only calls of [`Store::watch_next`]. `room` bounds a
    /// state; one without room is an error, after which the caller may ask again.
    pub fn watch(&self, keys: Vec<Key>, raw: bool, room: Option<Arc<dyn Room>>) -> Id {
        self.watches.add(keys, raw, room)
    }

    /// Asks for the state of a watch: first the current one, then the next that differs. The reply
    /// gets `None` when the watch is cancelled. A second call drops the first reply unanswered.
    pub fn watch_next(&self, id: Id, reply: WatchReply) {
        self.watches.next(id, reply);
    }

    /// Whether a watch has not ended.
    pub fn has_watch(&self, id: Id) -> bool {
        self.watches.registry.lock().watches.contains_key(&id)
    }

    /// Fails all calls for the next state of a watch and the next batch of a feed from now on: no change
    /// arrives any more.
    pub fn fail_streams(&self, error: &Error) {
        self.watches.fail(error);
        self.feeds.fail(error);
    }

    /// Ends a watch. A waiting reply gets `None`.
    pub fn watch_cancel(&self, id: Id) {
        self.watches.cancel(id);
    }
}

/// All watches of a store.
pub(super) struct Watches {
    registry: Mutex<Registry>,
    reads: Arc<ReadThreads>,
    env: Arc<dyn Env>,
    external: Arc<External>,
    health: Arc<Health>,
    myself: Weak<Watches>,
}

#[derive(Default)]
struct Registry {
    next_id: Id,
    watches: HashMap<Id, Watch>,
    /// The watches of each key.
    by_key: HashMap<Key, Vec<Id>>,
    /// Why no change arrives any more.
    failure: Option<Error>,
}

struct Watch {
    keys: Arc<[Key]>,
    raw: bool,
    /// The bound of a state, if there is one.
    room: Option<Arc<dyn Room>>,
    /// Versionstamps of the last answer; `None` before the first.
    last: Option<Vec<Option<Versionstamp>>>,
    state: State,
    /// A commit may have happened since the last read began.
    dirty: bool,
    /// This process wrote one of the keys since the last read began. A raw watch reports that even
    /// if no entry changed.
    touched: bool,
    /// Consecutive failed reads.
    tries: Tries,
    /// Number of the last read that was started.
    looks: u64,
}

enum State {
    /// No call waits.
    Idle,
    /// A call waits for a new state.
    Waiting(WatchReply),
    /// A read is running.
    Reading,
}

impl Watches {
    pub(super) fn new(
        reads: Arc<ReadThreads>,
        env: Arc<dyn Env>,
        health: Arc<Health>,
        callbacks: impl FnOnce(Weak<Self>) -> Callbacks,
    ) -> Arc<Self> {
        Arc::new_cyclic(|myself| {
            let callbacks = callbacks(myself.clone());
            Self {
                registry: Mutex::default(),
                external: External::new(reads.clone(), env.clone(), health.clone(), callbacks),
                reads,
                env,
                health,
                myself: myself.clone(),
            }
        })
    }

    /// The detection of external commits.
    pub(super) fn external(&self) -> &External {
        &self.external
    }

    pub(super) fn add(&self, keys: Vec<Key>, raw: bool, room: Option<Arc<dyn Room>>) -> Id {
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
                room,
                last: None,
                state: State::Idle,
                dirty: true,
                touched: false,
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
        let failure = registry.failure.clone();
        let Some(watch) = registry.watches.get_mut(&id) else {
            drop(registry);
            reply(Ok(None));
            return;
        };
        if let Some(error) = failure {
            drop(registry);
            return reply(Err(error));
        }
        watch.state = State::Waiting(reply);
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
                    ids.retain(|other| *other != id);
                    if ids.is_empty() {
                        registry.by_key.remove(key);
                    }
                }
            }
            removed
        };
        if let Some(mut watch) = removed {
            self.external.release();
            self.health.stream_works(&mut watch.tries);
            if let State::Waiting(reply) = watch.state {
                reply(Ok(None));
            }
        }
    }

    /// Announces commits that wrote these keys. Returns the reads for waiting calls. The caller runs them, because the writer thread is awake and
    /// the reader thread would have to be woken.
    pub(super) fn announce(&self, touched: &[Key]) -> Vec<ReadJob> {
        self.mark(touched, true)
    }

    /// Announces commits of other processes.
    pub(super) fn announce_external(&self, commits: &ExternalCommits) {
        match commits {
            ExternalCommits::Unknown => self.wake_all(),
            ExternalCommits::Known { keys, .. } => self.send_all(self.mark(keys, false)),
            ExternalCommits::Lost(error) => self.fail(error),
        }
    }

    /// `own`: this process wrote the keys.
    fn mark(&self, touched: &[Key], own: bool) -> Vec<ReadJob> {
        let mut registry = self.registry.lock();
        let Registry { watches, by_key, .. } = &mut *registry;
        if by_key.is_empty() {
            return Vec::new();
        }
        let mut marked = Vec::new();
        for id in touched.iter().filter_map(|key| by_key.get(key)).flatten() {
            if let Some(watch) = watches.get_mut(id) {
                watch.dirty = true;
                watch.touched |= own;
                marked.push(*id);
            }
        }
        // Reads start after all keys are marked: a read of a part of a commit would show a state
        // that never existed.
        marked.dedup();
        let look = |id: Id| watches.get_mut(&id).and_then(|watch| self.look(id, watch));
        marked.into_iter().filter_map(look).collect()
    }

    /// Announces that any key may have changed.
    fn wake_all(&self) {
        let mut looks = Vec::new();
        for (id, watch) in &mut self.registry.lock().watches {
            watch.dirty = true;
            looks.extend(self.look(*id, watch));
        }
        for look in looks {
            self.send(Some(look));
        }
    }

    /// Ends all watches.
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

    /// Fails all waiting calls: changes cannot be detected.
    pub(super) fn refuse_all(&self, error: &Error) {
        let mut replies = Vec::new();
        for watch in self.registry.lock().watches.values_mut() {
            match std::mem::replace(&mut watch.state, State::Idle) {
                State::Waiting(reply) => {
                    watch.dirty = true;
                    replies.push(reply);
                }
                other => watch.state = other,
            }
        }
        replies.into_iter().for_each(|reply| reply(Err(error.clone())));
    }

    /// As [`Self::refuse_all`], for good.
    pub(super) fn fail(&self, error: &Error) {
        self.registry.lock().failure = Some(error.clone());
        self.refuse_all(error);
    }

    /// Ends the listeners of this process, because messages cannot be detected.
    pub(super) fn refuse_consumers(&self, writes: &WriteQueue, error: &Error) {
        let ended = writes.refuse_consumers(error);
        (0..ended).for_each(|_| self.external.release());
    }

    /// Runs work on the reader thread, whose replies may end the store.
    pub(super) fn on_reader(&self, work: impl FnOnce() + Send + 'static) {
        self.reads.send(Box::new(move |_snapshot| work()));
    }

    /// Runs reads on the reader thread.
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
        self.reads.send_after(pause, again);
    }

    /// Reads a watch again after a failure, if a call still waits.
    fn look_again(&self, id: Id) {
        let look = {
            let mut registry = self.registry.lock();
            registry.watches.get_mut(&id).and_then(|watch| self.look(id, watch))
        };
        self.send(look);
    }

    /// Must not hold the registry's lock: a closed reader runs the job at once.
    fn send(&self, look: Option<ReadJob>) {
        if let Some(look) = look {
            self.reads.send(look);
        }
    }

    /// The read that answers a waiting call. The caller holds the registry's lock.
    fn look(&self, id: Id, watch: &mut Watch) -> Option<ReadJob> {
        if !matches!(watch.state, State::Waiting(_)) {
            return None;
        }
        let State::Waiting(reply) = std::mem::replace(&mut watch.state, State::Reading) else {
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
                let found = snapshot.and_then(|snapshot| read(snapshot, &keys, room.as_deref()));
                watches.looked((id, number), found, touched, reply);
            }
            None => reply(Ok(None)),
        }))
    }

    fn looked(
        &self,
        (id, number): (Id, u64),
        found: Result<Vec<Option<Entry>>>,
        touched: bool,
        reply: WatchReply,
    ) {
        let answer = {
            let mut registry = self.registry.lock();
            let failure = registry.failure.clone();
            let found = found.and_then(|found| failure.map_or(Ok(found), Err));
            let watch = registry.watches.get_mut(&id);
            match (watch, found) {
                (None, _) => Ok(None),
                // Called again meanwhile: this read's result belongs to the newer call.
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
                    // The state is not reported yet.
                    watch.dirty = true;
                    watch.touched |= touched;
                    // The caller of a watch with bounded room asks again itself.
                    if may_pass(&error) && watch.room.is_none() {
                        let now_ms = self.env.now_ms();
                        if let Some(pause) =
                            self.health.stream_failed(&mut watch.tries, &error, now_ms)
                        {
                            watch.state = State::Waiting(reply);
                            drop(registry);
                            self.later(id, pause);
                            return;
                        }
                    }
                    watch.state = State::Idle;
                    Err(error)
                }
                (Some(watch), Ok(entries)) => {
                    self.health.stream_works(&mut watch.tries);
                    let stamps: Vec<_> =
                        entries.iter().map(|e| e.as_ref().map(|e| e.stamp)).collect();
                    let has_changed = touched || watch.last.as_ref() != Some(&stamps);
                    if !has_changed {
                        watch.state = State::Waiting(reply);
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

/// The entries of the keys, within the room.
fn read(
    snapshot: &mut dyn Snapshot,
    keys: &[Key],
    room: Option<&dyn Room>,
) -> Result<Vec<Option<Entry>>> {
    snapshot.prefetch(Needs { keys, ..Needs::default() })?;
    let (mut entries, mut bytes) = (Vec::with_capacity(keys.len()), 0);
    for key in keys {
        let mut found = None;
        snapshot.get(key.as_bytes(), &mut |row| {
            let value = EncodedValue { encoding: row.encoding, bytes: row.value.to_vec() };
            bytes += value.bytes.len();
            found = Some(Entry { stamp: row.stamp, value });
        })?;
        room.map_or(Ok(()), |room| room.holds(bytes))?;
        entries.push(found);
    }
    Ok(entries)
}
