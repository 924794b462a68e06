//! One metadata exchange: the access token for the server's endpoints and a token for them.

use std::sync::Arc;
use std::time::Duration;

use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use hyper::{StatusCode, Uri};
use tokio::time::Instant;
use url::Url;
use uuid::Uuid;

use super::address::{self, shown};
use super::clock::DatabaseClock;
use super::sources::{Servers, Sources, next_at};
use super::transport::{self, Fault, Patience, Transport, collect, refusal, retry_after, time_of};
use openkv_core::model::{
    Env, Error, Kind, METADATA_BYTES_MAX, METADATA_INTERVAL_MS_MIN, REDIRECTS_MAX, Result,
};
use openkv_wire::connect::metadata::{
    Consistency, EXTENSIONS_HEADER, Metadata, PACKED_HEADER, read_answer, write_request,
};
use openkv_wire::connect::versions::{
    DATABASE_HEADER, DOMAIN_HEADER, JSON_TYPE, PROTOBUF_TYPE, VERSION_HEADER, Version,
};

use openkv_wire::protocol::extension::{FRAMES, READ_SERVER, WRITE_IDS};

/// Longest time between the renewal of a token and its expiry; a fifth of its lifetime, if less.
const AHEAD: Duration = Duration::from_secs(300);
/// A longer lifetime counts as this.
const LIFE_MAX: Duration = Duration::from_secs(30 * 24 * 3600);

/// The result of one exchange.
pub(super) struct Grant {
    /// Later ones have larger numbers.
    pub(super) number: u64,
    /// The number of the URL that gave it.
    pub(super) source: usize,
    /// The version of the protocol.
    pub(super) version: Version,
    /// The headers of every request.
    pub(super) headers: HeaderMap,
    pub(super) database: Uuid,
    /// The server's extensions.
    extensions: Vec<String>,
    strong: Option<String>,
    /// Those for eventual reads, in the server's order.
    eventual: Vec<String>,
    /// That of the server that gave the grant, if it is a read server.
    own: Option<String>,
    /// When to renew the grant, and when it expires.
    pub(super) renew_at: Instant,
    pub(super) ends_at: Instant,
    /// For the ids of writes.
    clock: Option<DatabaseClock>,
}

impl Grant {
    /// Whether the server offers that extension.
    pub(super) fn offers(&self, extension: &str) -> bool {
        self.extensions.iter().any(|offered| offered == extension)
    }

    /// The time at which ids of writes are made; `None` if the server does not remember them.
    pub(super) fn write_id_ms(&self) -> Option<i64> {
        let offered = self.offers(FRAMES) && self.offers(WRITE_IDS);
        self.clock.filter(|_| offered).map(DatabaseClock::now_ms)
    }

    /// The endpoint of the server that gave the grant, for a replica that follows this server and no other.
    pub(super) fn source_endpoint(&self) -> Option<&str> {
        self.own.as_deref().or(self.strong.as_deref())
    }

    /// The endpoint for strong reads and writes.
    pub(super) fn strong(&self) -> Option<&str> {
        self.strong.as_deref()
    }

    /// The endpoints for eventual reads. Without one, the strong one answers them.
    pub(super) fn eventual(&self) -> &[String] {
        &self.eventual
    }
}

/// Why an exchange failed.
#[derive(Clone)]
pub(super) enum Failure {
    /// A retry may help, after at least this wait. The text names the URLs.
    Passing(String, Duration),
    /// A retry does not help.
    Final(Error),
}

/// The URLs of a database and the access token.
pub(super) struct Exchange {
    transport: Arc<Transport>,
    env: Arc<dyn Env>,
    pub(super) sources: Sources,
    /// `None` without an access token, which a server of this machine may not ask for.
    authorization: Option<HeaderValue>,
}

