//! Writes the log of a file with few calls of the system.
//!
//! SQLite writes each frame of a commit with two calls, one for its header and one for its page, and a
//! call costs more than the copy of its bytes. A log that gets longer with a commit costs more again: its
//! sync waits for the file system, which has to record the new length.
//!
//! Duty: a VFS that is the default one, but for files of logs. Their writes are gathered (`gathered.rs`),
//! and they grow in steps, filled with zeros, which are no frames (`methods.rs`).
//! Invariant: all writes are in the file before SQLite reads the log again, and before it makes a commit
//! visible to other connections.
//! Never: another order or other bytes than SQLite's; a change to the main file, its locks or the shared
//! memory, whose methods are those of the default VFS.

use std::ffi::{CStr, c_char, c_int};
use std::ptr;
use std::sync::OnceLock;

use rusqlite::{Connection, ffi};

use super::errors::failure;
use gathered::Gathering;
use openkv_core::model::Result;

mod gathered;
mod methods;
#[cfg(test)]
mod tests;

/// The name of the VFS.
const NAME: &CStr = c"openkv";

/// The name of the VFS for connections to files; the default one if it cannot be registered.
pub(super) fn vfs() -> &'static CStr {
    static USED: OnceLock<&CStr> = OnceLock::new();
    USED.get_or_init(|| {
        register().unwrap_or_else(|| {
            tracing::warn!("SQLite writes each frame of its log with two calls");
            default_name()
        })
    })
}

/// The commits that a connection syncs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Synced {
    /// Each commit.
    Commits,
    /// The log before it is moved into the file, and the file after that.
    Moves,
    /// Nothing: a crash may leave the file unusable.
    Nothing,
}

/// Sets what a connection syncs, and gathers the writes of its log accordingly.
///
/// SQLite syncs the log of a synced commit before it makes the commit visible, so all of its frames can
/// wait for that. Of another commit only the header of a frame can wait, for the page that follows it.
/// Nothing else may set `synchronous`.
pub(super) fn set_synced(connection: &Connection, synced: Synced) -> Result<()> {
    // While the setting changes, no frame may wait for a sync.
    methods::set_gathering(connection, Gathering::Frames);
    let level = match synced {
        Synced::Commits => "FULL",
        Synced::Moves => "NORMAL",
        Synced::Nothing => "OFF",
    };
    connection.pragma_update(None, "synchronous", level).map_err(failure)?;
    if synced == Synced::Commits {
        methods::set_gathering(connection, Gathering::Commits);
    }
    Ok(())
}

/// There has never been a log of the connection's file: the header of the first one needs no sync of its own.
/// The connection must have read.
pub(super) fn begin_new_log(connection: &Connection) {
    methods::begin_new(connection);
}

/// Gives back the memory for writes to the log of a connection, outside of transactions.
pub(super) fn rest(connection: &Connection) {
    methods::rest(connection);
}

/// The default VFS.
fn default_vfs() -> *mut ffi::sqlite3_vfs {
    // SAFETY: SQLite looks up its default VFS, which lives as long as the library.
    unsafe { ffi::sqlite3_vfs_find(ptr::null()) }
}

fn default_name() -> &'static CStr {
    // SAFETY: the default VFS and its name live as long as the library.
    unsafe { CStr::from_ptr((*default_vfs()).zName) }
}

/// Registers the VFS; returns its name.
fn register() -> Option<&'static CStr> {
    // SAFETY: the default VFS lives as long as the library.
    let usual = unsafe { default_vfs().as_ref()? };
    let own = ffi::sqlite3_vfs {
        zName: NAME.as_ptr(),
        pNext: ptr::null_mut(),
        szOsFile: methods::size_with(usual.szOsFile)?,
        xOpen: Some(open),
        ..*usual
    };
    // SAFETY: the VFS is never freed. Its other functions are those of the default VFS, which gives all
    // its data with it.
    let code = unsafe { ffi::sqlite3_vfs_register(Box::leak(Box::new(own)), 0) };
    (code == ffi::SQLITE_OK).then_some(NAME)
}

/// Opens a file by the default VFS, a log behind the methods of this module.
unsafe extern "C" fn open(
    _own: *mut ffi::sqlite3_vfs,
    path: *const c_char,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    let usual = default_vfs();
    let open_usual = |file| {
        // SAFETY: the arguments are those of SQLite's call, and `file` has room for the VFS's file.
        unsafe {
            (*usual)
                .xOpen
                .map_or(ffi::SQLITE_CANTOPEN, |open| open(usual, path, file, flags, out_flags))
        }
    };
    if flags & ffi::SQLITE_OPEN_WAL == 0 {
        return open_usual(file);
    }
    // SAFETY: `file` has the room that the VFS requested.
    unsafe { methods::open(file, open_usual) }
}
