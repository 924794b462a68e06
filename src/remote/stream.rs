//! Streams of messages: asked for anew whenever they end, for as long as somebody follows.
//!
//! Invariant: the next message is read when the one before has been taken in, so who does not take
//! any holds up the server, not memory; and waiting for that is no silence of the server's. However
//! following ends but by whoever follows, the follower is told.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{StatusCode, Uri};
use tokio::time::{Instant, sleep, timeout};

use super::ask::{Asker, Stopped, stopped};
use super::backoff;
use super::credentials::{Credentials, Grant};
use super::extension::Needs;
use super::transport::refusal;
use crate::connect::extension::FRAMES_TYPE;
use crate::connect::frames::Frames;
use crate::model::{Error, Kind, Result, STREAM_STEADY_MS_MIN, WATCH_SILENCE_MS_MAX};

/// What a stream is asked for with.
pub(super) struct Wish {
    pub(super) path: &'static str,
    pub(super) body: Bytes,
    /// Which extension it is of; `None`: the protocol's own.
    pub(super) needs: Option<Needs>,
    pub(super) frame_bytes_max: usize,
}

/// Who follows.
pub(super) trait Follower: Send + Sync + 'static {
    /// What to ask for now, or why that makes no sense.
    fn wish(&self, credentials: &Credentials, grant: &Grant) -> Result<Wish>;

    /// Waits until a stream is of use.
    fn ready(&self) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Takes in a message, of which the first of a stream is marked. Answers whether it is news,
    /// rather than what a stream begins with.
    fn take(
        &self,
        message: Vec<u8>,
        is_first: bool,
    ) -> impl Future<Output = Result<bool, End>> + Send;

    /// The server has answered, and gives no stream for now.
    fn refused(&self) {}

    /// Whether no other stream is to be asked for.
    fn is_over(&self) -> bool {
        false
    }

    /// There will be no more.
    fn fail(&self, error: Error);
}

/// How following a stream ended.
pub(super) enum End {
    /// Ask again, after this long at least.
    Again(String, Duration),
    /// The token was not accepted, or the endpoint does not read: ask for new metadata, then again;
    /// else this.
    Refused(Error),
    Final(Error),
}

impl End {
    /// That there is no grant.
    fn of(error: Error) -> Self {
        match error.kind() {
            Kind::Unavailable => Self::Again(error.message().to_owned(), Duration::ZERO),
            _ => Self::Final(error),
        }
    }
}

/// Follows the server for as long as this is not dropped.
pub(super) async fn follow<F: Follower>(asker: Arc<Asker>, follower: Arc<F>) {
    let mut following = pin!(go_on(&asker, &*follower));
    // Whoever waits for news would wait for ever if a panic were the end of it.
    let ended = poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| following.as_mut().poll(context)));
        let panicked = |_| Poll::Ready(Err(Error::internal("following a stream ended by a panic")));
        polled.unwrap_or_else(panicked)
    });
    if let Err(error) = ended.await {
        follower.fail(error);
    }
}

