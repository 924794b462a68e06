//! What a server has told of itself: where its endpoints are, and the token for them; asked for
//! anew before it ends, by one caller for all.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use hyper::{StatusCode, Uri};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until, timeout_at};
use url::Url;

use super::address::{self, shown};
use super::backoff;
use super::transport::{self, Fault, Transport, collect, refusal, retry_after, time_of};
use crate::connect::database_id::DatabaseId;
use crate::connect::metadata::{
    Consistency, EXTENSIONS_HEADER, Metadata, read_answer, write_request,
};
use crate::connect::versions::{
    DATABASE_HEADER, DOMAIN_HEADER, JSON_TYPE, PROTOBUF_TYPE, VERSION_HEADER, Version,
};
use crate::model::{
    Env, Error, Kind, METADATA_BYTES_MAX, METADATA_INTERVAL_MS_MIN, REDIRECTS_MAX,
    REMOTE_TIMEOUT_MS_DEFAULT, Result,
};

/// How long before its end a token is asked for anew, at most; a fifth of its life, if that is less.
const AHEAD: Duration = Duration::from_secs(300);
/// How long asking ahead goes on at a time.
const AHEAD_WAIT: Duration = Duration::from_millis(REMOTE_TIMEOUT_MS_DEFAULT);
/// A longer life counts as this.
const LIFE_MAX: Duration = Duration::from_secs(30 * 24 * 3600);

/// What one exchange has given.
pub(super) struct Grant {
    /// Later ones have larger numbers.
    pub(super) number: u64,
    /// The version of the protocol.
    pub(super) version: Version,
    /// The headers of every request.
    pub(super) headers: HeaderMap,
    database: DatabaseId,
    /// What the server offers beyond the protocol.
    extensions: Vec<String>,
    strong: Option<String>,
    nearest: Option<String>,
    renew_at: Instant,
    ends_at: Instant,
}

impl Grant {
    /// Whether the server offers that extension.
    pub(super) fn offers(&self, extension: &str) -> bool {
        self.extensions.iter().any(|offered| offered == extension)
    }

    /// The endpoint for reads of that freshness; writes take the strong one.
    pub(super) fn endpoint(&self, eventual: bool) -> Option<&str> {
        if eventual { self.nearest.as_deref() } else { self.strong.as_deref() }
    }
}

/// The one who asks, and what was answered last.
pub(super) struct Credentials {
    transport: Arc<Transport>,
    env: Arc<dyn Env>,
    url: Url,
    authorization: HeaderValue,
    current: Mutex<Option<Arc<Grant>>>,
    /// Held while asking, not between two tries: who waits has the answer, whoever asked.
    asking: tokio::sync::Mutex<Option<Asked>>,
    asking_ahead: AtomicBool,
}

/// The last exchange that was tried.
struct Asked {
    ended: Instant,
    /// Why it has given nothing, if it has not.
    failure: Option<Failure>,
}

/// The pauses of one who waits: longer with each failure that has come since.
#[derive(Default)]
struct Pauses {
    seen: Option<Instant>,
    tries: u32,
    pause: Duration,
}

impl Pauses {
    /// When the next exchange may be tried.
    fn end(&mut self, last: &Asked, random: impl Fn() -> u64) -> Instant {
        let Some(Failure::Passing(_, least)) = &last.failure else {
            return last.ended + Duration::from_millis(METADATA_INTERVAL_MS_MIN);
        };
        if self.seen != Some(last.ended) {
            self.pause = backoff::delay(self.tries, random());
            self.tries += 1;
            self.seen = Some(last.ended);
        }
        last.ended + self.pause.max(*least)
    }
}

/// Says at its end that nobody asks ahead any more, however it ends.
struct Ahead(Arc<Credentials>);

impl Drop for Ahead {
    fn drop(&mut self) {
        self.0.asking_ahead.store(false, Ordering::Release);
    }
}

/// Why an exchange has given nothing.
#[derive(Clone)]
enum Failure {
    /// Asking again may help, after this long at least. What is said of it has no URL in it.
    Passing(String, Duration),
    /// It will not.
    Final(Error),
}

impl Credentials {
    pub(super) fn new(
        transport: Arc<Transport>,
        env: Arc<dyn Env>,
        url: &str,
        access_token: &str,
    ) -> Result<Self> {
        let authorization = bearer(access_token).ok_or_else(|| {
            Error::invalid("accessToken must be visible ASCII characters: it is sent in a header")
        })?;
        Ok(Self {
            transport,
            env,
            url: address::parse(url)?,
            authorization,
            current: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
            asking_ahead: AtomicBool::new(false),
        })
    }

    /// The server's URL as it may be shown.
    pub(super) fn shown(&self) -> String {
        shown(&self.url)
    }

    /// Whether the server offers that extension, as far as is known.
    pub(super) fn offers(&self, extension: &str) -> bool {
        self.current.lock().as_ref().is_some_and(|grant| grant.offers(extension))
    }

