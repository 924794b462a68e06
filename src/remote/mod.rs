//! A database elsewhere, behind a URL: the client half of KV Connect.
//!
//! Duty: answer what a store answers, by requests to a server, in the store's words.
//! Invariant: every call ends within the handle's timeout. A write is sent a second time only where
//! that cannot do it twice ([`repeat`]); where nobody can know, the answer is `OutcomeUnknown`.
//! Never: a token in a message, a token sent in the clear after an encrypted exchange, a retry
//! without a pause.
//!
//! | file | what |
//! |---|---|
//! | [`address`] | the server's URLs |
//! | [`credentials`], [`exchange`] | the first exchange of metadata, and its renewal |
//! | [`transport`] | HTTP |
//! | [`ask`] | one request with its retries |
//! | [`abandon`] | giving up |
//! | [`read`], [`write`], [`receive`] | what is asked |
//! | [`order`] | which writes wait for which |
//! | [`stream`], [`watch`], [`feed`], [`consume`] | what is followed |
//! | [`extension`] | what openkv's own servers answer beyond that |

mod abandon;
mod address;
mod ask;
mod backoff;
mod consume;
mod credentials;
mod exchange;
mod extension;
mod feed;
mod order;
mod read;
mod receive;
mod repeat;
mod runtime;
mod stream;
mod transport;
mod trust;
mod watch;
mod write;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

pub use self::abandon::Abandon;
pub use self::read::Page;
pub use self::write::Framed;
use crate::codec::frame::Verb;
use crate::connect::extension::FRAMES;
pub use crate::connect::wire::Entry as Found;
use crate::model::{
    Decision, Env, Error, Key, KeyRange, Kind, Limits, Outcome, Reason, Request, Result,
    Versionstamp,
};
use crate::store::{Deliver, FeedReply, Id, Receive, WatchReply, Wish};
pub use consume::Over;

/// Gets the rows of each request, or why there are none, in order.
pub type ReadReply = Box<dyn FnOnce(Vec<Result<Page>>) + Send>;

/// Gets one decision for each write, in order.
pub type CommitReply = Box<dyn FnOnce(Vec<Decision>) + Send>;

/// Gets the answer of a call, empty for one without bytes.
pub type CallReply = Box<dyn FnOnce(Result<Vec<u8>>) + Send>;

/// An open database elsewhere. Dropping it ends its watches; writes under way are completed.
pub struct Client {
    asker: Arc<ask::Asker>,
    watches: watch::Watches,
    feeds: feed::Feeds,
    order: order::Order,
    consumers: Arc<consume::Consumers>,
    waits: Arc<receive::Waits>,
    runtime: Arc<runtime::Shared>,
}

impl Client {
    /// Exchanges metadata with the server, trying until the time is up. `abandon` ends that, and
    /// whatever is under way later, with `Closed`, or with `OutcomeUnknown` for a write that may
    /// have been carried out; from then on everything is refused.
    ///
    /// # Errors
    /// `Closed` when it is abandoned; `Invalid` for a URL or a token that cannot be used; `Denied` for
    /// a token that the server does not accept, `Unavailable` when it does not answer, `Corrupt` when
    /// it is no KV Connect server, `Unsupported` when it speaks another version.
    pub fn open(
        url: &str,
        access_token: &str,
        timeout: Duration,
        env: Arc<dyn Env>,
        abandon: Abandon,
    ) -> Result<Arc<Self>> {
        let runtime = runtime::shared()?;
        let transport = transport::Transport::new().map_err(|why| {
            Error::new(Kind::Unavailable, format!("no connections can be made: {why}"))
        })?;
        let transport = Arc::new(transport);
        let credentials =
            credentials::Credentials::new(transport.clone(), env.clone(), url, access_token)?;
        let asker = ask::Asker::new(transport, Arc::new(credentials), env, timeout, abandon);
        let asker = Arc::new(asker);
        runtime.handle()?.block_on(async {
            tokio::select! {
                biased;
                () = asker.is_abandoned() => Err(Error::closed()),
                grant = asker.credentials.current(Instant::now() + timeout) => grant.map(|_| ()),
            }
        })?;
        let (watches, feeds) = (watch::Watches::default(), feed::Feeds::default());
        let order = order::Order::default();
        let (consumers, waits) = (Arc::default(), Arc::default());
        Ok(Arc::new(Self { asker, watches, feeds, order, consumers, waits, runtime }))
    }

    /// The error of something that the server does not offer.
    #[must_use]
    pub fn lacks(&self, what: &str) -> Error {
        self.asker.credentials.lacks(what)
    }

    /// Whether the server takes the frames of calls: it is openkv's.
    #[must_use]
    pub fn takes_frames(&self) -> bool {
        self.asker.credentials.offers(FRAMES)
    }

    /// Asks for what a verb does, if the server [takes frames](Client::takes_frames).
    pub fn call(&self, verb: Verb, frame: &[u8], limits: &Limits, reply: CallReply) {
        if matches!(verb, Verb::Backup | Verb::BackupProgress) {
            return reply(Err(extension::no_backup()));
        }
        let (asker, keep) = (self.asker.clone(), self.runtime.clone());
        match self.runtime.handle() {
            Ok(runtime) => {
                let (frame, limits) = (frame.to_vec(), limits.clone());
                let opening = self.feeds.opening();
                let turn = extension::is_about_all(verb).then(|| self.order.turn(None));
                runtime.spawn(async move {
                    let mut turn = turn;
                    let come = match &mut turn {
                        Some(turn) => turn.come(asker).await,
                        None => Ok(asker),
                    };
                    let answer = match come {
                        Ok(asker) => {
                            let asker = feed::opened(asker, opening).await;
                            extension::call(&asker, verb, frame, limits).await
                        }
                        Err(error) => Err(error),
                    };
                    drop(turn);
                    reply(answer);
                    drop(keep);
                });
            }
            Err(error) => reply(Err(error)),
        }
    }

