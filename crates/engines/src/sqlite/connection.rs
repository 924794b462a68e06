//! Opens connections to the file.

use std::ffi::c_int;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, ffi};

use super::errors::failure;
use super::identity::keep_log;
use super::identity::log_of;
use super::layout;
use super::log_file;
use super::page_cache::{CachedPages, caught, set_bound};
pub(super) use super::permissions::Access;
use super::sealed::SealedFile;
use openkv_core::model::{CACHE_BYTES_DEFAULT, Error, PageMemory, Result};

/// The pause between two attempts, while other processes open the same file.
const PAUSE: Duration = Duration::from_millis(2);

/// Gives a file without tables the incremental vacuum. Of a file without it that has tables, the next `VACUUM` does.
pub(super) const ENABLE_VACUUM_STEPS: &str = "PRAGMA auto_vacuum = INCREMENTAL";

/// What `PRAGMA auto_vacuum` answers for a file with steps, in a transaction. Outside of one it answers what it has seen last.
pub(super) const VACUUM_HAS_STEPS: i64 = 2;

/// Opens a connection in WAL mode, with the default page cache; `busy` is the wait for locks.
pub(super) fn open(path: &Path, access: Access, busy: Duration) -> Result<Connection> {
    match access {
        Access::Read => open_to_read(path, busy).map(|opened| opened.connection),
        Access::Write => open_to_write(path, busy).map(|opened| opened.connection),
    }
}

/// A connection with what belongs to it.
pub(super) struct Opened {
    pub(super) connection: Connection,
    /// The file, if it is opened as immutable.
    pub(super) sealed: Option<SealedFile>,
    /// The pages of its cache, if it only reads and the cache is ours.
    pub(super) pages: Option<CachedPages>,
}

/// As [`open`], for reading.
pub(super) fn open_to_read(path: &Path, busy: Duration) -> Result<Opened> {
    let sealed = SealedFile::of(path);
    let uri = sealed.as_ref().map(SealedFile::uri);
    let name = uri.as_deref().map_or(path, Path::new);
    // Nothing but this one connection may be opened in between.
    let (connection, pages) = caught(|| open_named(path, name, Access::Read, busy));
    Ok(Opened { connection: connection?, sealed, pages })
}

/// As [`open`], for writing.
pub(super) fn open_to_write(path: &Path, busy: Duration) -> Result<Opened> {
    let connection = open_named(path, path, Access::Write, busy)?;
    Ok(Opened { connection, sealed: None, pages: None })
}

/// Opens the file at `path` by the name that SQLite gets: the path, or a URI.
fn open_named(path: &Path, name: &Path, access: Access, busy: Duration) -> Result<Connection> {
    super::page_cache::install();
    #[cfg(unix)]
    super::locks::install();
    let mode = match access {
        Access::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
        Access::Write => OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
    };
    // A connection belongs to one thread at a time, so SQLite needs no mutex. A path is not
    // interpreted as a URI.
    let uri = if name == path { OpenFlags::empty() } else { OpenFlags::SQLITE_OPEN_URI };
    let flags = mode | uri | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags_and_vfs(name, flags, log_file::vfs());
    let connection = connection.map_err(failure)?;
    // If the log belongs to another file, closing must not move it into this one.
    keep_log(&connection, true)?;
    connection.busy_timeout(busy).map_err(failure)?;
    set_bound(&connection, CACHE_BYTES_DEFAULT)?;
    let trusts = DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA;
    connection.set_db_config(trusts, false).map_err(failure)?;
    if access == Access::Write {
        if std::fs::metadata(path).map_or(0, |file| file.len()) == 0 {
            connection.execute_batch(ENABLE_VACUUM_STEPS).map_err(failure)?;
        }
        use_log(&connection, busy)?;
        #[cfg(unix)]
        refuse_fallback(path, &connection, busy)?;
    }
    keep_log(&connection, false)?;
    Ok(connection)
}

/// Memory that SQLite allocates at once for the small allocations of a connection: bytes of a slot, and slots.
const LOOKASIDE: (c_int, c_int) = (1200, 40);

fn set_lookaside(connection: &Connection, (bytes, slots): (c_int, c_int)) {
    let none = std::ptr::null_mut::<std::ffi::c_void>();
    let option = ffi::SQLITE_DBCONFIG_LOOKASIDE;
    // SAFETY: the connection is borrowed, so no other thread uses it; these are the arguments of the option. SQLite
    // refuses while a slot is in use, and goes on with what it has.
    let _in_use =
        unsafe { ffi::sqlite3_db_config(connection.handle(), option, none, bytes, slots) };
}

