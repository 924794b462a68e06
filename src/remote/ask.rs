//! One request to the server, tried until it is answered, until its time is up, or until another
//! try could do harm.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{StatusCode, Uri};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout_at};

use super::abandon::Abandon;
use super::backoff;
use super::credentials::{Credentials, Grant};
use super::extension::Needs;
use super::transport::{Fault, Transport, Way, collect, is_failure, refusal, retry_after};
use crate::connect::extension::{FRAMES_TYPE, LIMITS_HEADER, RESULTS_HEADER};
use crate::model::{Env, Error, Kind, REMOTE_ANSWER_BYTES_MAX, REMOTE_REQUESTS_MAX, Result};

/// Tries of the nearest endpoint before the strong one is asked instead.
const NEAREST_TRIES: u32 = 2;
/// A read that hangs is asked again after half of its time, but not sooner than this.
const READ_TRY_MIN: Duration = Duration::from_secs(1);

/// What a second try of a request can do; of several together, the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Again {
    /// Nothing: it is a read, or a write that only checks.
    Harmless,
    /// Nothing: its own checks refuse it if it has happened. Then nobody knows by whom.
    Guarded,
    /// Something.
    Harmful,
}

/// A request.
pub(super) struct Question {
    pub(super) path: Cow<'static, str>,
    pub(super) eventual: bool,
    pub(super) again: Again,
    /// Whether each try may take all of the time, however harmless another would be.
    pub(super) patient: bool,
    pub(super) body: Bytes,
    /// Whether it takes no place among those under way: it waits at the server, or must not wait here.
    pub(super) waits: bool,
    /// Which extension it is of; `None`: the protocol's own.
    pub(super) needs: Option<Needs>,
    /// For an extension: what the handle has made narrower.
    pub(super) limits: Option<HeaderValue>,
    /// Whether the answer may have every status of an outcome.
    pub(super) results: bool,
}

impl Question {
    /// One of the protocol's own.
    pub(super) fn plain(path: &'static str, eventual: bool, again: Again, body: Vec<u8>) -> Self {
        let (path, body) = (path.into(), Bytes::from(body));
        let (patient, waits) = (false, false);
        Self {
            path,
            eventual,
            again,
            patient,
            body,
            waits,
            needs: None,
            limits: None,
            results: false,
        }
    }

    /// One of an extension.
    pub(super) fn extension(
        path: impl Into<Cow<'static, str>>,
        again: Again,
        body: Vec<u8>,
        needs: Needs,
    ) -> Self {
        let (path, body, needs) = (path.into(), Bytes::from(body), Some(needs));
        let (eventual, patient, waits) = (false, false, false);
        Self { path, eventual, again, patient, body, waits, needs, limits: None, results: false }
    }

    fn headers(&self, grant: &Grant) -> HeaderMap {
        let mut headers = grant.headers.clone();
        if self.needs.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(FRAMES_TYPE));
        }
        if let Some(limits) = &self.limits {
            headers.insert(HeaderName::from_static(LIMITS_HEADER), limits.clone());
        }
        if self.results {
            let name = HeaderName::from_static(RESULTS_HEADER);
            headers.insert(name, HeaderValue::from_static("1"));
        }
        headers
    }
}

/// What the bytes of an answer say other than what was asked for.
pub(super) enum Unfit {
    /// Ask for new metadata, then again; else this.
    Disabled(Error),
    /// This.
    Final(Error),
    /// They say nothing.
    Malformed(String),
}

/// The way to one server.
pub(super) struct Asker {
    pub(super) transport: Arc<Transport>,
    pub(super) credentials: Arc<Credentials>,
    pub(super) env: Arc<dyn Env>,
    pub(super) timeout: Duration,
    under_way: Arc<Semaphore>,
    abandon: Abandon,
}

/// How far a request has come.
#[derive(Default)]
struct Course {
    /// The try under way, if there is one.
    way: Way,
    /// A try before it may have been carried out.
    lost: bool,
}

/// How one try went; what is said of it names the endpoint.
enum Try {
    Answered(Vec<u8>),
    /// The server was not reached, or has refused for now: nothing has happened.
    Later(String, Duration),
    /// Something may have happened.
    Lost(String),
    /// The token was not accepted.
    Unauthorized(String),
    Refused(Error),
}

impl Asker {
    pub(super) fn new(
        transport: Arc<Transport>,
        credentials: Arc<Credentials>,
        env: Arc<dyn Env>,
        timeout: Duration,
        abandon: Abandon,
    ) -> Self {
        let under_way = Arc::new(Semaphore::new(REMOTE_REQUESTS_MAX));
        Self { transport, credentials, env, timeout, under_way, abandon }
    }