impl Exchange {
    pub(super) fn new(
        transport: Arc<Transport>,
        env: Arc<dyn Env>,
        servers: Servers<'_>,
        access_token: &str,
    ) -> Result<Self> {
        let invalid = || {
            Error::invalid("accessToken must be visible ASCII characters: it is sent in a header")
        };
        let authorization = match access_token {
            "" => None,
            token => Some(bearer(token).ok_or_else(invalid)?),
        };
        Ok(Self { transport, env, sources: Sources::new(servers)?, authorization })
    }

    /// The URL of the server that answered last, for messages.
    pub(super) fn shown(&self) -> String {
        self.sources.last().as_ref().map(shown).unwrap_or_default()
    }

    /// The URL of the server that answered last, and the header with the access token, if there is one.
    pub(super) fn access(&self) -> Result<(Url, Option<HeaderValue>)> {
        let url = self.sources.last().ok_or_else(|| Error::internal("a database without a URL"))?;
        Ok((url, self.authorization.clone()))
    }

    /// The error for metadata without a strong endpoint.
    pub(super) fn no_endpoint(&self) -> Error {
        let why = "names no endpoint with strong consistency, which writes and strong reads need";
        Error::unavailable(format!("{} {why}", self.shown()))
    }

    /// The error for a grant of another database than the one before.
    pub(super) fn another_database(&self, before: &Grant, now: &Grant) -> Error {
        let shown = self.sources.shown(now.source);
        if now.source == before.source {
            return Error::corrupt(format!(
                "{shown} is another database than before: open it again"
            ));
        }
        Error::corrupt(format!(
            "{shown} is the database {}, and {} is {}: the URLs of a list name one database",
            now.database,
            self.sources.shown(before.source),
            before.database
        ))
    }

    /// Requests a grant from one URL after the other until one gives it. The grant gets this number. A refusal is
    /// final: the client asks no other URL.
    pub(super) async fn once(&self, number: u64, patience: Patience) -> Result<Grant, Failure> {
        let deadline = patience.answered;
        let looked = tokio::time::timeout_at(deadline, self.sources.look()).await;
        let late = |_| Error::unavailable("the search for the server took too long");
        looked.map_err(late).flatten().map_err(|error| match error.kind() {
            Kind::Unavailable => Failure::Passing(error.message().to_owned(), Duration::ZERO),
            _ => Failure::Final(error),
        })?;
        let round = self.sources.round(Instant::now());
        if let [(at, url, _)] = round.as_slice() {
            return self.ask(number, (*at, url), patience).await;
        }
        let mut left = u32::try_from(round.len()).unwrap_or(u32::MAX);
        let (mut failures, mut least) = (Vec::new(), Duration::MAX);
        for (at, url, rest) in round {
            let now = Instant::now();
            let (why, wait) = if rest > Duration::ZERO {
                (format!("{}: its Retry-After is not over", shown(&url)), rest)
            } else if now >= deadline {
                (format!("{}: no time was left to ask it", shown(&url)), rest)
            } else {
                let answered = next_at(now, deadline, left);
                match self.ask(number, (at, &url), Patience { answered, ..patience }).await {
                    Err(Failure::Passing(why, wait)) => {
                        self.sources.rest(at, Instant::now() + wait);
                        (why, wait)
                    }
                    done => return done,
                }
            };
            failures.push(why);
            least = least.min(wait);
            left -= 1;
        }
        Err(Failure::Passing(failures.join("; "), least))
    }

