//! The error kind of each answer of PostgreSQL.

use crate::model::{Error, Kind};

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

/// The error of a connection that is lost or was never made.
fn lost(error: &tokio_postgres::Error) -> Error {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    Error::new(Kind::Unavailable, format!("PostgreSQL: {text}"))
}

/// Whether the server has answered, so that the connection is not in doubt.
fn is_answer(error: &tokio_postgres::Error) -> bool {
    // Of class 57 are the answers of a server that ends the connection: a COMMIT may have happened.
    error.as_db_error().is_some_and(|answer| !answer.code().code().starts_with("57"))
}
