//! Bodies that a thread produces, and whose end says that they are complete. Without it the connection
//! breaks off, so that no client takes a part for the whole.
//!
//! Invariant: a body ends early once its client has gone, takes nothing for too long, or has lost its
//! right, or once the server closes.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::Bytes;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::{interval, sleep};

use super::answer::{BrokenOff, DrawChecked};
use super::data::Client;
use super::stream::Leave;
use openkv_core::model::{ANSWER_PIECE_BYTES, ANSWER_STALL_MS_MAX, Error, LOG_LOOK_MS, Result};
use openkv_store::{CallerLiveness, Patience};

/// Pieces between the thread and the connection.
const PIECES_MAX: usize = 2;

enum Piece {
    Data(Bytes),
    /// The body is complete.
    End,
    Failed(Error),
}

/// The body.
pub(super) struct CheckedBody {
    first: Option<Piece>,
    rest: mpsc::Receiver<Piece>,
    ended: bool,
    /// The bytes that the connection has taken.
    taken: Arc<AtomicU64>,
}

impl CheckedBody {
    /// Waits for the first piece.
    ///
    /// # Errors
    /// That of a body which has failed before.
    pub(super) async fn begun(mut self) -> Result<Self> {
        match self.rest.recv().await {
            Some(Piece::Failed(error)) => Err(error),
            None => Err(Error::internal("an answer ended before it began")),
            first => Ok(Self { first, ..self }),
        }
    }
}

impl DrawChecked for CheckedBody {
    fn begun(&self) -> u64 {
        match &self.first {
            Some(Piece::Data(bytes)) => bytes.len() as u64,
            Some(Piece::End | Piece::Failed(_)) | None => 0,
        }
    }

    fn draw(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Bytes, BrokenOff>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let piece = match self.first.take() {
            Some(first) => Poll::Ready(Some(first)),
            None => self.rest.poll_recv(context),
        };
        piece.map(|piece| match piece {
            Some(Piece::Data(bytes)) => {
                self.taken.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                Some(Ok(bytes))
            }
            Some(Piece::End) => {
                self.ended = true;
                None
            }
            Some(Piece::Failed(error)) => {
                tracing::warn!(%error, "an answer broke off");
                Some(Err(BrokenOff))
            }
            None => Some(Err(BrokenOff)),
        })
    }
}

/// The sending end, for a thread that may wait.
pub(super) struct PieceSender {
    pieces: mpsc::Sender<Piece>,
    taken: Arc<AtomicU64>,
    leave: Leave,
    runtime: Handle,
    /// The patience of a body out of a snapshot, which must not wait for longer.
    patience: Option<Arc<Patience>>,
    /// Something was not sent. The body is not complete, whatever its client takes later.
    gave_up: bool,
}

/// Waits for a future, as long as the client takes pieces and the snapshot behind them lasts; `None` if not.
pub(super) async fn while_lasting<T>(
    patience: Option<&Patience>,
    future: impl Future<Output = T>,
) -> Option<T> {
    let stall = sleep(Duration::from_millis(ANSWER_STALL_MS_MAX));
    let mut looks = interval(Duration::from_millis(LOG_LOOK_MS));
    tokio::pin!(future, stall);
    loop {
        tokio::select! {
            biased;
            done = &mut future => return Some(done),
            () = &mut stall => return None,
            _ = looks.tick(), if patience.is_some() => {
                if !patience.is_none_or(Patience::lasts) {
                    return None;
                }
            }
        }
    }
}

impl PieceSender {
    /// A body, on the runtime of the caller.
    pub(super) fn new(client: &Client) -> (Self, CheckedBody) {
        let (pieces, rest) = mpsc::channel(PIECES_MAX);
        let (leave, runtime) = (Leave::new(client), Handle::current());
        let taken = Arc::<AtomicU64>::default();
        let body = CheckedBody { first: None, rest, ended: false, taken: taken.clone() };
        (Self { pieces, taken, leave, runtime, patience: None, gave_up: false }, body)
    }

    /// Waits for the client no longer than this lasts.
    pub(super) fn within(&mut self, patience: &Arc<Patience>) {
        self.patience = Some(patience.clone());
    }

    /// Whether the client still wants the body.
    pub(super) fn liveness(&self) -> CallerLiveness {
        let pieces = self.pieces.downgrade();
        Arc::new(move || pieces.upgrade().is_some_and(|pieces| !pieces.is_closed()))
    }

    /// Sends bytes; `false` if the body is over.
    pub(super) fn send(&mut self, mut bytes: Bytes) -> bool {
        while !bytes.is_empty() {
            let len = bytes.len().min(ANSWER_PIECE_BYTES);
            if !self.put(Piece::Data(bytes.split_to(len))) {
                return false;
            }
        }
        true
    }

    /// Ends a complete body, and waits until the connection needs it no longer. A body whose length is
    /// known may be dropped without a look at its end.
    pub(super) fn end(mut self) {
        // The snapshot is released.
        self.patience = None;
        let pieces = self.pieces.clone();
        if !self.put(Piece::End) {
            return;
        }
        self.wait_for(async move { pieces.closed().await });
    }

    /// The number of bytes that the connection has taken.
    pub(super) fn taken(&self) -> Arc<AtomicU64> {
        self.taken.clone()
    }

    /// The runtime of the connection.
    pub(super) fn runtime(&self) -> Handle {
        self.runtime.clone()
    }

    /// Breaks the body off.
    pub(super) fn fail(mut self, error: Error) {
        (self.patience, self.gave_up) = (None, false);
        self.put(Piece::Failed(error));
    }

    fn put(&mut self, piece: Piece) -> bool {
        self.gave_up = self.gave_up || !self.try_put(piece);
        !self.gave_up
    }

    fn try_put(&mut self, piece: Piece) -> bool {
        if !self.leave.holds() {
            return false;
        }
        let piece = match self.pieces.try_send(piece) {
            Ok(()) => return true,
            Err(TrySendError::Closed(_)) => return false,
            Err(TrySendError::Full(piece)) => piece,
        };
        let pieces = self.pieces.clone();
        self.wait_for(async move { pieces.send(piece).await.is_ok() }).unwrap_or(false)
    }

    /// Waits for a future, as long as the client keeps its right and takes pieces; `None` if it does not.
    pub(super) fn wait_for<T>(&mut self, future: impl Future<Output = T>) -> Option<T> {
        let (leave, patience) = (&mut self.leave, self.patience.as_deref());
        let done = match leave.holds() {
            true => self.runtime.block_on(async {
                tokio::select! {
                    done = while_lasting(patience, future) => done,
                    () = leave.over() => None,
                }
            }),
            false => None,
        };
        self.gave_up |= done.is_none();
        done
    }
}
