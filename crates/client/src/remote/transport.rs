//! Requests over HTTP: HTTP/2 if the server speaks it, otherwise HTTP/1.1. Every wait and every
//! body has a bound.

use std::collections::HashMap;
use std::future::Future;
use std::io::ErrorKind;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime};

use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{DATE, HeaderMap, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{CaptureConnection, HttpConnector, capture_connection};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use parking_lot::Mutex;
use tokio::time::{Instant, timeout_at};

use openkv_core::model::{
    REFUSAL_BYTES_MAX, REFUSAL_WAIT_MS_MAX, REMOTE_LONE_BYTES_MAX, REMOTE_STREAM_WINDOW_BYTES,
    REMOTE_WATCHES_PER_CONNECTION_MAX, RETRY_AFTER_MS_MAX,
};
use openkv_wire::trust;

/// Shorter than servers keep idle connections, so that no request meets a closing connection.
const IDLE: Duration = Duration::from_secs(3);
/// Interval of pings on an HTTP/2 connection that is silent while requests wait, and the bound of
/// their answers: short enough for another try of the request.
const PING_EVERY: Duration = Duration::from_secs(2);
const PING_WAIT: Duration = Duration::from_secs(2);
/// The same for connections of watches, which are silent most of the time.
const WATCH_PING_EVERY: Duration = Duration::from_secs(20);
const WATCH_PING_WAIT: Duration = Duration::from_secs(10);
/// Longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// After a failed request in HTTP/1.1 to a server that speaks HTTP/2, all use that for this time.
const ONE_PAUSE: Duration = Duration::from_secs(60);
/// Longest wait for an HTTP/2 answer from a server that may not speak it.
const PROBE: Duration = Duration::from_secs(2);

type Http = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The request was not sent.
    Unsent(String),
    /// The server may have executed it.
    Lost(String),
    /// The answer exceeds its bound.
    TooLarge(usize),
}

impl Fault {
    pub(super) fn why(&self) -> String {
        match self {
            Self::Unsent(why) | Self::Lost(why) => why.clone(),
            Self::TooLarge(most) => format!("an answer of more than {most} bytes"),
        }
    }
}

/// How long a request waits.
#[derive(Clone, Copy)]
pub(super) struct Patience {
    /// For a connection, TLS included.
    pub(super) connected: Instant,
    /// For the answer.
    pub(super) answered: Instant,
}

impl From<Instant> for Patience {
    fn from(answered: Instant) -> Self {
        Self { connected: answered, answered }
    }
}

/// The progress of one request.
#[derive(Default)]
pub(super) struct Way(Option<CaptureConnection>);

impl Way {
    /// Whether it has a connection, after TLS if any: from here on it may have reached the server.
    pub(super) fn is_taken(&self) -> bool {
        self.0.as_ref().is_some_and(|way| way.connection_metadata().is_some())
    }
}

/// The HTTP version of a server without TLS, where none is negotiated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaks {
    One,
    /// HTTP/2, and from this moment maybe HTTP/1.1.
    Two {
        one_from: Instant,
    },
}

/// The connections of one handle.
pub(super) struct Transport {
    /// HTTP/1.1, or the version that TLS negotiates.
    one: Http,
    /// HTTP/2 without negotiation.
    two: Http,
    /// Connections of watches, and how many watches share each.
    watches: Mutex<Vec<(Arc<()>, Http, Http)>>,
    speaks: Mutex<HashMap<String, Speaks>>,
    /// Requests that wait for the head of their answer.
    waiting: AtomicUsize,
}

/// Counts a request as waiting while it is held.
struct Waits<'t>(&'t AtomicUsize);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A watch's place on its connection.
pub(super) struct Seat(#[expect(dead_code, reason = "counted while it is held")] Arc<()>);

static CONNECTOR: LazyLock<Result<HttpsConnector<HttpConnector>, String>> = LazyLock::new(|| {
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_connect_timeout(Some(CONNECT));
    http.set_keepalive(Some(WATCH_PING_EVERY));
    let builder = HttpsConnectorBuilder::new().with_tls_config(trust::client_config()?);
    Ok(builder.https_or_http().enable_all_versions().wrap_connector(http))
});

/// The use of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Requests,
    Streams,
}

