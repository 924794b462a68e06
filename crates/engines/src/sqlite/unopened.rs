//! Explains why a file could not be opened, if the file system knows more than SQLite.
//!
//! Never: opens the file, since closing it would drop locks of another library of this process.

use std::path::Path;

use super::identity::log_of;
use super::permissions::{Access, May, may};
use openkv_core::model::{Error, Kind};

/// The error of opening `path`, with the reason if it is the kind of the path or its permissions.
pub(super) fn explain(error: Error, path: &Path, access: Access) -> Error {
    // SQLite has one error code for a missing file, a folder and missing permissions.
    if error.kind() != Kind::Unavailable {
        return error;
    }
    match reason(path, access) {
        Some((kind, why)) => Error::new(kind, why),
        None => error,
    }
}

fn reason(path: &Path, access: Access) -> Option<(Kind, String)> {
    if path.is_dir() {
        let example = path.join("kv.sqlite3");
        let why = format!(
            "unable to open database file: it is a folder: name a file, such as {}",
            example.display()
        );
        return Some((Kind::Unavailable, why));
    }
    let folder = path.parent()?;
    let wanted = match access {
        Access::Read => "read",
        Access::Write => "read and written",
    };
    let denied = |why: String| Some((Kind::Denied, why));
    match may(path, access) {
        May::Not if folder_is_closed(folder) => {
            denied(format!("this process may not enter the folder {}", folder.display()))
        }
        May::Not => {
            let advice = match may(path, Access::Read) {
                May::Yes => ": readonly: true reads it",
                May::Not | May::Missing => "",
            };
            denied(format!("this process has no permission for it to be {wanted}{advice}"))
        }
        May::Yes if access == Access::Read && may(folder, Access::Write) == May::Not => {
            denied(format!(
                "this process may not make files in the folder {}, and the log {} can only be read with an \
                 index there: copy the file and its log to another folder and open the copy, or let a process \
                 that may write there open and close the file, which moves the log into it",
                folder.display(),
                log_of(path).display()
            ))
        }
        // The log and its index are created beside the file.
        May::Missing | May::Yes if may(folder, Access::Write) == May::Not => denied(format!(
            "this process may not make files in the folder {}: the database needs its log there: \
             readonly: true reads a file there",
            folder.display()
        )),
        May::Missing | May::Yes => None,
    }
}

fn folder_is_closed(folder: &Path) -> bool {
    folder.join(".").metadata().is_err()
}
