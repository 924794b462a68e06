//! Hands requests over to the server that leads their database, for servers behind one address.
//!
//! Invariant: a request takes one hop. If the leader has changed meanwhile, the client repeats it.

use hyper::body::Incoming;
use hyper::header::{
    ACCEPT, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue,
    IF_MATCH, IF_NONE_MATCH, RETRY_AFTER, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::http::request::Parts;
use hyper::http::uri::PathAndQuery;
use hyper::{Request, Response};

use super::answer::{Answer, Body, Refusal};
use super::http_client::HttpClient;
use super::request::RequestBody;
use super::trace_context::{TRACEPARENT, TRACESTATE};
use openkv_core::model::{Error, Kind, Result};
use openkv_wire::protocol::extension::SEEN_HEADER;

/// Marks a request that another server has handed over.
const FORWARDED_HEADER: &str = "x-openkv-forwarded";
/// Prefix of the headers of the protocols.
const OWN_PREFIX: &str = "x-";
/// Headers of a request.
const REQUEST_HEADERS: [HeaderName; 7] =
    [AUTHORIZATION, CONTENT_TYPE, ACCEPT, IF_MATCH, IF_NONE_MATCH, TRACEPARENT, TRACESTATE];
/// Headers of an answer.
const ANSWER_HEADERS: [HeaderName; 7] = [
    CONTENT_TYPE,
    CACHE_CONTROL,
    ETAG,
    RETRY_AFTER,
    WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS,
    HeaderName::from_static(SEEN_HEADER),
];

/// The connections to the servers that lead databases.
pub(super) struct Forwarder(HttpClient<RequestBody>);

impl Forwarder {
    /// # Errors
    /// `Unavailable` without trusted certificates.
    pub(super) fn new() -> Result<Self> {
        HttpClient::new().map(Self)
    }

    /// Hands a request over. `leader`: the URL of the other server.
    pub(super) async fn send(
        &self,
        leader: &str,
        head: &Parts,
        body: RequestBody,
    ) -> Result<Answer, Refusal> {
        if head.headers.contains_key(FORWARDED_HEADER) {
            let why = "the leader of this database has changed; nothing was done, so try again";
            return Err(Error::unavailable(why).into());
        }
        let mut request = Request::builder()
            .method(head.method.clone())
            .uri(format!("{leader}{}", head.uri.path_and_query().map_or("/", PathAndQuery::as_str)))
            .body(body)
            .map_err(|error| Error::internal(error.to_string()))?;
        copy(&head.headers, request.headers_mut(), |name| {
            REQUEST_HEADERS.contains(name) || name.as_str().starts_with(OWN_PREFIX)
        });
        request.headers_mut().insert(FORWARDED_HEADER, HeaderValue::from_static("1"));
        match self.0.request(request).await {
            Ok(answer) => Ok(answer_of(answer)),
            Err(error) if error.is_connect() => {
                let why = "the server that leads this database does not answer; nothing was done";
                tracing::warn!(%error, leader, "handing a request over");
                Err(Error::unavailable(why).into())
            }
            Err(error) => {
                let why = format!(
                    "the connection to the server that leads this database was lost: {error}; \
                     read to find out whether a write has happened"
                );
                Err(Error::new(Kind::OutcomeUnknown, why).into())
            }
        }
    }
}

fn answer_of(answer: Response<Incoming>) -> Answer {
    let (head, body) = answer.into_parts();
    let mut answer = Response::new(Body::Forwarded(body));
    *answer.status_mut() = head.status;
    copy(&head.headers, answer.headers_mut(), |name| ANSWER_HEADERS.contains(name));
    answer
}

fn copy(from: &HeaderMap, to: &mut HeaderMap, is_kept: impl Fn(&HeaderName) -> bool) {
    for (name, value) in from.iter().filter(|(name, _)| is_kept(name)) {
        to.append(name.clone(), value.clone());
    }
}
