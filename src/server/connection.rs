//! One connection: how slow its client may be, how much it may send ahead, and how it ends.
//!
//! Invariant: a connection on which nothing is under way ends by itself, and so does one whose
//! client takes nothing in; so all that a server has at one time are at work, or about to end.

use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::{Body as HttpBody, Bytes, Frame, Incoming, SizeHint};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep, timeout};

use super::Serving;
use super::answer::Body;
use super::route::answer;
use super::stall::Stall;
use crate::model::{
    ALIVE_INTERVAL_MS, ANSWER_PIECE_BYTES, ANSWER_STALL_MS_MAX, CONNECTION_IDLE_MS_MAX,
    REQUEST_HEAD_BYTES_MAX, REQUEST_HEAD_MS_MAX, STREAMS_PER_CONNECTION_MAX,
};

const HEAD_MAX: Duration = Duration::from_millis(REQUEST_HEAD_MS_MAX);
const IDLE_MAX: Duration = Duration::from_millis(CONNECTION_IDLE_MS_MAX);

/// What is under way on a connection.
struct Work {
    begun: Instant,
    requests: AtomicUsize,
    /// When the last request ended, in ms since the beginning; 0 before the first.
    idle_since_ms: AtomicU64,
    /// When the client last took a piece of an answer that goes out in several, by its number.
    taken: Mutex<HashMap<u64, Instant>>,
    last_number: AtomicU64,
}

impl Work {
    fn new() -> Self {
        Self {
            begun: Instant::now(),
            requests: AtomicUsize::new(0),
            idle_since_ms: AtomicU64::new(0),
            taken: Mutex::default(),
            last_number: AtomicU64::new(0),
        }
    }

    /// How long nothing has been under way; `None` while something is. A connection that has not
    /// asked for anything yet has less time for it.
    fn left(&self) -> Option<Duration> {
        if self.requests.load(Ordering::Acquire) > 0 {
            return None;
        }
        let since = self.idle_since_ms.load(Ordering::Acquire);
        let end = if since == 0 { HEAD_MAX } else { Duration::from_millis(since) + IDLE_MAX };
        Some(end.saturating_sub(self.begun.elapsed()))
    }
}

impl Work {
    /// Whether there is an answer of which nothing was taken in for too long. The socket does not
    /// tell with HTTP/2, where each answer has a window of its own.
    fn is_stalled(&self) -> bool {
        let most = Duration::from_millis(ANSWER_STALL_MS_MAX);
        self.taken.lock().values().any(|taken| taken.elapsed() >= most)
    }
}

/// Keeps a request among those under way until its answer has been taken in, or given up.
struct UnderWay {
    work: Arc<Work>,
    number: u64,
}

impl UnderWay {
    fn new(work: &Arc<Work>) -> Self {
        work.requests.fetch_add(1, Ordering::AcqRel);
        let number = work.last_number.fetch_add(1, Ordering::Relaxed);
        Self { work: work.clone(), number }
    }

    fn took(&self) {
        self.work.taken.lock().insert(self.number, Instant::now());
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.work.taken.lock().remove(&self.number);
        let now_ms = u64::try_from(self.work.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.work.idle_since_ms.store(now_ms.max(1), Ordering::Release);
        self.work.requests.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A body that is under way. A long one goes out in pieces, so that it is here, and not in buffers
/// of which nobody knows, for as long as the client takes.
struct Held {
    body: Body,
    rest: Bytes,
    under_way: UnderWay,
}

impl Held {
    fn piece(&mut self) -> Bytes {
        if self.rest.len() > ANSWER_PIECE_BYTES {
            // A stream may wait for its reader: it has a bound of its own, and others beside it.
            if self.body.is_whole() {
                self.under_way.took();
            }
            return self.rest.split_to(ANSWER_PIECE_BYTES);
        }
        std::mem::take(&mut self.rest)
    }
}

impl HttpBody for Held {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => self.rest = frame.into_data().unwrap_or_default(),
                None => return Poll::Ready(None),
            }
        }
        Poll::Ready(Some(Ok(Frame::data(self.piece()))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match self.body.size_hint().exact() {
            Some(bytes) => SizeHint::with_exact(bytes + self.rest.len() as u64),
            None => SizeHint::default(),
        }
    }
}

/// Serves one connection to its end.
pub(super) async fn connection(
    serving: Arc<Serving>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_MAX)
        .max_buf_size(REQUEST_HEAD_BYTES_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_PER_CONNECTION_MAX)
        .max_header_list_size(u32::try_from(REQUEST_HEAD_BYTES_MAX).unwrap_or(u32::MAX))
        .keep_alive_interval(Duration::from_millis(4 * ALIVE_INTERVAL_MS))
        .keep_alive_timeout(HEAD_MAX);
    let work = Arc::new(Work::new());
    let mut closing = serving.closing.subscribe();
    let service = {
        let work = work.clone();
        service_fn(move |request: Request<Incoming>| {
            let under_way = UnderWay::new(&work);
            let serving = serving.clone();
            async move {
                let answer = answer(serving, request).await;
                let held = |body| Held { body, rest: Bytes::new(), under_way };
                Ok::<Response<Held>, Infallible>(answer.map(held))
            }
        })
    };
    let serve = builder.serve_connection(TokioIo::new(Stall::new(stream)), service);
    tokio::pin!(serve);
    let look = sleep(HEAD_MAX);
    tokio::pin!(look);
    let mut idle = false;
    let ended = loop {
        if idle || *closing.borrow_and_update() {
            break None;
        }
        tokio::select! {
            ended = serve.as_mut() => break Some(ended),
            () = look.as_mut() => match work.left() {
                _ if work.is_stalled() => return,
                Some(Duration::ZERO) => idle = true,
                left => look.as_mut().reset(Instant::now() + left.unwrap_or(IDLE_MAX)),
            },
            _ = closing.changed() => {}
        }
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            serve.as_mut().graceful_shutdown();
            if idle {
                // Told that it is over, and not waited for if it does not care.
                match timeout(HEAD_MAX, serve).await {
                    Ok(ended) => ended,
                    Err(_) => return,
                }
            } else {
                serve.await
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended");
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::sync::mpsc;

    use super::*;

    #[test]
    fn a_stream_may_wait_for_its_reader_and_a_whole_answer_may_not() {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let paused = builder.enable_time().start_paused(true).build().unwrap();
        paused.block_on(async {
            let long = || Bytes::from(vec![7; 3 * ANSWER_PIECE_BYTES]);
            let (sender, pieces) = mpsc::channel(1);
            sender.send(long()).await.unwrap();
            for (body, stalls) in [(Body::Stream(pieces), false), (Body::Whole(Some(long())), true)]
            {
                let work = Arc::new(Work::new());
                let under_way = UnderWay::new(&work);
                let mut held = Held { body, rest: Bytes::new(), under_way };
                let piece = poll_fn(|context| Pin::new(&mut held).poll_frame(context)).await;
                let piece = piece.unwrap().unwrap().into_data().unwrap();
                assert_eq!(piece.len(), ANSWER_PIECE_BYTES);
                sleep(Duration::from_millis(ANSWER_STALL_MS_MAX)).await;
                assert_eq!(work.is_stalled(), stalls);
            }
            drop(sender);
        });
    }
}
