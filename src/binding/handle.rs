//! One open database as JavaScript holds it.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, Weak};
use std::time::Duration;

use napi::Result;
use napi::bindgen_prelude::{Buffer, BufferSlice};
use napi_derive::napi;
use parking_lot::Mutex;

use super::attachment::{self, Attachment};
use super::consume::Consumers;
use super::events::{Event, Events};
use super::lane::{self, Code, Lane};
use super::remote;
use super::replies::{Reply, Settle};
use super::scratch::{self, Scratch};
use crate::backend::Database;
use crate::call::{Call, carry_out, read};
use crate::codec::Malformed;
use crate::codec::frame::{Answer, Verb, parse_keys, parse_ranges, parse_writes};
use crate::engine::Reader;
use crate::model::{
    self, ANSWER_BYTES_MAX, Error, FRAMES_PAGE_BYTES, LONG_READ_MS_MAX, Limits, Row,
};
use crate::open::{Target, close, open_unless};
use crate::remote::{Abandon, CommitReply};
use crate::store::{Closing, Entry, Id, Store, WatchReply};

/// What JavaScript says about the database that it opens.
#[napi(object)]
pub struct NativeOptions {
    /// `:memory:` or an absolute path.
    pub path: String,
    /// `full` or `normal`.
    pub durability: String,
    /// Whether it must not be written.
    pub readonly: bool,
    /// Longest wait for other processes, in ms.
    pub busy_timeout_ms: f64,
    /// The format of a file's values, `cbor` or `v8`, if there is a wish.
    pub encoding: Option<String>,
    /// Every limit by name.
    pub limits: HashMap<String, f64>,
    /// Where the database is, if it is elsewhere; `path` is then not looked at.
    pub remote: Option<NativeRemote>,
}

/// A database elsewhere.
#[napi(object)]
pub struct NativeRemote {
    /// The URL of its metadata exchange.
    pub url: String,
    /// The user's token.
    pub access_token: String,
    /// Longest time of a call with all its retries, in ms.
    pub timeout_ms: f64,
}

/// What opening leaves for the handle to pick up.
type Opened = Arc<Mutex<Option<(Database, Box<dyn Reader>)>>>;

/// A handle: its database, its lane, and what it watches and listens to.
#[napi]
pub struct Handle {
    pub(super) events: Events,
    /// Its lane's.
    scratch: Rc<Scratch>,
    limits: Limits,
    durable: bool,
    pub(super) busy: Duration,
    opened: Opened,
    abandon: Abandon,
    /// The database, and the number of this handle's lane.
    open: Option<(Database, usize)>,
    /// Still there while other handles keep the store open after this one is closed.
    settling: Weak<Store>,
    closed: bool,
    /// Told to what takes long.
    closing: Closing,
    watches: HashMap<u64, Id>,
    /// Feeds, and why one could not be opened.
    pub(super) feeds: HashMap<u64, model::Result<Id>>,
    pub(super) consumers: Consumers,
}

/// Longest time of a call's reads.
const LONG_MOST: Duration = Duration::from_millis(LONG_READ_MS_MAX);

/// Whether closing the handle ends such a call.
fn is_long(verb: Verb) -> bool {
    use Verb::{Count, DeleteMany, ListIndexes, QueueStats, Scan, Search, Stats};
    matches!(verb, Count | DeleteMany | ListIndexes | QueueStats | Scan | Search | Stats)
}

pub(super) fn number(id: f64) -> u64 {
    id as u64
}

