//! The URL of a database in an object store.

use std::net::IpAddr;
use std::time::Duration;

use url::{Host, Url};

use crate::BUCKET_SCHEMES;
use crate::objects::{Settings, Target};
use openkv_core::model::{
    BUCKET_LEASE_MS_DEFAULT, BUCKET_LEASE_MS_MAX, BUCKET_LEASE_MS_MIN, BUCKET_LINGER_MS_MAX,
    BUCKET_SERVED_LEASE_MS_DEFAULT, Error, Result,
};

/// The folder of the databases of servers.
pub(super) const SERVED: &str = "databases";

/// A parsed URL.
pub(super) struct Location {
    pub(super) target: Target,
    pub(super) timing: Timing,
}

/// The times that a URL names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timing {
    pub(super) lease_ms: u64,
    /// From the beginning of one group of commits to that of the next one, at least. `None`: as long as an upload takes.
    pub(super) linger: Option<Duration>,
}

/// The URL, without the parameters that do not choose the store: it is the same for all ways to name a database.
///
/// # Errors
/// As [`open`].
pub fn identity(text: &str) -> Result<String> {
    let mut url = parse(text)?;
    let endpoint = url.query_pairs().filter(|(name, _)| name == "endpoint").last();
    let endpoint = endpoint.map(|(_, value)| checked_endpoint(&value)).transpose()?;
    url.set_query(None);
    let place = url.as_str().trim_end_matches('/');
    Ok(match endpoint {
        Some(endpoint) => format!("{place}?endpoint={endpoint}"),
        None => place.to_owned(),
    })
}

/// The times that a URL names.
///
/// # Errors
/// `Invalid` for a wrong URL, and for a time that is none or out of its bounds.
pub fn timing(text: &str) -> Result<Timing> {
    let mut timing = Timing { lease_ms: BUCKET_LEASE_MS_DEFAULT, linger: None };
    for (name, value) in parse(text)?.query_pairs() {
        match &*name {
            "lease" => timing.lease_ms = lease_of(&value)?,
            "linger" => timing.linger = Some(linger_of(&value)?),
            _ => {}
        }
    }
    Ok(timing)
}

/// The URL of a database of servers, below the path that their URL names. Its lease is
/// [`BUCKET_SERVED_LEASE_MS_DEFAULT`] long unless the URL says otherwise.
///
/// # Errors
/// As [`open`].
pub fn served(text: &str, database: &str) -> Result<String> {
    let mut url = parse(text)?;
    url.set_path(&format!("{}/{SERVED}/{database}", url.path().trim_end_matches('/')));
    if !url.query_pairs().any(|(name, _)| name == "lease") {
        let lease = format!("{BUCKET_SERVED_LEASE_MS_DEFAULT}ms");
        url.query_pairs_mut().append_pair("lease", &lease);
    }
    Ok(url.into())
}

/// The name of a database of servers at their path.
///
/// # Errors
/// As [`open`].
pub(super) fn name_of(text: &str) -> Result<String> {
    let url = parse(text)?;
    Ok(url.path().trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned())
}

/// The lease of the databases of servers, in ms.
///
/// # Errors
/// As [`open`].
pub(super) fn served_lease_ms(text: &str) -> Result<u64> {
    let url = parse(text)?;
    let given = url.query_pairs().filter(|(name, _)| name == "lease").last();
    given.map_or(Ok(BUCKET_SERVED_LEASE_MS_DEFAULT), |(_, value)| lease_of(&value))
}

fn parse(text: &str) -> Result<Url> {
    let url = Url::parse(text).ok().filter(|url| BUCKET_SCHEMES.contains(&url.scheme()));
    let url = url.ok_or_else(|| {
        Error::invalid(
            "the URL of a database in an object store is like s3://bucket/path, gs://bucket/path, \
             az://container/path or bucket+file:///folder",
        )
    })?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Error::invalid(
            "the URL of a database in an object store has no credentials: give them in the environment \
             (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, GOOGLE_APPLICATION_CREDENTIALS, or \
             AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY)",
        ));
    }
    if url.fragment().is_some() {
        return Err(Error::invalid("the URL of a database in an object store has no fragment"));
    }
    Ok(url)
}

