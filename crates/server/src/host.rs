//! The hosts that a request may name.
//!
//! A page of another site can have its name resolved to this machine (DNS rebinding). Its requests
//! then reach the server as if they were of the same origin, but they name the host of that page.

use std::net::{IpAddr, SocketAddr};

use hyper::header::{HOST, HeaderMap, ORIGIN};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;
use hyper::{StatusCode, Uri};

use super::Serving;
use super::answer::Refusal;

/// The names of a server.
pub(super) struct Hosts {
    address: IpAddr,
    /// In lower case.
    names: Vec<String>,
}

impl Hosts {
    /// `address`: where the server listens.
    pub(super) fn new(address: IpAddr, names: Vec<String>) -> Self {
        Self { address, names }
    }

    fn knows_ip(&self, ip: IpAddr) -> bool {
        ip.is_loopback() || ip == self.address || self.address.is_unspecified()
    }

    /// Whether a host, with or without a port, is this server. An address is never resolved, so a
    /// server that listens on all addresses knows each.
    fn knows(&self, authority: &str) -> bool {
        // Most requests name the address; this way needs no copy of it.
        if authority.parse::<SocketAddr>().is_ok_and(|address| self.knows_ip(address.ip())) {
            return true;
        }
        let Ok(authority) = authority.parse::<Authority>() else { return false };
        let host = authority.host().trim_end_matches('.').to_ascii_lowercase();
        if let Ok(ip) = host.trim_matches(['[', ']']).parse::<IpAddr>() {
            return self.knows_ip(ip) || self.names.contains(&host);
        }
        host == "localhost" || host.ends_with(".localhost") || self.names.contains(&host)
    }
}

fn refused(text: String) -> Refusal {
    Refusal::new(StatusCode::FORBIDDEN, text)
}

/// Fails for a request that names another host. Without tokens also for one of a page of another
/// origin, which needs no preflight for some requests.
pub(super) fn check(serving: &Serving, head: &Parts) -> Result<(), Refusal> {
    let host = named(&head.headers, &head.uri);
    if !host.is_some_and(|host| serving.hosts.knows(host)) {
        let host = host.unwrap_or_default();
        return Err(refused(format!(
            "The host '{host}' is not this server's: start it with publicUrl if it is."
        )));
    }
    let origin = head.headers.get(ORIGIN).filter(|_| serving.catalog.is_open());
    let Some(origin) = origin else { return Ok(()) };
    let origin = origin.to_str().unwrap_or_default();
    let known = origin.split_once("://").is_some_and(|(_, host)| serving.hosts.knows(host));
    if known || serving.cors_origin.as_deref() == Some(origin) {
        return Ok(());
    }
    Err(refused("A server without tokens answers no pages of other origins.".into()))
}

/// The host of a request: HTTP/2 has it in the URI.
fn named<'r>(headers: &'r HeaderMap, uri: &'r Uri) -> Option<&'r str> {
    let authority = uri.authority().map(Authority::as_str);
    authority.or_else(|| headers.get(HOST).and_then(|host| host.to_str().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_knows_its_addresses_and_names() {
        let hosts = |address: &str| {
            let names = vec!["kv.example.com".into()];
            Hosts::new(address.parse().unwrap(), names)
        };
        for (address, host, known) in [
            ("127.0.0.1", "127.0.0.1:4512", true),
            ("127.0.0.1", "localhost", true),
            ("127.0.0.1", "LocalHost.:80", true),
            ("127.0.0.1", "studio.localhost:1", true),
            ("127.0.0.1", "[::1]:4512", true),
            ("127.0.0.1", "KV.example.com:443", true),
            ("127.0.0.1", "example.com", false),
            ("127.0.0.1", "kv.example.com.evil.org", false),
            ("127.0.0.1", "notlocalhost", false),
            ("127.0.0.1", "10.0.0.1", false),
            ("127.0.0.1", "", false),
            ("127.0.0.1", "a b", false),
            ("10.0.0.1", "10.0.0.1:80", true),
            ("10.0.0.1", "10.0.0.2", false),
            ("0.0.0.0", "10.0.0.2:4512", true),
            ("::", "[fe80::1]", true),
            ("0.0.0.0", "example.com", false),
        ] {
            assert_eq!(hosts(address).knows(host), known, "{address} {host}");
        }
    }
}
