//! All options of a server and their validation.

mod read_server;

use std::net::ToSocketAddrs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use url::Url;

use super::KeyvalRules;
use super::archive_policy::ArchivePolicy;
pub use super::archive_policy::ArchiveRequest;
use openkv_client::open::{SecretUrl, Target};
use openkv_core::model::{
    Advertised, CONNECTIONS_MAX_DEFAULT, DATA_TOKEN_MS_DEFAULT, DATA_TOKEN_MS_MAX,
    DATA_TOKEN_MS_MIN, Error, OPEN_DATABASES_MAX, Result, TOKEN_CHARS_MIN,
};
pub(super) use read_server::{check_advertise, check_region, replica_target};

/// Bounds of one database. A missing one means no bound, except for watches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Quotas {
    /// Size of the database's files in bytes, from which only deletes are accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Requests per second; as many may come at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operations_per_second: Option<u32>,
    /// Waiting and locked messages, from which no more are accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_depth: Option<u64>,
    /// Watches at one time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watches: Option<u32>,
}

/// The files of a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TlsFiles {
    /// The certificate and its chain, in PEM.
    pub cert: PathBuf,
    /// Its private key, in PEM.
    pub key: PathBuf,
}

/// The form of the log on stderr.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogForm {
    /// No log.
    #[default]
    None,
    /// Plain text.
    Text,
    /// One JSON object a line.
    Json,
}

/// The options of a server, named as in JavaScript and on the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ServerOptions {
    /// A file, which is one database, or a folder of many. A folder exists or ends with a
    /// separator. Empty with `engine`.
    pub path: PathBuf,
    /// Instead of a path: the URL of a PostgreSQL database, or of a path in an object store, which several servers share.
    pub engine: Option<SecretUrl>,
    /// With `engine` in an object store: the folder of the local copies of its databases; without one, they are removed
    /// at the end.
    pub cache: Option<PathBuf>,
    /// For a read server: the URL of the database that the replica in the file `path` follows, or of the
    /// server whose databases those in the folder `path` follow.
    pub replica_of: Option<String>,
    /// For a read server: the access token for that database, which must be allowed to read, or the admin
    /// token of that server.
    pub replica_token: Option<String>,
    /// With `engine`: the URL of this server for clients and for other servers. For a read server: the URL
    /// that its primary names to clients for eventual reads.
    pub advertise: Option<String>,
    /// With `advertise` of a read server: the name of where it is.
    pub region: Option<String>,
    /// With `engine`, for servers behind one address: requests for another server are handed over to
    /// it, at the URL that it advertises.
    pub forward: bool,
    /// Address and port; `127.0.0.1:4512` if empty. Port 0 chooses a free one.
    pub listen: String,
    /// The URL by which browsers and other clients reach the HTTP API, if it is not that of `listen`.
    pub public_url: Option<String>,
    /// The origin whose pages may use the HTTP API; none if empty.
    pub cors_origin: Option<String>,
    /// The folder of the studio's built files; without one, the server has no studio.
    pub studio: Option<PathBuf>,
    /// For a file: the token that may read and write.
    pub access_token: Option<String>,
    /// For a file: the token that may only read.
    pub read_token: Option<String>,
    /// For a folder, and with `engine`: the token of the admin API.
    pub admin_token: Option<String>,
    /// A certificate; without one the server speaks plain HTTP.
    pub tls: Option<TlsFiles>,
    /// For a file: writes are refused.
    pub readonly: bool,
    /// For a file: its quotas. Each database of a folder has its own.
    pub quotas: Quotas,
    /// Lifetime of a token of the data path, in ms.
    pub data_token_ms: Option<u64>,
    /// Connections at one time.
    pub connections_max: Option<usize>,
    /// Databases in files that the process keeps open at one time.
    pub max_open: Option<usize>,
    /// The archive of the file, or of each database of the folder that has no policy of its own.
    pub archive: Option<ArchiveRequest>,
    /// For clients of KeyVal: every part of a key in a path or query is a text; otherwise whole numbers are numbers.
    pub keyval_strings: bool,
    /// For clients of KeyVal: how long a message is locked, in ms; 30 s if missing.
    pub keyval_lock_duration: Option<u64>,
    /// The form of the log.
    pub log: LogForm,
}