/// Asks for one stream after the other, until there is to be none, or nothing can give one.
async fn go_on<F: Follower>(asker: &Asker, follower: &F) -> Result<()> {
    let mut course = Course::default();
    loop {
        follower.ready().await;
        if follower.is_over() {
            return Ok(());
        }
        let end = match asker.credentials.current(Instant::now() + asker.timeout).await {
            Ok(grant) => match stream(asker, follower, &grant, &mut course).await {
                End::Refused(error) if course.renewed => End::Final(error),
                End::Refused(_) if !follower.is_over() => {
                    let deadline = Instant::now() + asker.timeout;
                    match asker.credentials.newer_than(grant.number, deadline).await {
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
                let pause = course.pause(least, asker.env.random());
                tracing::debug!(why, ?pause, "a stream is asked for anew");
                sleep(pause).await;
            }
            End::Refused(error) | End::Final(error) => return Err(error),
        }
    }
}

/// How following has gone so far.
#[derive(Debug, Default)]
struct Course {
    /// Pauses since a stream was last of use.
    tries: u32,
    /// The token is new, because the one before was not accepted.
    renewed: bool,
}

impl Course {
    /// A message has come.
    fn heard(&mut self, is_news: bool) {
        self.renewed = false;
        if is_news {
            self.tries = 0;
        }
    }

    /// A stream has ended: whoever breaks off at once, having said what every stream begins with,
    /// is left alone for longer each time.
    fn lasted(&mut self, time: Duration) {
        if time >= Duration::from_millis(STREAM_STEADY_MS_MIN) {
            self.tries = 0;
        }
    }

    /// How long to wait for the next one; what comes behind a pause has nothing to do with tokens
    /// that were refused before.
    fn pause(&mut self, least: Duration, random: u64) -> Duration {
        let wait = backoff::delay(self.tries, random).max(least);
        self.tries = self.tries.saturating_add(1);
        self.renewed = false;
        wait
    }
}

async fn stream<F: Follower>(
    asker: &Asker,
    follower: &F,
    grant: &Grant,
    course: &mut Course,
) -> End {
    let Wish { path, body, needs, frame_bytes_max } = match follower.wish(&asker.credentials, grant)
    {
        Ok(wish) => wish,
        Err(error) => return End::Final(error),
    };
    let mut headers = grant.headers.clone();
    if let Some(needs) = &needs {
        if !grant.offers(needs.extension) {
            return End::Final(asker.credentials.lacks(needs.what));
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(FRAMES_TYPE));
    }
    let Some(endpoint) = grant.endpoint(false) else {
        return End::Final(asker.credentials.no_endpoint());
    };
    let Ok(uri) = format!("{endpoint}/{path}").parse::<Uri>() else {
        return End::Final(Error::corrupt(format!("{endpoint} cannot be requested")));
    };
    let deadline = Instant::now() + asker.timeout;
    let answer = asker.transport.stream(&uri, headers, body, deadline).await;
    let (answer, _seat) = match answer {
        Ok(answer) => answer,
        Err(fault) => return End::Again(fault.why(), Duration::ZERO),
    };
    let (head, body) = answer.into_parts();
    if head.status == StatusCode::OK {
        let begun = Instant::now();
        let end = messages(follower, body, frame_bytes_max, course).await;
        course.lasted(begun.elapsed());
        return end;
    }
    follower.refused();
    if let (Some(needs), StatusCode::NOT_FOUND) = (&needs, head.status) {
        return End::Final(asker.credentials.lacks(needs.what));
    }
    let text = refusal(body, deadline).await;
    match stopped(endpoint, head.status, &head.headers, &text) {
        Stopped::Again(why, least) => End::Again(why, least),
        Stopped::Unauthorized(why) => End::Refused(Error::new(Kind::Denied, why)),
        Stopped::Final(error) => End::Final(error),
    }
}

/// Takes in what comes until the stream ends, or is silent for too long.
async fn messages<F: Follower>(
    follower: &F,
    mut body: Incoming,
    frame_bytes_max: usize,
    course: &mut Course,
) -> End {
    let mut is_first = true;
    let mut frames = Frames::up_to(frame_bytes_max);
    let silence = Duration::from_millis(WATCH_SILENCE_MS_MAX);
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
                    Ok(is_news) => {
                        course.heard(is_news);
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
    use crate::remote::abandon::Abandon;
    use crate::remote::transport::Transport;

    struct Nobody {
        is_over: bool,
        failure: parking_lot::Mutex<Option<Error>>,
    }

    impl Follower for Nobody {
        fn wish(&self, _: &Credentials, _: &Grant) -> Result<Wish> {
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

    impl crate::model::Env for Still {
        fn now_ms(&self) -> i64 {
            0
        }

        fn random(&self) -> u64 {
            0
        }
    }

    /// How following a server that is not there ends.
    fn end_of(is_over: bool) -> Option<Error> {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let transport = Arc::new(Transport::new().unwrap());
        let (env, url) = (Arc::new(Still), "http://127.0.0.1:9/");
        let credentials = Credentials::new(transport.clone(), env.clone(), url, "token").unwrap();
        let patience = Duration::from_secs(60);
        let abandon = Abandon::default();
        let asker = Asker::new(transport, Arc::new(credentials), env, patience, abandon);
        let asker = Arc::new(asker);
        let follower = Arc::new(Nobody { is_over, failure: Default::default() });
        let following = async { timeout(patience / 2, follow(asker, follower.clone())).await };
        runtime.block_on(following).unwrap();
        follower.failure.lock().take()
    }

    #[test]
    fn a_panic_is_told() {
        // A watch whose task was gone never answered.
        assert_eq!(end_of(false).unwrap().kind(), Kind::Internal);
    }

    #[test]
    fn who_wants_no_stream_any_more_asks_for_none() {
        assert_eq!(end_of(true), None);
    }

    #[test]
    fn streams_of_no_use_are_asked_for_less_and_less_often() {
        let mut course = Course::default();
        let mut pauses = |news: bool, lasted: u64| {
            course.heard(news);
            course.lasted(Duration::from_millis(lasted));
            course.pause(Duration::ZERO, 0).as_millis()
        };
        assert_eq!((0..4).map(|_| pauses(false, 0)).collect::<Vec<_>>(), [50, 100, 200, 400]);
        assert_eq!((pauses(true, 0), pauses(true, 0)), (50, 50), "it had news");
        assert_eq!((pauses(false, 0), pauses(false, STREAM_STEADY_MS_MIN - 1)), (100, 200));
        assert_eq!(pauses(false, STREAM_STEADY_MS_MIN), 50, "it has lasted");
    }

    #[test]
    fn a_token_is_refused_for_good_only_right_behind_its_renewal() {
        let mut course = Course { renewed: true, ..Course::default() };
        course.pause(Duration::ZERO, 0);
        assert!(!course.renewed);
    }
}
