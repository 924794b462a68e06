//! The trusted certificates of servers.
//!
//! Duty: the system's roots, or those that `SSL_CERT_FILE` and `SSL_CERT_DIR` name instead, and
//! those of `NODE_EXTRA_CA_CERTS`, as in Node.js; or the roots of one file.
//! Invariant: names, dates and signatures are always checked.
//! Never: trust in a certificate that no root signed and that is no root itself.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

/// The variable with the PEM file of additional roots.
const EXTRA_ROOTS_VARIABLE: &str = "NODE_EXTRA_CA_CERTS";

/// The TLS configuration of clients, without the offered protocols.
///
/// # Errors
/// A text if there is no trusted certificate at all.
pub fn client_config() -> Result<ClientConfig, String> {
    let mut roots = rustls_native_certs::load_native_certs().certs;
    if let Some(file) = std::env::var_os(EXTRA_ROOTS_VARIABLE).filter(|file| !file.is_empty()) {
        roots.extend(extra_roots(&file));
    }
    let none =
        || format!("no trusted certificates: install the system's, or set {EXTRA_ROOTS_VARIABLE}");
    trusting(roots, none)
}

/// As [`client_config`], with the roots of a PEM file alone.
///
/// # Errors
/// A text if the file cannot be read or holds no certificate.
pub fn client_config_of(file: &Path) -> Result<ClientConfig, String> {
    let found = CertificateDer::pem_file_iter(file).and_then(|found| found.collect());
    let roots = found.map_err(|error| error.to_string())?;
    trusting(roots, || "it holds no certificate in PEM".to_owned())
}

fn trusting(
    roots: Vec<CertificateDer<'static>>,
    none: impl FnOnce() -> String,
) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut store = RootCertStore::empty();
    // An unreadable root is left out, as in other programs of the system.
    store.add_parsable_certificates(roots.iter().cloned());
    if store.is_empty() {
        return Err(none());
    }
    let chains = WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider.clone())
        .build()
        .map_err(|error| error.to_string())?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Verifier { chains, roots }));
    Ok(config.with_no_client_auth())
}

/// An unreadable file is a warning, as in Node.js: the system's roots still count.
fn extra_roots(file: &OsStr) -> Vec<CertificateDer<'static>> {
    let found = CertificateDer::pem_file_iter(file).and_then(|found| found.collect());
    found.unwrap_or_else(|error| {
        tracing::warn!(%error, file = %file.display(), "{EXTRA_ROOTS_VARIABLE} cannot be used");
        Vec::new()
    })
}

/// Advice on a rejected certificate, to append to the error.
pub fn advice(refusal: &str) -> Option<String> {
    let untrusted = ["UnknownIssuer", "CaUsedAsEndEntity"];
    untrusted.iter().any(|word| refusal.contains(word)).then(|| {
        format!(
            "the server's certificate is not trusted: set {EXTRA_ROOTS_VARIABLE} to the PEM file \
             of its issuer, or of a self-signed certificate itself, before the process starts"
        )
    })
}

/// Verifies chains up to a root. It also accepts a root as the server's own certificate, as
/// `openssl req -x509` makes them: the holder of a root's key could sign a certificate anyway.
#[derive(Debug)]
struct Verifier {
    chains: Arc<WebPkiServerVerifier>,
    roots: Vec<CertificateDer<'static>>,
}

/// Whether the only fault is that the certificate may sign others. Its dates are checked before.
fn is_authority(error: &Error) -> bool {
    let Error::InvalidCertificate(CertificateError::Other(other)) = error else { return false };
    matches!(other.0.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.chains.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        let Err(error) = verified else { return verified };
        if !is_authority(&error) || !self.roots.iter().any(|root| root == end_entity) {
            return Err(error);
        }
        verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains.verify_tls12_signature(message, cert, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains.verify_tls13_signature(message, cert, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chains.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// For localhost and 127.0.0.1, made by `openssl req -x509` for a hundred years.
    const SELF_SIGNED: &[u8] = include_bytes!("../../../__test__/server/tls/cert.pem");

    fn verify(roots: Vec<CertificateDer<'static>>, name: &str, at_s: u64) -> Result<(), String> {
        let shown = CertificateDer::from_pem_slice(SELF_SIGNED).unwrap();
        let mut store = RootCertStore::empty();
        // The chain verifier requires at least one root.
        store.add(shown.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let chains = WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider);
        let verifier = Verifier { chains: chains.build().unwrap(), roots };
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(at_s));
        let verified = verifier.verify_server_cert(&shown, &[], &name, &[], now);
        verified.map(drop).map_err(|error| error.to_string())
    }

    #[test]
    fn a_root_is_valid_for_its_names_and_dates() {
        const IN_2030_S: u64 = 1_893_456_000;
        let root = || vec![CertificateDer::from_pem_slice(SELF_SIGNED).unwrap()];
        assert_eq!(verify(root(), "localhost", IN_2030_S), Ok(()));
        assert_eq!(verify(root(), "127.0.0.1", IN_2030_S), Ok(()));
        let refused = |roots, name, at_s| verify(roots, name, at_s).unwrap_err();
        assert!(refused(Vec::new(), "localhost", IN_2030_S).contains("CaUsedAsEndEntity"));
        let other_name = refused(root(), "example.com", IN_2030_S);
        assert!(other_name.contains("not valid for name"), "{other_name}");
        let too_early = refused(root(), "localhost", 0);
        assert!(too_early.contains("not valid yet"), "{too_early}");
    }

    #[test]
    fn a_file_of_roots_holds_at_least_one() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../__test__/server/tls");
        assert!(client_config_of(&here.join("cert.pem")).is_ok());
        let none = client_config_of(&here.join("key.pem")).map(drop);
        assert_eq!(none, Err("it holds no certificate in PEM".to_owned()));
        assert!(client_config_of(&here.join("absent.pem")).is_err());
    }

    #[test]
    fn an_untrusted_certificate_has_advice() {
        assert!(advice("invalid peer certificate: UnknownIssuer").is_some());
        assert!(advice("invalid peer certificate: Expired").is_none());
    }
}
