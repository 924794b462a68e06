//! One request to the server with its retries, until it is answered, its time is over, or a retry
//! is not safe.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{StatusCode, Uri};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout_at};

use super::backoff;
use super::cancel::Cancel;
use super::credentials::{Credentials, Grant};
use super::trace::TraceHeaders;
use super::transport::{Fault, Transport, Way, collect, is_failure, refusal, retry_after};
use openkv_core::model::{
    Env, Error, Kind, METADATA_INTERVAL_MS_MIN, REMOTE_ANSWER_BYTES_MAX, REMOTE_REQUESTS_MAX,
    Result, Versionstamp,
};
use openkv_wire::protocol::RetrySafety;
use openkv_wire::protocol::extension::{
    FRAMES_TYPE, KINDS_HEADER, LIMITS_HEADER, REPEATED_HEADER, RESULTS_HEADER, SEEN_HEADER,
    write_kinds,
};

/// The extension that a request needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needs {
    /// The extension's name.
    pub(super) extension: &'static str,
    /// The caller's feature, for the error that the server lacks it.
    pub(super) what: &'static str,
}

/// Tries of the nearest endpoint before the strong one.
const NEAREST_TRIES: u32 = 2;
/// A read without an answer is repeated after half of its time, but not sooner than this. So is a write
/// with ids.
const READ_TRY_MIN: Duration = Duration::from_secs(1);
/// Longest wait after an endpoint was not reached: its load is no reason to wait longer, and the
/// metadata may name another one.
const UNREACHED_WAIT_MAX: Duration = Duration::from_millis(METADATA_INTERVAL_MS_MIN);

/// A request.
pub(super) struct HttpRequest {
    pub(super) path: Cow<'static, str>,
    pub(super) eventual: bool,
    pub(super) retry: RetrySafety,
    /// Whether each try may take the whole timeout, even if the request is idempotent.
    pub(super) patient: bool,
    pub(super) body: Bytes,
    /// Whether it is exempt from the bound of running requests: it waits at the server, or must not
    /// wait here.
    pub(super) waits: bool,
    /// The extension that it needs; `None` for the protocol's own requests.
    pub(super) needs: Option<Needs>,
    /// For an extension: the handle's limits, if they are narrower.
    pub(super) limits: Option<HeaderValue>,
    /// Whether the answer may have every status of an outcome.
    pub(super) results: bool,
    /// Whether the server recognises a repetition, and answers it with what has happened.
    pub(super) recognised: bool,
}

impl HttpRequest {
    /// A request of the protocol.
    pub(super) fn plain(
        path: impl Into<Cow<'static, str>>,
        retry: RetrySafety,
        body: Vec<u8>,
    ) -> Self {
        let (path, body, needs, limits) = (path.into(), Bytes::from(body), None, None);
        let (eventual, patient, waits, results, recognised) = (false, false, false, false, false);
        Self { path, eventual, retry, patient, body, waits, needs, limits, results, recognised }
    }

    /// A request of an extension.
    pub(super) fn extension(
        path: impl Into<Cow<'static, str>>,
        retry: RetrySafety,
        body: Vec<u8>,
        needs: Needs,
    ) -> Self {
        Self { needs: Some(needs), ..Self::plain(path, retry, body) }
    }

    /// Those of a try. `lost`: the server may have executed an earlier one, or may do so yet.
    fn headers(&self, grant: &Grant, lost: bool) -> HeaderMap {
        let mut headers = grant.headers.clone();
        if self.needs.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(FRAMES_TYPE));
        }
        if let (Some(_), Ok(kinds)) = (&self.needs, HeaderValue::from_str(&write_kinds())) {
            headers.insert(HeaderName::from_static(KINDS_HEADER), kinds);
        }
        if let Some(limits) = &self.limits {
            headers.insert(HeaderName::from_static(LIMITS_HEADER), limits.clone());
        }
        if self.results {
            let name = HeaderName::from_static(RESULTS_HEADER);
            headers.insert(name, HeaderValue::from_static("1"));
        }
        if self.recognised && lost {
            let name = HeaderName::from_static(REPEATED_HEADER);
            headers.insert(name, HeaderValue::from_static("1"));
        }
        headers
    }
}

/// Why an answer cannot be used.
pub(super) enum AnswerError {
    /// Renew the metadata and retry once; then fail with this error.
    Disabled(Error),
    /// Fail with this error.
    Final(Error),
    /// The bytes are malformed.
    Malformed(String),
    /// The server does not know whether it has executed the request.
    Open(String),
}