    /// The same for a call that has waited so long already.
    pub(super) fn later_by(&self, waited: Duration) -> Self {
        let timeout = self.timeout.saturating_sub(waited);
        let (transport, credentials) = (self.transport.clone(), self.credentials.clone());
        let (env, under_way) = (self.env.clone(), self.under_way.clone());
        let abandon = self.abandon.clone();
        Self { transport, credentials, env, timeout, under_way, abandon }
    }

    pub(super) async fn is_abandoned(&self) {
        self.abandon.happens().await;
    }

    /// The answer, as `decode` reads it; and whether an earlier try may have been carried out too.
    pub(super) async fn ask<T>(
        &self,
        question: &Question,
        decode: impl Fn(&Grant, &[u8]) -> Result<T, Unfit>,
    ) -> Result<(T, bool)> {
        let mut course = Course::default();
        let answer = tokio::select! {
            biased;
            () = self.is_abandoned() => Err(Error::closed()),
            answer = self.in_turn(question, &mut course, decode) => answer,
        };
        let lost = course.lost || course.way.is_taken();
        match answer {
            Ok(answer) => Ok((answer, lost)),
            // A write that may have happened stays one, whatever was said later.
            Err(error) if lost && question.again != Again::Harmless => Err(unknown(&error)),
            Err(error) => Err(error),
        }
    }

    /// As [`Asker::ask`], when there is a place for one more request.
    async fn in_turn<T>(
        &self,
        question: &Question,
        course: &mut Course,
        decode: impl Fn(&Grant, &[u8]) -> Result<T, Unfit>,
    ) -> Result<T> {
        let deadline = Instant::now() + self.timeout;
        if question.waits {
            return self.tries(question, deadline, course, decode).await;
        }
        let Ok(Ok(_place)) = timeout_at(deadline, self.under_way.acquire()).await else {
            let why = format!("{REMOTE_REQUESTS_MAX} requests are under way already");
            return Err(Error::new(Kind::Unavailable, why));
        };
        self.tries(question, deadline, course, decode).await
    }

    async fn tries<T>(
        &self,
        question: &Question,
        deadline: Instant,
        course: &mut Course,
        decode: impl Fn(&Grant, &[u8]) -> Result<T, Unfit>,
    ) -> Result<T> {
        let mut renewed = false;
        let mut tries = 0;
        loop {
            let grant = self.credentials.current(deadline).await?;
            if let Some(needs) = &question.needs
                && !grant.offers(needs.extension)
            {
                return Err(self.credentials.lacks(needs.what));
            }
            let eventual = question.eventual && tries < NEAREST_TRIES;
            let Some(endpoint) = grant.endpoint(eventual) else {
                return Err(self.credentials.no_endpoint());
            };
            let done = self.once(question, &grant, endpoint, deadline, &mut course.way).await;
            course.way = Way::default();
            let (why, least) = match done {
                Try::Answered(bytes) => match decode(&grant, &bytes) {
                    Ok(answer) => return Ok(answer),
                    Err(Unfit::Final(error)) => return Err(error),
                    Err(Unfit::Disabled(error)) if renewed => return Err(error),
                    Err(Unfit::Disabled(_)) => {
                        renewed = true;
                        self.credentials.newer_than(grant.number, deadline).await?;
                        continue;
                    }
                    Err(Unfit::Malformed(why)) => {
                        let why = format!("{endpoint} answered what is not KV Connect: {why}");
                        if question.again == Again::Harmless {
                            return Err(Error::corrupt(why));
                        }
                        course.lost = true;
                        (why, Duration::ZERO)
                    }
                },
                Try::Refused(error) => return Err(error),
                Try::Unauthorized(why) if renewed => return Err(Error::new(Kind::Denied, why)),
                Try::Unauthorized(_) => {
                    renewed = true;
                    self.credentials.newer_than(grant.number, deadline).await?;
                    continue;
                }
                Try::Later(why, least) => (why, least),
                Try::Lost(why) => {
                    course.lost = true;
                    (why, Duration::ZERO)
                }
            };
            let error = Error::new(Kind::Unavailable, why);
            if course.lost && question.again == Again::Harmful {
                return Err(error);
            }
            let wait = backoff::delay(tries, self.env.random()).max(least);
            tries += 1;
            if wait >= deadline.saturating_duration_since(Instant::now()) {
                return Err(error);
            }
            sleep(wait).await;
        }
    }

