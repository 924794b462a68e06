//! The server of a URL: what `postgres://…` names, checked before anything connects.

use tokio_postgres::Config;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::model::{Error, POSTGRES_IDLE_MS_MAX, Result};

/// A server and the way to connect to it.
#[derive(Clone)]
pub struct Server {
    config: Config,
    identity: String,
    tls: Option<MakeRustlsConnect>,
    idle_ms: u64,
}

impl Server {
    /// The server of a URL, and the name of the database in it (`kv=`).
    ///
    /// # Errors
    /// `Invalid` for a URL that is malformed.
    pub fn parse(url: &str) -> Result<(Self, String)> {
        let (base, kv) = match url.split_once("?kv=") {
            Some((base, kv)) => (base, kv.to_owned()),
            None => (url, "default".to_owned()),
        };
        let config: Config = base
            .parse()
            .map_err(|_| Error::invalid("the URL of the PostgreSQL server is malformed"))?;
        Ok((
            Self { config, identity: base.to_owned(), tls: None, idle_ms: POSTGRES_IDLE_MS_MAX },
            kv,
        ))
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// What tells it from other servers.
    pub(super) fn identity(&self) -> &str {
        &self.identity
    }

    /// How long a transaction may wait for this process, in ms.
    pub(super) fn idle_ms(&self) -> u64 {
        self.idle_ms
    }

    /// The same server, for builds whose decisions take longer than those of a release.
    pub(super) fn idling(self, idle_ms: u64) -> Self {
        Self { idle_ms, ..self }
    }

    pub(super) fn tls(&self) -> Option<MakeRustlsConnect> {
        self.tls.clone()
    }
}