fn http(two: bool, purpose: Purpose) -> Result<Http, String> {
    let (every, wait) = match purpose {
        Purpose::Requests => (PING_EVERY, PING_WAIT),
        Purpose::Streams => (WATCH_PING_EVERY, WATCH_PING_WAIT),
    };
    let connector = CONNECTOR.as_ref().map_err(Clone::clone)?;
    let mut builder = Client::builder(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .http2_keep_alive_interval(every)
        .http2_keep_alive_timeout(wait)
        .http2_only(two);
    if purpose == Purpose::Streams {
        // Unread streams must leave room for the others on the connection.
        let all = REMOTE_STREAM_WINDOW_BYTES.saturating_mul(REMOTE_WATCHES_PER_CONNECTION_MAX);
        let window = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
        builder
            .http2_initial_stream_window_size(window(REMOTE_STREAM_WINDOW_BYTES))
            .http2_initial_connection_window_size(window(all));
    }
    Ok(builder.build(connector.clone()))
}

impl Transport {
    pub(super) fn new() -> Result<Self, String> {
        let (one, two) = (http(false, Purpose::Requests)?, http(true, Purpose::Requests)?);
        let (watches, speaks) = (Mutex::default(), Mutex::default());
        Ok(Self { one, two, watches, speaks, waiting: AtomicUsize::new(0) })
    }

    /// Sends a request that may be repeated, to find the server's HTTP version.
    pub(super) async fn probe(
        &self,
        uri: &Uri,
        headers: HeaderMap,
        body: Bytes,
        patience: Patience,
    ) -> Result<Response<Incoming>, Fault> {
        if uri.scheme_str() == Some("https") {
            return self.post(uri, headers, body, patience, &mut Way::default(), false).await;
        }
        let deadline = patience.answered;
        let authority = authority(uri);
        // All other requests use the known version until an answer differs.
        let known = self.speaks.lock().get(&authority).copied();
        let mut late = false;
        if known != Some(Speaks::One) {
            let now = Instant::now();
            // A server that has spoken HTTP/2 may be slow once.
            let wait = match known {
                Some(_) => PROBE.max(deadline.saturating_duration_since(now) / 2),
                None => PROBE,
            };
            let soon = deadline.min(now + wait);
            let trial = Patience { connected: patience.connected.min(soon), answered: soon };
            let way = &mut Way::default();
            let response = send(&self.two, uri, headers.clone(), body.clone(), trial, way).await;
            late = Instant::now() >= soon;
            match response {
                Ok(answer) => {
                    self.speaks_two_too(authority);
                    return Ok(answer);
                }
                // No version of HTTP is spoken where nothing can be connected to.
                Err(fault @ Fault::Unsent(_)) if !late => return Err(fault),
                Err(_) => {}
            }
        }
        let answer = send(&self.one, uri, headers, body, patience, &mut Way::default()).await?;
        let mut speaks = self.speaks.lock();
        if late {
            // The server speaks HTTP/1.1, and maybe HTTP/2 too, so the next probe asks again.
            speaks.remove(&authority);
        } else {
            speaks.insert(authority, Speaks::One);
        }
        Ok(answer)
    }

    /// Sends a request once. `way` records its progress, even if the caller drops the future.
    ///
    /// While it is the only one, a small request goes in HTTP/1.1 if it `may_repeat` after a lost answer: head
    /// and body need one write there, and no frames. Another request would be lost more often: a server that
    /// closes a connection cannot say in HTTP/1.1 that it has not read it.
    pub(super) async fn post(
        &self,
        uri: &Uri,
        headers: HeaderMap,
        body: Bytes,
        patience: impl Into<Patience>,
        way: &mut Way,
        may_repeat: bool,
    ) -> Result<Response<Incoming>, Fault> {
        let others = self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waits = Waits(&self.waiting);
        let is_light = may_repeat && others == 0 && body.len() <= REMOTE_LONE_BYTES_MAX;
        let (client, is_trial) = match self.spoken(uri) {
            Some(Speaks::Two { one_from }) if is_light && Instant::now() >= one_from => {
                (&self.one, true)
            }
            Some(Speaks::Two { .. }) => (&self.two, false),
            Some(Speaks::One) | None => (&self.one, false),
        };
        let answer = send(client, uri, headers, body, patience, way).await;
        if is_trial && answer.is_err() {
            let one_from = Instant::now() + ONE_PAUSE;
            self.speaks.lock().insert(authority(uri), Speaks::Two { one_from });
        }
        answer
    }

    /// Notes that a server has answered in HTTP/2. What is known of HTTP/1.1 stays.
    fn speaks_two_too(&self, authority: String) {
        let mut speaks = self.speaks.lock();
        if !matches!(speaks.get(&authority), Some(Speaks::Two { .. })) {
            speaks.insert(authority, Speaks::Two { one_from: Instant::now() });
        }
    }

    /// Sends a request for a long answer, once.
    pub(super) async fn get(
        &self,
        uri: &Uri,
        headers: HeaderMap,
        deadline: Instant,
    ) -> Result<Response<Incoming>, Fault> {
        let client = if self.speaks_two(uri) { &self.two } else { &self.one };
        request(client, Method::GET, uri, (headers, Bytes::new()), deadline, &mut Way::default())
            .await
    }

    /// Sends a request with an endless answer, on a connection for such.
    pub(super) async fn stream(
        &self,
        uri: &Uri,
        headers: HeaderMap,
        body: Bytes,
        deadline: Instant,
    ) -> Result<(Response<Incoming>, Seat), Fault> {
        let (seat, one, two) = self.seat().map_err(Fault::Unsent)?;
        let client = if self.speaks_two(uri) { two } else { one };
        let way = &mut Way::default();
        let answer = send(&client, uri, headers, body, deadline, way).await?;
        Ok((answer, Seat(seat)))
    }

    fn seat(&self) -> Result<(Arc<()>, Http, Http), String> {
        let mut watches = self.watches.lock();
        // The list holds one count itself. Unused connections are dropped.
        watches.retain(|(seats, _, _)| Arc::strong_count(seats) > 1);
        let free = |seats: &Arc<()>| Arc::strong_count(seats) <= REMOTE_WATCHES_PER_CONNECTION_MAX;
        if let Some(found) = watches.iter().find(|(seats, _, _)| free(seats)) {
            return Ok(found.clone());
        }
        let (one, two) = (http(false, Purpose::Streams)?, http(true, Purpose::Streams)?);
        let new = (Arc::new(()), one, two);
        watches.push(new.clone());
        Ok(new)
    }

    fn speaks_two(&self, uri: &Uri) -> bool {
        matches!(self.spoken(uri), Some(Speaks::Two { .. }))
    }

    /// The version of HTTP of a server whose URL has no TLS.
    fn spoken(&self, uri: &Uri) -> Option<Speaks> {
        let is_plain = uri.scheme_str() == Some("http");
        is_plain.then(|| self.speaks.lock().get(&authority(uri)).copied()).flatten()
    }
}

fn authority(uri: &Uri) -> String {
    uri.authority().map(ToString::to_string).unwrap_or_default()
}

async fn send(
    client: &Http,
    uri: &Uri,
    headers: HeaderMap,
    body: Bytes,
    patience: impl Into<Patience>,
    way: &mut Way,
) -> Result<Response<Incoming>, Fault> {
    request(client, Method::POST, uri, (headers, body), patience, way).await
}

async fn request(
    client: &Http,
    method: Method,
    uri: &Uri,
    (headers, body): (HeaderMap, Bytes),
    patience: impl Into<Patience>,
    way: &mut Way,
) -> Result<Response<Incoming>, Fault> {
    let Patience { connected, answered } = patience.into();
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = method;
    *request.uri_mut() = uri.clone();
    *request.headers_mut() = headers;
    let agent = concat!("openkv/", env!("CARGO_PKG_VERSION"));
    request.headers_mut().insert(USER_AGENT, HeaderValue::from_static(agent));
    *way = Way(Some(capture_connection(&mut request)));
    let mut response = pin!(client.request(request));
    let answer = match until(connected.min(answered), response.as_mut()).await {
        Err(_) if way.is_taken() => until(answered, response).await,
        answer => answer,
    };
    match answer {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) if error.is_connect() => Err(Fault::Unsent(reason(&error))),
        Ok(Err(error)) => Err(Fault::Lost(reason(&error))),
        Err(_) if !way.is_taken() => Err(Fault::Unsent("no connection in time".into())),
        Err(late) => Err(late),
    }
}

