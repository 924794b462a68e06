//! A handle: one open database of JavaScript.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use napi::Result;
use napi::bindgen_prelude::{Buffer, BufferSlice};
use napi_derive::napi;
use parking_lot::Mutex;

use super::attachment::{self, Attachment};
use super::calls::{CancellableCall, CancellableCalls};
use super::consumers::Consumers;
use super::events::{Event, Events, Reply};
use super::lane::{self, Code, Lane};
use super::log_options::{NativeLog, log_settings};
use super::scratch::{self, Scratch};
use crate::database::{Database, HandleOptions, WeakDatabase};
use crate::engine::Reader;
use crate::model::{
    self, Entry, Error, FOLLOW_BEAT_MS, Id, Limits, PageMemory, Row, Versionstamp, WatchReply, When,
};
use crate::open::{
    LeaderAccess, ReplicaTarget, SetClock, Target, close, open_memory, open_unless, set_open_max,
};
use crate::protocol::Command;
use crate::protocol::frame::{Answer, frame_of, parse_keys, push_lacks};
use crate::protocol::numbers::mark::EVENTUAL_CALL;
use crate::remote::Cancel;
use crate::store::Closing;

/// The options of opening.
#[napi(object)]
pub struct NativeOptions {
    /// `:memory:` or an absolute path.
    pub path: String,
    /// `full` or `normal`.
    pub durability: String,
    /// Whether writes are refused.
    pub readonly: bool,
    /// Longest wait for other processes, in ms.
    pub busy_timeout_ms: f64,
    /// How the replication log is to be kept, if the caller says so.
    pub log: Option<NativeLog>,
    /// How long replaced values are to be kept, in ms, if the caller says so; 0: not at all.
    pub history_ms: Option<f64>,
    /// The format of the file's values, `cbor` or `v8`, if requested.
    pub encoding: Option<String>,
    /// Bytes of the page cache of each connection to a file, if the caller says so.
    pub cache_bytes: Option<f64>,
    /// Bytes of a file that its readers map into memory, if the caller says so.
    pub mmap_bytes: Option<f64>,
    /// How many databases in files the process keeps open, if the caller says so.
    pub max_open: Option<f64>,
    /// How often the metrics are stored in the file, in ms, if they are.
    pub metrics_flush_ms: Option<f64>,
    /// The time of a database in memory, in ms since the epoch, if its clock is not the machine's.
    pub clock_ms: Option<f64>,
    /// Every limit by name.
    pub limits: HashMap<String, f64>,
    /// The URL of a database on PostgreSQL; `path` is then ignored.
    pub postgres: Option<String>,
    /// A database in an object store; `path` is then ignored.
    pub bucket: Option<NativeBucket>,
    /// The server of a remote database; `path` is then ignored.
    pub remote: Option<NativeRemote>,
    /// A local copy of the database behind the URL, if there is to be one.
    pub replica: Option<NativeReplica>,
}

/// A database in an object store.
#[napi(object)]
pub struct NativeBucket {
    /// Its URL, without credentials.
    pub url: String,
    /// The absolute path of the folder of its local copy, if there is to be one.
    pub cache: Option<String>,
    /// `auto`, `wait` or `never`.
    pub lead: String,
    /// Whether reads of a process that does not lead may miss the newest commits.
    pub eventual: bool,
    /// The access token of the server that leads, if writes go there.
    pub access_token: Option<String>,
    /// Longest time of a call of that server, with all its retries.
    pub timeout_ms: Option<f64>,
}

/// A remote database.
#[napi(object)]
pub struct NativeRemote {
    /// The URLs of its metadata exchange.
    pub urls: Vec<String>,
    /// The user's token.
    pub access_token: String,
    /// Longest time of a call with all its retries, in ms.
    pub timeout_ms: f64,
    /// Whether opening asks a server that does not answer again, until the timeout.
    pub retries_opening: bool,
}

/// A local copy of a remote database, or of one on PostgreSQL.
#[napi(object)]
pub struct NativeReplica {
    /// `:memory:` or an absolute path.
    pub path: String,
    /// Keys as a frame: the beginnings of the keys that it has. None: all keys.
    pub prefixes: Buffer,
    /// How many they are.
    pub prefix_count: u32,
    /// How old an eventual read may be, in ms.
    pub max_lag_ms: Option<f64>,
}