#[napi]
impl Handle {
    /// Starts to open; OPENED or OPEN_FAILED comes with this id.
    #[napi(constructor, catch_unwind)]
    #[allow(clippy::new_without_default, reason = "called from JavaScript only")]
    pub fn new(attachment: u32, id: f64, options: NativeOptions) -> Result<Self> {
        let Attachment { scratch, events } = attachment::find(attachment)?;
        let mut limits = Limits::default();
        for (name, value) in &options.limits {
            limits.set(name, *value as usize);
        }
        let busy = Duration::from_millis(options.busy_timeout_ms as u64);
        let target = match (options.remote, options.path.as_str()) {
            (Some(remote), _) => Target::Url {
                url: remote.url,
                access_token: remote.access_token,
                timeout: Duration::from_millis(remote.timeout_ms as u64),
            },
            (None, ":memory:") => Target::Memory,
            (None, path) => Target::File {
                path: path.into(),
                readonly: options.readonly,
                busy,
                encoding: options.encoding.map(|name| match name.as_str() {
                    "v8" => model::Encoding::V8,
                    _ => model::Encoding::Cbor,
                }),
            },
        };
        let opened = Opened::default();
        let reply = Reply::new(events.clone(), id, Event::Opened, Event::OpenFailed);
        let (place, abandon) = (opened.clone(), Abandon::default());
        let abandoned = abandon.clone();
        std::thread::Builder::new().name("openkv-open".into()).spawn(move || match open_unless(
            &target, abandoned,
        )
        .and_then(|database| Ok((database.lane()?, database)))
        {
            Ok((reader, database)) => {
                *place.lock() = Some((database, reader));
                reply.good(None);
            }
            Err(error) => reply.bad(&error),
        })?;
        Ok(Self {
            events,
            scratch,
            limits,
            durable: options.durability != "normal",
            busy,
            opened,
            abandon,
            open: None,
            settling: Weak::new(),
            closed: false,
            closing: Closing::default(),
            watches: HashMap::new(),
            feeds: HashMap::new(),
            consumers: Consumers::default(),
        })
    }

    fn pick_up(&mut self) {
        if self.open.is_none() && !self.closed {
            let opened = self.opened.lock().take();
            self.open = opened.map(|(database, reader)| {
                let metrics = match &database {
                    Database::Store(store) => store.metrics().clone(),
                    // Its lane answers nothing.
                    Database::Remote(_) => Arc::default(),
                };
                (database, lane::open(reader, metrics, self.scratch.clone()))
            });
        }
    }

    pub(super) fn database(&mut self) -> model::Result<&Database> {
        self.pick_up();
        self.open.as_ref().map(|(database, _)| database).ok_or_else(Error::closed)
    }

    /// The database for what was taken from it, a store's also after this handle was closed.
    pub(super) fn to_settle(&self) -> Option<Database> {
        match &self.open {
            Some((database, _)) => Some(database.clone()),
            None => self.settling.upgrade().map(Database::Store),
        }
    }

    /// The number by which `get` knows this handle; −1 when it is not open.
    #[napi(catch_unwind)]
    pub fn lane(&mut self) -> i32 {
        self.pick_up();
        self.open.as_ref().and_then(|(_, lane)| i32::try_from(*lane).ok()).unwrap_or(-1)
    }

    fn read_now(&mut self, read: impl FnOnce(&mut Lane) -> i32) -> i32 {
        self.pick_up();
        self.open.as_ref().map_or(Code::Closed as i32, |(_, number)| lane::with(*number, read))
    }

    /// The entries of `count` keys in the scratch, behind them.
    #[napi(catch_unwind)]
    pub fn get_many(&mut self, count: u32, request_len: u32) -> i32 {
        self.read_now(|lane| lane.get_many(count as usize, request_len as usize))
    }

    /// The entries of `count` keys as point answers; `None`: see `takeError`. May block.
    #[napi(catch_unwind)]
    pub fn get_blocking(&mut self, count: u32, frame: &[u8], len: u32) -> Option<Buffer> {
        let keys = match parse_keys(cut(frame, len), count as usize) {
            Ok(keys) => keys,
            Err(bug) => {
                scratch::keep_error(&Error::internal(bug.to_string()));
                return None;
            }
        };
        let (busy, mut answer) = (self.busy, Err(Error::closed()));
        self.read_now(|lane| {
            answer = lane.get_blocking(&keys, busy);
            0
        });
        answer.map(Buffer::from).inspect_err(scratch::keep_error).ok()
    }

