//! The methods of the file of a log.
//!
//! Duty: gather writes, write them with one call, and let the file grow in steps.
//! Invariant: SQLite learns of a failed write from the call that it made to write or to sync, after which it
//! rolls its transaction back, or the bytes stay, and the next such call tries again.
//! Never: a panic, which would cross C.

use std::alloc::Layout;
use std::ffi::{c_int, c_void};
use std::{ptr, slice};

use rusqlite::{Connection, ffi};

use super::gathered::{Gathered, Gathering, grown};

/// The file of a log. The file of the default VFS follows it in memory.
#[repr(C)]
struct LogFile {
    file: ffi::sqlite3_file,
    usual: *mut ffi::sqlite3_file,
    gathered: Gathered,
    /// A length that the file has at least had; another process may have shortened it.
    length: u64,
    beginning: Beginning,
}

/// How much of a log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beginning {
    /// No file of this name has been a log before, and nothing was written to it by this connection.
    New,
    /// The header of a new one.
    Header,
    /// It may have frames, or there may have been a log of this name before.
    Over,
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 1,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: None,
    xShmLock: None,
    xShmBarrier: None,
    xShmUnmap: None,
    xFetch: None,
    xUnfetch: None,
};

/// Bytes of the header of a log.
const HEADER_BYTES: usize = 32;

/// Bytes of one call of the default VFS: that of Unix takes the length modulo 128 KiB, since SQLite itself
/// writes a page at most.
const WRITE_BYTES_MAX: u32 = 64 * 1024;

/// The place of the default VFS's file.
const USUAL_AT: usize = Layout::new::<LogFile>().pad_to_align().size();

/// The size of a file with one of the default VFS behind it.
pub(super) fn size_with(usual: c_int) -> Option<c_int> {
    usual.checked_add(c_int::try_from(USUAL_AT).ok()?)
}

/// Opens the file of a log.
///
/// # Safety
/// `file` must have the room of [`size_with`].
pub(super) unsafe fn open(
    file: *mut ffi::sqlite3_file,
    open_usual: impl FnOnce(*mut ffi::sqlite3_file) -> c_int,
) -> c_int {
    // SAFETY: the room has both files.
    unsafe {
        let usual = file.byte_add(USUAL_AT);
        (*usual).pMethods = ptr::null();
        let code = open_usual(usual);
        if (*usual).pMethods.is_null() {
            // SQLite closes only files with methods.
            (*file).pMethods = ptr::null();
        } else {
            let own = ffi::sqlite3_file { pMethods: &raw const METHODS };
            let log = LogFile {
                file: own,
                usual,
                gathered: Gathered::new(),
                length: 0,
                beginning: Beginning::Over,
            };
            file.cast::<LogFile>().write(log);
        }
        code
    }
}

/// Calls a method of the default VFS's file, without which the answer is an error.
macro_rules! usual {
    ($log:expr, $method:ident $(, $argument:expr)*) => {{
        let usual = $log.usual;
        match (*(*usual).pMethods).$method {
            Some(method) => method(usual $(, $argument)*),
            None => ffi::SQLITE_IOERR,
        }
    }};
}

/// Calls `job` with the log of this connection, unless it has another VFS, or has not read yet.
fn with_log(connection: &Connection, job: impl FnOnce(&mut LogFile)) {
    let mut file: *mut ffi::sqlite3_file = ptr::null_mut();
    // SAFETY: the file control writes one pointer to `file`; "main" is a C string. A file with these
    // methods is a `LogFile`, which only the thread of the connection uses.
    unsafe {
        let code = ffi::sqlite3_file_control(
            connection.handle(),
            c"main".as_ptr(),
            ffi::SQLITE_FCNTL_JOURNAL_POINTER,
            ptr::from_mut(&mut file).cast(),
        );
        let is_own = code == ffi::SQLITE_OK
            && !file.is_null()
            && ptr::eq((*file).pMethods, &raw const METHODS);
        if is_own {
            job(&mut *file.cast::<LogFile>());
        }
    }
}