/// The body, within its bound.
pub(super) async fn collect(
    mut body: Incoming,
    most: usize,
    deadline: Instant,
) -> Result<Vec<u8>, Fault> {
    let announced = body.size_hint().lower();
    if announced > most as u64 {
        return Err(Fault::TooLarge(most));
    }
    let mut bytes = Vec::new();
    while let Some(frame) = until(deadline, body.frame()).await? {
        let frame = frame.map_err(|error| Fault::Lost(causes(&error)))?;
        let Some(data) = frame.data_ref() else { continue };
        if bytes.len() + data.len() > most {
            return Err(Fault::TooLarge(most));
        }
        bytes.extend_from_slice(data);
    }
    Ok(bytes)
}

/// The text of a refusal, cut to the part that messages show.
pub(super) async fn refusal(mut body: Incoming, deadline: Instant) -> String {
    let deadline = deadline.min(Instant::now() + Duration::from_millis(REFUSAL_WAIT_MS_MAX));
    let mut bytes = Vec::new();
    while bytes.len() < REFUSAL_BYTES_MAX
        && let Ok(Some(Ok(frame))) = until(deadline, body.frame()).await
    {
        if let Some(data) = frame.data_ref() {
            bytes.extend_from_slice(data);
        }
    }
    bytes.truncate(REFUSAL_BYTES_MAX);
    String::from_utf8_lossy(&bytes).trim().to_owned()
}

