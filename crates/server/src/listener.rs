//! The socket and TLS: accepts connections and ends them all on close.

use std::net::{TcpListener as StdListener, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::Serving;
use super::connection::{Protocol, connection};
use super::options::TlsFiles;
use super::route::Routes;
use super::slots::{Slot, Slots};
use openkv_core::model::{Error, Kind, REQUEST_HEAD_MS_MAX, Result};

const HEAD_MAX: Duration = Duration::from_millis(REQUEST_HEAD_MS_MAX);

/// Binds the address.
pub(super) fn bind(listen: &str) -> Result<StdListener> {
    let unusable = |error: std::io::Error| {
        let kind = match error.kind() {
            std::io::ErrorKind::PermissionDenied => Kind::Denied,
            std::io::ErrorKind::InvalidInput => Kind::Invalid,
            _ => Kind::Unavailable,
        };
        Error::new(kind, format!("cannot listen on '{listen}' (listen is HOST:PORT): {error}"))
    };
    let addresses: Vec<_> = listen.to_socket_addrs().map_err(unusable)?.collect();
    let socket = StdListener::bind(addresses.as_slice()).map_err(unusable)?;
    socket.set_nonblocking(true).map_err(unusable)?;
    Ok(socket)
}

/// Reads a certificate and its key.
pub(super) fn tls(files: &TlsFiles) -> Result<Arc<ServerConfig>> {
    let TlsFiles { cert, key } = files;
    let unusable = |what: &str, path: &std::path::Path, why: &dyn std::fmt::Display| {
        Error::invalid(format!("tls.{what}: {} cannot be used: {why}", path.display()))
    };
    let certificates = CertificateDer::pem_file_iter(cert)
        .and_then(|found| found.collect::<std::result::Result<Vec<_>, _>>())
        .map_err(|error| unusable("cert", cert, &error))?;
    if certificates.is_empty() {
        return Err(unusable("cert", cert, &"it has no certificate in PEM"));
    }
    let private =
        PrivateKeyDer::from_pem_file(key).map_err(|error| unusable("key", key, &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::internal(error.to_string()))?
        .with_no_client_auth()
        .with_single_cert(certificates, private)
        .map_err(|error| unusable("key", key, &error))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Accepts connections until the server closes, then waits for running requests.
pub(super) async fn serve(
    (serving, routes): (Arc<Serving>, Routes),
    socket: TcpListener,
    tls: Option<Arc<ServerConfig>>,
    connections_max: usize,
) {
    let slots = Slots::new(connections_max);
    let mut closing = serving.closing.subscribe();
    let mut connections = JoinSet::new();
    while !*closing.borrow_and_update() {
        // Forgets connections that have ended.
        while connections.try_join_next().is_some() {}
        let next = async {
            let (stream, _) = socket.accept().await?;
            Ok::<_, std::io::Error>((stream, slots.take().await))
        };
        let accepted = tokio::select! {
            next = next => next,
            _ = closing.changed() => break,
        };
        let (stream, (slot, eviction)) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Usually too many open files: connections that end release some.
                tracing::warn!(%error, "accepting");
                sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let _kept = stream.set_nodelay(true);
        let (serving, routes, tls) = (serving.clone(), routes.clone(), tls.clone());
        let begun = Instant::now();
        let served = async move {
            match tls {
                None => {
                    let Some(protocol) = protocol_of(&serving, &stream).await else { return };
                    connection((serving, routes), (stream, protocol), slot, begun).await;
                }
                // Boxed, so that the task of a connection in clear text is small.
                Some(tls) => Box::pin(secure((serving, routes), stream, slot, tls)).await,
            }
        };
        connections.spawn(async move {
            tokio::select! {
                () = served => {}
                Ok(()) = eviction => tracing::debug!("a connection without a token made room"),
            }
        });
    }
    drop(socket);
    while connections.join_next().await.is_some() {}
}

/// The protocol that a client in clear text begins to speak. `None` if it says nothing in time, or the server closes.
async fn protocol_of(serving: &Serving, stream: &TcpStream) -> Option<Protocol> {
    let mut closing = serving.closing.subscribe();
    let mut first = [0; 3];
    let peeked = tokio::select! {
        peeked = timeout(HEAD_MAX, stream.peek(&mut first)) => peeked.ok()?.ok()?,
        _ = closing.wait_for(|closing| *closing) => return None,
    };
    first.get(..peeked).map(Protocol::of)
}

/// Serves a connection with TLS.
async fn secure(
    served: (Arc<Serving>, Routes),
    stream: TcpStream,
    slot: Arc<Slot>,
    tls: Arc<ServerConfig>,
) {
    let mut closing = served.0.closing.subscribe();
    let hands = timeout(HEAD_MAX, TlsAcceptor::from(tls).accept(stream));
    let shaken = tokio::select! {
        shaken = hands => shaken,
        _ = closing.wait_for(|closing| *closing) => return,
    };
    match shaken {
        Ok(Ok(stream)) => {
            let protocol = match stream.get_ref().1.alpn_protocol() {
                Some(b"h2") => Protocol::Http2,
                Some(_) => Protocol::Http1,
                None => Protocol::Either,
            };
            connection(served, (stream, protocol), slot, Instant::now()).await;
        }
        Ok(Err(error)) => tracing::debug!(%error, "TLS handshake"),
        Err(_) => tracing::debug!("TLS handshake took too long"),
    }
}
