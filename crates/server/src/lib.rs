//! The server: databases for clients with a token, over KV Connect, openkv's extension of it and the HTTP API.
//!
//! Duty: HTTP/1.1 and HTTP/2 on one port, with or without TLS; rights and quotas of each client;
//! the admin API, the studio, read servers, archives, several servers on one PostgreSQL.
//! Invariant: before the server has compared the token, in constant time, it reads only the head of a
//! request; it discards the body of a refused one. An answered commit is as durable as the store says.
//! Quotas bound the clients of one database.
//! Never: the meaning of a message (see `connect`) or of a write (see `store`), a token in a log.
//!
//! | file | what |
//! |---|---|
//! | [`options`] | all options, validated in one place |
//! | `listener`, `connection`, `stall` | the socket, TLS; connections and their bounds; the end |
//! | `slots` | which connections stay at the maximum |
//! | `route` | from method and path to a handler, authorization |
//! | `api`, `host` | the HTTP API for any client; the hosts that its requests may name |
//! | `keyval` | the API of KeyVal, for its clients |
//! | `studio` | the pages for browsers |
//! | `exchange`, `data` | metadata; reads and writes |
//! | `pending` | from the callbacks of a store to futures |
//! | `seen` | which commits an answer can depend on, for clients with a replica |
//! | `stream`, `watch` | endless answers; the states of keys |
//! | `checked` | long answers that break off unless they are complete |
//! | `extension` | openkv's own requests, for clients that ask for them |
//! | `downloads` | copies of a database for downloads |
//! | `deliveries` | messages that event streams have delivered |
//! | `admin` | creates and drops databases, tokens and policies of archives |
//! | `archives` | the archivers of its databases |
//! | `auth` | tokens: compared, hashed, issued, signed |
//! | `catalog`, `database`, `location`, `quota` | the databases, their places, their quotas |
//! | `read_server` | a server that follows another one: its replica, the tokens and endpoints of its primary |
//! | `read_folder`, `read_entry` | the databases of a primary with many, and which replicas are open; from a request of a read server to its database and rights |
//! | `records`, `registry` | the list of databases as text, and the file of a folder |
//! | `membership`, `cluster_poll`, `leader`, `forward`, `status` | several servers on one PostgreSQL: what they share, who leads |
//! | `followers` | the replicas that follow a database, and the read servers that metadata names |
//! | `http_client` | requests of this server to others |
//! | `memory`, `held` | bounds the memory of running requests; their places |
//! | `unread` | discards the rest of a body whose request is answered already |

#![forbid(unsafe_code)]

mod admin;
mod answer;
mod api;
pub mod archive;
mod archive_policy;
mod archives;
mod auth;
mod catalog;
mod catalog_refresh;
mod checked;
mod clock;
mod cluster_poll;
mod connection;
mod data;
mod database;
mod deliveries;
mod downloads;
mod exchange;
mod extension;
mod feed;
mod followers;
mod forward;
mod held;
mod host;
mod http_client;
mod keyval;
mod leader;
mod listener;
mod location;
mod log;
mod membership;
mod memory;
pub mod options;
mod pending;
mod quota;
mod read_entry;
mod read_folder;
mod read_server;
mod records;
mod registry;
mod request;
mod route;
mod seen;
mod slots;
mod stall;
mod status;
mod stream;
mod studio;
mod trace_context;
mod unread;
mod watch;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch as flag;

use keyval::Rules as KeyvalRules;
use openkv_core::model::{Error, Result, SHUTDOWN_MS_MAX};
use options::{ServedPath, ServerOptions};
pub use status::cluster_status;