/// The served file or folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ServedPath {
    /// One database.
    File { path: PathBuf, readonly: bool, tokens: FileTokens, quotas: Quotas },
    /// A replica of the database at a URL.
    Replica { path: PathBuf, of: Url, target: Target },
    /// Replicas of the databases of the server at a URL, in a folder.
    Replicas { folder: PathBuf, of: Url, token: String, advertised: Option<Advertised> },
    /// Many databases.
    Folder(PathBuf),
    /// Many databases on PostgreSQL or in an object store, shared with other servers.
    Cluster { engine: SecretUrl, advertise: String, cache: Option<PathBuf> },
}

/// The tokens of a database without a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileTokens {
    /// `None`: every client may read and write.
    pub(super) write: Option<String>,
    pub(super) read: Option<String>,
}

/// Validated options.
pub(super) struct Plan {
    pub(super) served: ServedPath,
    pub(super) forward: bool,
    pub(super) listen: String,
    /// Whether clients need no token.
    pub(super) open: bool,
    /// Hosts by which clients name this server, beside its address.
    pub(super) hosts: Vec<String>,
    /// Whether the public URL is an https URL.
    pub(super) is_encrypted: bool,
    pub(super) cors_origin: Option<String>,
    pub(super) studio: Option<PathBuf>,
    pub(super) admin_token: Option<String>,
    pub(super) tls: Option<TlsFiles>,
    pub(super) data_token_ms: i64,
    pub(super) connections_max: usize,
    pub(super) max_open: Option<usize>,
    pub(super) archive: Option<ArchivePolicy>,
    pub(super) keyval: KeyvalRules,
    pub(super) log: LogForm,
}

impl ServerOptions {
    /// Reads options from JSON.
    ///
    /// # Errors
    /// `Invalid`, naming the unknown option or the one of the wrong type.
    pub fn from_json(json: &str) -> Result<Self> {
        serde_json::from_str(json)
            .map_err(|error| Error::invalid(format!("the options of a server: {error}")))
    }

