//! Streams of messages: asked for anew whenever they end, for as long as somebody follows.
//!
//! Invariant: the next message is read when the one before has been taken in, so who does not take
//! any holds up the server, not memory; and waiting for that is no silence of the server's.

use std::future::Future;
use std::sync::Arc;
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
use crate::model::{Error, Kind, Result, WATCH_SILENCE_MS_MAX};

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

    /// Takes in a message, of which the first of a stream is marked.
    fn take(
        &self,
        message: Vec<u8>,
        is_first: bool,
    ) -> impl Future<Output = Result<(), End>> + Send;

    /// The server has answered, and gives no stream for now.
    fn refused(&self) {}

    /// Whether no other stream is asked for when one has ended.
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
    /// The token was not accepted.
    Unauthorized(String),
    /// The endpoint does not read: another may.
    Disabled,
    Final(Error),
}

/// Follows the server for as long as this is not dropped.
pub(super) async fn follow<F: Follower>(asker: Arc<Asker>, follower: Arc<F>) {
    let mut tries = 0;
    let mut renewed = false;
    loop {
        follower.ready().await;
        let grant = match asker.credentials.current(Instant::now() + asker.timeout).await {
            Ok(grant) => grant,
            Err(error) if error.kind() == Kind::Unavailable => {
                pause(&asker, &mut tries, Duration::ZERO, error.message()).await;
                continue;
            }
            Err(error) => return follower.fail(error),
        };
        let mut heard = false;
        let end = stream(&asker, &*follower, &grant, &mut heard).await;
        if follower.is_over() {
            return;
        }
        if heard {
            (tries, renewed) = (0, false);
        }
        match end {
            End::Again(why, least) => pause(&asker, &mut tries, least, &why).await,
            End::Unauthorized(why) if renewed => {
                return follower.fail(Error::new(Kind::Denied, why));
            }
            End::Disabled if renewed => {
                let why = "Reads are disabled for this database";
                return follower.fail(Error::new(Kind::Unavailable, why));
            }
            End::Unauthorized(_) | End::Disabled => {
                renewed = true;
                let deadline = Instant::now() + asker.timeout;
                match asker.credentials.newer_than(grant.number, deadline).await {
                    Ok(_) => {}
                    Err(error) if error.kind() == Kind::Unavailable => {
                        renewed = false;
                        pause(&asker, &mut tries, Duration::ZERO, error.message()).await;
                    }
                    Err(error) => return follower.fail(error),
                }
            }
            End::Final(error) => return follower.fail(error),
        }
    }
}

async fn pause(asker: &Asker, tries: &mut u32, least: Duration, why: &str) {
    tracing::debug!(why, "a stream is asked for anew");
    let wait = backoff::delay(*tries, asker.env.random()).max(least);
    *tries = tries.saturating_add(1);
    sleep(wait).await;
}

async fn stream<F: Follower>(asker: &Asker, follower: &F, grant: &Grant, heard: &mut bool) -> End {
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
        return messages(follower, body, frame_bytes_max, heard).await;
    }
    follower.refused();
    if let (Some(needs), StatusCode::NOT_FOUND) = (&needs, head.status) {
        return End::Final(asker.credentials.lacks(needs.what));
    }
    let text = refusal(body, deadline).await;
    match stopped(endpoint, head.status, &head.headers, &text) {
        Stopped::Again(why, least) => End::Again(why, least),
        Stopped::Unauthorized(why) => End::Unauthorized(why),
        Stopped::Final(error) => End::Final(error),
    }
}

/// Takes in what comes until the stream ends, or is silent for too long.
async fn messages<F: Follower>(
    follower: &F,
    mut body: Incoming,
    frame_bytes_max: usize,
    heard: &mut bool,
) -> End {
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
                Ok(Some(message)) => {
                    if let Err(end) = follower.take(message, !*heard).await {
                        return end;
                    }
                    *heard = true;
                }
                Err(error) => return End::Final(Error::corrupt(error.message())),
            }
        }
    }
}
