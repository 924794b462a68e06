//! Answers: whole bodies, streams, refusals.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use hyper::body::{Body as HttpBody, Bytes, Frame, Incoming, SizeHint};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER,
    WWW_AUTHENTICATE,
};
use hyper::{Method, Response, StatusCode};
use tokio::sync::{Notify, mpsc};

use openkv_core::model::{Capability, Error, Kind};

pub(super) use axum::Error as RoutedBodyError;
/// The body of an answer of the router.
pub(super) use axum::body::Body as RoutedBody;

/// The body of an answer.
pub(super) enum Body {
    Whole(Option<Bytes>),
    /// Ends when the sender is dropped.
    Stream(Pieces),
    /// Produced when the connection takes it.
    Drawn(Box<dyn Draw>),
    /// The body of another server's answer.
    Forwarded(Incoming),
    /// Complete only with its last piece; otherwise its connection breaks off, so that no client takes
    /// a part for the whole.
    Checked(Box<dyn DrawChecked>),
}

/// The pieces of a stream. Each is made once the connection wants it, so a client that takes none costs none.
pub(super) struct Pieces {
    rest: mpsc::Receiver<Bytes>,
    wanted: Arc<Wanted>,
}

/// Whether the connection waits for a piece.
#[derive(Default)]
pub(super) struct Wanted {
    is_waiting: AtomicBool,
    waits: Notify,
}

impl Pieces {
    /// A stream, its sender, and whether a piece is wanted.
    pub(super) fn new() -> (mpsc::Sender<Bytes>, Arc<Wanted>, Self) {
        let (sender, rest) = mpsc::channel(1);
        let wanted = Arc::<Wanted>::default();
        (sender, wanted.clone(), Self { rest, wanted })
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        // Before the sender learns that the last piece was taken.
        self.wanted.is_waiting.store(false, Ordering::SeqCst);
        let piece = self.rest.poll_recv(context);
        if piece.is_pending() {
            self.wanted.is_waiting.store(true, Ordering::SeqCst);
            self.wanted.waits.notify_one();
        }
        piece
    }
}

impl Wanted {
    /// Waits until the connection waits for a piece.
    pub(super) async fn wait(&self) {
        while !self.is_waiting.load(Ordering::SeqCst) {
            self.waits.notified().await;
        }
    }
}

/// A body that says whether it is complete.
pub(super) trait DrawChecked: Send {
    /// Bytes that are there already.
    fn begun(&self) -> u64;

    /// The next piece; `Ready(None)` at the end of the complete body.
    fn draw(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, BrokenOff>>>;
}

/// The sender of a body has given up before its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct BrokenOff;

impl fmt::Display for BrokenOff {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the answer broke off before its end")
    }
}

impl std::error::Error for BrokenOff {}