/// Takes again what [`rest`] has given back and a transaction uses constantly.
pub(super) fn wake(connection: &Connection) {
    set_lookaside(connection, LOOKASIDE);
}

/// Gives back the memory of a connection that has no work: its pages, its schema, its small allocations, and what its
/// log keeps. The statements on it must not be compiled.
pub(super) fn rest(connection: &Connection) -> Result<()> {
    connection.flush_prepared_statement_cache();
    // SQLite has no other statement for it. It changes nothing in the file.
    connection.execute_batch("PRAGMA writable_schema = RESET").map_err(failure)?;
    // SAFETY: the connection is borrowed, so no other thread uses it.
    unsafe { ffi::sqlite3_db_release_memory(connection.handle()) };
    set_lookaside(connection, (0, 0));
    log_file::rest(connection);
    Ok(())
}

/// Gives the free memory of the process back to the system, where the allocator does that on request.
pub fn give_back_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it has no conditions.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Maps the beginning of the file into memory, for a connection that reads. If another program shortens the file,
/// or the disk fails, a read of the mapping ends the process by a signal: only callers that accept that ask
/// for it.
pub(super) fn map(connection: &Connection, memory: PageMemory) -> Result<()> {
    match memory.mmap_bytes() {
        0 => Ok(()),
        bytes => connection.pragma_update(None, "mmap_size", bytes.cast_signed()).map_err(failure),
    }
}

/// Rejects a connection that SQLite opened read-only as a fallback. SQLite falls back for any
/// reason: a writer opened while no file descriptor was free could never write.
///
/// # Errors
/// `Unavailable` for files that this process may write; for others SQLite reports the error.
#[cfg(unix)]
fn refuse_fallback(path: &Path, connection: &Connection, busy: Duration) -> Result<()> {
    let is_readonly = connection.is_readonly("main").map_err(failure)?;
    // SQLite reports a read-only log before it tries to lock.
    connection.busy_timeout(Duration::ZERO).map_err(failure)?;
    let begun = connection.execute_batch("BEGIN IMMEDIATE; ROLLBACK");
    connection.busy_timeout(busy).map_err(failure)?;
    let code = begun.err().and_then(|error| error.sqlite_error_code());
    let is_readonly = is_readonly || code == Some(ErrorCode::ReadOnly);
    if !is_readonly || is_denied(path) || is_denied(&log_of(path)) {
        return Ok(());
    }
    let reason = "the file could not be opened for writing, though it may be written; open it again, \
                  and see whether the process has used up its file descriptors (ulimit -n)";
    Err(Error::unavailable(reason))
}

/// Whether the file exists and this process may not write it.
#[cfg(unix)]
fn is_denied(path: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let Ok(name) = std::ffi::CString::new(path.as_os_str().as_bytes()) else { return true };
    // SAFETY: the name is a C string.
    path.exists() && unsafe { libc::access(name.as_ptr(), libc::W_OK) } != 0
}

/// Refuses to write a file that has several hard links. The log lies beside the name by which a
/// file is opened, so commits by one name are invisible by the other, and get overwritten.
///
/// # Errors
/// `Denied` for a file with more than one hard link.
#[cfg(unix)]
pub(super) fn refuse_links(path: &Path) -> Result<()> {
    use std::os::unix::fs::MetadataExt;
    let links =
        std::fs::metadata(path).map_or(1, |file| if file.is_file() { file.nlink() } else { 1 });
    if links <= 1 {
        return Ok(());
    }
    Err(Error::denied(format!(
        "the file has {links} hard links, and writes by one name lose those by another, since \
         each name has a log of its own: remove the other names (find them with find -samefile), \
         or copy the file and open the copy; readonly: true opens it as it is"
    )))
}

/// Enables WAL mode. The file stores it, so the file of another program is refused before. SQLite does not wait for locks
/// during this.
///
/// # Errors
/// As [`layout::refuse_others`].
fn use_log(connection: &Connection, busy: Duration) -> Result<()> {
    let deadline = Instant::now() + busy;
    loop {
        match try_log(connection) {
            Ok(used) => return used,
            Err(error) => {
                let locked = error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy);
                if !locked || Instant::now() >= deadline {
                    return Err(failure(error));
                }
            }
        }
        std::thread::sleep(PAUSE);
    }
}

/// One attempt: an error of SQLite, or whether the file is refused.
fn try_log(connection: &Connection) -> rusqlite::Result<Result<()>> {
    let mode: String = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
    if mode == "wal" {
        return Ok(Ok(()));
    }
    let ours = layout::refuse_others(connection)?;
    if ours.is_ok() {
        connection.pragma_update(None, "journal_mode", "wal")?;
    }
    Ok(ours)
}
