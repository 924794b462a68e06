//! The options of read servers.

use std::path::PathBuf;
use std::time::Duration;

use url::Url;

use super::{Quotas, ServedPath, ServerOptions, is_folder};
use openkv_client::open::{ReplicaTarget, Target};
use openkv_core::model::{
    Advertised, BUSY_TIMEOUT_MS_DEFAULT, Error, FOLLOW_BEAT_MS, POSTGRES_NAME_BYTES_MAX,
    REGION_CHARS_MAX, REMOTE_TIMEOUT_MS_DEFAULT, Result,
};

impl ServerOptions {
    /// Refuses options of read servers for other servers.
    pub(super) fn refuse_those_of_read_servers(&self) -> Result<()> {
        if self.replica_of.is_none() && (self.replica_token.is_some() || self.region.is_some()) {
            let name = if self.replica_token.is_some() { "replicaToken" } else { "region" };
            let why = format!("{name} is for a read server: give replicaOf too");
            return Err(Error::invalid(why));
        }
        if self.region.is_some() && self.advertise.is_none() {
            return Err(Error::invalid(
                "region is of an advertised read server: give advertise too",
            ));
        }
        self.region.as_deref().map_or(Ok(()), check_region)
    }

    pub(super) fn replica(&self, of: &str) -> Result<ServedPath> {
        let others = [
            ("engine", self.engine.is_some()),
            ("accessToken", self.access_token.is_some()),
            ("readToken", self.read_token.is_some()),
            ("adminToken", self.admin_token.is_some()),
            ("readonly", self.readonly),
            ("quotas", self.quotas != Quotas::default()),
            ("forward", self.forward),
            ("archive", self.archive.is_some()),
        ];
        if let Some((name, _)) = others.iter().find(|(_, given)| *given) {
            return Err(Error::invalid(format!(
                "{name} is not for a read server, which has the tokens of its primary and only reads: leave out \
                 {name}, or replicaOf"
            )));
        }
        if self.path.as_os_str().is_empty() {
            return Err(Error::invalid(
                "path must name the file of the replica, or a folder for those of all databases of a server: \
                 nothing given",
            ));
        }
        let url = Url::parse(of).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let Some(url) = url.filter(|url| url.password().is_none() && url.query().is_none()) else {
            return Err(Error::invalid(
                "replicaOf must be the URL of a database or of a server with many, http:// or https://, without a \
                 password and a query",
            ));
        };
        let Some(access_token) = self.replica_token.clone() else {
            return Err(Error::invalid(
                "replicaToken is missing: the access token for the database at replicaOf, which must be \
                 allowed to read, or with a folder the admin token of that server",
            ));
        };
        let url_of = self.advertise.as_deref().map(check_advertise).transpose()?;
        let advertised =
            url_of.map(|url| Advertised { url, region: self.region.clone().unwrap_or_default() });
        let path = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        if is_folder(&self.path) {
            return Ok(ServedPath::Replicas {
                folder: path,
                of: url,
                token: access_token,
                advertised,
            });
        }
        let target = replica_target(of, access_token, path.clone(), advertised);
        Ok(ServedPath::Replica { path, of: url, target })
    }
}

/// The replica in a file of the database at a URL.
pub(crate) fn replica_target(
    of: &str,
    access_token: String,
    path: PathBuf,
    advertised: Option<Advertised>,
) -> Target {
    let replica = ReplicaTarget {
        path: Some(path),
        busy: Duration::from_millis(BUSY_TIMEOUT_MS_DEFAULT),
        prefixes: Vec::new(),
        beat: Duration::from_millis(FOLLOW_BEAT_MS),
        advertised,
    };
    Target::Url {
        urls: vec![of.to_owned()],
        access_token,
        timeout: Duration::from_millis(REMOTE_TIMEOUT_MS_DEFAULT),
        retries: false,
        replica: Some(replica),
    }
}

/// Fails for a name that is no region's.
pub(crate) fn check_region(given: &str) -> Result<()> {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if given.len() <= REGION_CHARS_MAX && given.bytes().all(is_known) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "region must be of at most {REGION_CHARS_MAX} letters, digits and - _ . : '{given}' given"
    )))
}

/// The URL without a slash at its end.
pub(crate) fn check_advertise(given: &str) -> Result<String> {
    let refused = || {
        Error::invalid(format!(
            "advertise must be the URL of this server, http:// or https:// with a host, without user, \
             query and fragment, of at most {POSTGRES_NAME_BYTES_MAX} bytes: '{given}' given"
        ))
    };
    let url = Url::parse(given).map_err(|_| refused())?;
    let plain = url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none();
    let known = matches!(url.scheme(), "http" | "https") && url.has_host();
    let url = String::from(url).trim_end_matches('/').to_owned();
    if known && plain && url.len() <= POSTGRES_NAME_BYTES_MAX { Ok(url) } else { Err(refused()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_options_are_refused_by_name() {
        for (json, words) in [
            (r#"{"path":"a.db","replicaOf":"http://h/a"}"#, "replicaToken is missing"),
            (r#"{"path":"a.db","replicaToken":"123456789012"}"#, "give replicaOf too"),
            (r#"{"path":"a.db","region":"eu"}"#, "region is for a read server"),
            (
                r#"{"path":"a.db","replicaOf":"http://h/a","replicaToken":"123456789012","region":"e"}"#,
                "give advertise too",
            ),
            (
                r#"{"path":"dir/","replicaOf":"http://h","adminToken":"123456789012"}"#,
                "adminToken is not for a read server",
            ),
            (
                r#"{"path":"a.db","replicaOf":"postgres://h/a","replicaToken":"123456789012"}"#,
                "replicaOf must be",
            ),
            (
                r#"{"path":"a.db","replicaOf":"http://h/a","accessToken":"123456789012"}"#,
                "accessToken is not for a read server",
            ),
        ] {
            let options = ServerOptions::from_json(json);
            let message = options.and_then(|options| options.check().map(drop)).unwrap_err();
            assert!(message.message().contains(words), "{json}: {message}");
        }
    }

    #[test]
    fn the_path_says_whether_one_database_is_followed_or_many() {
        for (path, is_folder) in [("a.db", false), ("dir/", true)] {
            let json = format!(
                r#"{{"path":"{path}","replicaOf":"http://h/a","replicaToken":"123456789012"}}"#
            );
            let plan = ServerOptions::from_json(&json).and_then(ServerOptions::check).unwrap();
            assert_eq!(matches!(plan.served, ServedPath::Replicas { .. }), is_folder, "{path}");
            assert!(!plan.open);
        }
    }
}