/// Gets the last commits that answers can depend on, for a handle with a replica.
pub trait SeenNote: Send + Sync {
    /// Called before a request is sent: the past of the database that the replica has.
    fn past(&self) -> u64;

    /// Called before the answer is handed on, with what [`SeenNote::past`] was.
    fn note(&self, past: u64, commit: Versionstamp);
}

/// Executes requests to one server.
#[derive(Clone)]
pub(super) struct RequestExecutor {
    pub(super) transport: Arc<Transport>,
    pub(super) credentials: Arc<Credentials>,
    pub(super) env: Arc<dyn Env>,
    pub(super) timeout: Duration,
    under_way: Arc<Semaphore>,
    cancel: Cancel,
    pub(super) seen: Arc<OnceLock<Arc<dyn SeenNote>>>,
    /// The context of its requests.
    trace: Option<TraceHeaders>,
}

/// The progress of a request.
#[derive(Default)]
struct Course {
    /// The current try, if there is one.
    way: Way,
    /// The server may have executed an earlier try.
    lost: bool,
}

/// The outcome of one try. Its text names the endpoint.
pub(super) enum Try {
    Answered(Vec<u8>),
    /// The server was not reached: nothing was executed.
    Unreached(String),
    /// The server cannot execute requests at present: nothing was executed.
    Unavailable(String, Duration),
    /// The server refuses more requests at present: nothing was executed.
    Later(String, Duration),
    /// The server may have executed the request.
    Lost(String),
    /// The token was rejected.
    Unauthorized(String),
    Refused(Error),
}

impl Try {
    /// Whether metadata may name another endpoint by now.
    pub(super) fn should_refresh_metadata(&self) -> bool {
        match self {
            Self::Unreached(_) | Self::Unavailable(..) | Self::Lost(_) => true,
            Self::Answered(_) | Self::Later(..) | Self::Unauthorized(_) | Self::Refused(_) => false,
        }
    }
}

impl RequestExecutor {
    pub(super) fn new(
        transport: Arc<Transport>,
        credentials: Arc<Credentials>,
        env: Arc<dyn Env>,
        timeout: Duration,
        cancel: Cancel,
    ) -> Self {
        let under_way = Arc::new(Semaphore::new(REMOTE_REQUESTS_MAX));
        let seen = Arc::default();
        Self { transport, credentials, env, timeout, under_way, cancel, seen, trace: None }
    }

    /// The same executor for a call that has waited this long already.
    pub(super) fn later_by(&self, waited: Duration) -> Self {
        Self { timeout: self.timeout.saturating_sub(waited), ..self.clone() }
    }

    /// The same executor for requests of a trace context.
    pub(super) fn within(&self, trace: TraceHeaders) -> Self {
        Self { trace: Some(trace), ..self.clone() }
    }

    pub(super) async fn cancelled(&self) {
        self.cancel.raised().await;
    }

    /// The answer as `decode` reads it, and whether the server may have executed an earlier try
    /// too.
    pub(super) async fn execute<T>(
        &self,
        http_request: &HttpRequest,
        decode: impl Fn(&Grant, &[u8]) -> Result<T, AnswerError>,
    ) -> Result<(T, bool)> {
        let mut course = Course::default();
        let answer = tokio::select! {
            biased;
            () = self.cancelled() => Err(Error::closed()),
            answer = self.tries(http_request, &mut course, decode) => answer,
        };
        let lost = course.lost || course.way.is_taken();
        match answer {
            Ok(answer) => Ok((answer, lost)),
            // A write that may have been executed stays so, whatever the server answered later.
            Err(error) if lost && http_request.retry != RetrySafety::Idempotent => {
                Err(unknown(&error))
            }
            Err(error) => Err(error),
        }
    }

