//! The server that a URL names, checked before anything connects.
//!
//! The URL holds a password, so no message, log line or debug output repeats a part of it that may be
//! one.

use std::fmt;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::tls;
use super::url_parts::{Encryption, Parts, invalid};
use openkv_core::model::{
    Error, POSTGRES_IDLE_MS_MAX, POSTGRES_KEEPALIVE_IDLE_S, POSTGRES_KEEPALIVE_INTERVAL_S,
    POSTGRES_KEEPALIVES_MAX, Result,
};

/// A server, or several of which one is the primary, and the way to connect to it.
#[derive(Clone)]
pub struct Server {
    config: Config,
    identity: String,
    tls: Option<MakeRustlsConnect>,
    idle_ms: u64,
    leads_as: Option<String>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Server").field(&self.identity).finish()
    }
}

impl Server {
    /// The server of a URL, and the name of the database in it (`kv=`).
    ///
    /// # Errors
    /// `Invalid` for a malformed URL, one without host or database, an unknown parameter, and for
    /// certificates that cannot be used.
    pub fn parse(url: &str) -> Result<(Self, String)> {
        let parts = Parts::parse(url)?;
        let name = parts.kv.clone();
        Ok((Self::of(parts)?, name))
    }

    /// The server of a URL for many databases.
    ///
    /// # Errors
    /// As [`Server::parse`]; also `Invalid` for a URL that names one of its openkv databases.
    pub fn parse_for_all(url: &str) -> Result<Self> {
        let parts = Parts::parse(url)?;
        if parts.names_database {
            return Err(invalid(
                "kv and lead are of one database, and this is for all: leave them out",
            ));
        }
        Self::of(parts)
    }

