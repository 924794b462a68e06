//! Checks whether a held snapshot is still current, by comparing 48 bytes of shared memory.
//!
//! Every commit, by any process, rewrites the header at the start of the wal-index (the `-shm`
//! file; SQLite's file format page, "WAL-Index Header"): a change counter, the length of the log,
//! its salts and checksums. A copy is taken *before* a read transaction begins. While the header
//! equals the copy, nothing was committed since, and the transaction is current.
//!
//! The pointer is SQLite's own mapping, obtained through the VFS. Opening the `-shm` file directly
//! would drop the POSIX locks of the process when it is closed.

use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::{Connection, ffi};

/// The first copy of the header, in words.
pub(super) type Header = [u64; WORDS];
const WORDS: usize = 6;

/// Size of a wal-index region as SQLite maps it.
const REGION_BYTES: i32 = 32_768;

/// SQLite's mapping of the wal-index. Must be dropped before its connection.
#[derive(Clone, Copy)]
pub(super) struct WalIndex(*const AtomicU64);

// SAFETY: the mapping is shared memory, which this type only reads, with atomic loads.
unsafe impl Send for WalIndex {}
// SAFETY: as above.
unsafe impl Sync for WalIndex {}

impl WalIndex {
    /// The mapping of a connection that has read in WAL mode; `None` if there is none (a database
    /// in another mode, or a read-only medium).
    pub(super) fn of(connection: &Connection) -> Option<Self> {
        let file = main_file(connection)?;
        let mut region: *mut std::ffi::c_void = ptr::null_mut();
        // SAFETY: `file` is the open main file of the connection, with SQLite's methods; region 0
        // is mapped as long as the connection uses the log.
        unsafe {
            let methods = (*file).pMethods.as_ref()?;
            let map = methods.xShmMap.filter(|_| methods.iVersion >= 2)?;
            // 0: map an existing region, do not extend it.
            if map(file, 0, REGION_BYTES, 0, &mut region) != ffi::SQLITE_OK {
                return None;
            }
        }
        (!region.is_null()).then_some(Self(region.cast_const().cast()))
    }

    /// Number of frames in the log, one page each.
    pub(super) fn frames(self) -> u32 {
        // At the start of the third word. A torn read gives a wrong number once.
        (self.header()[2] & u64::from(u32::MAX)) as u32
    }

    /// The current header. A header read while it is being rewritten equals no other.
    pub(super) fn header(self) -> Header {
        // SAFETY: the region has 32 KiB, is page-aligned and mapped (see `of`).
        std::array::from_fn(|word| unsafe { (*self.0.add(word)).load(Ordering::Acquire) })
    }
}

/// The open main file of the connection.
fn main_file(connection: &Connection) -> Option<*mut ffi::sqlite3_file> {
    let mut file: *mut ffi::sqlite3_file = ptr::null_mut();
    // SAFETY: the file control writes one pointer to `file`; "main" is a C string.
    let code = unsafe {
        ffi::sqlite3_file_control(
            connection.handle(),
            c"main".as_ptr(),
            ffi::SQLITE_FCNTL_FILE_POINTER,
            ptr::from_mut(&mut file).cast(),
        )
    };
    (code == ffi::SQLITE_OK && !file.is_null()).then_some(file)
}

/// Reads bytes of the main file, ignoring the log; returns SQLite's code.
pub(super) fn read_main_file(connection: &Connection, at: i64, out: &mut [u8]) -> std::ffi::c_int {
    let (Some(file), Ok(length)) = (main_file(connection), i32::try_from(out.len())) else {
        return ffi::SQLITE_ERROR;
    };
    // SAFETY: `file` is the open main file of the connection, with SQLite's methods, and `out` has
    // room for the bytes.
    unsafe {
        let read = (*file).pMethods.as_ref().and_then(|methods| methods.xRead);
        read.map_or(ffi::SQLITE_ERROR, |read| read(file, out.as_mut_ptr().cast(), length, at))
    }
}