/// A body that needs to know whether the connection has taken it. Dropped with the request.
pub(super) trait Draw: Send {
    /// The next piece; `Ready(None)` at the end.
    fn draw(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>>;

    /// The number of bytes left, if known.
    fn left(&self) -> Option<u64> {
        None
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Stream(pieces) => {
                pieces.poll(context).map(|piece| piece.map(|bytes| Ok(Frame::data(bytes))))
            }
            Self::Drawn(body) => body.draw(context).map(|p| p.map(|bytes| Ok(Frame::data(bytes)))),
            // An answer that breaks off ends early, which its client notices by its length or form.
            Self::Forwarded(body) => {
                Pin::new(body).poll_frame(context).map(|frame| frame.and_then(Result::ok).map(Ok))
            }
            Self::Checked(body) => {
                body.draw(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::Stream(_) => SizeHint::default(),
            Self::Checked(body) => {
                let mut least = SizeHint::default();
                least.set_lower(body.begun());
                least
            }
            Self::Forwarded(body) => body.size_hint(),
            Self::Drawn(body) => body.left().map_or_else(SizeHint::default, SizeHint::with_exact),
        }
    }
}

pub(super) type Answer = Response<Body>;

/// An answer with this content type.
pub(super) fn answer(status: StatusCode, content_type: &'static str, body: Body) -> Answer {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let nosniff = HeaderName::from_static("x-content-type-options");
    headers.insert(nosniff, HeaderValue::from_static("nosniff"));
    answer
}

pub(super) fn whole(bytes: impl Into<Bytes>) -> Body {
    Body::Whole(Some(bytes.into()))
}

pub(super) fn text(status: StatusCode, text: impl Into<Bytes>) -> Answer {
    answer(status, "text/plain; charset=utf-8", whole(text))
}

/// Why a request is refused.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    text: Box<str>,
    pub(super) retry_after_s: Option<u64>,
    /// The kind of the error, for a refusal by the store.
    pub(super) kind: Option<Kind>,
    /// The capability that the store lacks for the request.
    pub(super) lacks: Option<Capability>,
    /// The methods of the path, with commas, if it does not have that of the request.
    allow: Option<Box<HeaderValue>>,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, text: impl Into<String>) -> Self {
        let text = text.into().into_boxed_str();
        Self { status, text, retry_after_s: None, kind: None, lacks: None, allow: None }
    }

    /// Of a path that has these methods.
    pub(super) fn not_allowed(methods: &[Method], text: impl Into<String>) -> Self {
        let names: Vec<_> = methods.iter().map(Method::as_str).collect();
        let allow = HeaderValue::from_str(&names.join(", ")).ok().map(Box::new);
        Self { allow, ..Self::new(StatusCode::METHOD_NOT_ALLOWED, text) }
    }

    pub(super) fn bad_request(text: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, text)
    }

    pub(super) fn unauthorized(text: &str) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, text)
    }

    /// The same answer for an unknown token, another database's token and an expired token.
    pub(super) fn wrong_token() -> Self {
        Self::unauthorized("Invalid access token.")
    }

    pub(super) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "Resource not found.")
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn retry(mut self, after_s: u64) -> Self {
        self.retry_after_s = Some(after_s);
        self
    }

    /// The same refusal with its text in other words.
    pub(super) fn reworded(self, words: impl FnOnce(&str) -> String) -> Self {
        Self { text: words(&self.text).into(), ..self }
    }

    /// Puts its place in front of its text.
    pub(super) fn within(self, place: &str) -> Self {
        Self { text: format!("{place}{}", self.text).into(), ..self }
    }

    /// The headers that go with its status.
    pub(super) fn put_headers(&self, headers: &mut HeaderMap) {
        if let Some(seconds) = self.retry_after_s {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        headers.extend(self.allow.as_deref().map(|methods| (ALLOW, methods.clone())));
    }

    pub(super) fn answer(self) -> Answer {
        let mut answer = text(self.status, self.text.to_string());
        self.put_headers(answer.headers_mut());
        answer
    }
}

/// Clients repeat a request after a 5xx status without end, so only an error that may pass has one.
impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let text = error.message();
        let status = StatusCode::from_u16(error.kind().http_status())
            .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let refusal = match error.kind() {
            Kind::Invalid
            | Kind::TooLarge
            | Kind::Range
            | Kind::Denied
            | Kind::Conflict
            | Kind::Unsupported
            | Kind::FeedGap
            | Kind::NotUnique => Self::new(status, text),
            Kind::Unavailable | Kind::Closed => {
                tracing::warn!(%error, "unavailable");
                Self::new(status, text).retry(1)
            }
            Kind::Corrupt => {
                tracing::error!(%error, "damaged");
                Self::new(status, text)
            }
            Kind::OutcomeUnknown | Kind::Internal => {
                tracing::error!(%error, "failed");
                Self::new(status, text)
            }
        };
        Self { kind: Some(error.kind()), lacks: error.lacks(), ..refusal }
    }
}