    /// The rows of the range request in the scratch, into `out`.
    #[napi(catch_unwind)]
    pub fn page(&mut self, request_len: u32, mut out: BufferSlice<'_>) -> i32 {
        self.read_now(|lane| lane.page(request_len as usize, &mut out))
    }

    /// This turn of the loop is over.
    #[napi(catch_unwind)]
    pub fn release(&mut self) {
        self.read_now(|lane| {
            lane.release();
            0
        });
    }

    /// The asynchronous lane: `count` range requests; READ or READ_FAILED.
    #[napi(catch_unwind)]
    pub fn read(&mut self, id: f64, count: u32, frame: &[u8], len: u32) {
        let reply = Reply::new(self.events.clone(), id, Event::Read, Event::ReadFailed);
        let frame = cut(frame, len);
        let store = match self.database() {
            Ok(Database::Store(store)) => store.clone(),
            Ok(Database::Remote(client)) => return remote::read(client, frame, count, reply),
            Err(error) => return reply.bad(&error),
        };
        let ranges = match parse_ranges(frame, count as usize) {
            Ok(ranges) => ranges,
            Err(bug) => return reply.bad(&Error::internal(bug.to_string())),
        };
        let (reply, answer_bytes_max) = (reply.of_read(), ANSWER_BYTES_MAX);
        let (durable, busy, limits) = (self.durable, self.busy, self.limits.clone());
        let call =
            Call { store, reply, durable, busy, limits, answer_bytes_max, long_most: LONG_MOST };
        read(ranges, FRAMES_PAGE_BYTES, call);
    }

    /// `count` writes; SETTLED.
    #[napi(catch_unwind)]
    pub fn write(&mut self, id: f64, count: u32, frame: &[u8], len: u32) {
        let settle = Settle::new(self.events.clone(), id, count as usize);
        let (frame, count, limits) = (cut(frame, len), count as usize, self.limits.clone());
        let (durable, busy) = (self.durable, self.busy);
        let refused = |bug: Malformed| Error::internal(bug.to_string());
        match self.database() {
            Ok(Database::Store(store)) => match parse_writes(frame, count, &limits) {
                Ok(writes) => store.commit(writes, durable, busy, decided(settle)),
                Err(bug) => settle.failed(&refused(bug)),
            },
            Ok(Database::Remote(client)) => match remote::writes(frame, count, &limits) {
                Ok(writes) => client.commit(writes, &limits, decided(settle)),
                Err(bug) => settle.failed(&refused(bug)),
            },
            Err(error) => settle.failed(&error),
        }
    }

    /// Everything that is neither hot nor a stream: a verb and its frame; REPLIED or CALL_FAILED.
    #[napi(catch_unwind)]
    pub fn call(&mut self, id: f64, verb: u32, frame: &[u8], len: u32) {
        let reply = Reply::new(self.events.clone(), id, Event::Replied, Event::CallFailed);
        let Some(verb) = Verb::from_number(verb) else {
            return reply.bad(&Error::internal(format!("an unknown verb {verb} with {len} bytes")));
        };
        let (durable, busy, limits) = (self.durable, self.busy, self.limits.clone());
        if verb == Verb::Metrics {
            self.read_now(|lane| {
                lane.count();
                0
            });
        }
        match self.database().cloned() {
            Ok(Database::Store(store)) => {
                let mut reply = reply.of_call();
                if is_long(verb) {
                    let closing = self.closing.clone();
                    reply = reply.while_wanted(move || closing.leaves_time());
                }
                let answer_bytes_max = ANSWER_BYTES_MAX;
                let long_most = LONG_MOST;
                let call =
                    Call { store, reply, durable, busy, limits, answer_bytes_max, long_most };
                carry_out(verb, cut(frame, len), call);
            }
            Ok(Database::Remote(client)) => {
                remote::call(&client, verb, cut(frame, len), &limits, reply);
            }
            Err(error) => reply.bad(&error),
        }
    }

