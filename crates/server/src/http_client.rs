//! Requests of this server to others.

use std::time::Duration;

use hyper::Request;
use hyper::body::Body;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, ResponseFuture};
use hyper_util::rt::{TokioExecutor, TokioTimer};

use openkv_core::model::{Error, FORWARD_CONNECT_MS_MAX, Result};
use openkv_wire::trust;

/// An error of a body.
type BoxedError = Box<dyn std::error::Error + Send + Sync>;

/// A client with connections to other servers. It follows no redirection and repeats nothing.
pub(super) struct HttpClient<B>(Client<HttpsConnector<HttpConnector>, B>);

impl<B: Body<Data: Send, Error: Into<BoxedError>> + Send + Unpin + 'static> HttpClient<B> {
    /// # Errors
    /// `Unavailable` without trusted certificates.
    pub(super) fn new() -> Result<Self> {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_connect_timeout(Some(Duration::from_millis(FORWARD_CONNECT_MS_MAX)));
        let tls = trust::client_config().map_err(Error::unavailable)?;
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
        let connector = connector.enable_all_versions().wrap_connector(http);
        let mut builder = Client::builder(TokioExecutor::new());
        builder.timer(TokioTimer::new()).pool_timer(TokioTimer::new());
        Ok(Self(builder.build(connector)))
    }

    /// Sends a request.
    pub(super) fn request(&self, request: Request<B>) -> ResponseFuture {
        self.0.request(request)
    }
}
