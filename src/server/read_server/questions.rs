//! Questions to the primary, with the tokens of clients: the metadata exchange, and what a token may do.

use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::http::response::Parts;
use hyper::{Method, Request, Response, StatusCode};
use tokio::time::{Instant, timeout_at};
use url::Url;
use uuid::Uuid;

use crate::connect::metadata::{
    Consistency, EXTENSIONS_HEADER, Endpoint, Metadata, PACKED_HEADER, read_answer, write_request,
};
use crate::connect::versions::{DATABASE_HEADER, JSON_TYPE, VERSION_HEADER, Version};
use crate::model::{Error, METADATA_BYTES_MAX, READ_SERVER_ASK_MS_MAX, Result};
use crate::protocol::extension::{FRAMES_TYPE, GRANT, read_grant};
use crate::server::answer::Refusal;
use crate::server::auth::Rights;
use crate::server::http_client::HttpClient;

/// The connections to the primary.
pub(super) struct Questions {
    http: HttpClient<Full<Bytes>>,
    url: Url,
}

/// Why a question has no answer.
pub(super) enum Unanswered {
    /// The primary refuses the token.
    Refused,
    /// The primary cannot be reached, or not answer.
    Unreached(Error),
}

impl From<Unanswered> for Refusal {
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::Refused => Self::wrong_token(),
            Unanswered::Unreached(error) => error.into(),
        }
    }
}

impl Questions {
    /// `url`: that of the database at the primary.
    ///
    /// # Errors
    /// `Unavailable` without trusted certificates.
    pub(super) fn new(url: &Url) -> Result<Self> {
        Ok(Self { http: HttpClient::new()?, url: url.clone() })
    }

    /// The metadata for a client that speaks these versions. Its endpoints are absolute.
    pub(super) async fn metadata(
        &self,
        access_token: &str,
        offered: &[Version],
        extensions: bool,
    ) -> Result<Metadata, Unanswered> {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, bearer(access_token)?);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON_TYPE));
        if extensions {
            for name in [EXTENSIONS_HEADER, PACKED_HEADER] {
                headers.insert(HeaderName::from_static(name), HeaderValue::from(1));
            }
        }
        let body = self.post(self.url.as_str(), headers, write_request(offered).into()).await?;
        let mut metadata = read_answer(&body, offered).map_err(|error| unreadable(&error))?;
        for endpoint in &mut metadata.endpoints {
            let absolute = self.url.join(&endpoint.url).map_err(|error| unreadable(&error))?;
            endpoint.url = absolute.as_str().trim_end_matches('/').to_owned();
        }
        Ok(metadata)
    }

    /// What a token of the data path may do, and for how long.
    pub(super) async fn grant(
        &self,
        endpoint: &str,
        database: Uuid,
        data_token: &str,
    ) -> Result<(Rights, Duration), Unanswered> {
        if self.url.scheme() == "https" && !endpoint.starts_with("https:") {
            return Err(unreadable(&"its endpoint is not encrypted, and its metadata is"));
        }
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, bearer(data_token)?);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(FRAMES_TYPE));
        headers.insert(HeaderName::from_static(VERSION_HEADER), HeaderValue::from_static("3"));
        let database = HeaderValue::from_str(&database.to_string());
        let database = database.map_err(|error| unreadable(&error))?;
        headers.insert(HeaderName::from_static(DATABASE_HEADER), database);
        let body = self.post(&format!("{endpoint}/{GRANT}"), headers, Bytes::new()).await?;
        let (rights, left_ms) = read_grant(&body)
            .map_err(|error| unreadable(&error))?
            .map_err(Unanswered::Unreached)?;
        let rights = Rights::from_number(rights).ok_or_else(|| unreadable(&"unknown rights"))?;
        Ok((rights, Duration::from_millis(left_ms)))
    }

    async fn post(&self, url: &str, headers: HeaderMap, body: Bytes) -> Result<Bytes, Unanswered> {
        let deadline = Instant::now() + Duration::from_millis(READ_SERVER_ASK_MS_MAX);
        let request = Request::builder().method(Method::POST).uri(url).body(Full::new(body));
        let mut request = request.map_err(|error| unreadable(&error))?;
        *request.headers_mut() = headers;
        let asked = timeout_at(deadline, self.http.request(request)).await;
        let answer = match asked {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => return Err(unreached(&error)),
            Err(late) => return Err(unreached(&late)),
        };
        body_of(answer, deadline).await
    }
}

/// The body of a good answer.
async fn body_of(answer: Response<Incoming>, deadline: Instant) -> Result<Bytes, Unanswered> {
    let (Parts { status, .. }, body) = answer.into_parts();
    let whole = Limited::new(body, METADATA_BYTES_MAX).collect();
    let body = match timeout_at(deadline, whole).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) => return Err(unreached(&error)),
        Err(late) => return Err(unreached(&late)),
    };
    match status {
        StatusCode::OK => Ok(body),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(Unanswered::Refused),
        StatusCode::NOT_FOUND => Err(Unanswered::Unreached(Error::unavailable(
            "the primary knows no read servers: update openkv there",
        ))),
        status => {
            let text = String::from_utf8_lossy(&body);
            Err(unreached(&format_args!("it answered {status}: {text}")))
        }
    }
}

/// The endpoint for strong reads and writes.
pub(super) fn strong_of(endpoints: &[Endpoint]) -> Option<&str> {
    let strong = endpoints.iter().find(|of| of.consistency == Consistency::Strong);
    strong.map(|of| of.url.as_str())
}

fn bearer(token: &str) -> Result<HeaderValue, Unanswered> {
    let mut value =
        HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| Unanswered::Refused)?;
    value.set_sensitive(true);
    Ok(value)
}

fn unreached(why: &impl std::fmt::Display) -> Unanswered {
    Unanswered::Unreached(Error::unavailable(format!(
        "the primary of this read server was not reached: {why}"
    )))
}

fn unreadable(why: &impl std::fmt::Display) -> Unanswered {
    Unanswered::Unreached(Error::unavailable(format!(
        "the answer of the primary cannot be read: {why}"
    )))
}
