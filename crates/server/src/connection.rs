//! One connection: its time limits, the bounds of what it sends, and its end.
//!
//! Invariant: a connection without a running request ends by itself, and so does one whose client
//! stops reading. So every open connection either works or ends soon.

use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use foldhash::fast::RandomState;
use hyper::body::{Body as HttpBody, Bytes, Frame, Incoming, SizeHint};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};

use super::Serving;
use super::answer::{RoutedBody, RoutedBodyError};
use super::memory::ConnectionRequests;
use super::route::{Routes, answer};
use super::slots::Slot;
use super::stall::Stall;
use openkv_core::model::{
    ALIVE_INTERVAL_MS, ANSWER_PIECE_BYTES, ANSWER_STALL_MS_MAX, ANSWERS_UNREAD_BYTES_MAX,
    ANSWERS_UNREAD_MS_MAX, CONNECTION_IDLE_MS_MAX, FAREWELL_MS_MAX, REQUEST_HEAD_BYTES_MAX,
    REQUEST_HEAD_MS_MAX, SHORT_BYTES_MAX, STREAMS_PER_CONNECTION_MAX,
};

const HEAD_MAX: Duration = Duration::from_millis(REQUEST_HEAD_MS_MAX);
const FAREWELL_MAX: Duration = Duration::from_millis(FAREWELL_MS_MAX);
const IDLE_MAX: Duration = Duration::from_millis(CONNECTION_IDLE_MS_MAX);

/// The running requests of a connection.
struct Work {
    begun: Instant,
    requests: AtomicUsize,
    /// When the last request ended, in ms since `begun`; 0 before the first.
    idle_since_ms: AtomicU64,
    /// Answers that the client has not read to the end, by request number.
    taken: Mutex<HashMap<u64, Rest, RandomState>>,
    last_number: AtomicU64,
    /// When the client last read some of any answer.
    read_at: Mutex<Instant>,
    /// Notified when so much is unread that the client has less time.
    piled: Notify,
}

/// The unread rest of an answer.
struct Rest {
    /// When the client last read some of it.
    taken: Instant,
    /// At least [`SHORT_BYTES_MAX`], which is what the answer may take uncounted.
    bytes: u64,
    /// The body, if the answer is a stream.
    stream: Option<Arc<Mutex<Flow>>>,
}

impl Work {
    fn new(begun: Instant) -> Self {
        Self {
            begun,
            requests: AtomicUsize::new(0),
            idle_since_ms: AtomicU64::new(0),
            taken: Mutex::default(),
            last_number: AtomicU64::new(0),
            read_at: Mutex::new(begun),
            piled: Notify::new(),
        }
    }

    /// The time left until the idle connection ends; `None` while a request runs. A connection
    /// before its first request has less time.
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
    /// Whether the client has read nothing of an answer for too long. With HTTP/2 the socket does
    /// not show that, because each answer has a window of its own. A stream may wait for its
    /// reader, but without memory: it is cut off, and the client asks again later.
    fn is_stalled(&self) -> bool {
        let pile_most = Duration::from_millis(ANSWERS_UNREAD_MS_MAX);
        if self.is_piled() && self.read_at.lock().elapsed() >= pile_most {
            return true;
        }
        let most = Duration::from_millis(ANSWER_STALL_MS_MAX);
        let mut cut = Vec::new();
        let stalled = {
            let mut taken = self.taken.lock();
            let late = taken.extract_if(|_, rest| rest.taken.elapsed() >= most);
            cut.extend(late.map(|(_, rest)| rest.stream));
            cut.iter().any(Option::is_none)
        };
        cut.into_iter().flatten().for_each(|flow| flow.lock().cut());
        stalled
    }
}

impl Work {
    /// Whether more is unread than a client may leave for [`ANSWER_STALL_MS_MAX`]. Streams drop what is unread.
    fn is_piled(&self) -> bool {
        unread_bytes(&self.taken.lock()) > ANSWERS_UNREAD_BYTES_MAX
    }

    /// How long until the connection is to be looked at while requests run.
    fn look_after(&self) -> Duration {
        if self.is_piled() { Duration::from_millis(ANSWERS_UNREAD_MS_MAX) } else { IDLE_MAX }
    }
}

fn unread_bytes(taken: &HashMap<u64, Rest, RandomState>) -> u64 {
    taken.values().filter(|rest| rest.stream.is_none()).map(|rest| rest.bytes).sum()
}