    pub(super) fn check(self) -> Result<Plan> {
        if self.path.as_os_str().is_empty() && self.engine.is_none() {
            return Err(Error::invalid("path must name a file or a folder: nothing given"));
        }
        for (name, token) in [
            ("accessToken", &self.access_token),
            ("readToken", &self.read_token),
            ("adminToken", &self.admin_token),
            ("replicaToken", &self.replica_token),
        ] {
            token.as_deref().map_or(Ok(()), |token| check_token(name, token))?;
        }
        let listen = match self.listen.as_str() {
            "" => "127.0.0.1:4512".to_owned(),
            listen => listen.to_owned(),
        };
        self.refuse_those_of_read_servers()?;
        let served = match (&self.engine, &self.replica_of, &self.advertise) {
            (_, Some(of), _) => self.replica(of)?,
            (Some(engine), None, _) => self.cluster(engine)?,
            (None, None, Some(_)) => {
                return Err(Error::invalid(
                    "advertise is for servers of an engine, and for read servers: give engine or replicaOf too",
                ));
            }
            (None, None, None) if is_folder(&self.path) => self.folder(&listen)?,
            (None, None, None) => self.file(&listen)?,
        };
        let is_read_server =
            matches!(served, ServedPath::Replica { .. } | ServedPath::Replicas { .. });
        let open = self.admin_token.is_none() && self.access_token.is_none() && !is_read_server;
        let public_host = self.public_url.as_deref().map(host_of_public_url).transpose()?;
        let public = self.public_url.as_deref().unwrap_or_default();
        let is_encrypted =
            public.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:"));
        let advertised = self.advertise.as_deref().map(host_of).unwrap_or_default();
        let own_name = listen.rsplit_once(':').map(|(name, _)| name.to_ascii_lowercase());
        let hosts = public_host.into_iter().chain(advertised).chain(own_name).collect();
        let cors_origin = self.cors_origin.as_deref().map(check_origin).transpose()?;
        let data_token_ms = self.data_token_ms.unwrap_or(DATA_TOKEN_MS_DEFAULT);
        if !(DATA_TOKEN_MS_MIN..=DATA_TOKEN_MS_MAX).contains(&data_token_ms) {
            return Err(Error::invalid(format!(
                "dataTokenMs must be from {DATA_TOKEN_MS_MIN} to {DATA_TOKEN_MS_MAX}: \
                 {data_token_ms} given"
            )));
        }
        let connections_max = self.connections_max.unwrap_or(CONNECTIONS_MAX_DEFAULT);
        if connections_max == 0 {
            return Err(Error::invalid("connectionsMax must be at least 1: 0 given"));
        }
        if let Some(given) = self.max_open {
            if self.engine.is_some() {
                return Err(Error::invalid("maxOpen is for databases in files: leave it out"));
            }
            if !(1..=OPEN_DATABASES_MAX).contains(&given) {
                return Err(Error::invalid(format!(
                    "maxOpen must be from 1 to {OPEN_DATABASES_MAX}: {given} given"
                )));
            }
        }
        if self.forward && self.engine.is_none() {
            return Err(Error::invalid("forward is for servers of an engine: give engine too"));
        }
        if self.cache.is_some() && !self.engine.as_ref().is_some_and(SecretUrl::is_of_bucket) {
            return Err(Error::invalid(
                "cache is for servers of an engine in an object store, which keep copies there: leave it out",
            ));
        }
        let archive = self.archive_policy()?;
        let keyval = KeyvalRules::of(self.keyval_strings, self.keyval_lock_duration)?;
        Ok(Plan {
            forward: self.forward,
            listen,
            open,
            hosts,
            is_encrypted,
            cors_origin,
            studio: self.studio,
            admin_token: match &served {
                // What it has of its own is shown to whom the primary would show it.
                ServedPath::Replicas { token, .. } => Some(token.clone()),
                ServedPath::File { .. }
                | ServedPath::Replica { .. }
                | ServedPath::Folder(_)
                | ServedPath::Cluster { .. } => self.admin_token,
            },
            tls: self.tls,
            data_token_ms: i64::try_from(data_token_ms).unwrap_or(i64::MAX),
            connections_max,
            max_open: self.max_open,
            archive,
            keyval,
            log: self.log,
            served,
        })
    }

    fn archive_policy(&self) -> Result<Option<ArchivePolicy>> {
        let Some(request) = &self.archive else { return Ok(None) };
        let refused = if self.engine.as_ref().is_some_and(SecretUrl::is_of_bucket) {
            "archive is for databases in files: those of this engine are in an object store already, so leave archive out"
        } else if self.engine.is_some() {
            "archive is for databases in files: archive each database on PostgreSQL with openkv archive run, \
             and leave archive out"
        } else if self.readonly {
            "archive turns the replication log on, which writes to the file: leave out readonly or archive"
        } else if request.to.is_null() {
            "archive.to must be a folder by its absolute path or a URL: null given; leave archive out instead"
        } else {
            return request.policy("archive.").map(Some);
        };
        Err(Error::invalid(refused))
    }

    fn cluster(&self, engine: &SecretUrl) -> Result<ServedPath> {
        if !self.path.as_os_str().is_empty() {
            return Err(Error::invalid("path and engine exclude each other: give one of them"));
        }
        self.refuse_those_of_files("the engine")?;
        if self.admin_token.is_none() {
            return Err(Error::invalid(
                "adminToken is missing: the databases of an engine are made by the admin API",
            ));
        }
        let advertise = self.advertise.as_deref().ok_or_else(|| {
            Error::invalid("advertise is missing: the URL by which clients reach this server")
        })?;
        let cache = self.cache.clone();
        Ok(ServedPath::Cluster {
            engine: engine.clone(),
            advertise: check_advertise(advertise)?,
            cache,
        })
    }