    /// Starts watching `count` keys.
    #[napi(catch_unwind)]
    pub fn watch(&mut self, id: f64, count: u32, frame: &[u8], len: u32, raw: bool) {
        let keys = parse_keys(cut(frame, len), count as usize).unwrap_or_default();
        let watch = match self.database() {
            Ok(Database::Store(store)) => store.watch(keys, raw),
            Ok(Database::Remote(client)) => client.watch(keys, raw),
            Err(_) => return,
        };
        self.watches.insert(number(id), watch);
    }

    /// Asks a watch for its next state; WATCH or WATCH_END.
    #[napi(catch_unwind)]
    pub fn watch_next(&mut self, id: f64) {
        let reply = Reply::new(self.events.clone(), id, Event::Watch, Event::WatchEnd);
        let watch = self.watches.get(&number(id)).copied();
        let (Some(watch), Ok(database)) = (watch, self.database()) else { return reply.over() };
        let answered: WatchReply = Box::new(move |answer| match answer {
            Ok(Some(entries)) => reply.good(Some(answers(&entries))),
            Ok(None) => reply.over(),
            Err(error) => reply.bad(&error),
        });
        match database {
            Database::Store(store) => store.watch_next(watch, answered),
            Database::Remote(client) => client.watch_next(watch, answered),
        }
    }

    /// Ends a watch.
    #[napi(catch_unwind)]
    pub fn watch_cancel(&mut self, id: f64) {
        let watch = self.watches.remove(&number(id));
        match (watch, self.database()) {
            (Some(watch), Ok(Database::Store(store))) => store.watch_cancel(watch),
            (Some(watch), Ok(Database::Remote(client))) => client.watch_cancel(watch),
            _ => {}
        }
    }

    /// Gives up what is under way with a server, opening it too: to be called before `close`, which
    /// completes it.
    #[napi(catch_unwind)]
    pub fn abandon(&self) {
        self.abandon.now();
    }

    /// Ends watches, listeners and reads that take long, and lets go of the store. If this was its last
    /// handle, what was handed over is completed on a thread of its own; REPLIED when it is closed.
    #[napi(catch_unwind)]
    pub fn close(&mut self, id: f64) {
        let reply = Reply::new(self.events.clone(), id, Event::Replied, Event::CallFailed);
        match self.end() {
            Some(database) => close(database, move || reply.good(None)),
            None => reply.good(None),
        }
    }

    /// Ends all that belongs to the handle; answers its database, the first time.
    fn end(&mut self) -> Option<Database> {
        self.pick_up();
        self.closed = true;
        self.closing.begin();
        let (database, number) = self.open.take()?;
        lane::close(number);
        for (id, watch) in self.watches.drain() {
            match &database {
                Database::Store(store) => store.watch_cancel(watch),
                Database::Remote(client) => client.watch_cancel(watch),
            }
            self.events.send(Event::WatchEnd, id as f64, None);
        }
        for (id, feed) in self.feeds.drain() {
            match (feed, &database) {
                (Ok(feed), Database::Store(store)) => store.feed_cancel(feed),
                (Ok(feed), Database::Remote(client)) => client.feed_cancel(feed),
                (Err(_), _) => {}
            }
            self.events.send(Event::WatchEnd, id as f64, None);
        }
        self.consumers.close(&self.events, &database);
        if let Database::Store(store) = &database {
            self.settling = Arc::downgrade(store);
        }
        Some(database)
    }
}

/// A handle that was dropped without being closed, by the end of its thread or the collector: closed
/// here and now, since nothing may come later.
impl Drop for Handle {
    fn drop(&mut self) {
        drop(self.end());
    }
}

fn decided(settle: Settle) -> CommitReply {
    Box::new(move |decisions| settle.decided(&decisions))
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