/// Marks a request as running until its answer is read or dropped.
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

    /// Records an answer of which the client has read nothing so far.
    fn begins(&self, bytes: u64) {
        let (taken, bytes) = (Instant::now(), bytes.max(SHORT_BYTES_MAX as u64));
        let mut all = self.work.taken.lock();
        if all.is_empty() {
            // The client had nothing to read before.
            *self.work.read_at.lock() = taken;
        }
        let before = unread_bytes(&all);
        all.insert(self.number, Rest { taken, bytes, stream: None });
        drop(all);
        if before <= ANSWERS_UNREAD_BYTES_MAX && before + bytes > ANSWERS_UNREAD_BYTES_MAX {
            self.work.piled.notify_one();
        }
    }

    /// Records that the client has read a part of this many bytes, and that more is left.
    fn took(&self, read: u64, stream: Option<Arc<Mutex<Flow>>>) {
        let taken = Instant::now();
        *self.work.read_at.lock() = taken;
        let mut all = self.work.taken.lock();
        let bytes = all.get(&self.number).map_or(0, |rest| rest.bytes).saturating_sub(read);
        let bytes = bytes.max(SHORT_BYTES_MAX as u64);
        all.insert(self.number, Rest { taken, bytes, stream });
    }

    fn took_all(&self) {
        self.work.taken.lock().remove(&self.number);
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.took_all();
        let now_ms = u64::try_from(self.work.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.work.idle_since_ms.store(now_ms.max(1), Ordering::Release);
        self.work.requests.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The outgoing body. A long piece goes out in several parts, so that the unsent part stays here
/// and not in buffers of the HTTP library.
struct Flow {
    body: RoutedBody,
    rest: Bytes,
}

impl Flow {
    /// Drops the unread part; the stream ends.
    fn cut(&mut self) {
        *self = Self { body: RoutedBody::empty(), rest: Bytes::new() };
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, RoutedBodyError>>> {
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => self.rest = frame.into_data().unwrap_or_default(),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
        let len = self.rest.len().min(ANSWER_PIECE_BYTES);
        Poll::Ready(Some(Ok(self.rest.split_to(len))))
    }
}

/// The end of a body, as far as the connection knows it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// It has so many bytes.
    Whole,
    /// It ends, and has bytes that wait to be read.
    Ends,
    /// It may wait for its reader, unless the reader has begun with a long piece.
    Goes,
}

/// A body in transfer.
struct TrackedBody {
    flow: Arc<Mutex<Flow>>,
    extent: Extent,
    under_way: UnderWay,
}

impl TrackedBody {
    fn new(body: RoutedBody, under_way: UnderWay) -> Self {
        let left = body.size_hint();
        let extent = match (left.exact(), left.lower()) {
            (Some(_), _) => Extent::Whole,
            (None, 0) => Extent::Goes,
            (None, _) => Extent::Ends,
        };
        let flow = Arc::new(Mutex::new(Flow { body, rest: Bytes::new() }));
        if left.lower() > 0 {
            under_way.begins(left.lower());
        }
        Self { flow, extent, under_way }
    }
}

impl HttpBody for TrackedBody {
    type Data = Bytes;
    type Error = RoutedBodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, RoutedBodyError>>> {
        let mut flow = self.flow.lock();
        let polled = flow.poll(context);
        let more = !flow.rest.is_empty();
        drop(flow);
        let Poll::Ready(piece) = polled else {
            // The client waits for the server.
            if self.extent == Extent::Ends {
                self.under_way.took_all();
            }
            return Poll::Pending;
        };
        let read = match &piece {
            Some(Ok(bytes)) => bytes.len() as u64,
            _ => 0,
        };
        match (self.extent, more) {
            (Extent::Whole, true) => self.under_way.took(read, None),
            (Extent::Whole, false) => *self.under_way.work.read_at.lock() = Instant::now(),
            (Extent::Ends, _) => self.under_way.took(read, None),
            (Extent::Goes, true) => self.under_way.took(read, Some(self.flow.clone())),
            (Extent::Goes, false) => self.under_way.took_all(),
        }
        Poll::Ready(piece.map(|piece| piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        let flow = self.flow.lock();
        flow.rest.is_empty() && flow.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let flow = self.flow.lock();
        match flow.body.size_hint().exact() {
            Some(bytes) if self.extent == Extent::Whole => {
                SizeHint::with_exact(bytes + flow.rest.len() as u64)
            }
            _ => SizeHint::default(),
        }
    }
}

/// The protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Http1,
    Http2,
    /// As its first bytes say. The buffer in which the library finds them costs 8 KiB more.
    Either,
}

impl Protocol {
    /// That of a client whose first bytes are these.
    pub(super) fn of(first: &[u8]) -> Self {
        match first {
            [b'P', b'R', b'I', ..] => Self::Http2,
            [_, _, _, ..] => Self::Http1,
            _ => Self::Either,
        }
    }
}

/// Serves one connection, which began at `begun`, to its end.
pub(super) async fn connection(
    (serving, routes): (Arc<Serving>, Routes),
    (stream, protocol): (impl AsyncRead + AsyncWrite + Unpin + Send + 'static, Protocol),
    slot: Arc<Slot>,
    begun: Instant,
) {
    let builder = Builder::new(TokioExecutor::new());
    let mut builder = match protocol {
        Protocol::Http1 => builder.http1_only(),
        Protocol::Http2 => builder.http2_only(),
        Protocol::Either => builder,
    };
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
    let work = Arc::new(Work::new(begun));
    let requests = Arc::<ConnectionRequests>::default();
    let mut closing = serving.closing.subscribe();
    let service = {
        let work = work.clone();
        service_fn(move |mut request: Request<Incoming>| {
            let under_way = UnderWay::new(&work);
            if !slot.is_authenticated() {
                request.extensions_mut().insert(slot.clone());
            }
            request.extensions_mut().insert(requests.clone());
            let answered = answer(&routes, request);
            async move {
                let answer = answered.await;
                let tracked = |body| TrackedBody::new(body, under_way);
                Ok::<Response<TrackedBody>, Infallible>(answer.map(tracked))
            }
        })
    };
    let serve = builder.serve_connection(TokioIo::new(Stall::new(stream)), service);
    tokio::pin!(serve);
    let look = sleep_until(begun + HEAD_MAX);
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
                left => look.as_mut().reset(Instant::now() + left.unwrap_or_else(|| work.look_after())),
            },
            () = work.piled.notified() => look.as_mut().reset(Instant::now() + work.look_after()),
            _ = closing.changed() => {}
        }
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            serve.as_mut().graceful_shutdown();
            // The server has announced the close. If it does not, the connection ends once no request
            // runs.
            loop {
                match timeout(FAREWELL_MAX, serve.as_mut()).await {
                    Ok(ended) => break ended,
                    Err(_) if work.left().is_some() || work.is_stalled() => return,
                    Err(_) => {}
                }
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

    use tokio::time::sleep;

    use super::*;
    use crate::answer::{Body, BrokenOff, Draw, DrawChecked, Pieces};

    async fn next(held: &mut TrackedBody) -> Option<Bytes> {
        let piece = poll_fn(|context| Pin::new(&mut *held).poll_frame(context)).await;
        piece.map(|piece| piece.unwrap().into_data().unwrap())
    }

    const LONG: usize = 3 * ANSWER_PIECE_BYTES;

    /// There was no time limit for an answer of one piece, nor for a body that is produced on
    /// demand.
    #[tokio::test(start_paused = true)]
    async fn an_unread_answer_ends_its_connection() {
        struct Parcel(Option<Bytes>);
        impl Draw for Parcel {
            fn draw(&mut self, _context: &mut Context<'_>) -> Poll<Option<Bytes>> {
                Poll::Ready(self.0.take())
            }

            fn left(&self) -> Option<u64> {
                Some(self.0.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
        }
        let parcel = |len| Body::Drawn(Box::new(Parcel(Some(Bytes::from(vec![7; len])))));
        let whole = |len| Body::Whole(Some(Bytes::from(vec![7; len])));
        for (body, begins) in [(whole(1), false), (whole(LONG), true), (parcel(LONG), true)] {
            let work = Arc::new(Work::new(Instant::now()));
            let mut held = TrackedBody::new(RoutedBody::new(body), UnderWay::new(&work));
            if begins {
                assert_eq!(next(&mut held).await.unwrap().len(), ANSWER_PIECE_BYTES);
            }
            assert!(!work.is_stalled());
            sleep(Duration::from_millis(ANSWER_STALL_MS_MAX)).await;
            assert!(work.is_stalled());
            drop(held);
            assert!(!work.is_stalled());
        }
    }

    /// A client of HTTP/2 with a window of 0 held hundreds of answers for [`ANSWER_STALL_MS_MAX`].
    #[tokio::test(start_paused = true)]
    async fn a_connection_with_many_unread_answers_ends_sooner() {
        let body = || RoutedBody::new(Body::Whole(Some(Bytes::from_static(b"short"))));
        let fits = ANSWERS_UNREAD_BYTES_MAX / SHORT_BYTES_MAX as u64;
        for (count, ends) in [(fits, false), (fits + 1, true)] {
            let work = Arc::new(Work::new(Instant::now()));
            sleep(Duration::from_secs(60)).await;
            let mut unread: Vec<_> =
                (0..count).map(|_| TrackedBody::new(body(), UnderWay::new(&work))).collect();
            sleep(Duration::from_millis(ANSWERS_UNREAD_MS_MAX - 1)).await;
            assert!(!work.is_stalled());
            assert_eq!(next(unread.last_mut().unwrap()).await.unwrap(), "short");
            sleep(Duration::from_millis(ANSWERS_UNREAD_MS_MAX - 1)).await;
            assert!(!work.is_stalled(), "it reads");
            sleep(Duration::from_millis(1)).await;
            assert_eq!(work.is_stalled(), ends);
        }
    }

    /// An export to a client with a window of 0 kept its pieces, and its connection, for as long as the client wanted.
    #[tokio::test(start_paused = true)]
    async fn an_unread_body_without_a_length_ends_its_connection() {
        struct Lines(Vec<Bytes>);
        impl DrawChecked for Lines {
            fn begun(&self) -> u64 {
                self.0.first().map_or(0, |line| line.len() as u64)
            }

            fn draw(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, BrokenOff>>> {
                self.0.pop().map_or(Poll::Pending, |line| Poll::Ready(Some(Ok(line))))
            }
        }
        for read in 0..=2 {
            let work = Arc::new(Work::new(Instant::now()));
            let lines = Lines(vec![Bytes::from_static(b"line"); 2]);
            let body = RoutedBody::new(Body::Checked(Box::new(lines)));
            let mut held = TrackedBody::new(body, UnderWay::new(&work));
            for _ in 0..read {
                sleep(Duration::from_millis(ANSWER_STALL_MS_MAX - 1)).await;
                assert!(!work.is_stalled(), "it reads");
                assert_eq!(next(&mut held).await.unwrap(), "line");
            }
            let waits = timeout(Duration::from_millis(1), next(&mut held));
            assert!(read < 2 || waits.await.is_err());
            sleep(Duration::from_millis(ANSWER_STALL_MS_MAX)).await;
            assert_eq!(
                work.is_stalled(),
                read < 2,
                "a client that waits for the server does not stall"
            );
        }
    }

    /// Unread pieces of streams were kept without a time limit.
    #[tokio::test(start_paused = true)]
    async fn a_stream_waits_for_its_reader_but_not_with_an_unread_piece() {
        let (sender, wanted, pieces) = Pieces::new();
        let work = Arc::new(Work::new(Instant::now()));
        let mut held =
            TrackedBody::new(RoutedBody::new(Body::Stream(pieces)), UnderWay::new(&work));
        let most = Duration::from_millis(ANSWER_STALL_MS_MAX);
        assert!(timeout(most, wanted.wait()).await.is_err(), "nothing is made for it");
        let sends = async |piece| {
            wanted.wait().await;
            sender.send(piece).await.unwrap();
        };
        let (piece, ()) = tokio::join!(next(&mut held), sends(Bytes::from_static(b"short")));
        assert_eq!(piece.unwrap(), "short");
        sleep(2 * most).await;
        assert!(!work.is_stalled(), "it waits");
        assert!(timeout(most, wanted.wait()).await.is_err(), "nothing more is made for it");
        let (piece, ()) = tokio::join!(next(&mut held), sends(Bytes::from(vec![7; LONG])));
        assert_eq!(piece.unwrap().len(), ANSWER_PIECE_BYTES);
        sleep(Duration::from_millis(ANSWER_STALL_MS_MAX)).await;
        assert!(!work.is_stalled(), "the connection has other requests");
        assert!(sender.is_closed(), "nothing is kept");
        assert_eq!(next(&mut held).await, None);
    }
}