    /// Refuses options of a single database. `place`: what has many.
    fn refuse_those_of_files(&self, place: &str) -> Result<()> {
        let of_files = [
            ("accessToken", self.access_token.is_some()),
            ("readToken", self.read_token.is_some()),
            ("readonly", self.readonly),
            ("quotas", self.quotas != Quotas::default()),
        ];
        if let Some((name, _)) = of_files.iter().find(|(_, given)| *given) {
            return Err(Error::invalid(format!(
                "{name} is for a single file: the databases of {place} get their tokens and quotas \
                 by the admin API, which adminToken opens"
            )));
        }
        Ok(())
    }

    fn folder(&self, listen: &str) -> Result<ServedPath> {
        self.refuse_those_of_files(&format!("the folder {}", self.path.display()))?;
        if self.admin_token.is_none() && !is_loopback(listen) {
            return Err(Error::invalid(
                "adminToken is missing: a folder's databases are made by the admin API; \
                 'openkv token generate' makes one",
            ));
        }
        Ok(ServedPath::Folder(self.path.clone()))
    }

    fn file(&self, listen: &str) -> Result<ServedPath> {
        if self.admin_token.is_some() {
            return Err(Error::invalid(format!(
                "adminToken is for a folder of databases, and {} is a file; a folder that is to be \
                 made ends with a separator",
                self.path.display()
            )));
        }
        let write = self.access_token.clone();
        if write.is_none() && (self.read_token.is_some() || !is_loopback(listen)) {
            return Err(Error::invalid(
                "accessToken is missing: without one every client could read and write; \
                 'openkv token generate' makes one",
            ));
        }
        if write.is_some() && self.read_token == write {
            return Err(Error::invalid(
                "readToken must be another than accessToken: its clients may only read",
            ));
        }
        let tokens = FileTokens { write, read: self.read_token.clone() };
        let (path, readonly, quotas) = (self.path.clone(), self.readonly, self.quotas);
        Ok(ServedPath::File { path, readonly, tokens, quotas })
    }
}

fn check_token(name: &str, token: &str) -> Result<()> {
    let given = token.chars().count();
    if given < TOKEN_CHARS_MIN {
        return Err(Error::invalid(format!(
            "{name} must be at least {TOKEN_CHARS_MIN} characters long: {given} given"
        )));
    }
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Error::invalid(format!(
            "{name} must be of visible ASCII characters, as a header carries it"
        )));
    }
    Ok(())
}

/// Whether only programs of this machine can connect to the address.
fn is_loopback(listen: &str) -> bool {
    let addresses = listen.to_socket_addrs().map(Iterator::collect::<Vec<_>>).unwrap_or_default();
    !addresses.is_empty() && addresses.iter().all(|address| address.ip().is_loopback())
}

/// The host of a URL.
fn host_of(url: &str) -> Option<String> {
    let url = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    url.host_str().map(str::to_owned)
}

fn host_of_public_url(given: &str) -> Result<String> {
    host_of(given).ok_or_else(|| {
        let text =
            format!("publicUrl must be a URL, http:// or https:// with a host: '{given}' given");
        Error::invalid(text)
    })
}

/// An origin as browsers send it.
fn check_origin(given: &str) -> Result<String> {
    let url = Url::parse(given).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let origin = url.map(|url| url.origin().ascii_serialization());
    origin.filter(|origin| given.trim_end_matches('/') == origin).ok_or_else(|| {
        Error::invalid(format!(
            "corsOrigin must be one origin, as https://app.example.com: '{given}' given"
        ))
    })
}