/// The place and the settings that a URL names. Makes no request; creates a folder if `creates`.
///
/// # Errors
/// `Invalid` for another URL, one with credentials, an unknown parameter, or an endpoint without encryption that
/// is not this machine; `Unavailable` for a folder that cannot be used.
pub(super) fn open(text: &str, creates: bool) -> Result<Location> {
    let mut url = parse(text)?;
    let (mut region, mut endpoint) = (None, None);
    let timing = timing(text)?;
    let is_s3 = url.scheme() == "s3";
    for (name, value) in url.query_pairs() {
        match &*name {
            "region" if is_s3 => region = Some(value.into_owned()),
            "endpoint" if is_s3 => endpoint = Some(checked_endpoint(&value)?),
            "lease" | "linger" => {}
            "region" | "endpoint" => {
                return Err(Error::invalid(format!("the parameter {name} is for s3:// only")));
            }
            _ => {
                let known =
                    if is_s3 { "region, endpoint, lease and linger" } else { "lease and linger" };
                // The value may be a secret.
                return Err(Error::invalid(format!(
                    "the URL has an unknown parameter; known for this store: {known}. Credentials belong into the \
                     environment"
                )));
            }
        }
    }
    url.set_query(None);
    let target = if url.scheme() == "bucket+file" {
        let path = Url::parse(url.as_str().trim_start_matches("bucket+"));
        let path = path.ok().and_then(|url| url.to_file_path().ok());
        let path = path.ok_or_else(|| {
            Error::invalid(
                "the URL of a folder is like bucket+file:///data/shop, with an absolute path",
            )
        })?;
        if !creates && !path.exists() {
            let shown = path.display();
            return Err(Error::unavailable(format!(
                "{shown}: there is no database here; open it with lead: \"auto\" to create one"
            )));
        }
        Target::folder(&path, creates)?
    } else {
        if url.host_str().is_none_or(str::is_empty) {
            return Err(Error::invalid(format!(
                "the URL names no bucket: {}://bucket/path",
                url.scheme()
            )));
        }
        let settings = Settings { region: region.as_deref(), endpoint: endpoint.as_deref() };
        Target::remote(&url, url.as_str().trim_end_matches('/'), settings)?
            .ok_or_else(|| Error::invalid("the URL names no object store that openkv knows"))?
    };
    Ok(Location { target, timing })
}