    /// As [`RequestExecutor::execute`], once fewer than the maximum of requests are running.
    async fn tries<T>(
        &self,
        http_request: &HttpRequest,
        course: &mut Course,
        decode: impl Fn(&Grant, &[u8]) -> Result<T, AnswerError>,
    ) -> Result<T> {
        let deadline = Instant::now() + self.timeout;
        let _place = if http_request.waits {
            None
        } else if let Ok(Ok(place)) = timeout_at(deadline, self.under_way.acquire()).await {
            Some(place)
        } else {
            let why = format!("{REMOTE_REQUESTS_MAX} requests are under way already");
            return Err(Error::unavailable(why));
        };
        let mut renewed = false;
        let mut tries = 0;
        loop {
            let grant = self.credentials.current(deadline).await?;
            if let Some(needs) = &http_request.needs
                && !grant.offers(needs.extension)
            {
                return Err(self.credentials.lacks(needs.what));
            }
            let eventual = http_request.eventual && tries < NEAREST_TRIES;
            let begun = Instant::now();
            let endpoint_latency = &self.credentials.endpoint_latency;
            let near =
                if eventual { endpoint_latency.endpoint(grant.eventual(), begun) } else { None };
            let Some(endpoint) = near.or_else(|| grant.strong()) else {
                return Err(self.credentials.no_endpoint());
            };
            let done = self.once(http_request, &grant, endpoint, deadline, course).await;
            if near.is_some() {
                match &done {
                    Try::Answered(bytes) => {
                        endpoint_latency.took(endpoint, begun.elapsed(), bytes.len())
                    }
                    done if done.should_refresh_metadata() => endpoint_latency.failed(endpoint),
                    _ => {}
                }
            }
            course.way = Way::default();
            if done.should_refresh_metadata() {
                self.credentials.doubt(&grant, endpoint);
            } else if matches!(done, Try::Answered(_)) {
                self.credentials.trust(&grant, endpoint);
            }
            let mut most = Duration::MAX;
            let (why, least) = match done {
                Try::Answered(bytes) => match decode(&grant, &bytes) {
                    Ok(answer) => return Ok(answer),
                    Err(AnswerError::Final(error)) => return Err(error),
                    Err(AnswerError::Disabled(error)) if renewed => return Err(error),
                    Err(AnswerError::Disabled(_)) => {
                        renewed = true;
                        self.credentials.newer_than(grant.number, deadline).await?;
                        continue;
                    }
                    Err(AnswerError::Malformed(why)) => {
                        let why = format!("{endpoint} answered what is not KV Connect: {why}");
                        if http_request.retry == RetrySafety::Idempotent {
                            return Err(Error::corrupt(why));
                        }
                        course.lost = true;
                        (why, Duration::ZERO)
                    }
                    Err(AnswerError::Open(why)) => {
                        self.credentials.doubt(&grant, endpoint);
                        course.lost = true;
                        (format!("{endpoint}: {why}"), Duration::ZERO)
                    }
                },
                Try::Refused(error) => return Err(error),
                Try::Unauthorized(why) if renewed => return Err(Error::denied(why)),
                Try::Unauthorized(_) => {
                    renewed = true;
                    self.credentials.newer_than(grant.number, deadline).await?;
                    continue;
                }
                Try::Unreached(why) => {
                    most = UNREACHED_WAIT_MAX;
                    (why, Duration::ZERO)
                }
                Try::Unavailable(why, least) | Try::Later(why, least) => (why, least),
                Try::Lost(why) => {
                    course.lost = true;
                    (why, Duration::ZERO)
                }
            };
            let error = Error::unavailable(why);
            if course.lost && http_request.retry == RetrySafety::Unsafe && !http_request.recognised
            {
                return Err(error);
            }
            let wait = backoff::delay(tries, self.env.random()).min(most).max(least);
            tries += 1;
            // After a pause, earlier rejections of a token do not count: it may be another server's.
            renewed = false;
            if wait >= deadline.saturating_duration_since(Instant::now()) {
                return Err(error);
            }
            sleep(wait).await;
        }
    }