/// Sets which writes to the log of this connection wait. Frames wait for a sync only on media where SQLite
/// writes nothing after it: it pads the log up to the end of a sector on others.
pub(super) fn set_gathering(connection: &Connection, gathering: Gathering) {
    with_log(connection, |log| {
        // SAFETY: the file of the log is open.
        let characteristics = unsafe { usual!(log, xDeviceCharacteristics) };
        let is_safe = characteristics & ffi::SQLITE_IOCAP_POWERSAFE_OVERWRITE != 0;
        log.gathered.gathering = if is_safe { gathering } else { Gathering::Off };
    });
}

/// No file of the log's name has been a log before.
pub(super) fn begin_new(connection: &Connection) {
    with_log(connection, |log| log.beginning = Beginning::New);
}

/// Gives back the memory for writes that wait, while none does.
pub(super) fn rest(connection: &Connection) {
    with_log(connection, |log| log.gathered.give_back());
}

/// The results are SQLite's codes.
impl LogFile {
    fn write(&mut self, bytes: &[u8], at: u64) -> c_int {
        let is_first = self.beginning == Beginning::New
            && (at, bytes.len()) == (0, HEADER_BYTES)
            && self.length_now() == Some(0);
        self.beginning = if is_first { Beginning::Header } else { Beginning::Over };
        if self.gathered.gathering == Gathering::Off && self.gathered.is_empty() {
            return self.write_now(bytes, at);
        }
        if !self.gathered.continues_at(at) {
            let code = self.flush_or_drop();
            if code != ffi::SQLITE_OK {
                return code;
            }
        }
        match self.gathered.add(at, bytes) {
            Some(true) => ffi::SQLITE_OK,
            Some(false) => self.flush_or_drop(),
            None => ffi::SQLITE_NOMEM,
        }
    }

    /// Writes what waits, for a call after whose failure SQLite rolls the transaction back.
    fn flush_or_drop(&mut self) -> c_int {
        let code = self.flush();
        self.gathered.clear();
        code
    }

    /// Writes what waits.
    fn flush(&mut self) -> c_int {
        if self.gathered.is_empty() {
            return ffi::SQLITE_OK;
        }
        let code = match self.new_length() {
            Some(length) if self.write_grown(length) => ffi::SQLITE_OK,
            _ => self.write_now(self.gathered.bytes(), self.gathered.at()),
        };
        if code == ffi::SQLITE_OK {
            self.length = self.length.max(self.gathered.end());
            self.gathered.clear();
        }
        code
    }

    /// The length that the file grows to with what waits; `None` if it is long enough.
    fn new_length(&mut self) -> Option<u64> {
        let end = self.gathered.end();
        // At the beginning of the log, another connection may have shortened it.
        if end > self.length || self.gathered.at() == 0 {
            self.length = self.length_now()?;
        }
        (end > self.length).then(|| grown(self.length, end))
    }

    /// Writes what waits, and zeros up to a length; returns whether there was room for it.
    fn write_grown(&mut self, length: u64) -> bool {
        let (at, usual) = (self.gathered.at(), self.usual);
        let write = |bytes: &[u8]| write_to(usual, bytes, at);
        let is_written = self.gathered.with_zeros_to(length, write) == Some(ffi::SQLITE_OK);
        if is_written {
            self.length = length;
        }
        is_written
    }

    fn write_now(&self, bytes: &[u8], at: u64) -> c_int {
        write_to(self.usual, bytes, at)
    }

    fn length_now(&self) -> Option<u64> {
        let mut length: ffi::sqlite3_int64 = 0;
        // SAFETY: the file is open.
        let code = unsafe { usual!(self, xFileSize, &raw mut length) };
        u64::try_from(length).ok().filter(|_| code == ffi::SQLITE_OK)
    }
}

