//! A remote database, behind a URL: the client half of KV Connect.
//!
//! Duty: the same answers as a store, by requests to a server.
//! Invariant: every call ends within the handle's timeout. A write is sent a second time only where
//! that cannot apply it twice ([`retry_safety`], [`write_ids`]); otherwise its outcome may be `OutcomeUnknown`.
//! Never: a token in a message, a token sent unencrypted after an encrypted exchange, a retry
//! without a pause.
//!
//! | file | what |
//! |---|---|
//! | [`address`], [`sources`] | the URLs of servers, and the choice of one |
//! | [`credentials`], [`exchange`] | the first metadata exchange, and its renewal |
//! | [`endpoint_latency`] | the choice among several endpoints for eventual reads |
//! | [`clock`] | the time of the database |
//! | [`transport`] | HTTP |
//! | [`executor`] | one request with its retries |
//! | [`cancel`] | cancellation |
//! | [`read`], [`write`], [`receive`] | reads, writes, waits for a message |
//! | [`write_ids`] | ids by which a server recognises a repetition |
//! | [`order`] | the order of dependent writes |
//! | [`stream`], [`watch`], [`feed`], [`consume`] | streams from the server |
//! | [`follow`] | the replication log, for replicas |
//! | [`trace`] | the trace context of requests |
//! | [`extension`], [`backup`] | calls of openkv's own servers; the download of a backup |

mod address;
mod backoff;
mod backup;
mod cancel;
mod clock;
mod consume;
mod credentials;
mod endpoint_latency;
mod exchange;
mod executor;
mod extension;
mod feed;
mod follow;
mod order;
mod read;
mod receive;
mod retry_safety;
mod runtime;
mod sources;
mod stream;
mod trace;
mod transport;
mod watch;
mod write;
mod write_ids;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

pub use self::backup::Destination;
pub use self::cancel::Cancel;
pub use self::credentials::Opening;
pub use self::executor::SeenNote;
pub use self::follow::{Following, LogFollower};
pub use self::read::Page;
pub use self::runtime::Tasks;
pub use self::sources::Servers;
pub use self::write::Framed;
use openkv_core::model::{
    Backup, ConsumeOptions, Decision, Deliver, Env, Error, FeedReply, Id, Key, KeyRange, Kind,
    Limits, ListenerEnd, LockLost, Outcome, Reason, Receive, Request, Result, Versionstamp,
    WatchReply,
};
pub use openkv_wire::connect::wire::Entry;
use openkv_wire::protocol::extension::FRAMES;
use openkv_wire::protocol::{Access, Command, CommandFlag};

/// Gets the rows of each request, or its error, in order.
pub type ReadReply = Box<dyn FnOnce(Vec<Result<Page>>) + Send>;

/// Gets one decision for each write, in order.
pub type CommitReply = Box<dyn FnOnce(Vec<Decision>) + Send>;

/// Gets the answer of a call; empty if it has no bytes.
pub type CallReply = Box<dyn FnOnce(Result<Vec<u8>>) + Send>;

/// An open remote database. Dropping it ends its watches; running writes are completed.
pub struct Client {
    executor: Arc<executor::RequestExecutor>,
    watches: watch::Watches,
    feeds: feed::Feeds,
    order: order::Order,
    consumers: Arc<consume::Consumers>,
    waits: Arc<receive::Waits>,
    /// The context of the requests that are handed over now.
    trace: Mutex<Option<trace::TraceHeaders>>,
    runtime: Arc<runtime::SharedRuntime>,
}