/// The local copy that the options name, and how old its reads may be.
fn replica_target(
    replica: Option<NativeReplica>,
    busy: Duration,
) -> (Option<ReplicaTarget>, Option<Duration>) {
    let Some(NativeReplica { path, prefixes, prefix_count, max_lag_ms }) = replica else {
        return (None, None);
    };
    let max_lag = max_lag_ms.map(|ms| Duration::from_millis(ms as u64));
    let usual = Duration::from_millis(FOLLOW_BEAT_MS);
    let beat = max_lag.map_or(usual, |most| usual.min(most / 4));
    let path = (path != ":memory:").then(|| path.into());
    let prefixes = parse_keys(&prefixes, prefix_count as usize).unwrap_or_default();
    (Some(ReplicaTarget { path, busy, prefixes, beat, advertised: None }), max_lag)
}

/// Transfers the database from the opening thread to the handle.
type Opened = Arc<Mutex<Option<(Database, Box<dyn Reader>)>>>;

/// A handle: its database, its lane, its watches, feeds and consumers.
#[napi]
pub struct Handle {
    pub(super) events: Events,
    /// The scratch of its lane.
    pub(super) scratch: Rc<Scratch>,
    pub(super) options: HandleOptions,
    opened: Opened,
    cancel: Cancel,
    /// The clock of the database, if it is not the machine's.
    clock: Option<Arc<SetClock>>,
    /// The database, and the number of this handle's lane.
    open: Option<(Database, usize)>,
    /// The database between the end of everything but the handlers of queues, and `close`.
    draining: Option<Database>,
    /// Settles messages after this handle is closed, while other handles keep the store open.
    settling: WeakDatabase,
    closed: bool,
    cancellable: CancellableCalls,
    watches: HashMap<u64, Id>,
    /// Feeds, or the error of opening one.
    pub(super) feeds: HashMap<u64, model::Result<Id>>,
    pub(super) consumers: Consumers,
}

pub(super) fn number(id: f64) -> u64 {
    id as u64
}

#[napi]
impl Handle {
    /// Starts opening; sends OPENED or OPEN_FAILED with this id.
    #[napi(constructor, catch_unwind)]
    #[allow(clippy::new_without_default, reason = "called from JavaScript only")]
    pub fn new(attachment: u32, id: f64, options: NativeOptions) -> Result<Self> {
        let Attachment { scratch, events } = attachment::find(attachment)?;
        let mut limits = Limits::default();
        for (name, value) in &options.limits {
            limits.set(name, *value as usize);
        }
        let busy = Duration::from_millis(options.busy_timeout_ms as u64);
        let encoding = options.encoding.map(|name| match name.as_str() {
            "v8" => model::Encoding::V8,
            _ => model::Encoding::Cbor,
        });
        let readonly = options.readonly;
        let memory = PageMemory {
            cache_bytes: options.cache_bytes.map(|bytes| bytes as u64),
            mmap_bytes: options.mmap_bytes.map(|bytes| bytes as u64),
        };
        if let Some(max) = options.max_open {
            set_open_max(max as usize);
        }
        let flush = options.metrics_flush_ms.map(|ms| Duration::from_millis(ms as u64));
        let (replica, max_lag) = replica_target(options.replica, busy);
        let target = match (options.remote, options.postgres, options.path.as_str()) {
            (Some(remote), _, _) => Target::Url {
                urls: remote.urls,
                access_token: remote.access_token,
                timeout: Duration::from_millis(remote.timeout_ms as u64),
                retries: remote.retries_opening,
                replica,
            },
            (None, Some(url), _) => {
                Target::Postgres { url: url.into(), readonly, busy, encoding, replica }
            }
            (None, None, _) if let Some(bucket) = options.bucket => Target::Bucket {
                url: bucket.url,
                cache: bucket.cache.map(Into::into),
                lead: bucket.lead,
                eventual: bucket.eventual,
                advertise: None,
                encoding,
                leader: bucket.access_token.map(|token| LeaderAccess {
                    token,
                    timeout: Duration::from_millis(bucket.timeout_ms.unwrap_or(0.) as u64),
                }),
            },
            (None, None, ":memory:") => Target::Memory,
            (None, None, path) => {
                Target::File { path: path.into(), readonly, busy, encoding, memory }
            }
        };
        let log = log_settings(options.log, options.history_ms);
        let durable = options.durability != "normal";
        let handle = HandleOptions::new(durable, busy, limits, max_lag);
        let clock = options.clock_ms.map(|ms| Arc::new(SetClock::new(ms as i64)));
        let set = clock.clone();
        let mut opening = Self::opening((events, scratch), id, handle.clone(), move |cancelled| {
            let database = match set {
                Some(clock) => open_memory(clock)?,
                None => open_unless(&target, cancelled)?,
            };
            database.note_answers(&handle);
            // A database behind a URL has no such options.
            if let Ok(store) = database.store("log") {
                store.set_log(log, busy)?;
                if let Some(interval) = flush {
                    store.keep_metrics(interval)?;
                }
            }
            Ok(database)
        });
        opening.clock = clock;
        Ok(opening)
    }

