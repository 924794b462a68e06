//! The rest of a body whose request is answered already.
//!
//! Duty: discards it, so that a client that is still sending gets the answer. A server that closes a socket with
//! unread bytes resets the connection, and the client may lose the answer with it. A connection whose body is
//! discarded to its end serves the next request.
//! Invariant: bounded in bytes and time; no byte is kept.
//! Never: an invitation to send a body that the client holds back (`Expect: 100-continue`).

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::header::EXPECT;
use hyper::{Request, Version};
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::answer::RoutedBody;
use openkv_core::model::{UNREAD_BODY_BYTES_MAX, UNREAD_BODY_MS_MAX};

/// A body in HTTP/1.1 whose rest is discarded when it is dropped.
struct ReadOut {
    /// `None` once it has ended.
    body: Option<Incoming>,
    /// Whether the client sends it only when it is read.
    is_held_back: bool,
}

/// The request in the form of the router. HTTP/2 ends a single body without its connection.
pub(super) fn request(request: Request<Incoming>) -> Request<RoutedBody> {
    if request.version() >= Version::HTTP_2 || request.body().is_end_stream() {
        return request.map(RoutedBody::new);
    }
    let is_held_back = request.headers().contains_key(EXPECT);
    request.map(|body| RoutedBody::new(ReadOut { body: Some(body), is_held_back }))
}

impl Body for ReadOut {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.is_held_back = false;
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let polled = Pin::new(body).poll_frame(context);
        if let Poll::Ready(None | Some(Err(_))) = &polled {
            self.body = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

impl Drop for ReadOut {
    fn drop(&mut self) {
        let Some(body) = self.body.take().filter(|body| !body.is_end_stream()) else { return };
        if !self.is_held_back
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(timeout(Duration::from_millis(UNREAD_BODY_MS_MAX), discarded(body)));
        }
    }
}

async fn discarded(mut body: Incoming) {
    let mut bytes = 0;
    while bytes < UNREAD_BODY_BYTES_MAX
        && let Some(Ok(frame)) = body.frame().await
    {
        bytes += frame.data_ref().map_or(0, Bytes::len);
    }
}
