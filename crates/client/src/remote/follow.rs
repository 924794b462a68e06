//! The replication log of a server, for a replica of this process.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Bytes;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::task::AbortHandle;
use uuid::Uuid;

use super::Client;
use super::credentials::{Credentials, Grant};
use super::executor::Needs;
use super::runtime::Tasks;
use super::stream::{End, Follower, StreamRequest, follow};
use openkv_core::model::{
    Advertised, Error, FEED_FRAME_BYTES_MAX, FOLLOW_SILENCE_MS_MAX, Kind, Result,
};
use openkv_wire::protocol::extension::{ADVERTISE_HEADER, FOLLOW, LOG, LOG_INDEXES, REGION_HEADER};

/// Receives the log of a server. A stream that ends is opened again.
pub trait LogFollower: Send + Sync + 'static {
    /// Prepares the next request.
    fn ready(&self) -> impl Future<Output = ()> + Send;

    /// The body of the next request, to a server that may tell value indexes too (`with_values`).
    ///
    /// # Errors
    /// Ends following.
    fn request(&self, with_values: bool) -> Result<Vec<u8>>;

    /// What the server may tell clients about the server of this follower.
    fn advertised(&self) -> Option<&Advertised> {
        None
    }

    /// Takes a message.
    ///
    /// # Errors
    /// `Unavailable` and `Closed` end the stream, and another one is opened; others end following.
    fn take(&self, message: Vec<u8>) -> impl Future<Output = Result<()>> + Send;

    /// A stream has ended, for this reason.
    fn ended(&self, why: &str);

    /// Nothing will follow.
    fn fail(&self, error: Error);
}

/// Follows until it is dropped.
pub struct Following(AbortHandle);

impl Drop for Following {
    fn drop(&mut self) {
        self.0.abort();
    }
}

struct LogStream<F>(Arc<F>);

impl Client {
    /// Follows the replication log of the server.
    pub fn follow(&self, follower: Arc<impl LogFollower>) -> Following {
        let following = follow(self.executor.clone(), Arc::new(LogStream(follower)));
        Following(self.runtime.handle.spawn(following).abort_handle())
    }

    /// Whether the server has a replication log for replicas.
    pub fn has_log(&self) -> bool {
        self.executor.credentials.offers(LOG)
    }

    /// The database, as the server names it.
    pub fn database_id(&self) -> Option<Uuid> {
        self.executor.credentials.last().map(|grant| grant.database)
    }

    /// The endpoint for strong reads and writes.
    pub fn strong_endpoint(&self) -> Option<String> {
        let grant = self.executor.credentials.last()?;
        grant.strong().map(str::to_owned)
    }

    /// The runtime of remote databases.
    pub fn tasks(&self) -> Tasks {
        Tasks(self.runtime.clone())
    }

    /// How long a call may take.
    pub fn timeout(&self) -> Duration {
        self.executor.timeout
    }
}

impl<F: LogFollower> Follower for LogStream<F> {
    fn request(&self, credentials: &Credentials, _: &Grant) -> Result<StreamRequest> {
        let mut headers = HeaderMap::new();
        if let Some(Advertised { url, region }) = self.0.advertised() {
            for (name, value) in [(ADVERTISE_HEADER, url), (REGION_HEADER, region)] {
                let value = HeaderValue::from_str(value);
                let value = value.map_err(|_| Error::invalid("advertise and region are ASCII"))?;
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        Ok(StreamRequest {
            path: FOLLOW,
            headers,
            body: Bytes::from(self.0.request(credentials.offers(LOG_INDEXES))?),
            of_source: true,
            needs: Some(Needs { extension: LOG, what: "the replication log (option replica)" }),
            frame_bytes_max: FEED_FRAME_BYTES_MAX,
            silence_ms_max: FOLLOW_SILENCE_MS_MAX,
        })
    }

    async fn ready(&self) {
        self.0.ready().await;
    }

    async fn take(&self, message: Vec<u8>, _is_first: bool) -> Result<bool, End> {
        self.0.take(message).await.map(|()| true).map_err(|error| match error.kind() {
            Kind::Unavailable | Kind::Closed => {
                End::Again(error.message().to_owned(), Duration::ZERO)
            }
            _ => End::Final(error),
        })
    }

    fn ended(&self, why: &str) {
        self.0.ended(why);
    }

    fn fail(&self, error: Error) {
        self.0.fail(error);
    }
}
