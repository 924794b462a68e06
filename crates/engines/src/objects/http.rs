//! The connections to object stores: the HTTP client and the trusted certificates of the rest of openkv.
//!
//! Without this, `object_store` would bring a second client and a second TLS library.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::try_unfold;
use http_body_util::{BodyExt, StreamBody};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector as Tcp;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpResponseBody, HttpService,
};
use object_store::{ClientConfigKey, ClientOptions};

use openkv_core::model::OBJECT_SENT_BYTES_PER_S_MIN;
use openkv_wire::trust;

/// Shorter than servers keep idle connections.
const IDLE: Duration = Duration::from_secs(3);
/// Longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// Longest wait for the head of an answer to what was sent, or for the next part of its body.
const ANSWER: Duration = Duration::from_secs(30);

/// Counts the attempts of one request, which `object_store` repeats by itself: after an error of the server or of the
/// connection it is open whether the attempt has happened. Travels in the extensions of the request.
#[derive(Clone, Debug, Default)]
pub(super) struct Attempts(Arc<AtomicU32>);

impl Attempts {
    pub(super) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Makes the client of a store.
#[derive(Debug)]
pub(super) struct Connector {
    /// As [`ANSWER`].
    answer: Duration,
}

impl Default for Connector {
    fn default() -> Self {
        Self { answer: ANSWER }
    }
}

#[derive(Debug)]
struct Service {
    client: Client<HttpsConnector<Tcp>, HttpRequestBody>,
    /// Whether requests may go without TLS.
    plain: bool,
    answer: Duration,
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let refuse =
            |why: String| object_store::Error::Generic { store: "HTTP", source: why.into() };
        let mut tcp = Tcp::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT));
        let tls = trust::client_config().map_err(refuse)?;
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build(connector);
        let plain =
            options.get_config_value(&ClientConfigKey::AllowHttp).as_deref() == Some("true");
        Ok(HttpClient::new(Service { client, plain, answer: self.answer }))
    }
}

#[derive(Debug)]
struct Refusal(&'static str);

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Refusal {}

fn late() -> HttpError {
    HttpError::new(HttpErrorKind::Timeout, Refusal("the server does not answer"))
}

#[async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        if let Some(attempts) = request.extensions().get::<Attempts>() {
            attempts.add();
        }
        if !self.plain && request.uri().scheme_str() != Some("https") {
            let why = "the endpoint is not https: set AWS_ALLOW_HTTP=true (or the same of the other store) to \
                       send the archive without encryption";
            return Err(HttpError::new(HttpErrorKind::Unknown, Refusal(why)));
        }
        let bytes = request.body().content_length() as u64;
        let sending = Duration::from_millis(bytes * 1000 / OBJECT_SENT_BYTES_PER_S_MIN);
        let answered = self.client.request(request);
        let answered = tokio::time::timeout(self.answer + sending, answered).await;
        let response = answered.map_err(|_| late())?.map_err(|error| {
            let kind =
                if error.is_connect() { HttpErrorKind::Connect } else { HttpErrorKind::Request };
            HttpError::new(kind, error)
        })?;
        let (parts, body) = response.into_parts();
        let answer = self.answer;
        let frames = try_unfold(body, move |mut body| async move {
            match tokio::time::timeout(answer, body.frame()).await {
                Err(_) => Err(late()),
                Ok(None) => Ok(None),
                Ok(Some(Ok(frame))) => Ok(Some((frame, body))),
                Ok(Some(Err(error))) => Err(HttpError::new(HttpErrorKind::Interrupted, error)),
            }
        });
        Ok(HttpResponse::from_parts(parts, HttpResponseBody::new(StreamBody::new(frames))))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// The body of the answer of a server to a request with these bytes.
    fn exchange(
        answer: Duration,
        sent: Vec<u8>,
        serve: impl FnOnce(TcpStream) + Send + 'static,
    ) -> Result<usize, HttpError> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let uri = format!("http://{}/", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || serve(listener.accept().unwrap().0));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let got = runtime.block_on(async {
            let connector = Connector { answer };
            let client = connector.connect(&ClientOptions::new().with_allow_http(true)).unwrap();
            let mut request = HttpRequest::new(sent.into());
            *request.uri_mut() = uri.parse().unwrap();
            Ok(client.execute(request).await?.into_body().bytes().await?.len())
        });
        // Closes the connection.
        drop(runtime);
        server.join().unwrap();
        got
    }

    /// A body that stopped in the middle was awaited without end, by reads, by the upkeep of a leader, and by closing.
    #[test]
    fn an_answer_that_stops_in_its_body_is_late() {
        let got = exchange(Duration::from_millis(200), Vec::new(), |mut socket| {
            assert!(socket.read(&mut [0; 1024]).unwrap() > 0);
            socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nab").unwrap();
            // The connection stays open for as long as the client keeps it.
            drop(socket.read(&mut [0; 1024]));
        });
        assert_eq!(got.unwrap_err().kind(), HttpErrorKind::Timeout);
    }

    /// The wait for the answer began before a large object was sent, so that a slow line could never store one.
    #[test]
    fn an_answer_may_come_once_its_request_is_sent() {
        let mut sent = vec![7; 1024 * 1024];
        sent.push(0);
        let got = exchange(Duration::ZERO, sent, |mut socket| {
            BufReader::new(&socket).read_until(0, &mut Vec::new()).unwrap();
            socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
        });
        assert_eq!(got.unwrap(), 0);
    }
}
