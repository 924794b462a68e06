//! Streams of messages from the server. A stream that ends is opened again while it has a
//! follower.
//!
//! Invariant: the next message is read once the follower has taken the one before. So a slow
//! follower holds up the server and costs no memory, and its pauses do not count as the server's
//! silence. The follower is notified of every end that it has not caused.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{StatusCode, Uri};
use tokio::time::{Instant, sleep, timeout};

use super::backoff;
use super::credentials::{Credentials, Grant};
use super::executor::{Needs, RequestExecutor, Try, judge};
use super::transport::refusal;
use openkv_core::codec::framing::Frames;
use openkv_core::model::{Error, Kind, Result, STREAM_STEADY_MS_MIN};
use openkv_wire::protocol::extension::{EXPIRIES_HEADER, FEED, FRAMES_TYPE};

/// The request for a stream.
pub(super) struct StreamRequest {
    pub(super) path: &'static str,
    /// Headers beside those of every request.
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// Whether it is for the server that gave the grant, not for that of strong reads.
    pub(super) of_source: bool,
    /// The extension that it needs; `None` for the protocol's own.
    pub(super) needs: Option<Needs>,
    pub(super) frame_bytes_max: usize,
    /// Silence after which the stream counts as dead, in ms.
    pub(super) silence_ms_max: u64,
}

/// Takes the messages of a stream.
pub(super) trait Follower: Send + Sync + 'static {
    /// The request for the next stream, or the error why there is none.
    fn request(&self, credentials: &Credentials, grant: &Grant) -> Result<StreamRequest>;

    /// Waits until the follower needs a stream.
    fn ready(&self) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Takes a message; the first of a stream is marked. Returns whether it is a change and not the
    /// repeated start of a stream.
    fn take(
        &self,
        message: Vec<u8>,
        is_first: bool,
    ) -> impl Future<Output = Result<bool, End>> + Send;

    /// The server has answered, but gives no stream at present.
    fn refused(&self) {}

    /// A stream has ended, or there is none, for this reason; the next one is requested.
    fn ended(&self, _why: &str) {}

    /// Whether to ask for no other stream.
    fn is_over(&self) -> bool {
        false
    }

    /// No message will follow.
    fn fail(&self, error: Error);
}

/// How a stream ended.
pub(super) enum End {
    /// Retry after at least this wait.
    Again(String, Duration),
    /// The token was rejected, or the endpoint does not serve reads: renew the metadata and retry
    /// once; then fail with this error.
    Refused(Error),
    Final(Error),
}

impl End {
    /// The end for a missing grant.
    fn of(error: Error) -> Self {
        match error.kind() {
            Kind::Unavailable => Self::Again(error.message().to_owned(), Duration::ZERO),
            _ => Self::Final(error),
        }
    }
}

/// Reads streams for the follower until this future is dropped.
pub(super) async fn follow<F: Follower>(executor: Arc<RequestExecutor>, follower: Arc<F>) {
    let mut following = pin!(go_on(&executor, &*follower));
    // After a panic the follower gets an error; otherwise its caller would wait forever.
    let ended = poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| following.as_mut().poll(context)));
        let panicked = |_| Poll::Ready(Err(Error::internal("reading a stream ended by a panic")));
        polled.unwrap_or_else(panicked)
    });
    if let Err(error) = ended.await {
        follower.fail(error);
    }
}

/// Asks for one stream after the other, until the follower is done or the error is final.
async fn go_on<F: Follower>(executor: &RequestExecutor, follower: &F) -> Result<()> {
    let mut course = Course::default();
    loop {
        follower.ready().await;
        if follower.is_over() {
            return Ok(());
        }
        let end = match executor.credentials.current(Instant::now() + executor.timeout).await {
            Ok(grant) => match stream(executor, follower, &grant, &mut course).await {
                End::Refused(error) if course.renewed => End::Final(error),
                End::Refused(_) if !follower.is_over() => {
                    let deadline = Instant::now() + executor.timeout;
                    match executor.credentials.newer_than(grant.number, deadline).await {
                        Ok(_) => {
                            course.renewed = true;
                            continue;
                        }
                        Err(error) => End::of(error),
                    }
                }
                end => end,
            },
            Err(error) => End::of(error),
        };
        match end {
            _ if follower.is_over() => return Ok(()),
            End::Again(why, least) => {
                follower.ended(&why);
                let pause = course.pause(least, executor.env.random());
                tracing::debug!(why, ?pause, "a stream is opened again");
                sleep(pause).await;
            }
            End::Refused(error) | End::Final(error) => return Err(error),
        }
    }
}