    /// A handle on the entries of a moment of the past, right after the commit `stamp` or at the time
    /// `at_ms`; sends OPENED or OPEN_FAILED with this id.
    #[napi(catch_unwind)]
    pub fn at(
        &mut self,
        attachment: u32,
        id: f64,
        stamp: Option<String>,
        at_ms: f64,
    ) -> Result<Self> {
        let Attachment { scratch, events } = attachment::find(attachment)?;
        let stamp = stamp.and_then(|hex| Versionstamp::parse(hex.as_bytes()));
        let when = stamp.map_or(When::Time(at_ms as i64), When::Commit);
        let handle = HandleOptions { closing: Closing::default(), ..self.options.clone() };
        let store = self.database().and_then(|database| database.store("kv.at").cloned());
        Ok(Self::opening((events, scratch), id, handle, move |_| {
            Ok(Database::Store(Arc::new(store?.at(when)?)))
        }))
    }
}

impl Handle {
    /// A handle on the database that `open` opens, on another thread. `open` gets the signal that
    /// cancels it.
    fn opening(
        (events, scratch): (Events, Rc<Scratch>),
        id: f64,
        options: HandleOptions,
        open: impl FnOnce(Cancel) -> model::Result<Database> + Send + 'static,
    ) -> Self {
        let opened = Opened::default();
        let reply = Reply::new(events.clone(), id, Event::Opened, Event::OpenFailed);
        let (place, cancel) = (opened.clone(), Cancel::default());
        let cancelled = cancel.clone();
        reply.on_file_thread(move |reply| {
            let opening = open(cancelled).map(|database| (database.lane(), database));
            reply.tell(opening.map(|(reader, database)| {
                let lacks = frame_of(|out| push_lacks(out, database.capabilities()));
                *place.lock() = Some((database, reader));
                Some(lacks)
            }));
        });
        Self {
            events,
            scratch,
            options,
            opened,
            cancel,
            clock: None,
            open: None,
            draining: None,
            settling: WeakDatabase::default(),
            closed: false,
            cancellable: CancellableCalls::default(),
            watches: HashMap::new(),
            feeds: HashMap::new(),
            consumers: Consumers::default(),
        }
    }
}

#[napi]
impl Handle {
    fn pick_up(&mut self) {
        if self.open.is_none() && !self.closed {
            let opened = self.opened.lock().take();
            let clock = self.clock.clone();
            self.open = opened.map(|(database, reader)| {
                let metrics = database.metrics();
                let gate = database.gate(&self.options);
                let (scratch, added) = (self.scratch.clone(), |lane| database.add_lane(lane));
                let lane = lane::open((reader, gate), metrics, clock, scratch, added);
                (database, lane)
            });
        }
    }

    pub(super) fn database(&mut self) -> model::Result<&Database> {
        self.pick_up();
        self.open.as_ref().map(|(database, _)| database).ok_or_else(Error::closed)
    }

    /// The database in which delivered messages are settled. A store is available also after this
    /// handle was closed.
    pub(super) fn to_settle(&self) -> Option<Database> {
        let open = self.open.as_ref().map(|(database, _)| database);
        open.or(self.draining.as_ref()).cloned().or_else(|| self.settling.upgrade())
    }

    /// The number of this handle for `get`; −1 if it is not open.
    #[napi(catch_unwind)]
    pub fn lane(&mut self) -> i32 {
        self.pick_up();
        self.open.as_ref().and_then(|(_, lane)| i32::try_from(*lane).ok()).unwrap_or(-1)
    }

    fn read_now(&mut self, read: impl FnOnce(&mut Lane) -> i32) -> i32 {
        self.pick_up();
        self.open.as_ref().map_or(Code::Closed as i32, |(_, number)| lane::with(*number, read))
    }