    /// The error of something that the server does not offer.
    pub(super) fn lacks(&self, what: &str) -> Error {
        let shown = self.shown();
        let why = format!("{shown} lacks the extension of KV Connect that this needs: {what}");
        Error::new(Kind::Unsupported, why)
    }

    /// There is no strong endpoint.
    pub(super) fn no_endpoint(&self) -> Error {
        address::no_strong_endpoint(&self.url)
    }

    /// A grant that has not ended.
    pub(super) async fn current(self: &Arc<Self>, deadline: Instant) -> Result<Arc<Grant>> {
        let (there, now) = (self.current.lock().clone(), Instant::now());
        match there {
            Some(grant) if now < grant.renew_at => Ok(grant),
            Some(grant) if now < grant.ends_at => {
                self.ask_ahead(grant.number, grant.ends_at);
                Ok(grant)
            }
            other => self.newer_than(other.map_or(0, |grant| grant.number), deadline).await,
        }
    }

    /// Asks while the old grant still holds; nobody waits for it.
    fn ask_ahead(self: &Arc<Self>, number: u64, ends_at: Instant) {
        if self.asking_ahead.swap(true, Ordering::AcqRel) {
            return;
        }
        let ahead = Ahead(self.clone());
        // Whoever needs a token at once waits for an exchange that is under way.
        let deadline = ends_at.min(Instant::now() + AHEAD_WAIT);
        tokio::spawn(async move {
            if let Err(error) = ahead.0.newer_than(number, deadline).await {
                tracing::warn!(%error, "asking for a new token ahead of the old one's end");
            }
        });
    }

    /// A grant that is newer than the one of this number, which has turned out to be of no use.
    pub(super) async fn newer_than(&self, number: u64, deadline: Instant) -> Result<Arc<Grant>> {
        let late = |why: &str| {
            let why = format!("{} gives no access: {why}", self.shown());
            Error::new(Kind::Unavailable, why)
        };
        let since = Instant::now();
        let mut pauses = Pauses::default();
        loop {
            let Ok(mut asked) = timeout_at(deadline, self.asking.lock()).await else {
                return Err(late("no answer in time"));
            };
            let before = self.current.lock().clone();
            if let Some(grant) = before.as_ref().filter(|grant| grant.number > number) {
                return Ok(grant.clone());
            }
            if let Some(last) = &*asked {
                let again = pauses.end(last, || self.env.random());
                match &last.failure {
                    // It is the answer for all who have waited for it.
                    Some(Failure::Final(error)) if last.ended >= since || again >= deadline => {
                        return Err(error.clone());
                    }
                    Some(Failure::Passing(why, _)) if again >= deadline => return Err(late(why)),
                    _ if again >= deadline => return Err(late("it was asked a moment ago")),
                    _ => {}
                }
                if Instant::now() < again {
                    drop(asked);
                    sleep_until(again).await;
                    continue;
                }
            }
            let failure = match self.exchange(number + 1, deadline).await {
                Ok(grant) if before.is_some_and(|before| before.database != grant.database) => {
                    let shown = self.shown();
                    let why = format!("{shown} is another database than before: open it again");
                    Some(Failure::Final(Error::corrupt(why)))
                }
                Ok(grant) => {
                    *self.current.lock() = Some(Arc::new(grant));
                    None
                }
                Err(failure) => Some(failure),
            };
            *asked = Some(Asked { ended: Instant::now(), failure });
        }
    }

