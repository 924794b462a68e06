//! Requests to the primary: with the token of a client the metadata exchange, and the rights of the token; with
//! its admin token, the list of databases.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::http::response::Parts;
use hyper::{Method, Request, Response, StatusCode};
use serde::Deserialize;
use tokio::time::{Instant, timeout_at};
use url::Url;
use uuid::Uuid;

use crate::answer::Refusal;
use crate::auth::Rights;
use crate::http_client::HttpClient;
use openkv_core::model::{
    Error, METADATA_BYTES_MAX, READ_SERVER_ASK_MS_MAX, READ_SERVER_CATALOG_BYTES_MAX,
};
use openkv_wire::connect::metadata::{
    Consistency, EXTENSIONS_HEADER, Endpoint, Metadata, PACKED_HEADER, read_answer, write_request,
};
use openkv_wire::connect::versions::{DATABASE_HEADER, JSON_TYPE, VERSION_HEADER, Version};
use openkv_wire::protocol::extension::{FRAMES_TYPE, GRANT, read_grant};

/// Connections to the primary.
pub(crate) type Http = HttpClient<Full<Bytes>>;

/// The requests to one URL of the primary.
pub(crate) struct PrimaryClient {
    http: Arc<Http>,
    url: Url,
}

/// Why a request has no answer.
pub(crate) enum Unanswered {
    /// The primary refuses the token.
    Refused,
    /// The primary does not know the request.
    Unknown,
    /// The primary cannot be reached, or not answer.
    Unreached(Error),
}

impl From<Unanswered> for Refusal {
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::Refused => Self::wrong_token(),
            Unanswered::Unknown => Error::unavailable(KNOWS_NONE).into(),
            Unanswered::Unreached(error) => error.into(),
        }
    }
}

const KNOWS_NONE: &str = "the primary knows no read servers: update openkv there";

/// The databases of a primary with a folder.
pub(crate) struct PrimaryCatalog {
    /// In order.
    pub(crate) names: Vec<String>,
    /// Databases that it says it has dropped.
    pub(crate) dropped: BTreeSet<Uuid>,
}

#[derive(Deserialize)]
struct CatalogAnswer {
    databases: Vec<Listed>,
    dropped: Vec<String>,
}

#[derive(Deserialize)]
struct Listed {
    name: String,
}

impl PrimaryClient {
    /// `url`: that of the database at the primary, or of its root for [`PrimaryClient::catalog`].
    pub(crate) fn new(http: Arc<Http>, url: &Url) -> Self {
        Self { http, url: url.clone() }
    }

    /// The databases of the primary.
    pub(crate) async fn catalog(&self, admin_token: &str) -> Result<PrimaryCatalog, Unanswered> {
        let url = self.url.join("v1/admin/catalog").map_err(|error| unreadable(&error))?;
        let request = Request::builder().method(Method::GET).uri(url.as_str());
        let request = request.header(AUTHORIZATION, bearer(admin_token)?).body(Full::default());
        let request = request.map_err(|error| unreadable(&error))?;
        let body = self.send(request, READ_SERVER_CATALOG_BYTES_MAX).await?;
        let answer = serde_json::from_slice(&body).map_err(|_| Unanswered::Unknown);
        let CatalogAnswer { databases, dropped } = answer?;
        let mut names: Vec<_> = databases.into_iter().map(|of| of.name).collect();
        names.sort_unstable();
        let dropped = dropped.iter().filter_map(|id| Uuid::try_parse(id).ok()).collect();
        Ok(PrimaryCatalog { names, dropped })
    }

    /// The metadata for a client that speaks these versions. Its endpoints are absolute.
    pub(crate) async fn metadata(
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

    /// The rights of a token of the data path, and their duration.
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
        let request = Request::builder().method(Method::POST).uri(url).body(Full::new(body));
        let mut request = request.map_err(|error| unreadable(&error))?;
        *request.headers_mut() = headers;
        self.send(request, METADATA_BYTES_MAX).await
    }

    async fn send(
        &self,
        request: Request<Full<Bytes>>,
        bytes_max: usize,
    ) -> Result<Bytes, Unanswered> {
        let deadline = Instant::now() + Duration::from_millis(READ_SERVER_ASK_MS_MAX);
        let response = timeout_at(deadline, self.http.request(request)).await;
        let answer = match response {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => return Err(unreached(&error)),
            Err(late) => return Err(unreached(&late)),
        };
        body_of(answer, deadline, bytes_max).await
    }
}

/// The body of a good answer.
async fn body_of(
    answer: Response<Incoming>,
    deadline: Instant,
    bytes_max: usize,
) -> Result<Bytes, Unanswered> {
    let (Parts { status, .. }, body) = answer.into_parts();
    let whole = Limited::new(body, bytes_max).collect();
    let body = match timeout_at(deadline, whole).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) => return Err(unreached(&error)),
        Err(late) => return Err(unreached(&late)),
    };
    match status {
        StatusCode::OK => Ok(body),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(Unanswered::Refused),
        StatusCode::NOT_FOUND | StatusCode::MISDIRECTED_REQUEST => Err(Unanswered::Unknown),
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