/// The shared state of all requests.
struct Serving {
    catalog: Arc<catalog::Catalog>,
    archives: archives::Archives,
    signer: auth::Signer,
    /// With the option `forward`.
    forwarder: Option<forward::Forwarder>,
    admin_token: Option<auth::TokenHash>,
    data_token_ms: i64,
    scheme: &'static str,
    /// Whether clients reach it by https, as far as it knows.
    is_encrypted: bool,
    /// The names of this server in requests.
    hosts: host::Hosts,
    cors_origin: Option<String>,
    /// With the option `studio`.
    studio: Option<studio::Studio>,
    keyval: KeyvalRules,
    /// True once the server begins to close.
    closing: flag::Sender<bool>,
    /// When the server started.
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
    /// Opens the catalog of databases and starts to listen.
    ///
    /// # Errors
    /// `Invalid` for unusable options, with the name of the option; `Unavailable` and `Denied` for
    /// an unusable address, folder or file, or a folder that another server holds.
    pub fn start(options: ServerOptions) -> Result<Self> {
        let plan = options.check()?;
        log::start(plan.log);
        let tls = plan.tls.as_ref().map(listener::tls).transpose()?;
        // Before any file is created: a server that cannot listen leaves nothing behind.
        let bound = listener::bind(&plan.listen)?;
        if let Some(max) = plan.max_open {
            openkv_client::open::set_open_max(max);
        }
        let address = bound.local_addr().map_err(|error| Error::unavailable(error.to_string()))?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let catalog = Arc::new(catalog::Catalog::open(&plan)?);
        let signer = match catalog.members() {
            Some(members) => auth::Signer::of(members.signing_key()?),
            None => auth::Signer::new()?,
        };
        let archives = archives::Archives::start(&catalog, plan.archive)?;
        let serving = Arc::new(Serving {
            catalog,
            archives,
            signer,
            forwarder: plan.forward.then(forward::Forwarder::new).transpose()?,
            admin_token: plan.admin_token.as_deref().map(auth::TokenHash::of),
            data_token_ms: plan.data_token_ms,
            scheme,
            is_encrypted: tls.is_some() || plan.is_encrypted,
            hosts: host::Hosts::new(address.ip(), plan.hosts),
            cors_origin: plan.cors_origin,
            studio: plan.studio.map(studio::Studio::new),
            keyval: plan.keyval,
            closing: flag::Sender::new(false),
            begun: tokio::time::Instant::now(),
        });
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("openkv-server")
            .enable_all()
            .build()
            .map_err(|error| Error::unavailable(format!("no runtime: {error}")))?;
        let socket = {
            let _inside = runtime.enter();
            tokio::net::TcpListener::from_std(bound)
                .map_err(|error| Error::unavailable(error.to_string()))?
        };
        if tls.is_none() && !address.ip().is_loopback() {
            tracing::warn!(%address, "tokens travel in clear text: give tls, or put a proxy in front");
        }
        if plan.open {
            let readonly = matches!(plan.served, ServedPath::File { readonly: true, .. });
            let can = if readonly { "read" } else { "read and write" };
            tracing::warn!(%address, "no token: every program of this machine can {can}");
        }
        if let Some(members) = serving.catalog.members() {
            cluster_poll::follow(members, &serving.catalog)?;
        }
        if let Some((_, primary)) = serving.catalog.replica() {
            runtime.spawn(read_server::Primary::check_streams(Arc::downgrade(&primary)));
        }
        if let Some(folder) = serving.catalog.primary_folder() {
            runtime.block_on(folder.check())?;
            runtime.spawn(folder.clone().keep_up());
        }
        let routes = route::routes(&serving);
        let accept = listener::serve((serving.clone(), routes), socket, tls, plan.connections_max);
        let accepting = Some(runtime.spawn(accept));
        tracing::info!(%address, scheme, "listening");
        Ok(Self { serving, runtime: Some(runtime), accepting, address })
    }

    /// The address it listens on, with the chosen port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL for clients on this machine.
    pub fn url(&self) -> String {
        format!("{}://{}", self.serving.scheme, self.address)
    }

    /// Stops accepting connections, answers running requests, ends watches and closes the
    /// databases. Waits for all of that, at most [`SHUTDOWN_MS_MAX`].
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
        self.serving.archives.close();
        self.serving.catalog.close();
        tracing::info!(address = %self.address, "closed");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.close();
    }
}