    /// Asks one URL.
    async fn ask(
        &self,
        number: u64,
        (source, url): (usize, &Url),
        patience: Patience,
    ) -> Result<Grant, Failure> {
        let deadline = patience.answered;
        let original = url;
        let mut url = url.clone();
        for _ in 0..=REDIRECTS_MAX {
            let uri: Uri = url.as_str().parse().map_err(|_| {
                Failure::Final(Error::invalid(format!("{} cannot be requested", shown(&url))))
            })?;
            let passing = |fault: Fault| match fault {
                Fault::TooLarge(_) => Failure::Final(no_endpoint_at(&shown(&url), &fault.why())),
                fault => {
                    let why = format!("failed to connect to '{}': {}", shown(&url), fault.why());
                    Failure::Passing(why, Duration::ZERO)
                }
            };
            let mut headers = HeaderMap::new();
            if let Some(authorization) = &self.authorization {
                headers.insert(AUTHORIZATION, authorization.clone());
            }
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON_TYPE));
            for name in [EXTENSIONS_HEADER, PACKED_HEADER] {
                headers.insert(HeaderName::from_static(name), HeaderValue::from(1));
            }
            let body = Bytes::from(write_request(&Version::ALL));
            let answer =
                self.transport.probe(&uri, headers, body, patience).await.map_err(passing)?;
            let (head, body) = answer.into_parts();
            match head.status {
                StatusCode::OK => {
                    let bytes =
                        collect(body, METADATA_BYTES_MAX, deadline).await.map_err(passing)?;
                    return self
                        .granted((number, source), &url, &head.headers, &bytes)
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
                    if status == StatusCode::UNAUTHORIZED && self.authorization.is_none() {
                        return Err(Failure::Final(Error::invalid(format!(
                            "{} asks for an access token: pass the option accessToken, or set \
                             OPENKV_ACCESS_TOKEN or DENO_KV_ACCESS_TOKEN",
                            shown(&url)
                        ))));
                    }
                    return Err(refused(&url, status, &head.headers, &text));
                }
            }
        }
        let why = format!("{} redirects more than {REDIRECTS_MAX} times", shown(original));
        Err(Failure::Final(Error::corrupt(why)))
    }

    fn granted(
        &self,
        (number, source): (u64, usize),
        url: &Url,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<Grant> {
        let shown = shown(url);
        let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        if content_type.is_some_and(|is| !is.trim_start().starts_with(JSON_TYPE)) {
            let is = content_type.unwrap_or_default();
            return Err(no_endpoint_at(&shown, &format!("it answers with {is}, not JSON")));
        }
        let metadata = read_answer(body, &Version::ALL).map_err(|error| match error.kind() {
            Kind::Unsupported => Error::unsupported(format!("{shown}: {error}")),
            _ => no_endpoint_at(&shown, &error.to_string()),
        })?;
        let version = metadata.version;
        let first = metadata.endpoints.iter().find(|of| of.consistency == Consistency::Strong);
        let strong = first.map(|of| address::endpoint(url, version, &of.url)).transpose()?;
        // One that cannot be used, for example as it is not encrypted, is no reason to fail.
        let eventual =
            metadata.endpoints.iter().filter(|of| of.consistency == Consistency::Eventual);
        let eventual = eventual.flat_map(|of| address::endpoint(url, version, &of.url)).collect();
        let resolved = metadata.endpoints.iter().map(|of| address::endpoint(url, version, &of.url));
        let is_read_server = metadata.extensions.iter().any(|offered| offered == READ_SERVER);
        let mut resolved = resolved.flatten().filter(|_| is_read_server);
        let own = resolved.find(|of| address::is_of_origin(of, url));
        // The expiry is by the server's clock, which may differ from the local one.
        let date = time_of(headers);
        let since_epoch = date.and_then(|date| date.duration_since(std::time::UNIX_EPOCH).ok());
        let server_ms = since_epoch.and_then(|since| i64::try_from(since.as_millis()).ok());
        let now_ms = server_ms.unwrap_or_else(|| self.env.now_ms());
        let (renew_at, ends_at) = ends(metadata.expires_at_ms.saturating_sub(now_ms));
        let heard = Instant::now();
        let clock = metadata.now_ms.map(|at_ms| DatabaseClock { at_ms, heard });
        let headers = data_headers(&metadata)
            .ok_or_else(|| Error::corrupt(format!("{shown} gives an invalid token")))?;
        Ok(Grant {
            number,
            source,
            version,
            headers,
            database: metadata.database,
            extensions: metadata.extensions,
            strong,
            eventual,
            own,
            renew_at,
            ends_at,
            clock,
        })
    }
}

/// When to renew a token with this lifetime, and when it expires. Even a token with no lifetime is
/// used for a moment: the server rejects it if it is invalid.
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