/// Writes to an open file of the default VFS; returns SQLite's code.
fn write_to(usual: *mut ffi::sqlite3_file, bytes: &[u8], at: u64) -> c_int {
    let Ok(mut at) = i64::try_from(at) else { return ffi::SQLITE_IOERR_WRITE };
    for part in bytes.chunks(WRITE_BYTES_MAX as usize) {
        let length = part.len() as c_int;
        // SAFETY: the file is open, and the bytes are there during the call.
        let code = unsafe {
            let write = (*(*usual).pMethods).xWrite;
            write.map_or(ffi::SQLITE_IOERR, |write| write(usual, part.as_ptr().cast(), length, at))
        };
        if code != ffi::SQLITE_OK {
            return code;
        }
        at += i64::from(length);
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    from: *const c_void,
    length: c_int,
    at: ffi::sqlite3_int64,
) -> c_int {
    let (Ok(length), Ok(at)) = (usize::try_from(length), u64::try_from(at)) else {
        return ffi::SQLITE_IOERR_WRITE;
    };
    // SAFETY: SQLite calls the methods with a file that they have opened, and gives the bytes.
    unsafe {
        let bytes = slice::from_raw_parts(from.cast::<u8>(), length);
        (*file.cast::<LogFile>()).write(bytes, at)
    }
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, length: ffi::sqlite3_int64) -> c_int {
    // SAFETY: as for `write`.
    unsafe {
        let log = &mut *file.cast::<LogFile>();
        let code = log.flush();
        if code != ffi::SQLITE_OK {
            return code;
        }
        log.length = 0;
        usual!(log, xTruncate, length)
    }
}

/// What waits belongs to no commit.
unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: as for `write`; SQLite uses the file no more.
    unsafe {
        let code = usual!(*file.cast::<LogFile>(), xClose);
        file.cast::<LogFile>().drop_in_place();
        code
    }
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: as for `write`.
    unsafe {
        let log = &mut *file.cast::<LogFile>();
        // SQLite syncs the header of a log before its first frame: otherwise frames of the log before, which the
        // new ones do not cover yet, could follow the old header after a power loss. A new log has none.
        if log.beginning == Beginning::Header {
            return match log.gathered.gathering {
                Gathering::Commits => ffi::SQLITE_OK,
                Gathering::Frames | Gathering::Off => log.flush_or_drop(),
            };
        }
        match log.flush_or_drop() {
            ffi::SQLITE_OK => usual!(log, xSync, flags),
            code => code,
        }
    }
}

/// SQLite reads frames of earlier commits, and those of its transaction that it had no memory for.
unsafe extern "C" fn read(
    file: *mut ffi::sqlite3_file,
    out: *mut c_void,
    length: c_int,
    at: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: as for `write`.
    unsafe {
        let log = &mut *file.cast::<LogFile>();
        let code = if log.gathered.overlaps(at, length) { log.flush() } else { ffi::SQLITE_OK };
        match code {
            ffi::SQLITE_OK => usual!(log, xRead, out, length, at),
            code => code,
        }
    }
}

unsafe extern "C" fn file_size(
    file: *mut ffi::sqlite3_file,
    out: *mut ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: as for `write`.
    unsafe {
        let log = &mut *file.cast::<LogFile>();
        match log.flush() {
            ffi::SQLITE_OK => usual!(log, xFileSize, out),
            code => code,
        }
    }
}

/// A method that is that of the default VFS.
macro_rules! forwarding {
    ($name:ident, $method:ident $(, $argument:ident: $type:ty)*) => {
        unsafe extern "C" fn $name(file: *mut ffi::sqlite3_file $(, $argument: $type)*) -> c_int {
            // SAFETY: as for `write`; the arguments are those of SQLite's call.
            unsafe { usual!(*file.cast::<LogFile>(), $method $(, $argument)*) }
        }
    };
}

forwarding!(lock, xLock, level: c_int);
forwarding!(unlock, xUnlock, level: c_int);
forwarding!(check_reserved_lock, xCheckReservedLock, out: *mut c_int);
forwarding!(file_control, xFileControl, operation: c_int, argument: *mut c_void);
forwarding!(sector_size, xSectorSize);
forwarding!(device_characteristics, xDeviceCharacteristics);