    fn of(parts: Parts) -> Result<Self> {
        let mut config = Config::new();
        for host in &parts.hosts {
            config.host(&host.name).port(host.port);
        }
        if let Some(user) = &parts.user {
            config.user(user);
        }
        if let Some(password) = &parts.password {
            config.password(password);
        }
        config
            .dbname(&parts.database)
            .application_name(&parts.application)
            .connect_timeout(parts.connect_timeout)
            // A primary whose machine is gone does not answer a commit either.
            .keepalives_idle(Duration::from_secs(POSTGRES_KEEPALIVE_IDLE_S))
            .keepalives_interval(Duration::from_secs(POSTGRES_KEEPALIVE_INTERVAL_S))
            .keepalives_retries(POSTGRES_KEEPALIVES_MAX);
        if parts.hosts.len() > 1 {
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        let (mode, tls) = match (parts.encryption, &parts.root_certificates) {
            (Encryption::Disable, _) => (SslMode::Disable, None),
            (Encryption::Require, _) => {
                (SslMode::Require, Some(tls::unverified().map_err(Error::internal)?))
            }
            (Encryption::VerifyFull, file) => {
                let config = tls::verified(file.as_deref()).map_err(|why| match file {
                    Some(file) => invalid(&format!("sslrootcert '{file}' cannot be used: {why}")),
                    None => invalid(&format!("{why}; or name the issuer's file in sslrootcert")),
                })?;
                (SslMode::Require, Some(config))
            }
        };
        config.ssl_mode(mode);
        let identity = parts.identity();
        let tls = tls.map(MakeRustlsConnect::new);
        let (idle_ms, leads_as) = (POSTGRES_IDLE_MS_MAX, parts.leads_as);
        Ok(Self { config, identity, tls, idle_ms, leads_as })
    }

    /// The same server for reading only: of several hosts any will do, standbys too.
    #[must_use]
    pub fn for_reading(mut self) -> Self {
        self.config.target_session_attrs(TargetSessionAttrs::Any);
        self.identity.push_str(" readonly");
        self
    }

    /// Its hosts and ports, for messages.
    pub(super) fn address(&self) -> String {
        let places = self.config.get_hosts().iter().zip(self.config.get_ports());
        let hosts = places.map(|(host, port)| match host {
            Host::Tcp(name) if name.contains(':') => format!("[{name}]:{port}"),
            Host::Tcp(name) => format!("{name}:{port}"),
            #[cfg(unix)]
            Host::Unix(folder) => folder.display().to_string(),
        });
        hosts.collect::<Vec<_>>().join(", ")
    }

    /// The text that tells it from other servers and users. It does not reveal the password.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// How long a transaction may wait for this process, in ms.
    pub(super) fn idle_ms(&self) -> u64 {
        self.idle_ms
    }

    /// The name under which this process leads its databases, if it does.
    pub(super) fn leads_as(&self) -> Option<&str> {
        self.leads_as.as_deref()
    }

    /// The same server, for builds whose decisions take longer than those of a release.
    pub(super) fn idling(self, idle_ms: u64) -> Self {
        Self { idle_ms, ..self }
    }

    pub(super) fn tls(&self) -> Option<MakeRustlsConnect> {
        self.tls.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::super::url_parts::Host;
    use super::*;
    use openkv_core::model::{Kind, POSTGRES_HOSTS_MAX, POSTGRES_NAME_BYTES_MAX};

    fn parts(url: &str) -> Parts {
        Parts::parse(url).map_err(|error| format!("{url}: {error}")).unwrap()
    }

    #[test]
    fn a_url_has_all_parts_decoded() {
        let all = parts(
            "PostgreSQL://us%40er:p%3Aw%2F@db.example:6543/a%20b?kv=sh%C3%B6p&sslmode=require\
             &application_name=web&connect_timeout=3",
        );
        assert_eq!(all.user.as_deref(), Some("us@er"));
        assert_eq!(all.password.as_deref(), Some("p:w/"));
        assert_eq!(all.hosts, [Host { name: "db.example".into(), port: 6543 }]);
        assert_eq!((all.database.as_str(), all.kv.as_str()), ("a b", "shöp"));
        assert_eq!(all.encryption, Encryption::Require);
        assert_eq!((all.application.as_str(), all.connect_timeout.as_secs()), ("web", 3));
        let least = parts("postgres://h/d");
        assert_eq!((least.user, least.password, least.kv.as_str()), (None, None, "default"));
        assert_eq!(least.application, "openkv");
    }

    #[test]
    fn hosts_have_names_addresses_folders_and_ports() {
        for (text, expected) in [
            ("h", vec![("h", 5432)]),
            ("h:1,g:2", vec![("h", 1), ("g", 2)]),
            ("h,g:65535", vec![("h", 5432), ("g", 65535)]),
            ("[::1]", vec![("::1", 5432)]),
            ("[fe80::1]:9", vec![("fe80::1", 9)]),
            ("%2Fvar%2Frun:7", vec![("/var/run", 7)]),
        ] {
            let url = format!("postgres://u:p@{text}/d?sslmode=disable");
            let hosts = parts(&url).hosts;
            let hosts: Vec<_> = hosts.iter().map(|h| (h.name.as_str(), h.port)).collect();
            assert_eq!(hosts, expected, "{text}");
            let (server, _) = Server::parse(&url).unwrap();
            let several = expected.len() > 1;
            let attributes = server.config().get_target_session_attrs();
            assert_eq!(attributes == TargetSessionAttrs::ReadWrite, several, "{text}");
            let reading = server.for_reading();
            assert_eq!(reading.config().get_target_session_attrs(), TargetSessionAttrs::Any);
        }
    }

    #[test]
    fn only_this_machine_is_spoken_to_without_encryption_unasked() {
        for (host, expected) in [
            ("localhost", Encryption::Disable),
            ("LOCALHOST:1", Encryption::Disable),
            ("127.0.0.1", Encryption::Disable),
            ("127.1.2.3", Encryption::Disable),
            ("[::1]", Encryption::Disable),
            ("[::ffff:127.0.0.1]", Encryption::Disable),
            ("%2Ftmp", Encryption::Disable),
            ("localhost,127.0.0.1", Encryption::Disable),
            ("localhost.example", Encryption::VerifyFull),
            ("10.0.0.1", Encryption::VerifyFull),
            ("[::2]", Encryption::VerifyFull),
            ("db.example", Encryption::VerifyFull),
            ("localhost,db.example", Encryption::VerifyFull),
        ] {
            assert_eq!(parts(&format!("postgres://{host}/d")).encryption, expected, "{host}");
        }
        for (query, expected) in [
            ("sslrootcert=a", Encryption::VerifyFull),
            ("sslrootcert=a&sslmode=verify-full", Encryption::VerifyFull),
            ("sslmode=verify-full", Encryption::VerifyFull),
            ("sslmode=require", Encryption::Require),
        ] {
            let url = format!("postgres://localhost/d?{query}");
            assert_eq!(parts(&url).encryption, expected, "{query}");
        }
        let mode = |url| Server::parse(url).unwrap().0.config().get_ssl_mode();
        assert_eq!(mode("postgres://localhost/d"), SslMode::Disable);
        assert_eq!(mode("postgres://db.example/d?sslmode=disable"), SslMode::Disable);
        assert_eq!(mode("postgres://db.example/d?sslmode=require"), SslMode::Require);
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../__test__/server/tls/cert.pem");
        let verified = format!("postgres://db.example/d?sslrootcert={file}");
        assert_eq!(mode(&verified), SslMode::Require);
        assert!(Server::parse(&verified).unwrap().0.tls().is_some());
        assert!(Server::parse("postgres://localhost/d").unwrap().0.tls().is_none());
    }

    /// The password of these URLs, which no message may repeat.
    const SECRET: &str = "hunter2";

    #[test]
    fn bad_urls_are_named_without_the_password() {
        let long =
            format!("postgres://u:hunter2@h/d?kv={}", "n".repeat(POSTGRES_NAME_BYTES_MAX + 1));
        let hosts = format!("postgres://u:hunter2@{}h/d", "h,".repeat(POSTGRES_HOSTS_MAX));
        for (url, expected) in [
            ("http://u:hunter2@h/d", "begins with postgres://"),
            ("postgres:u:hunter2@h/d", "begins with postgres://"),
            ("postgres://", "no host"),
            ("postgres://u:hunter2@/d", "no host"),
            ("postgres:///d", "no host"),
            ("postgres://u:hunter2@h,/d", "no host"),
            ("postgres://u:hunter2@:1/d", "no host"),
            ("postgres://u:hunter2@h", "no database"),
            ("postgres://u:hunter2@h/", "no database"),
            ("postgres://u:hunter2@h?kv=a", "no database"),
            ("postgres://u:hunter2@h:0/d", "a port is"),
            ("postgres://u:hunter2@h:65536/d", "a port is"),
            ("postgres://u:hunter2@h:x/d", "a port is"),
            ("postgres://u:hunter2@h:1:2/d", "a port is"),
            ("postgres://u:hunter2@[::1/d", "ends with a bracket"),
            ("postgres://u:hunter2@[hunter2]/d", "no IPv6 address"),
            ("postgres://u:hunter2@[::1]5/d", "follows a colon"),
            ("postgres://u:hun@hunter2@h/d", "%40"),
            ("postgres://u:hunter2%@h/d", "the password is malformed"),
            ("postgres://u:hunter2%zz@h/d", "the password is malformed"),
            ("postgres://u:hunter2%ff@h/d", "the password is malformed"),
            ("postgres://u:hunter2%00@h/d", "zero byte"),
            ("postgres://u%00:hunter2@h/d", "zero byte"),
            ("postgres://u:hunter2@h/d%00", "zero byte"),
            ("postgres://u:hunter2@h/d#f", "no fragment"),
            ("postgres://u:hunter2@h/d?options=x", "unknown parameter options: known are kv,"),
            ("postgres://u:hunter2@h/d?KV=x", "unknown parameter: known are kv,"),
            ("postgres://u:p/d?hunter2=x", "a port is"),
            ("postgres://u@h/d?hunter2=x", "unknown parameter: known are kv,"),
            ("postgres://u:hunter2@h/d?kv=", "kv is a name of 1 to"),
            (&long, "kv is a name of 1 to"),
            (&hosts, "more than"),
            ("postgres://u:hunter2@h/d?kv=a&kv=b", "kv is there twice"),
            ("postgres://u:hunter2@h/d?sslmode=prefer", "sslmode is disable, require or"),
            ("postgres://u:hunter2@h/d?sslmode=", "sslmode is disable, require or"),
            ("postgres://u:hunter2@%2Ftmp/d?sslmode=require", "no TLS"),
            ("postgres://u:hunter2@h,%2Ftmp/d", "no TLS"),
            ("postgres://u:hunter2@h/d?sslrootcert=/absent.pem", "'/absent.pem' cannot be used"),
            ("postgres://u:hunter2@h/d?sslmode=require&sslrootcert=a", "is for sslmode=verify"),
            ("postgres://u:hunter2@%2Ftmp/d?sslrootcert=a", "no TLS"),
            ("postgres://u:hunter2@h/d?connect_timeout=0", "connect_timeout is"),
            ("postgres://u:hunter2@h/d?connect_timeout=1.5", "connect_timeout is"),
            ("postgres://u:hunter2@h/d?connect_timeout=999999", "connect_timeout is"),
        ] {
            let error = Server::parse(url).map(drop).unwrap_err();
            assert_eq!(error.kind(), Kind::Invalid, "{url}");
            assert!(error.message().contains(expected), "{url}: {error}");
            assert!(!error.message().contains(SECRET), "{url}: {error}");
        }
        let longest = format!("postgres://h/d?kv={}", "n".repeat(POSTGRES_NAME_BYTES_MAX));
        assert_eq!(parts(&longest).kv.len(), POSTGRES_NAME_BYTES_MAX);
    }

    #[test]
    fn an_identity_tells_servers_apart_and_hides_the_password() {
        let identity = |url: &str| Server::parse(url).unwrap().0.identity().to_owned();
        let one = identity("postgres://u:hunter2@localhost/d");
        for same in [
            "postgresql://u:hunter2@localhost:5432/d",
            "postgres://u:hunter2@localhost/d?kv=other&application_name=x&connect_timeout=9",
        ] {
            assert_eq!(identity(same), one, "{same}");
        }
        for other in [
            "postgres://u:hunter3@localhost/d",
            "postgres://u@localhost/d",
            "postgres://v:hunter2@localhost/d",
            "postgres://u:hunter2@127.0.0.1/d",
            "postgres://u:hunter2@localhost:5433/d",
            "postgres://u:hunter2@localhost/e",
            "postgres://u:hunter2@localhost/d?sslmode=require",
        ] {
            assert_ne!(identity(other), one, "{other}");
        }
        let (server, _) = Server::parse("postgres://u:hunter2@localhost/d").unwrap();
        let printed = format!("{server:?} {:?}", server.config());
        assert!(!printed.contains(SECRET), "{printed}");
        assert_ne!(server.for_reading().identity(), one);
    }
}
