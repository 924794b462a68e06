//! The URLs of a server: the one that the user gave, and those that the server names.

use url::Url;

use openkv_core::model::{Error, Result};
use openkv_wire::connect::versions::Version;

/// The URL of a metadata exchange.
pub(super) fn parse(text: &str) -> Result<Url> {
    let url = Url::parse(text).map_err(|why| Error::invalid(format!("Invalid URL: {why}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Error::invalid("The URL of a database begins with http:// or https://"));
    }
    Ok(url)
}

/// The URL of an endpoint, to which `/snapshot_read` and the like are appended.
///
/// # Errors
/// `Corrupt` for an endpoint that the protocol forbids, and for one that would send the token
/// unencrypted although the exchange was encrypted.
pub(super) fn endpoint(base: &Url, version: Version, text: &str) -> Result<String> {
    let refused =
        |why: String| Error::corrupt(format!("{} names the endpoint '{text}': {why}", shown(base)));
    if text.ends_with('/') {
        return Err(refused("an endpoint URL must not end with '/'".into()));
    }
    let url = if version == Version::V1 { Url::parse(text) } else { base.join(text) };
    let url = url.map_err(|why| refused(format!("invalid endpoint URL: {why}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refused("an endpoint is an http or https URL".into()));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(refused("an endpoint URL has no query and no fragment".into()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refused("an endpoint URL holds no credentials".into()));
    }
    if downgrades(base, &url) {
        return Err(refused("the token would leave the encrypted connection".into()));
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

/// The target of a redirected metadata exchange, for the same access token: the same origin, or the
/// same host with encryption.
///
/// # Errors
/// `Corrupt` for an invalid target, for one that would send the token unencrypted, and for another
/// origin, which the user has not named.
pub(super) fn redirected(from: &Url, location: Option<&str>) -> Result<Url> {
    let refused = |why: &str| Error::corrupt(format!("{} redirects {why}", shown(from)));
    let location = location.ok_or_else(|| refused("without saying where to"))?;
    let to = from.join(location).map_err(|_| refused("to an invalid URL"))?;
    if !matches!(to.scheme(), "http" | "https") {
        return Err(refused("to a URL that is not http or https"));
    }
    if downgrades(from, &to) {
        return Err(refused("from https to http, and the token is not sent in the clear"));
    }
    let upgrades = from.scheme() != to.scheme();
    if from.host() != to.host()
        || !upgrades && from.port_or_known_default() != to.port_or_known_default()
    {
        let why = "and the token is not sent to another origin: open that URL if it is the one";
        return Err(refused(&format!("to {}, {why}", shown(&to))));
    }
    Ok(to)
}

/// Whether a URL is of the same server as another one.
pub(super) fn is_of_origin(endpoint: &str, url: &Url) -> bool {
    Url::parse(endpoint).is_ok_and(|endpoint| endpoint.origin() == url.origin())
}

fn downgrades(from: &Url, to: &Url) -> bool {
    from.scheme() == "https" && to.scheme() != "https"
}

/// The URL for messages, without its secrets.
pub(super) fn shown(url: &Url) -> String {
    let mut shown = url.clone();
    shown.set_query(None);
    shown.set_fragment(None);
    // Neither can fail for a URL with a host.
    let _ = shown.set_username("");
    let _ = shown.set_password(None);
    shown.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use openkv_core::model::Kind;

    fn base() -> Url {
        parse("http://host:1/a/connect?db=1").unwrap()
    }

    #[test]
    fn endpoints_resolve_by_their_version() {
        for (version, text, expected) in [
            (2, "/v2", Some("http://host:1/v2")),
            (3, "./v2", Some("http://host:1/a/v2")),
            (3, "v2", Some("http://host:1/a/v2")),
            (2, "https://other/x", Some("https://other/x")),
            (2, "http://other", Some("http://other")),
            (1, "http://other/x", Some("http://other/x")),
            (1, "/v2", None),
            (2, "/v2/", None),
            (2, "/v2?a=1", None),
            (2, "/v2#a", None),
            (2, "ftp://host/x", None),
            (2, "http://a:b@host/x", None),
            (2, "http://[", None),
        ] {
            let version = Version::from_number(version).unwrap();
            let found = endpoint(&base(), version, text);
            assert_eq!(found.as_deref().ok(), expected, "{version:?} {text}");
        }
        let secure = parse("https://host/").unwrap();
        assert_eq!(
            endpoint(&secure, Version::V3, "http://host/v2").unwrap_err().kind(),
            Kind::Corrupt
        );
    }

    #[test]
    fn redirects_stay_at_their_origin_and_within_encryption() {
        let to = |location| redirected(&base(), location).map(String::from);
        assert_eq!(to(Some("/b")).unwrap(), "http://host:1/b");
        assert_eq!(to(Some("http://HOST:1")).unwrap(), "http://host:1/");
        assert_eq!(to(Some("https://host/b")).unwrap(), "https://host/b");
        assert!(to(None).is_err());
        for other in [
            "file:///etc",
            "http://host/b",
            "http://host:2/b",
            "http://other:1/b",
            "https://other/b",
            "//other:1/b",
            "https://host.other/b",
        ] {
            assert_eq!(to(Some(other)).unwrap_err().kind(), Kind::Corrupt, "{other}");
        }
        let secure = parse("https://host/").unwrap();
        assert!(redirected(&secure, Some("http://host/")).is_err());
        assert!(redirected(&secure, Some("https://host:443/b")).is_ok());
        assert!(redirected(&secure, Some("https://host:444/b")).is_err());
    }

    #[test]
    fn a_shown_url_has_no_secrets() {
        let url = Url::parse("https://user:secret@host/a?token=b#c").unwrap();
        assert_eq!(shown(&url), "https://host/a");
    }
}