fn checked_endpoint(text: &str) -> Result<String> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let url = url.ok_or_else(|| {
        Error::invalid("the parameter endpoint is a URL like https://storage.example.com")
    })?;
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
        return Err(Error::invalid("the parameter endpoint has no credentials and no query"));
    }
    let is_here = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(at)) => IpAddr::V4(at).is_loopback(),
        Some(Host::Ipv6(at)) => IpAddr::V6(at).is_loopback(),
        None => false,
    };
    if url.scheme() == "http" && !is_here {
        return Err(Error::invalid(
            "the parameter endpoint begins with http://, which is for this machine only: use https://",
        ));
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

fn lease_of(text: &str) -> Result<u64> {
    let allowed = BUCKET_LEASE_MS_MIN..=BUCKET_LEASE_MS_MAX;
    duration_ms(text).filter(|ms| allowed.contains(ms)).ok_or_else(|| {
        Error::invalid(format!(
            "the parameter lease is a duration like 15s or 500ms, from {BUCKET_LEASE_MS_MIN} ms to \
             {BUCKET_LEASE_MS_MAX} ms"
        ))
    })
}

fn linger_of(text: &str) -> Result<Duration> {
    let ms = duration_ms(text).filter(|ms| *ms <= BUCKET_LINGER_MS_MAX).ok_or_else(|| {
        Error::invalid(format!(
            "the parameter linger is a duration like 50ms or 1s, from 0ms to {BUCKET_LINGER_MS_MAX} ms"
        ))
    })?;
    Ok(Duration::from_millis(ms))
}

fn duration_ms(text: &str) -> Option<u64> {
    let (digits, unit) = match text.strip_suffix("ms") {
        Some(digits) => (digits, 1),
        None => (text.strip_suffix('s')?, 1000),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_urls_are_refused_without_their_secrets() {
        for (text, part) in [
            ("s3://me:secret@bucket/x", "no credentials"),
            ("s3://secret@bucket/x", "no credentials"),
            ("s3://bucket/x?AWS_SECRET=secret", "unknown parameter"),
            ("s3://bucket/x#secret", "no fragment"),
            ("s3:///x", "names no bucket"),
            // The path of a store that openkv knows was refused as an unknown store.
            ("s3://bucket/a//b", "s3://bucket/a//b: the path has an empty part"),
            ("gs://bucket/%FF", "no text in UTF-8"),
            ("gs://bucket/x?region=secret", "for s3:// only"),
            ("s3://bucket/x?endpoint=http://10.0.0.1:9000/secret", "for this machine only"),
            ("s3://bucket/x?endpoint=https://me:secret@host", "no credentials"),
            ("s3://bucket/x?lease=299ms", "from 300 ms"),
            ("s3://bucket/x?lease=601s", "to 600000 ms"),
            ("s3://bucket/x?lease=15", "a duration like"),
            ("s3://bucket/x?linger=1001ms", "to 1000 ms"),
            ("s3://bucket/x?linger=50", "a duration like"),
            ("s3://bucket/x?linger=-1ms", "a duration like"),
            ("ftp://bucket/secret", "is like s3://"),
            ("bucket+file://host/x", "absolute path"),
        ] {
            let error = open(text, false).map(drop).unwrap_err();
            assert!(error.message().contains(part), "{text}: {error}");
            assert!(!error.message().contains("secret"), "{text}: {error}");
        }
    }

    #[test]
    fn a_database_of_servers_is_below_their_path() {
        let of = |text: &str| served(text, "x").unwrap();
        assert_eq!(
            of("s3://bucket/app?region=a"),
            "s3://bucket/app/databases/x?region=a&lease=3000ms"
        );
        assert_eq!(of("s3://bucket/?lease=9s"), "s3://bucket/databases/x?lease=9s");
        assert_eq!(of("bucket+file:///d/a/"), "bucket+file:///d/a/databases/x?lease=3000ms");
        assert_eq!(open(&of("s3://bucket/app"), false).unwrap().timing.lease_ms, 3_000);
        assert!(served("s3://me:secret@bucket/app", "x").is_err());
    }

    #[test]
    fn the_bounds_of_a_lease_are_allowed() {
        assert_eq!((lease_of("300ms"), lease_of("600s")), (Ok(300), Ok(600_000)));
    }

    #[test]
    fn the_bounds_of_lingering_are_allowed() {
        let [least, most] = ["0ms", "1s"].map(|text| linger_of(text).unwrap().as_millis());
        assert_eq!((least, most), (0, u128::from(BUCKET_LINGER_MS_MAX)));
    }

    #[test]
    fn one_database_has_one_identity() {
        let one = identity("s3://bucket/x/?region=a").unwrap();
        assert_eq!(one, identity("s3://bucket/x").unwrap());
        assert_ne!(one, identity("s3://bucket/y").unwrap());
        let at = |host: &str| identity(&format!("s3://bucket/x?lease=1s&endpoint={host}")).unwrap();
        assert_eq!(at("https://a.example"), at("https://a.example/"));
        // Two stores that have buckets of one name were one handle.
        assert_ne!(at("https://a.example"), at("https://b.example"));
        assert_ne!(at("https://a.example"), one);
    }
}
