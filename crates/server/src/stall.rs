//! A stream that fails when its other end stops reading.

use std::future::Future;
use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use openkv_core::model::ANSWER_STALL_MS_MAX;

/// The stream, and how long a write has waited.
pub(super) struct Stall<T> {
    stream: T,
    patience: Option<Pin<Box<Sleep>>>,
}

impl<T> Stall<T> {
    pub(super) fn new(stream: T) -> Self {
        Self { stream, patience: None }
    }

    /// Passes on the result of a write, unless it has waited for too long.
    fn judge<R>(&mut self, context: &mut Context<'_>, went: Poll<Result<R>>) -> Poll<Result<R>> {
        if went.is_ready() {
            self.patience = None;
            return went;
        }
        let most = Duration::from_millis(ANSWER_STALL_MS_MAX);
        let patience = self.patience.get_or_insert_with(|| Box::pin(sleep(most)));
        ready!(patience.as_mut().poll(context));
        Poll::Ready(Err(Error::new(ErrorKind::TimedOut, "the client has stopped reading")))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Stall<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Stall<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        let went = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judge(context, went)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let went = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.judge(context, went)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let went = Pin::new(&mut self.stream).poll_flush(context);
        self.judge(context, went)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let went = Pin::new(&mut self.stream).poll_shutdown(context);
        self.judge(context, went)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_is_dropped_and_a_slow_one_is_not() {
        let (ours, mut theirs) = tokio::io::duplex(10);
        let mut ours = Stall::new(ours);
        let wait = Duration::from_millis(ANSWER_STALL_MS_MAX - 1);
        let slow = tokio::spawn(async move {
            let mut piece = [0; 10];
            for _ in 0..3 {
                sleep(wait).await;
                theirs.read_exact(&mut piece).await.unwrap();
            }
            theirs
        });
        ours.write_all(&[7; 40]).await.unwrap();
        let theirs = slow.await.unwrap();
        let error = ours.write_all(&[7; 10]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        drop(theirs);
    }
}