impl Client {
    /// Exchanges metadata with one of the servers, as `opening` says. `cancel` ends that
    /// and all later work with `Closed`, or with `OutcomeUnknown` for a write that the server may
    /// have executed. From then on every call is refused.
    ///
    /// # Errors
    /// `Closed` when cancelled; `Invalid` for an unusable URL or token; `Denied` if the server
    /// rejects the token, `Unavailable` if it does not answer, `Corrupt` if it is no KV Connect
    /// server, `Unsupported` if it speaks another version.
    pub fn open(
        (servers, access_token): (Servers<'_>, &str),
        (timeout, opening): (Duration, Opening),
        env: Arc<dyn Env>,
        cancel: Cancel,
    ) -> Result<Arc<Self>> {
        let runtime = runtime::shared()?;
        let transport = transport::Transport::new()
            .map_err(|why| Error::unavailable(format!("no connections can be made: {why}")))?;
        let transport = Arc::new(transport);
        let credentials = credentials::Credentials::new(
            transport.clone(),
            env.clone(),
            (servers, access_token),
            opening,
        )?;
        let executor =
            executor::RequestExecutor::new(transport, Arc::new(credentials), env, timeout, cancel);
        let executor = Arc::new(executor);
        runtime.handle.block_on(async {
            tokio::select! {
                biased;
                () = executor.cancelled() => Err(Error::closed()),
                opened = executor.credentials.open(opening, Instant::now() + timeout) => {
                    opened.map_err(|error| not_opened(&error))
                }
            }
        })?;
        let (watches, feeds) = (watch::Watches::default(), feed::Feeds::default());
        let order = order::Order::default();
        let (consumers, waits) = (Arc::default(), Arc::default());
        let trace = Mutex::default();
        Ok(Arc::new(Self { executor, watches, feeds, order, consumers, waits, trace, runtime }))
    }

    /// From now on asks the server which commits its answers can depend on. Only the first one is kept.
    pub fn note_seen(&self, note: Arc<dyn SeenNote>) {
        let _kept = self.executor.seen.set(note);
    }

    /// From now on requests carry the trace context of this text, a header in each line; without one again
    /// after an empty text. Streams and the requests of listeners carry none.
    pub fn trace(&self, headers: &str) {
        *self.trace.lock() = trace::TraceHeaders::parse(headers);
    }

    /// The executor of a request that is handed over now.
    fn executor(&self) -> Arc<executor::RequestExecutor> {
        match &*self.trace.lock() {
            None => self.executor.clone(),
            Some(trace) => Arc::new(self.executor.within(trace.clone())),
        }
    }

    /// The error for a feature that the server does not offer.
    pub fn lacks(&self, what: &str) -> Error {
        self.executor.credentials.lacks(what)
    }

    /// Whether the server accepts the frames of calls, that is, whether it is openkv's own.
    pub fn takes_frames(&self) -> bool {
        self.executor.credentials.offers(FRAMES)
    }

    /// Calls a command, if the server [takes frames](Client::takes_frames). Raising `cancel` ends
    /// the request, which the server detects; the answer is `Closed`.
    pub fn call(
        &self,
        command: Command,
        frame: &[u8],
        limits: &Limits,
        cancel: Option<Cancel>,
        reply: CallReply,
    ) {
        if let Access::Local(why) = command.access() {
            return reply(Err(extension::is_local(command, why)));
        }
        let (executor, frame, limits) = (self.executor(), frame.to_vec(), limits.clone());
        let opening = self.feeds.opening();
        let mut turn = command.is(CommandFlag::AfterWrites).then(|| self.order.turn(None));
        let request = async move {
            let executor = match &mut turn {
                Some(turn) => turn.come(executor).await?,
                None => executor,
            };
            let executor = feed::opened(executor, opening).await;
            extension::call(&executor, command, frame, limits).await
        };
        self.runtime.spawn(async move {
            // Dropping the request resets its HTTP/2 stream or closes its connection.
            reply(match cancel {
                None => request.await,
                Some(cancel) => tokio::select! {
                    biased;
                    () = cancel.raised() => Err(Error::closed()),
                    answer = request => answer,
                },
            });
        });
    }

    /// Downloads a backup, if the server is openkv's own. Raising `cancel` ends it. `reply` gets the
    /// destination again.
    pub fn backup<D: Destination>(
        &self,
        mut destination: D,
        cancel: Option<Cancel>,
        reply: impl FnOnce(D, Result<Backup>) + Send + 'static,
    ) {
        let executor = self.executor.clone();
        let is_ended = destination.is_ended();
        let ended = move || is_ended() || cancel.as_ref().is_some_and(Cancel::is_raised);
        self.runtime.spawn(async move {
            let done = tokio::select! {
                biased;
                () = executor.cancelled() => Err(Error::closed()),
                error = backup::ended_by(ended) => Err(error),
                done = backup::download(&executor, &mut destination) => done,
            };
            // Making the file durable takes time.
            let replied = tokio::task::spawn_blocking(move || reply(destination, done));
            drop(replied);
        });
    }

    /// The current time, for conditions.
    pub fn now_ms(&self) -> i64 {
        self.executor.env.now_ms()
    }

    /// Executes reads. Those of one call share a snapshot.
    pub fn read(&self, requests: Vec<Request>, reply: ReadReply) {
        let executor = self.executor();
        self.runtime.spawn(async move { reply(read::carry_out(executor, requests).await) });
    }

    /// Executes writes: many in one request if the server takes frames, otherwise one in each.
    /// Writes that change or check the same key keep the order of the calls.
    pub fn commit(&self, writes: Vec<Result<Framed>>, limits: &Limits, reply: CommitReply) {
        let (executor, limits) = (self.executor(), limits.clone());
        let opening = self.feeds.opening();
        let subjects = writes.iter().flatten().flat_map(|of| order::subjects(&of.write));
        let mut turn = self.order.turn(Some(subjects.collect()));
        self.runtime.spawn(async move {
            let decisions = match turn.come(executor).await {
                Ok(executor) => {
                    let executor = feed::opened(executor, opening).await;
                    write::carry_out(executor, writes, &limits).await
                }
                Err(error) => vec![Decision::Rejected(error); writes.len()],
            };
            drop(turn);
            reply(decisions);
        });
    }

    /// As [`openkv_store::Store::watch`].
    pub fn watch(&self, keys: Vec<Key>, raw: bool) -> Id {
        self.watches.add(keys, raw)
    }

    /// As [`openkv_store::Store::watch_next`].
    pub fn watch_next(&self, id: Id, reply: WatchReply) {
        self.watches.next(id, reply, &self.executor, &self.runtime.handle);
    }

    /// As [`openkv_store::Store::watch_cancel`].
    pub fn watch_cancel(&self, id: Id) {
        self.watches.cancel(id);
    }

    /// As [`openkv_store::Store::feed`]. It includes all later writes, unless the server refuses
    /// the feed at present or does not confirm it within half of the handle's timeout.
    #[must_use]
    pub fn feed(&self, range: KeyRange, since: Option<Versionstamp>) -> Id {
        self.feeds.add(range, since, &self.executor, &self.runtime.handle)
    }

    /// As [`openkv_store::Store::feed_next`].
    pub fn feed_next(&self, id: Id, reply: FeedReply) {
        self.feeds.next(id, reply);
    }

    /// As [`openkv_store::Store::feed_cancel`].
    pub fn feed_cancel(&self, id: Id) {
        self.feeds.cancel(id);
    }

    /// As [`openkv_store::Store::listen`], while the database is open: the listener waits for an
    /// unreachable server. `end` gets its end and its error, if any.
    pub fn listen(
        &self,
        options: ConsumeOptions,
        places: u32,
        deliver: Deliver,
        end: ListenerEnd,
    ) -> Id {
        self.consumers.add((options, places), (deliver, end), &self.executor, &self.runtime)
    }

    /// As [`openkv_store::Store::stop_listening`].
    pub fn stop_listening(&self, listener: Id) {
        self.consumers.stop(listener);
    }

    /// As [`openkv_store::Store::unlisten`].
    pub fn unlisten(&self, listener: Id) {
        self.consumers.unlisten(listener);
    }

    /// As [`openkv_store::Store::settle`]. The settlement is sent until the server confirms it.
    pub fn settle(&self, listener: Id, number: i64, outcome: Outcome, reason: Option<Reason>) {
        self.consumers.settle(listener, number, outcome, reason);
    }

    /// Sets the receiver of locks that a listener loses, by the numbers of their deliveries.
    pub fn on_lock_lost(&self, listener: Id, on_lost: LockLost) {
        self.consumers.on_lock_lost(listener, on_lost);
    }

    /// Ends a delivery that a commit has acknowledged.
    pub fn release(&self, listener: Id, number: i64) {
        self.consumers.release(listener, number);
    }

    /// Ends listeners and waits. Pending settlements are still sent; then their `end` is called.
    pub fn close_consumers(&self) {
        self.consumers.close();
        self.waits.close();
    }

    /// Answers once all settlements so far have been sent, or could not be sent in time.
    pub fn acknowledged(&self, reply: Box<dyn FnOnce() + Send>) {
        let (consumers, timeout) = (self.consumers.clone(), self.executor.timeout);
        self.runtime.spawn(async move {
            let _in_time = tokio::time::timeout(timeout, consumers.acknowledged()).await;
            reply();
        });
    }

    /// A new id for [`Client::receive`].
    #[must_use]
    pub fn new_receiver(&self) -> Id {
        self.executor.env.random()
    }

    /// As [`openkv_store::Store::receive`].
    pub fn receive(&self, id: Id, options: ConsumeOptions, once: bool, reply: Receive) {
        let (executor, waits) = (self.executor(), self.waits.clone());
        waits.add(id);
        self.runtime.spawn(waits.receive(executor, (id, options, once), reply));
    }

    /// As [`openkv_store::Store::receive_cancel`].
    pub fn receive_cancel(&self, id: Id) {
        self.waits.cancel(id);
    }
}

/// The error of an opening. The words in front are Deno's.
fn not_opened(error: &Error) -> Error {
    match error.kind() {
        Kind::Unavailable | Kind::Denied | Kind::Corrupt | Kind::Unsupported => {
            let why = format!("Could not open Deno KV database: {}", error.message());
            Error::new(error.kind(), why)
        }
        _ => error.clone(),
    }
}
