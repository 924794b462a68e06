//! The KV Connect server: databases of this machine for whoever has a token.
//!
//! Duty: HTTP/1.1 and HTTP/2 on one port, with or without TLS; who may do what to which database,
//! and how much of it; the admin API.
//! Invariant: nothing of a request but its head is looked at before its token has been compared, in
//! constant time; an answered commit is as durable as the store says; what one database's clients
//! do is bounded by its quotas.
//! Never: the meaning of a message (`connect` has it) or of a write (`store`), a token in a log.
//!
//! | file | what |
//! |---|---|
//! | [`options`] | everything that can be chosen, checked in one place |
//! | `listener`, `connection`, `stall` | the socket, TLS; connections and their bounds; the end |
//! | `slots` | which connections stay when there are as many as there may be |
//! | `route` | method and path → what answers; who may come in |
//! | `exchange`, `data` | metadata; reads and writes |
//! | `stream`, `watch` | answers that go on and on; the states of keys |
//! | `extension` | openkv's own requests, for clients that have asked |
//! | `admin` | databases and tokens, made and dropped |
//! | `auth` | tokens: compared, hashed, issued, signed |
//! | `catalog`, `registry`, `database`, `quota` | the databases, their file of record, their bounds |
//! | `memory` | what all that is under way may take of it |

mod admin;
mod answer;
mod auth;
mod catalog;
mod connection;
mod data;
mod database;
mod exchange;
mod extension;
mod listener;
mod log;
mod memory;
pub mod options;
mod quota;
mod registry;
mod route;
mod slots;
mod stall;
mod stream;
mod watch;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch as flag;

use crate::model::{Error, Kind, Result, SHUTDOWN_MS_MAX};
use options::ServerOptions;

/// What every request needs.
struct Serving {
    catalog: catalog::Catalog,
    signer: auth::Signer,
    admin_token: Option<auth::TokenHash>,
    data_token_ms: i64,
    scheme: &'static str,
    /// True from when the server begins to close.
    closing: flag::Sender<bool>,
    /// When it began to serve.
    begun: tokio::time::Instant,
}

impl Serving {
    fn is_closing(&self) -> bool {
        *self.closing.borrow()
    }
}

/// A running server. Dropping it closes it.
pub struct Server {
    serving: Arc<Serving>,
    runtime: Option<Runtime>,
    accepting: Option<tokio::task::JoinHandle<()>>,
    address: SocketAddr,
}

impl Server {
    /// Opens the databases' catalog and starts to listen.
    ///
    /// # Errors
    /// `Invalid` for options that make no sense, naming the option; `Unavailable` and `Denied` for
    /// an address, a folder or a file that cannot be used, or a folder that another server has.
    pub fn start(options: ServerOptions) -> Result<Self> {
        let plan = options.check()?;
        log::start(plan.log);
        let tls = plan.tls.as_ref().map(listener::tls).transpose()?;
        // Before any file is made: nothing is left of a server that cannot listen.
        let bound = listener::bind(&plan.listen)?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let serving = Arc::new(Serving {
            catalog: catalog::Catalog::open(&plan)?,
            signer: auth::Signer::new()?,
            admin_token: plan.admin_token.as_deref().map(auth::TokenHash::of),
            data_token_ms: plan.data_token_ms,
            scheme,
            closing: flag::Sender::new(false),
            begun: tokio::time::Instant::now(),
        });
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("openkv-server")
            .enable_all()
            .build()
            .map_err(|error| Error::new(Kind::Unavailable, format!("no runtime: {error}")))?;
        let address =
            bound.local_addr().map_err(|error| Error::new(Kind::Unavailable, error.to_string()))?;
        let socket = {
            let _inside = runtime.enter();
            tokio::net::TcpListener::from_std(bound)
                .map_err(|error| Error::new(Kind::Unavailable, error.to_string()))?
        };
        if tls.is_none() && !address.ip().is_loopback() {
            tracing::warn!(%address, "tokens travel in clear text: give tls, or put a proxy in front");
        }
        let accept = listener::serve(serving.clone(), socket, tls, plan.connections_max);
        let accepting = Some(runtime.spawn(accept));
        tracing::info!(%address, scheme, "listening");
        Ok(Self { serving, runtime: Some(runtime), accepting, address })
    }

    /// Where it listens: the port is chosen by then.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL that clients on this machine open.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}://{}", self.serving.scheme, self.address)
    }

    /// Takes no more connections, answers what is under way, ends watches, and closes the
    /// databases. Waits for that, at most [`SHUTDOWN_MS_MAX`].
    pub fn close(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        self.serving.closing.send_replace(true);
        if let Some(accepting) = self.accepting.take() {
            let wait = Duration::from_millis(SHUTDOWN_MS_MAX);
            let ended = runtime.block_on(async { tokio::time::timeout(wait, accepting).await });
            if ended.is_err() {
                tracing::warn!("requests were still under way when the server closed");
            }
        }
        runtime.shutdown_timeout(Duration::from_secs(1));
        self.serving.catalog.close();
        tracing::info!(address = %self.address, "closed");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.close();
    }
}
