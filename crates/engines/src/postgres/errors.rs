//! The error kind of each answer of PostgreSQL.

use rustls::CertificateError;
use tokio_postgres::error::SqlState;

use super::url::Server;
use openkv_core::model::{Error, Kind};

/// How the driver's error ends when the server has refused TLS.
const NO_TLS: &str = "server does not support TLS";

/// A statement that has no answer of rows.
#[derive(Debug)]
pub(super) enum Fault {
    /// The server has refused it, or the connection is lost.
    Driver(tokio_postgres::Error),
    /// It was not sent: the tables have columns of other types than its arguments.
    Tables(Error),
}

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Driver(error)
    }
}

impl Fault {
    /// The error of a statement that did not commit.
    pub(super) fn into_error(self) -> Error {
        match self {
            Self::Driver(error) => failure(&error),
            Self::Tables(error) => error,
        }
    }

    /// Whether it is the refusal of the fence.
    pub(super) fn is_fence(&self) -> bool {
        match self {
            Self::Driver(error) => {
                error.code().is_some_and(|code| *code == SqlState::NOT_NULL_VIOLATION)
            }
            Self::Tables(_) => false,
        }
    }

    /// Whether the server has ended the transaction, and its connection, because this process was stopped in it.
    pub(super) fn is_idle_end(&self) -> bool {
        match self {
            Self::Driver(error) => {
                error.code() == Some(&SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT)
            }
            Self::Tables(_) => false,
        }
    }

    /// Whether the connection is not in doubt.
    pub(super) fn is_answer(&self) -> bool {
        match self {
            Self::Driver(error) => is_answer(error),
            Self::Tables(_) => true,
        }
    }
}

/// The error of a statement that did not commit.
pub(super) fn failure(error: &tokio_postgres::Error) -> Error {
    let Some(answer) = error.as_db_error() else {
        return lost(error);
    };
    let code = answer.code().code();
    let (kind, advice) = match code.get(..2).unwrap_or_default() {
        "28" | "42" if matches!(code, "28P01" | "28000" | "42501") => {
            (Kind::Denied, "check the user, its password and its rights")
        }
        "3D" => (Kind::Unavailable, "create the PostgreSQL database, or correct the URL"),
        "53" => (Kind::Unavailable, "the server lacks a resource; nothing was done"),
        "40" => (Kind::Unavailable, "the transaction was ended; nothing was done"),
        "57" => (Kind::Unavailable, "the server is stopping or starting; nothing was done"),
        "25" if code == "25006" => {
            (Kind::Denied, "the server is a standby, or read-only: connect to the primary")
        }
        "25" => (Kind::Unavailable, "the transaction had ended; nothing was done"),
        "55" => (Kind::Unavailable, "another process kept the database busy; raise busyTimeout"),
        "23" => (Kind::Unavailable, "another process has committed first; nothing was done"),
        "08" | "58" => (Kind::Unavailable, "the server failed; nothing was done"),
        "XX" if code == "XX000" => {
            (Kind::Unavailable, "the server failed, see its log; nothing was done")
        }
        "XX" => (Kind::Corrupt, "the server reports damaged data; check its log"),
        // A result of other types than when the statement was prepared.
        "0A" | "42" | "3F" => {
            (Kind::Corrupt, "the tables in the schema \"openkv\" are not openkv's")
        }
        _ => (Kind::Internal, "this should not happen; please report it"),
    };
    Error::new(kind, format!("PostgreSQL: {} ({code}): {advice}", answer.message()))
}

/// The error of an attempt to connect, with the address of the server.
pub(super) fn not_connected(error: &tokio_postgres::Error, server: &Server) -> Error {
    let failed = failure(error);
    if error.code().is_none() {
        let at = format!("PostgreSQL at {}", server.address());
        let reason = failed.message().replacen("PostgreSQL", &at, 1);
        return Error::new(failed.kind(), reason);
    }
    let is_refusal = error.code() == Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION);
    if is_refusal && server.tls().is_none() {
        let why = format!(
            "{}. The connection has no TLS, which the server may require: sslmode=verify-full",
            failed.message()
        );
        return Error::new(failed.kind(), why);
    }
    failed
}

/// The error of a connection that is lost or was never made.
fn lost(error: &tokio_postgres::Error) -> Error {
    let mut text = error.to_string();
    let mut certificate = None;
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        certificate = certificate.or_else(|| certificate_fault(inner));
        cause = inner.source();
    }
    let advice = match certificate {
        Some(fault) => rejected_certificate(fault),
        None if text.ends_with(NO_TLS) => {
            ": in a trusted network sslmode=disable connects in clear text"
        }
        None => "",
    };
    Error::new(Kind::Unavailable, format!("PostgreSQL: {text}{advice}"))
}

/// Why TLS has rejected the server's certificate.
fn certificate_fault<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> Option<&'a CertificateError> {
    // An error of I/O names as its cause that of the error it wraps, not that error.
    let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    let tls = match wrapped {
        Some(wrapped) => wrapped.downcast_ref(),
        None => error.downcast_ref(),
    };
    match tls {
        Some(rustls::Error::InvalidCertificate(fault)) => Some(fault),
        _ => None,
    }
}

/// Advice on a rejected certificate, to append to the error.
fn rejected_certificate(fault: &CertificateError) -> &'static str {
    match fault {
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            ": the server's certificate is for another host: connect by a name that it has"
        }
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => {
            ": renew the server's certificate, or correct the clock of this machine"
        }
        _ => {
            ": the server's certificate is not trusted: name the PEM file of its issuer in \
             sslrootcert"
        }
    }
}

/// Whether the server has answered, so that the connection is not in doubt.
fn is_answer(error: &tokio_postgres::Error) -> bool {
    // Of class 57 are the answers of a server that ends the connection: a COMMIT may have happened.
    error.as_db_error().is_some_and(|answer| !answer.code().code().starts_with("57"))
}