    /// The time by which conditions are compared.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        self.asker.env.now_ms()
    }

    /// Carries out reads. Those that are asked for together are one snapshot.
    pub fn read(&self, requests: Vec<Request>, reply: ReadReply) {
        let (asker, keep) = (self.asker.clone(), self.runtime.clone());
        match self.runtime.handle() {
            Ok(runtime) => {
                runtime.spawn(async move {
                    reply(read::carry_out(asker, requests).await);
                    drop(keep);
                });
            }
            Err(error) => reply(vec![Err(error); requests.len()]),
        }
    }

    /// Carries out writes: many by one request where the server takes frames, else each by one of
    /// its own. Those that change or check the same key happen in the order of the calls.
    pub fn commit(&self, writes: Vec<Result<Framed>>, limits: &Limits, reply: CommitReply) {
        let (asker, keep) = (self.asker.clone(), self.runtime.clone());
        match self.runtime.handle() {
            Ok(runtime) => {
                let (opening, limits) = (self.feeds.opening(), limits.clone());
                let about = writes.iter().flatten().flat_map(|of| order::about(&of.write));
                let mut turn = self.order.turn(Some(about.collect()));
                runtime.spawn(async move {
                    let decisions = match turn.come(asker).await {
                        Ok(asker) => {
                            let asker = feed::opened(asker, opening).await;
                            write::carry_out(asker, writes, &limits).await
                        }
                        Err(error) => vec![Decision::Rejected(error); writes.len()],
                    };
                    drop(turn);
                    reply(decisions);
                    drop(keep);
                });
            }
            Err(error) => reply(vec![Decision::Rejected(error); writes.len()]),
        }
    }

    /// As [`crate::store::Store::watch`].
    pub fn watch(&self, keys: Vec<Key>, raw: bool) -> Id {
        self.watches.add(keys, raw)
    }

    /// As [`crate::store::Store::watch_next`].
    pub fn watch_next(&self, id: Id, reply: WatchReply) {
        match self.runtime.handle() {
            Ok(runtime) => self.watches.next(id, reply, &self.asker, runtime),
            Err(error) => reply(Err(error)),
        }
    }

    /// As [`crate::store::Store::watch_cancel`].
    pub fn watch_cancel(&self, id: Id) {
        self.watches.cancel(id);
    }

    /// As [`crate::store::Store::feed`]: what is handed over later is in it, unless the server does
    /// not say for half of the handle's timeout that it follows, or refuses to for now.
    ///
    /// # Errors
    /// `Closed` at the end of the process.
    pub fn feed(&self, range: KeyRange, since: Option<Versionstamp>) -> Result<Id> {
        let runtime = self.runtime.handle()?;
        Ok(self.feeds.add(range, since, &self.asker, runtime))
    }

    /// As [`crate::store::Store::feed_next`].
    pub fn feed_next(&self, id: Id, reply: FeedReply) {
        self.feeds.next(id, reply);
    }

    /// As [`crate::store::Store::feed_cancel`].
    pub fn feed_cancel(&self, id: Id) {
        self.feeds.cancel(id);
    }

    /// As [`crate::store::Store::listen`], for as long as the database is open: a server that
    /// cannot be reached is waited for. `over` is told of the end, and of an error that ends it.
    ///
    /// # Errors
    /// `Closed` when it is not open.
    pub fn listen(&self, wish: Wish, places: u32, deliver: Deliver, over: Over) -> Result<Id> {
        let runtime = (self.runtime.handle()?, &self.runtime);
        Ok(self.consumers.add((wish, places), (deliver, over), &self.asker, runtime))
    }

    /// As [`crate::store::Store::stop_listening`].
    pub fn unlisten(&self, listener: Id) {
        self.consumers.stop(listener);
    }

    /// As [`crate::store::Store::settle`]: told to the server until it has heard it.
    pub fn settle(&self, listener: Id, number: i64, outcome: Outcome, reason: Option<Reason>) {
        self.consumers.settle(listener, number, outcome, reason);
    }

    /// Ends listeners and waits. What was settled is still told; `over` is called after that.
    pub fn close_consumers(&self) {
        self.consumers.close();
        self.waits.close();
    }

    /// Answers when what was settled so far has been told to the server, or cannot be in time.
    pub fn told(&self, reply: Box<dyn FnOnce() + Send>) {
        let (consumers, timeout) = (self.consumers.clone(), self.asker.timeout);
        let keep = self.runtime.clone();
        match self.runtime.handle() {
            Ok(runtime) => {
                runtime.spawn(async move {
                    let _in_time = tokio::time::timeout(timeout, consumers.told()).await;
                    reply();
                    drop(keep);
                });
            }
            Err(_) => reply(),
        }
    }

    /// A number for [`Client::receive`].
    #[must_use]
    pub fn new_receiver(&self) -> Id {
        self.asker.env.random()
    }

    /// As [`crate::store::Store::receive`].
    pub fn receive(&self, id: Id, wish: Wish, once: bool, reply: Receive) {
        let (asker, waits, keep) = (self.asker.clone(), self.waits.clone(), self.runtime.clone());
        match self.runtime.handle() {
            Ok(runtime) => {
                waits.add(id);
                runtime.spawn(async move {
                    waits.receive(asker, (id, wish, once), reply).await;
                    drop(keep);
                });
            }
            Err(error) => reply(Err(error)),
        }
    }

    /// As [`crate::store::Store::receive_cancel`].
    pub fn receive_cancel(&self, id: Id) {
        self.waits.cancel(id);
    }
}