    /// Reads the entries of `count` keys in the scratch, and writes them behind the keys.
    #[napi(catch_unwind)]
    pub fn get_many(&mut self, count: u32, request_len: u32) -> i32 {
        self.read_now(|lane| lane.get_many(count as usize, request_len as usize))
    }

    /// Reads the entries of `count` keys as point answers; `None` for an error, see `takeError`.
    /// May block.
    #[napi(catch_unwind)]
    pub fn get_blocking(&mut self, count: u32, frame: &[u8], len: u32) -> Option<Buffer> {
        let keys = match parse_keys(cut(frame, len), count as usize) {
            Ok(keys) => keys,
            Err(bug) => {
                scratch::keep_error(&Error::internal(bug.to_string()));
                return None;
            }
        };
        let (busy, mut answer) = (self.options.busy, Err(Error::closed()));
        self.read_now(|lane| {
            answer = lane.get_blocking(&keys, busy);
            0
        });
        answer.map(Buffer::from).inspect_err(scratch::keep_error).ok()
    }

    /// Reads the rows of the range request in the scratch into `out`.
    #[napi(catch_unwind)]
    pub fn page(&mut self, request_len: u32, mut out: BufferSlice<'_>) -> i32 {
        self.read_now(|lane| lane.page(request_len as usize, &mut out))
    }

    /// Ends this turn of the event loop.
    #[napi(catch_unwind)]
    pub fn release(&mut self) {
        self.read_now(|lane| {
            lane.release();
            0
        });
    }

    /// Sets the clock of a database that was opened with one; REPLIED once what is then due is done.
    #[napi(catch_unwind)]
    pub fn set_clock(&mut self, id: f64, now_ms: f64) {
        let reply = Reply::new(self.events.clone(), id, Event::Replied, Event::CallFailed);
        if let Some(clock) = &self.clock {
            clock.set(now_ms as i64);
        }
        self.release();
        match self.database().and_then(|database| database.store("clock").cloned()) {
            Ok(store) => store.clock_was_set(move |done| reply.tell(done.map(|()| None))),
            Err(error) => reply.bad(&error),
        }
    }

    /// Sets the trace context of the requests that are handed over next, as lines of headers; empty: none.
    #[napi(catch_unwind)]
    pub fn trace(&mut self, headers: String) {
        if let Ok(database) = self.database() {
            database.trace(&headers);
        }
    }

    /// Reads `count` ranges in the asynchronous lane; READ or READ_FAILED.
    #[napi(catch_unwind)]
    pub fn read(&mut self, id: f64, count: u32, frame: &[u8], len: u32) {
        let reply = Reply::new(self.events.clone(), id, Event::Read, Event::ReadFailed);
        match self.database().cloned() {
            Ok(database) => {
                database.read(cut(frame, len), count as usize, &self.options, reply.of_read());
            }
            Err(error) => reply.bad(&error),
        }
    }

    /// Calls a command with its frame; REPLIED or CALL_FAILED. Hot operations and streams have
    /// methods of their own.
    #[napi(catch_unwind)]
    pub fn call(&mut self, id: f64, command: u32, frame: &[u8], len: u32) {
        self.carry_out(id, command, cut(frame, len), None);
    }

    /// As `call`; `cancel` can end it.
    #[napi(catch_unwind)]
    pub fn call_cancellable(&mut self, id: f64, command: u32, frame: &[u8], len: u32) {
        let call = self.cancellable.enter(number(id));
        self.carry_out(id, command, cut(frame, len), Some(call));
    }

    /// Cancels a call, which ends within one of its steps and is still answered.
    #[napi(catch_unwind)]
    pub fn cancel(&self, id: f64) {
        self.cancellable.cancel(number(id));
    }

    fn carry_out(
        &mut self,
        id: f64,
        command: u32,
        frame: &[u8],
        cancellable: Option<CancellableCall>,
    ) {
        let reply = Reply::new(self.events.clone(), id, Event::Replied, Event::CallFailed);
        let eventual = command & EVENTUAL_CALL != 0;
        let Some(command) = Command::from_number(command & !EVENTUAL_CALL) else {
            let len = frame.len();
            return reply
                .bad(&Error::internal(format!("an unknown command {command} with {len} bytes")));
        };
        if command == Command::Metrics {
            self.read_now(|lane| {
                lane.count();
                0
            });
        }
        let database = match command {
            // A message that arrives while the handle closes goes back.
            Command::Settle => self.to_settle().ok_or_else(Error::closed),
            _ => self.database().cloned(),
        };
        match database {
            Ok(database) => {
                let cancel = cancellable.as_ref().map(CancellableCall::flag);
                let reply = match cancellable {
                    Some(call) => reply.of_call().holding(call),
                    None => reply.of_call(),
                };
                database.call((command, eventual), frame, &self.options, cancel, reply);
            }
            Err(error) => reply.bad(&error),
        }
    }

