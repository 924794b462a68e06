//! The error kind of each SQLite result code.

use rusqlite::ffi;

use openkv_core::model::{Error, Kind};

/// The error of a call through `rusqlite`.
pub(super) fn failure(error: rusqlite::Error) -> Error {
    match error {
        rusqlite::Error::SqliteFailure(code, text) => {
            let text = text.unwrap_or_else(|| code.to_string());
            from_code(code.extended_code, &text)
        }
        other => Error::corrupt(other.to_string()),
    }
}

/// The error of a COMMIT: if writing or syncing failed, the commit may still appear after a crash.
pub(super) fn from_commit(extended: i32, text: &str) -> Error {
    match extended & 0xff {
        ffi::SQLITE_IOERR => {
            let advice = "the file system failed; read to find out whether it was committed";
            Error::new(Kind::OutcomeUnknown, format!("{text} (SQLite {extended}): {advice}"))
        }
        _ => from_code(extended, text),
    }
}

/// The error of a raw call, from the extended result code and SQLite's text.
pub(super) fn from_code(extended: i32, text: &str) -> Error {
    let (kind, advice) = match extended & 0xff {
        ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED => {
            (Kind::Unavailable, "another process kept the database busy; raise busyTimeout")
        }
        ffi::SQLITE_FULL => (Kind::Unavailable, "free some disk space; nothing was written"),
        ffi::SQLITE_NOMEM | ffi::SQLITE_TOOBIG => (Kind::Unavailable, "nothing was done"),
        ffi::SQLITE_IOERR => (Kind::Unavailable, "the file system failed; nothing was done"),
        ffi::SQLITE_CANTOPEN => (Kind::Unavailable, "check that the path exists and is a file"),
        ffi::SQLITE_READONLY | ffi::SQLITE_PERM | ffi::SQLITE_AUTH => {
            (Kind::Denied, "the file or its directory may not be written")
        }
        ffi::SQLITE_INTERRUPT => (Kind::Unavailable, "the call was ended; nothing was done"),
        ffi::SQLITE_NOTADB => (Kind::Corrupt, "it is not an openkv database"),
        ffi::SQLITE_CORRUPT | ffi::SQLITE_MISMATCH | ffi::SQLITE_SCHEMA | ffi::SQLITE_ERROR => {
            (Kind::Corrupt, "the file is damaged; restore it from a backup")
        }
        ffi::SQLITE_CONSTRAINT => (Kind::Corrupt, "the file breaks its own rules"),
        _ => (Kind::Internal, "this should not happen; please report it"),
    };
    Error::new(kind, format!("{text} (SQLite {extended}): {advice}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error once claimed that nothing was done.
    #[test]
    fn a_commit_with_a_disk_error_has_an_unknown_outcome() {
        let error = from_commit(ffi::SQLITE_IOERR_FSYNC, "disk I/O error");
        assert_eq!(error.kind(), Kind::OutcomeUnknown);
        assert!(error.message().contains("read to find out"), "{error}");
        assert!(!error.message().contains("nothing was"), "{error}");
        for code in [ffi::SQLITE_FULL, ffi::SQLITE_BUSY, ffi::SQLITE_CORRUPT] {
            let (of_commit, of_any) = (from_commit(code, "text"), from_code(code, "text"));
            assert_eq!((of_commit.kind(), of_commit.message()), (of_any.kind(), of_any.message()));
        }
    }
}