fn is_folder(path: &Path) -> bool {
    let ends = path.as_os_str().to_string_lossy().ends_with(std::path::is_separator);
    ends || path.is_dir()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(json: &str) -> String {
        let refused = ServerOptions::from_json(json).and_then(|options| options.check().map(drop));
        refused.unwrap_err().message().to_owned()
    }

    #[test]
    fn invalid_options_are_refused_by_name() {
        for (json, words) in [
            (r#"{"path":""}"#, "path must name"),
            (r#"{"path":"a.db","listen":"0.0.0.0:0"}"#, "accessToken is missing"),
            (r#"{"path":"a.db","readToken":"123456789012"}"#, "accessToken is missing"),
            (r#"{"path":"a.db","publicUrl":"kv.example.com"}"#, "publicUrl must be a URL"),
            (r#"{"path":"a.db","corsOrigin":"*"}"#, "corsOrigin must be one origin"),
            (r#"{"path":"a.db","corsOrigin":"https://a/b"}"#, "corsOrigin must be one origin"),
            (r#"{"path":"a.db","accessToken":"short"}"#, "at least 12 characters long: 5"),
            (r#"{"path":"a.db","accessToken":"has a space in it"}"#, "visible ASCII"),
            (r#"{"path":"a.db","adminToken":"123456789012"}"#, "adminToken is for a folder"),
            (
                r#"{"path":"a.db","accessToken":"123456789012","readToken":"123456789012"}"#,
                "readToken must be another",
            ),
            (r#"{"path":"dir/","listen":"0.0.0.0:0"}"#, "adminToken is missing"),
            (r#"{"path":"dir/","accessToken":"123456789012"}"#, "accessToken is for a single"),
            (r#"{"path":"dir/","adminToken":"123456789012","readonly":true}"#, "readonly is for"),
            (r#"{"path":"a.db","accesToken":"123456789012"}"#, "unknown field `accesToken`"),
            (r#"{"path":"a.db","accessToken":"123456789012","dataTokenMs":5}"#, "dataTokenMs must"),
            (
                r#"{"path":"a.db","accessToken":"123456789012","connectionsMax":0}"#,
                "connectionsMax",
            ),
            (
                r#"{"path":"a.db","accessToken":"123456789012","maxOpen":0}"#,
                "maxOpen must be from 1",
            ),
            (
                r#"{"engine":"postgres://h/d","adminToken":"123456789012","advertise":"https://a","maxOpen":5}"#,
                "maxOpen is for databases in files",
            ),
            (r#"{"path":"a.db","keyvalLockDuration":99}"#, "keyvalLockDuration must be from 100"),
            (r#"{"path":"dir/","adminToken":"123456789012","forward":true}"#, "forward is for"),
            (r#"{"path":"a.db","quotas":{"byte":1}}"#, "unknown field `byte`"),
            (r#"{"path":"a.db","engine":"postgres://h/d"}"#, "path and engine exclude"),
            (r#"{"engine":"postgres://h/d"}"#, "adminToken is missing"),
            (r#"{"engine":"postgres://h/d","readonly":true}"#, "readonly is for a single file"),
            (r#"{"engine":"postgres://h/d","adminToken":"123456789012"}"#, "advertise is missing"),
            (
                r#"{"engine":"postgres://h/d","adminToken":"123456789012","advertise":"ftp://a"}"#,
                "advertise must be",
            ),
            (
                r#"{"engine":"postgres://h/d","adminToken":"123456789012","advertise":"https://u@a"}"#,
                "advertise must be",
            ),
            (
                r#"{"path":"dir/","adminToken":"123456789012","advertise":"https://a"}"#,
                "give engine",
            ),
            (r#"{"path":"a.db","cache":"/c"}"#, "cache is for servers of an engine"),
            (
                r#"{"engine":"postgres://h/d","adminToken":"123456789012","advertise":"https://a","cache":"/c"}"#,
                "cache is for servers of an engine",
            ),
            (
                r#"{"engine":"s3://b/d","adminToken":"123456789012","advertise":"https://a","archive":{"to":"/a"}}"#,
                "in an object store already",
            ),
            (r#"{"path":"a.db","archive":{"to":"near"}}"#, "archive.to must be an absolute path"),
            (r#"{"path":"a.db","archive":{"to":null}}"#, "leave archive out"),
            (r#"{"path":"a.db","archive":{"from":1}}"#, "unknown field `from`"),
            (r#"{"path":"a.db","readonly":true,"archive":{"to":"/a"}}"#, "leave out readonly"),
            (
                r#"{"engine":"postgres://h/d","adminToken":"123456789012","advertise":"https://a","archive":{"to":"/a"}}"#,
                "with openkv archive run",
            ),
            (
                r#"{"path":"a.db","replicaOf":"http://h/a","replicaToken":"123456789012","archive":{"to":"/a"}}"#,
                "archive is not for a read server",
            ),
        ] {
            let message = refusal(json);
            assert!(message.contains(words), "{json}: {message}");
        }
    }
}