    async fn once(
        &self,
        http_request: &HttpRequest,
        grant: &Grant,
        endpoint: &str,
        deadline: Instant,
        course: &mut Course,
    ) -> Try {
        let Ok(uri) = format!("{endpoint}/{}", http_request.path).parse::<Uri>() else {
            return Try::Refused(Error::corrupt(format!("{endpoint} cannot be requested")));
        };
        let is_repeated = match http_request.retry {
            RetrySafety::Idempotent => !http_request.patient,
            RetrySafety::Conditional | RetrySafety::Unsafe => http_request.recognised,
        };
        let deadline = if is_repeated {
            let now = Instant::now();
            let half = deadline.saturating_duration_since(now) / 2;
            deadline.min(now + half.max(READ_TRY_MIN))
        } else {
            deadline
        };
        let (mut headers, body) =
            (http_request.headers(grant, course.lost), http_request.body.clone());
        if let Some(trace) = &self.trace {
            trace.add_to(&mut headers);
        }
        let seen = self.seen.get().map(|seen| (seen, seen.past()));
        if seen.is_some() {
            let name = HeaderName::from_static(SEEN_HEADER);
            headers.insert(name, HeaderValue::from_static("1"));
        }
        // The servers of extensions are openkv's own, which speak both versions of HTTP.
        let may_repeat = is_repeated && http_request.needs.is_some() && !http_request.waits;
        let posted =
            self.transport.post(&uri, headers, body, deadline, &mut course.way, may_repeat);
        let answer = match posted.await {
            Ok(answer) => answer,
            Err(Fault::Unsent(why)) => {
                return Try::Unreached(format!("{endpoint}: {why}"));
            }
            Err(fault) => return Try::Lost(format!("{endpoint}: {}", fault.why())),
        };
        let (head, body) = answer.into_parts();
        if head.status == StatusCode::OK {
            let is = content_type(&head.headers);
            if is.is_some_and(|is| !PROTOBUF.iter().any(|known| is.starts_with(known))) {
                let is = is.unwrap_or_default();
                let why = format!("{endpoint} answered what is not KV Connect: content type {is}");
                return match http_request.retry {
                    RetrySafety::Idempotent => Try::Refused(Error::corrupt(why)),
                    _ => Try::Lost(why),
                };
            }
            return match collect(body, REMOTE_ANSWER_BYTES_MAX, deadline).await {
                Ok(bytes) => {
                    let header = head.headers.get(SEEN_HEADER).map(HeaderValue::as_bytes);
                    let commit = header.and_then(Versionstamp::parse);
                    if let (Some((seen, past)), Some(commit)) = (seen, commit) {
                        seen.note(past, commit);
                    }
                    Try::Answered(bytes)
                }
                Err(Fault::TooLarge(most)) if http_request.retry == RetrySafety::Idempotent => {
                    Try::Refused(Error::corrupt(format!(
                        "{endpoint} answered more than {most} bytes: ask for less at a time"
                    )))
                }
                Err(fault) => Try::Lost(format!("{endpoint}: {}", fault.why())),
            };
        }
        let text = refusal(body, deadline).await;
        match (&http_request.needs, head.status) {
            // An older server has the extension, but not this later request.
            (Some(needs), StatusCode::NOT_FOUND) => {
                return Try::Refused(self.credentials.lacks(needs.what));
            }
            // openkv's server answers so about the rights of the access token; a renewed token has
            // the same.
            (Some(_), StatusCode::FORBIDDEN) => {
                let why = format!("{endpoint} answered {}: {text}", head.status);
                return Try::Refused(Error::denied(why));
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

/// The meaning of a status other than 200.
pub(super) fn judge(endpoint: &str, status: StatusCode, headers: &HeaderMap, text: &str) -> Try {
    let why = format!("{endpoint} answered {status}: {text}");
    let after = retry_after(headers);
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Try::Unauthorized(why),
        StatusCode::BAD_REQUEST if text.to_lowercase().contains("authorization") => {
            Try::Unauthorized(why)
        }
        StatusCode::TOO_MANY_REQUESTS => Try::Later(why, after.unwrap_or_default()),
        // A server that sends `Retry-After` has not begun the request. Without it, it may have.
        StatusCode::SERVICE_UNAVAILABLE if after.is_some() => {
            Try::Unavailable(why, after.unwrap_or_default())
        }
        _ if is_failure(status) => Try::Lost(why),
        StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => {
            Try::Refused(Error::invalid(format!("{text} ({endpoint} answered {status})")))
        }
        StatusCode::PAYLOAD_TOO_LARGE => {
            Try::Refused(Error::too_large(format!("{text} ({endpoint} answered {status})")))
        }
        _ => Try::Refused(Error::corrupt(format!("{why}. Is this a KV Connect endpoint?"))),
    }
}

fn unknown(error: &Error) -> Error {
    let why = format!(
        "The write may or may not have happened, and sending it again could do it twice: read to \
         find out. {error}"
    );
    outcome_unknown(&why)
}

/// The error for an unknown outcome.
pub(super) fn outcome_unknown(why: &str) -> Error {
    Error::new(Kind::OutcomeUnknown, why)
}

/// The error for a write with checks that was sent more than once: the check may fail because of
/// the first try.
pub(super) fn repeated_check_failed() -> Error {
    let why = "The answer to a write was lost; sent again, its check did not hold. Either it has \
               happened the first time, or another client was faster: read to find out";
    outcome_unknown(why)
}
