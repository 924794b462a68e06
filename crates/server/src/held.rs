//! The place of a request among the running ones, held until its answer is sent or dropped.

use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::Response;
use hyper::body::{Body as HttpBody, Bytes, Frame, SizeHint};

use super::answer::{Answer, RoutedBody};
use super::memory::RequestPermit;

/// A body that keeps its request's place among the running ones until it is dropped.
struct Held<B> {
    body: B,
    _permit: RequestPermit,
}

impl<B: HttpBody<Data = Bytes> + Unpin> HttpBody for Held<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The answer in the form of the router, with the permit of its request.
pub(super) fn routed(answer: Answer, permit: Option<RequestPermit>) -> Response<RoutedBody> {
    answer.map(|body| match permit {
        Some(permit) => RoutedBody::new(Held { body, _permit: permit }),
        None => RoutedBody::new(body),
    })
}

/// An answer of the router, with the permit of its request.
pub(super) fn held(answer: Response<RoutedBody>, permit: RequestPermit) -> Response<RoutedBody> {
    answer.map(|body| RoutedBody::new(Held { body, _permit: permit }))
}