/// The progress over several streams.
#[derive(Debug, Default)]
struct Course {
    /// Pauses since a stream was last useful.
    tries: u32,
    /// The token was just renewed, because the server rejected the one before.
    renewed: bool,
}

impl Course {
    /// Records a message.
    fn heard(&mut self, is_change: bool) {
        self.renewed = false;
        if is_change {
            self.tries = 0;
        }
    }

    /// Records the end of a stream. A server that ends streams right after their start gets longer
    /// pauses.
    fn lasted(&mut self, time: Duration) {
        if time >= Duration::from_millis(STREAM_STEADY_MS_MIN) {
            self.tries = 0;
        }
    }

    /// The wait before the next stream. After a pause, earlier rejections of a token do not count.
    fn pause(&mut self, least: Duration, random: u64) -> Duration {
        let wait = backoff::delay(self.tries, random).max(least);
        self.tries = self.tries.saturating_add(1);
        self.renewed = false;
        wait
    }
}

async fn stream<F: Follower>(
    executor: &RequestExecutor,
    follower: &F,
    grant: &Grant,
    course: &mut Course,
) -> End {
    let StreamRequest {
        path,
        headers: further,
        body,
        of_source,
        needs,
        frame_bytes_max,
        silence_ms_max,
    } = match follower.request(&executor.credentials, grant) {
        Ok(request) => request,
        Err(error) => return End::Final(error),
    };
    let mut headers = grant.headers.clone();
    headers.extend(further);
    if let Some(needs) = &needs {
        if !grant.offers(needs.extension) {
            return End::Final(executor.credentials.lacks(needs.what));
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(FRAMES_TYPE));
    }
    if path == FEED {
        let name = HeaderName::from_static(EXPIRIES_HEADER);
        headers.insert(name, HeaderValue::from_static("1"));
    }
    let endpoint = if of_source { grant.source_endpoint() } else { grant.strong() };
    let Some(endpoint) = endpoint else {
        return End::Final(executor.credentials.no_endpoint());
    };
    let Ok(uri) = format!("{endpoint}/{path}").parse::<Uri>() else {
        return End::Final(Error::corrupt(format!("{endpoint} cannot be requested")));
    };
    let deadline = Instant::now() + executor.timeout;
    let answer = executor.transport.stream(&uri, headers, body, deadline).await;
    let (answer, _seat) = match answer {
        Ok(answer) => answer,
        Err(fault) => {
            executor.credentials.doubt(grant, endpoint);
            return End::Again(fault.why(), Duration::ZERO);
        }
    };
    let (head, body) = answer.into_parts();
    if head.status == StatusCode::OK {
        executor.credentials.trust(grant, endpoint);
        let begun = Instant::now();
        let silence = Duration::from_millis(silence_ms_max);
        let end = messages(follower, body, (frame_bytes_max, silence), course).await;
        course.lasted(begun.elapsed());
        return end;
    }
    follower.refused();
    if let (Some(needs), StatusCode::NOT_FOUND) = (&needs, head.status) {
        return End::Final(executor.credentials.lacks(needs.what));
    }
    let text = refusal(body, deadline).await;
    let judged = judge(endpoint, head.status, &head.headers, &text);
    if judged.should_refresh_metadata() {
        executor.credentials.doubt(grant, endpoint);
    }
    match judged {
        Try::Unavailable(why, least) | Try::Later(why, least) => End::Again(why, least),
        // A request for a stream changes nothing.
        Try::Unreached(why) | Try::Lost(why) => End::Again(why, Duration::ZERO),
        Try::Unauthorized(why) => End::Refused(Error::denied(why)),
        Try::Refused(error) => End::Final(error),
        Try::Answered(_) => End::Again("no answer".into(), Duration::ZERO),
    }
}

