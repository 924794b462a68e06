//! Endless answers: sent piece by piece as the connection takes them, with a keep-alive in silence.
//! They end with the token, the database or the server.
//!
//! Invariant: a piece is produced once the connection wants it. So a slow client costs the memory of one
//! piece, the one in transfer, and one that takes nothing none: the HTTP library asks for one piece before it knows
//! whether the client takes any, and that is a keep-alive.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use hyper::body::Bytes;
use tokio::sync::{mpsc, watch as flag};
use tokio::time::{Instant, Interval, MissedTickBehavior, Sleep, interval_at, sleep};

use super::Serving;
use super::answer::{Answer, Body, Pieces, Wanted, answer};
use super::data::Client;
use super::database::Database;
use super::read_server::InUse;
use openkv_core::codec::framing::KEEP_ALIVE;
use openkv_core::model::ALIVE_INTERVAL_MS;
use openkv_wire::connect::versions::STREAM_TYPE;

/// The source of a stream. Dropped whenever the stream ends.
pub(super) trait Source: Send + 'static {
    /// The next piece; `None` at the end. The future may be dropped and the method called again.
    fn next(&mut self) -> impl Future<Output = Option<Bytes>> + Send;

    /// The keep-alive piece.
    fn alive(&mut self) -> Bytes {
        Bytes::from_static(&KEEP_ALIVE)
    }
}

/// The right of a stream to continue.
pub(super) struct Leave {
    expiry: Pin<Box<Sleep>>,
    closing: flag::Receiver<bool>,
    changed: flag::Receiver<()>,
    database: Arc<Database>,
    issued_for: [u8; 8],
    /// Whether only the server that leads the database may continue it.
    of_leader: bool,
    /// On a read server: its token is in use, so the server asks the primary about it again.
    _in_use: Option<InUse>,
}

impl Leave {
    /// The right of a stream that writes: it ends when another server leads the database.
    pub(super) fn of_leader(client: &Client) -> Self {
        Self { of_leader: true, ..Self::new(client) }
    }

    pub(super) fn new(Client { serving, database, grant, in_use, .. }: &Client) -> Self {
        let left = u64::try_from(grant.expires_at_ms - serving.catalog.now_ms()).unwrap_or(0);
        Self {
            expiry: Box::pin(sleep(Duration::from_millis(left))),
            closing: serving.closing.subscribe(),
            changed: database.changed.subscribe(),
            database: database.clone(),
            issued_for: grant.issued_for,
            of_leader: false,
            _in_use: in_use.clone(),
        }
    }

    /// Whether it still stands.
    pub(super) fn holds(&self) -> bool {
        let led_by_another = self.of_leader && self.database.known_leader().is_some();
        !led_by_another && !*self.closing.borrow() && self.database.has_token(self.issued_for)
    }

    /// Waits until the right ends.
    pub(super) async fn over(&mut self) {
        while self.holds() {
            let change = tokio::select! {
                () = &mut self.expiry => return,
                change = self.closing.changed() => change,
                change = self.changed.changed() => change,
            };
            if change.is_err() {
                return;
            }
        }
    }
}

/// The keep-alive clock, with the same moments for all streams: a process with many streams wakes
/// up once for all, and a connection sends its pieces together.
pub(super) fn signs(serving: &Serving, interval_ms: u64) -> Interval {
    let pace = Duration::from_millis(interval_ms);
    let (begun, now) = (serving.begun, Instant::now());
    let passed = u64::try_from((now - begun).as_millis()).unwrap_or(0) % interval_ms;
    let mut signs = interval_at(now + (pace - Duration::from_millis(passed)), pace);
    signs.set_missed_tick_behavior(MissedTickBehavior::Skip);
    signs
}

/// Starts a stream.
pub(super) fn stream(client: &Client, source: impl Source) -> Answer {
    stream_with(client, ALIVE_INTERVAL_MS, source)
}

/// Starts a stream with this interval of keep-alives.
pub(super) fn stream_with(client: &Client, interval_ms: u64, source: impl Source) -> Answer {
    let (sender, wanted, pieces) = Pieces::new();
    let signs = signs(&client.serving, interval_ms);
    tokio::spawn(tell(Leave::new(client), signs, source, (sender, wanted)));
    answer(StatusCode::OK, STREAM_TYPE, Body::Stream(pieces))
}

async fn tell(
    mut leave: Leave,
    mut signs: Interval,
    mut source: impl Source,
    (pieces, wanted): (mpsc::Sender<Bytes>, Arc<Wanted>),
) {
    if pieces.send(source.alive()).await.is_err() {
        return;
    }
    while leave.holds() {
        let place = tokio::select! {
            place = pieces.reserve() => place,
            () = leave.over() => return,
        };
        let Ok(place) = place else { return };
        tokio::select! {
            () = wanted.wait() => {}
            () = pieces.closed() => return,
            () = leave.over() => return,
        }
        let piece = tokio::select! {
            piece = source.next() => piece,
            _ = signs.tick() => Some(source.alive()),
            () = pieces.closed() => return,
            () = leave.over() => return,
        };
        let Some(piece) = piece else { return };
        place.send(piece);
    }
}