/// The error for an answer that is none of KV Connect. The words are Deno's.
fn no_endpoint_at(shown: &str, why: &str) -> Error {
    Error::corrupt(format!("'{shown}' is not a valid KV Connect endpoint: {why}"))
}

/// The failure that a status says. The words before it are Deno's.
fn refused(url: &Url, status: StatusCode, headers: &HeaderMap, text: &str) -> Failure {
    // A sentence of the server's ends with a full stop, and another sentence may follow.
    let text = text.trim_end_matches('.');
    let between = if text.is_empty() { "" } else { ": " };
    let shown = shown(url);
    let why =
        format!("the metadata endpoint at '{shown}' responded with status {status}{between}{text}");
    if transport::is_failure(status) || status == StatusCode::TOO_MANY_REQUESTS {
        return Failure::Passing(why, retry_after(headers).unwrap_or_default());
    }
    Failure::Final(match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            Error::denied(format!("{why}. The access token is not accepted: check accessToken"))
        }
        StatusCode::NOT_FOUND => Error::corrupt(format!("{why}. {}", place_of_databases(url))),
        _ => Error::corrupt(format!("{why}. Is this the URL of a KV Connect server?")),
    })
}

/// The part of an error that says where a server has its databases, for a URL that names none.
fn place_of_databases(url: &Url) -> String {
    let segments: Vec<&str> = url.path_segments().map(Iterator::collect).unwrap_or_default();
    let api = segments.iter().position(|segment| matches!(*segment, "v1" | "v2"));
    let mut root = url.clone();
    root.set_path(&segments.get(..api.unwrap_or(0)).unwrap_or_default().join("/"));
    let root = shown(&root);
    match api {
        Some(at) if at > 0 => format!(
            "Its path has /{} of the API: the URL of the database is {root}",
            segments.get(at).copied().unwrap_or_default()
        ),
        _ => format!(
            "The URL of a database is {root} of a server of one, and {}/NAME of a server of several",
            root.trim_end_matches('/')
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn tokens_are_renewed_early_but_not_at_once() {
        let least = Duration::from_millis(METADATA_INTERVAL_MS_MIN);
        for life_ms in [i64::MIN, -5, 0, 1, 14_000, 86_400_000, i64::MAX] {
            let now = Instant::now();
            let (renew_at, ends_at) = ends(life_ms);
            assert!(renew_at <= ends_at);
            assert!(renew_at >= now + least * 4 / 5, "{life_ms}");
            assert!(ends_at - renew_at <= AHEAD);
        }
    }

    /// A refusal had two full stops, and left the caller to guess what is wrong with the URL.
    #[test]
    fn a_refusal_names_the_place_of_databases() {
        let message = |url: &str, status| {
            let url = Url::parse(url).unwrap();
            match refused(&url, status, &HeaderMap::new(), "Resource not found.") {
                Failure::Final(error) => error.to_string(),
                Failure::Passing(why, _) => why,
            }
        };
        for (url, place) in [
            ("http://h:1/", "http://h:1/ of a server of one, and http://h:1/NAME"),
            ("http://h:1/v2", "http://h:1/ of a server of one, and http://h:1/NAME"),
            ("http://h:1/v1/kv", "http://h:1/ of a server of one, and http://h:1/NAME"),
            ("http://h:1/shop/v2", "/v2 of the API: the URL of the database is http://h:1/shop"),
            ("http://h:1/shp", "http://h:1/ of a server of one, and http://h:1/NAME"),
        ] {
            let message = message(url, StatusCode::NOT_FOUND);
            assert!(message.contains(place) && !message.contains(".."), "{message}");
        }
        let denied = message("http://h:1/", StatusCode::UNAUTHORIZED);
        assert!(denied.contains("found. The access token"), "{denied}");
    }

    #[test]
    fn tokens_are_visible_characters() {
        assert!(bearer("abc-_.~+/=").is_some());
        for bad in ["", "a b", "a\n", "é"] {
            assert!(bearer(bad).is_none(), "{bad:?}");
        }
    }
}