    async fn exchange(&self, number: u64, deadline: Instant) -> Result<Grant, Failure> {
        let mut url = self.url.clone();
        for _ in 0..=REDIRECTS_MAX {
            let uri: Uri = url.as_str().parse().map_err(|_| {
                Failure::Final(Error::invalid(format!("{} cannot be requested", shown(&url))))
            })?;
            let passing = |fault: Fault| match fault {
                Fault::TooLarge(_) => Failure::Final(Error::corrupt(format!(
                    "{} is no KV Connect server: {}",
                    shown(&url),
                    fault.why()
                ))),
                fault => Failure::Passing(fault.why(), Duration::ZERO),
            };
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, self.authorization.clone());
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON_TYPE));
            headers.insert(HeaderName::from_static(EXTENSIONS_HEADER), HeaderValue::from(1));
            let body = Bytes::from(write_request(&Version::ALL));
            let answer =
                self.transport.probe(&uri, headers, body, deadline).await.map_err(passing)?;
            let (head, body) = answer.into_parts();
            match head.status {
                StatusCode::OK => {
                    let bytes =
                        collect(body, METADATA_BYTES_MAX, deadline).await.map_err(passing)?;
                    return self
                        .granted(number, &url, &head.headers, &bytes)
                        .map_err(Failure::Final);
                }
                StatusCode::MOVED_PERMANENTLY
                | StatusCode::FOUND
                | StatusCode::TEMPORARY_REDIRECT
                | StatusCode::PERMANENT_REDIRECT => {
                    let location = head.headers.get(LOCATION).and_then(|to| to.to_str().ok());
                    url = address::redirected(&url, location).map_err(Failure::Final)?;
                }
                status => {
                    let text = refusal(body, deadline).await;
                    return Err(refused(&url, status, &head.headers, &text));
                }
            }
        }
        let why = format!("{} redirects more than {REDIRECTS_MAX} times", self.shown());
        Err(Failure::Final(Error::corrupt(why)))
    }

    fn granted(&self, number: u64, url: &Url, headers: &HeaderMap, body: &[u8]) -> Result<Grant> {
        let shown = shown(url);
        let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        if content_type.is_some_and(|is| !is.trim_start().starts_with(JSON_TYPE)) {
            let is = content_type.unwrap_or_default();
            let why = format!("{shown} is no KV Connect server: it answers with {is}, not JSON");
            return Err(Error::corrupt(why));
        }
        let metadata = read_answer(body, &Version::ALL).map_err(|error| match error.kind() {
            Kind::Unsupported => Error::new(Kind::Unsupported, format!("{shown}: {error}")),
            _ => Error::corrupt(format!("{shown} is no KV Connect server: {error}")),
        })?;
        let version = metadata.version;
        let endpoint = |wanted: Consistency| -> Result<Option<String>> {
            let mut of_it = metadata.endpoints.iter().filter(|e| e.consistency == wanted);
            let first = of_it.next();
            first.map(|found| address::endpoint(url, version, &found.url)).transpose()
        };
        let strong = endpoint(Consistency::Strong)?;
        let nearest = endpoint(Consistency::Eventual)?.or_else(|| strong.clone());
        // The server's clock, which the end is told by, may be another than ours.
        let date = time_of(headers);
        let since_epoch = date.and_then(|date| date.duration_since(std::time::UNIX_EPOCH).ok());
        let server_ms = since_epoch.and_then(|since| i64::try_from(since.as_millis()).ok());
        let now_ms = server_ms.unwrap_or_else(|| self.env.now_ms());
        let (renew_at, ends_at) = ends(metadata.expires_at_ms.saturating_sub(now_ms));
        let headers = data_headers(&metadata)
            .ok_or_else(|| Error::corrupt(format!("{shown} gives a token that is none")))?;
        Ok(Grant {
            number,
            version,
            headers,
            database: metadata.database,
            extensions: metadata.extensions,
            strong,
            nearest,
            renew_at,
            ends_at,
        })
    }
}

/// When a token that lives so long is asked for anew, and when it is of no use any more. However
/// short its life is said to be, it is used for a moment: the server will tell if it is wrong.
fn ends(life_ms: i64) -> (Instant, Instant) {
    let life = Duration::from_millis(u64::try_from(life_ms).unwrap_or(0));
    let life = life.clamp(Duration::from_millis(METADATA_INTERVAL_MS_MIN), LIFE_MAX);
    let now = Instant::now();
    (now + (life - AHEAD.min(life / 5)), now + life)
}

fn data_headers(metadata: &Metadata) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, bearer(&metadata.token)?);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROTOBUF_TYPE));
    let database = HeaderValue::from_str(&metadata.database.to_string()).ok()?;
    if metadata.version == Version::V1 {
        headers.insert(HeaderName::from_static(DOMAIN_HEADER), database);
    } else {
        headers.insert(HeaderName::from_static(DATABASE_HEADER), database);
        let number = HeaderValue::from(u16::from(metadata.version.number()));
        headers.insert(HeaderName::from_static(VERSION_HEADER), number);
    }
    Some(headers)
}

fn bearer(token: &str) -> Option<HeaderValue> {
    let visible = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).ok().filter(|_| visible)?;
    value.set_sensitive(true);
    Some(value)
}

fn refused(url: &Url, status: StatusCode, headers: &HeaderMap, text: &str) -> Failure {
    if transport::is_failure(status) || status == StatusCode::TOO_MANY_REQUESTS {
        let why = format!("it answered {status}: {text}");
        return Failure::Passing(why, retry_after(headers).unwrap_or_default());
    }
    let why = format!("{} answered {status}: {text}", shown(url));
    Failure::Final(match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Error::new(
            Kind::Denied,
            format!("{why}. The access token is not accepted: check accessToken"),
        ),
        _ => Error::corrupt(format!("{why}. Is this the URL of a KV Connect server?")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn tokens_are_renewed_ahead_but_never_at_once() {
        let least = Duration::from_millis(METADATA_INTERVAL_MS_MIN);
        for life_ms in [i64::MIN, -5, 0, 1, 14_000, 86_400_000, i64::MAX] {
            let now = Instant::now();
            let (renew_at, ends_at) = ends(life_ms);
            assert!(renew_at <= ends_at);
            assert!(renew_at >= now + least * 4 / 5, "{life_ms}");
            assert!(ends_at - renew_at <= AHEAD);
        }
    }

    #[test]
    fn tokens_are_visible_characters() {
        assert!(bearer("abc-_.~+/=").is_some());
        for bad in ["", "a b", "a\n", "é"] {
            assert!(bearer(bad).is_none(), "{bad:?}");
        }
    }
}