    /// Starts a watch of `count` keys.
    #[napi(catch_unwind)]
    pub fn watch(&mut self, id: f64, count: u32, frame: &[u8], len: u32, raw: bool) {
        let keys = parse_keys(cut(frame, len), count as usize).unwrap_or_default();
        let watch = match self.database() {
            Ok(database) => database.watch(keys, raw),
            Err(_) => return,
        };
        self.watches.insert(number(id), watch);
    }

    /// Requests the next state of a watch; WATCH or WATCH_END.
    #[napi(catch_unwind)]
    pub fn watch_next(&mut self, id: f64) {
        let reply = Reply::new(self.events.clone(), id, Event::Watch, Event::WatchEnd);
        let watch = self.watches.get(&number(id)).copied();
        let (Some(watch), Ok(database)) = (watch, self.database().cloned()) else {
            return reply.over();
        };
        let answered: WatchReply = Box::new(move |answer| match answer {
            Ok(Some(entries)) => reply.good(Some(answers(&entries))),
            Ok(None) => reply.over(),
            Err(error) => reply.bad(&error),
        });
        database.watch_next(watch, &self.options, answered);
    }

    /// Ends a watch.
    #[napi(catch_unwind)]
    pub fn watch_cancel(&mut self, id: f64) {
        let watch = self.watches.remove(&number(id));
        if let (Some(watch), Ok(database)) = (watch, self.database()) {
            database.watch_cancel(watch);
        }
    }

    /// Cancels requests to a server and its opening. Called before `close`, which would complete
    /// them.
    #[napi(catch_unwind)]
    pub fn cancel_all(&self) {
        self.cancel.raise();
    }

    /// Ends watches, feeds and long reads, and refuses further calls. Messages can be settled until
    /// `close`.
    #[napi(catch_unwind)]
    pub fn drain(&mut self) {
        self.pick_up();
        self.closed = true;
        self.options.closing.begin();
        let Some((database, number)) = self.open.take() else { return };
        lane::close(number);
        for (id, watch) in self.watches.drain() {
            database.watch_cancel(watch);
            self.events.send(Event::WatchEnd, id as f64, None);
        }
        for (id, feed) in self.feeds.drain() {
            if let Ok(feed) = feed {
                database.feed_cancel(feed);
            }
            self.events.send(Event::WatchEnd, id as f64, None);
        }
        self.settling = database.downgrade();
        self.draining = Some(database);
    }

    /// As `drain`; then ends listeners and releases the store. If this was its last handle, a separate
    /// thread completes the submitted writes; REPLIED when the store is closed. Otherwise REPLIED when
    /// all settlements are durable.
    #[napi(catch_unwind)]
    pub fn close(&mut self, id: f64) {
        let reply = Reply::new(self.events.clone(), id, Event::Replied, Event::CallFailed);
        match self.end() {
            Some(database) => close(database, move || reply.good(None)),
            None => reply.good(None),
        }
    }

    /// Ends everything of the handle; returns its database on the first call.
    fn end(&mut self) -> Option<Database> {
        self.drain();
        let database = self.draining.take()?;
        self.consumers.close(&self.events, &database);
        Some(database)
    }
}

/// Closes a handle that is dropped without `close`, at the end of its thread or by the garbage
/// collector. It closes on this thread, because no event may follow.
impl Drop for Handle {
    fn drop(&mut self) {
        drop(self.end());
    }
}

pub(super) fn cut(frame: &[u8], len: u32) -> &[u8] {
    frame.get(..len as usize).unwrap_or_default()
}

fn answers(entries: &[Option<Entry>]) -> Vec<u8> {
    let mut out = Vec::new();
    for entry in entries {
        let mut answer = Answer::new(&mut out);
        if let Some(Entry { stamp, value }) = entry {
            let (encoding, value) = (value.encoding, value.bytes.as_slice());
            answer.push(&Row { key: &[], stamp: *stamp, encoding, value }, false);
        }
        answer.finish();
    }
    out
}