/// Takes messages until the stream ends, or is silent for too long.
async fn messages<F: Follower>(
    follower: &F,
    mut body: Incoming,
    (frame_bytes_max, silence): (usize, Duration),
    course: &mut Course,
) -> End {
    let mut is_first = true;
    let mut frames = Frames::up_to(frame_bytes_max);
    loop {
        let piece = match timeout(silence, body.frame()).await {
            Err(_) => return End::Again("silent".into(), Duration::ZERO),
            Ok(None) => return End::Again("the stream has ended".into(), Duration::ZERO),
            Ok(Some(Err(error))) => return End::Again(error.to_string(), Duration::ZERO),
            Ok(Some(Ok(piece))) => piece,
        };
        let Some(data) = piece.data_ref() else { continue };
        frames.push(data);
        loop {
            match frames.next_message() {
                Ok(None) => break,
                Ok(Some(message)) if message.is_empty() => {}
                Ok(Some(message)) => match follower.take(message, is_first).await {
                    Ok(is_change) => {
                        course.heard(is_change);
                        is_first = false;
                    }
                    Err(end) => return end,
                },
                Err(error) => return End::Final(Error::corrupt(error.message())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Builder;

    use super::*;
    use crate::remote::cancel::Cancel;
    use crate::remote::credentials::Opening;
    use crate::remote::sources::Servers;
    use crate::remote::transport::Transport;

    struct Nobody {
        is_over: bool,
        failure: parking_lot::Mutex<Option<Error>>,
    }

    impl Follower for Nobody {
        fn request(&self, _: &Credentials, _: &Grant) -> Result<StreamRequest> {
            Err(Error::closed())
        }

        async fn ready(&self) {
            assert!(self.is_over, "a bug");
        }

        async fn take(&self, _: Vec<u8>, _: bool) -> Result<bool, End> {
            Ok(false)
        }

        fn is_over(&self) -> bool {
            self.is_over
        }

        fn fail(&self, error: Error) {
            *self.failure.lock() = Some(error);
        }
    }

    struct Still;

    impl openkv_core::model::Env for Still {
        fn now_ms(&self) -> i64 {
            0
        }

        fn random(&self) -> u64 {
            0
        }
    }

    /// The error for a panic of the reading task.
    fn end_of(is_over: bool) -> Option<Error> {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let transport = Arc::new(Transport::new().unwrap());
        let (env, urls) = (Arc::new(Still), ["http://127.0.0.1:9/".to_owned()]);
        let credentials = Credentials::new(
            transport.clone(),
            env.clone(),
            (Servers::At(&urls), "token"),
            Opening::Once,
        )
        .unwrap();
        let patience = Duration::from_secs(60);
        let cancel = Cancel::default();
        let executor =
            RequestExecutor::new(transport, Arc::new(credentials), env, patience, cancel);
        let executor = Arc::new(executor);
        let follower = Arc::new(Nobody { is_over, failure: Default::default() });
        let following = async { timeout(patience / 2, follow(executor, follower.clone())).await };
        runtime.block_on(following).unwrap();
        follower.failure.lock().take()
    }

    #[test]
    fn a_panic_ends_the_stream_with_an_error() {
        // A watch whose task had ended never answered.
        assert_eq!(end_of(false).unwrap().kind(), Kind::Internal);
    }

    #[test]
    fn a_finished_follower_requests_no_stream() {
        assert_eq!(end_of(true), None);
    }

    #[test]
    fn short_streams_are_reopened_with_growing_pauses() {
        let mut course = Course::default();
        let mut pauses = |is_change: bool, lasted: u64| {
            course.heard(is_change);
            course.lasted(Duration::from_millis(lasted));
            course.pause(Duration::ZERO, 0).as_millis()
        };
        assert_eq!((0..4).map(|_| pauses(false, 0)).collect::<Vec<_>>(), [50, 100, 200, 400]);
        assert_eq!((pauses(true, 0), pauses(true, 0)), (50, 50), "it had changes");
        assert_eq!((pauses(false, 0), pauses(false, STREAM_STEADY_MS_MIN - 1)), (100, 200));
        assert_eq!(pauses(false, STREAM_STEADY_MS_MIN), 50, "it has lasted");
    }

    #[test]
    fn a_rejected_token_is_final_only_after_its_renewal() {
        let mut course = Course { renewed: true, ..Course::default() };
        course.pause(Duration::ZERO, 0);
        assert!(!course.renewed);
    }
}