async fn until<T>(deadline: Instant, wait: impl Future<Output = T>) -> Result<T, Fault> {
    let late = |_| Fault::Lost("no answer in time".into());
    timeout_at(deadline, wait).await.map_err(late)
}

/// Why a request has no answer, and what to look at. The words of the client library itself are left out.
fn reason(error: &(dyn std::error::Error + 'static)) -> String {
    let cause = error.source().unwrap_or(error);
    let text = causes(cause);
    let advice = match io_kind(cause) {
        _ if text.starts_with("dns error") => "is the name of the host right?",
        Some(ErrorKind::ConnectionRefused) => "does the server run, and is its port right?",
        _ if text.contains("InvalidContentType") => {
            "the server does not speak TLS: does its URL begin with http://?"
        }
        _ if cause.downcast_ref().is_some_and(hyper::Error::is_parse) => {
            "the server does not speak HTTP"
        }
        _ => return text,
    };
    format!("{text}: {advice}")
}

/// The kind of the innermost error of the operating system.
fn io_kind(error: &(dyn std::error::Error + 'static)) -> Option<ErrorKind> {
    let inner = error.source().and_then(io_kind);
    inner.or_else(|| error.downcast_ref::<std::io::Error>().map(std::io::Error::kind))
}

/// The error with its causes, because the outermost one says least.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let words = next.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        cause = next.source();
    }
    if let Some(advice) = trust::advice(&text) {
        text.push_str(": ");
        text.push_str(&advice);
    }
    text
}

/// Whether the status is a failure of the server, not a refusal.
pub(super) fn is_failure(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT
}

/// The server's `Retry-After`, up to [`RETRY_AFTER_MS_MAX`]: seconds, or a date by the server's
/// clock. A date without that clock counts as zero.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        Duration::from_secs(value.parse().unwrap_or(u64::MAX))
    } else {
        let until = httpdate::parse_http_date(value).ok()?;
        let wait = time_of(headers).map(|now| until.duration_since(now));
        wait.and_then(Result::ok).unwrap_or_default()
    };
    Some(wait.min(Duration::from_millis(RETRY_AFTER_MS_MAX)))
}

/// The server's clock at its answer.
pub(super) fn time_of(headers: &HeaderMap) -> Option<SystemTime> {
    httpdate::parse_http_date(headers.get(DATE)?.to_str().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_read_in_both_forms_and_bounded() {
        let most = Duration::from_millis(RETRY_AFTER_MS_MAX);
        let now = "Sun, 06 Nov 1994 08:49:37 GMT";
        for (value, date, expected) in [
            ("0", None, Some(Duration::ZERO)),
            (" 7 ", None, Some(Duration::from_secs(7))),
            ("61", None, Some(most)),
            ("18446744073709551615", None, Some(most)),
            ("99999999999999999999999", None, Some(most)),
            ("Sun, 06 Nov 1994 08:49:42 GMT", Some(now), Some(Duration::from_secs(5))),
            ("Mon, 07 Nov 1994 08:49:37 GMT", Some(now), Some(most)),
            ("Sun, 06 Nov 1994 08:49:30 GMT", Some(now), Some(Duration::ZERO)),
            ("Sun, 06 Nov 1994 08:49:42 GMT", None, Some(Duration::ZERO)),
            ("", None, None),
            ("-1", None, None),
            ("soon", Some(now), None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_static(value));
            if let Some(date) = date {
                headers.insert(DATE, HeaderValue::from_static(date));
            }
            assert_eq!(retry_after(&headers), expected, "{value:?}");
        }
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }
}