    async fn once(
        &self,
        question: &Question,
        grant: &Grant,
        endpoint: &str,
        deadline: Instant,
        way: &mut Way,
    ) -> Try {
        let Ok(uri) = format!("{endpoint}/{}", question.path).parse::<Uri>() else {
            return Try::Refused(Error::corrupt(format!("{endpoint} cannot be requested")));
        };
        let deadline = match question.again {
            Again::Harmless if !question.patient => {
                let now = Instant::now();
                let half = deadline.saturating_duration_since(now) / 2;
                deadline.min(now + half.max(READ_TRY_MIN))
            }
            _ => deadline,
        };
        let (headers, body) = (question.headers(grant), question.body.clone());
        let answer = match self.transport.post(&uri, headers, body, deadline, way).await {
            Ok(answer) => answer,
            Err(Fault::Unsent(why)) => {
                return Try::Later(format!("{endpoint}: {why}"), Duration::ZERO);
            }
            Err(fault) => return Try::Lost(format!("{endpoint}: {}", fault.why())),
        };
        let (head, body) = answer.into_parts();
        if head.status == StatusCode::OK {
            let is = content_type(&head.headers);
            if is.is_some_and(|is| !PROTOBUF.iter().any(|known| is.starts_with(known))) {
                let is = is.unwrap_or_default();
                let why = format!("{endpoint} answered what is not KV Connect: content type {is}");
                return match question.again {
                    Again::Harmless => Try::Refused(Error::corrupt(why)),
                    _ => Try::Lost(why),
                };
            }
            return match collect(body, REMOTE_ANSWER_BYTES_MAX, deadline).await {
                Ok(bytes) => Try::Answered(bytes),
                Err(Fault::TooLarge(most)) if question.again == Again::Harmless => {
                    Try::Refused(Error::corrupt(format!(
                        "{endpoint} answered more than {most} bytes: ask for less at a time"
                    )))
                }
                Err(fault) => Try::Lost(format!("{endpoint}: {}", fault.why())),
            };
        }
        let text = refusal(body, deadline).await;
        match (&question.needs, head.status) {
            // An older server, which has the extension but not all that came to it later.
            (Some(needs), StatusCode::NOT_FOUND) => {
                return Try::Refused(self.credentials.lacks(needs.what));
            }
            // openkv's server says so of what the access token may, which a new one would not change.
            (Some(_), StatusCode::FORBIDDEN) => {
                let why = format!("{endpoint} answered {}: {text}", head.status);
                return Try::Refused(Error::new(Kind::Denied, why));
            }
            _ => {}
        }
        judge(endpoint, head.status, &head.headers, &text)
    }
}

const PROTOBUF: [&str; 3] =
    ["application/x-protobuf", "application/protobuf", "application/octet-stream"];

fn content_type(headers: &HeaderMap) -> Option<&str> {
    headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).map(str::trim)
}

/// What an answer other than 200 means.
fn judge(endpoint: &str, status: StatusCode, headers: &HeaderMap, text: &str) -> Try {
    let why = format!("{endpoint} answered {status}: {text}");
    let after = retry_after(headers);
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Try::Unauthorized(why),
        StatusCode::BAD_REQUEST if text.to_lowercase().contains("authorization") => {
            Try::Unauthorized(why)
        }
        StatusCode::TOO_MANY_REQUESTS => Try::Later(why, after.unwrap_or_default()),
        // A server that says when to come back has not begun; others may have.
        StatusCode::SERVICE_UNAVAILABLE if after.is_some() => {
            Try::Later(why, after.unwrap_or_default())
        }
        _ if is_failure(status) => Try::Lost(why),
        StatusCode::BAD_REQUEST
        | StatusCode::PAYLOAD_TOO_LARGE
        | StatusCode::UNPROCESSABLE_ENTITY => {
            Try::Refused(Error::invalid(format!("{text} ({endpoint} answered {status})")))
        }
        _ => Try::Refused(Error::corrupt(format!("{why}. Is this a KV Connect endpoint?"))),
    }
}

/// What a watch makes of an answer other than 200: whether it is worth another try.
pub(super) enum Stopped {
    Again(String, Duration),
    Unauthorized(String),
    Final(Error),
}

/// As [`judge`], for a request that changes nothing.
pub(super) fn stopped(
    endpoint: &str,
    status: StatusCode,
    headers: &HeaderMap,
    text: &str,
) -> Stopped {
    match judge(endpoint, status, headers, text) {
        Try::Later(why, least) => Stopped::Again(why, least),
        Try::Lost(why) => Stopped::Again(why, Duration::ZERO),
        Try::Unauthorized(why) => Stopped::Unauthorized(why),
        Try::Refused(error) => Stopped::Final(error),
        Try::Answered(_) => Stopped::Again("no answer".into(), Duration::ZERO),
    }
}

fn unknown(error: &Error) -> Error {
    let why = format!(
        "The write may or may not have happened, and sending it again could do it twice: read to \
         find out. {error}"
    );
    lost(&why)
}

/// Nobody knows what has happened.
pub(super) fn lost(why: &str) -> Error {
    Error::new(Kind::OutcomeUnknown, why)
}

/// A guarded write was sent more than once, and its check does not hold now.
pub(super) fn whose() -> Error {
    let why = "The answer to a write was lost; sent again, its check did not hold. Either it has \
               happened the first time, or somebody else was faster: read to find out";
    lost(why)
}
