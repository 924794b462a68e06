//! Records what a process does to one database file and its log, in order, for a simulated power
//! loss.
//!
//! Loaded into the process with `LD_PRELOAD` (Linux). `WRITE_LOG_OF` names the database file,
//! `WRITE_LOG_TO` the write log. A record: u8 kind, u8 file, u64 offset, u32 length, bytes;
//! integers little-endian. Kinds: 1 write, 2 truncate (to offset), 3 sync, finished, 4 unlink, 5 a
//! line to standard output, 6 a file without a name gets this one. Files: 0 database, 1 `-wal`,
//! 2 `-journal`, 3 their directory, 4 a file in it without a name.
//!
//! One lock spans an operation and its record, so the write log's order is the order in which
//! things happened.

#![cfg(target_os = "linux")]

use std::env;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::sync::{LazyLock, Mutex, MutexGuard};

const WRITE: u8 = 1;
const TRUNCATE: u8 = 2;
const SYNC: u8 = 3;
const UNLINK: u8 = 4;
const SAID: u8 = 5;
const LINK: u8 = 6;

const STDOUT: c_int = 1;
const RTLD_NEXT: *mut c_void = -1_isize as *mut c_void;
const SEEK_CUR: c_int = 1;
/// O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC
const APPEND: c_int = 0o1 | 0o100 | 0o2000 | 0o2_000_000;

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn lseek64(fd: c_int, offset: i64, whence: c_int) -> i64;
    fn open64(path: *const c_char, flags: c_int, mode: c_int) -> c_int;
    fn readlink(path: *const c_char, to: *mut c_char, size: usize) -> isize;
}

type Write = unsafe extern "C" fn(c_int, *const c_void, usize) -> isize;
type PWrite = unsafe extern "C" fn(c_int, *const c_void, usize, i64) -> isize;
type Truncate = unsafe extern "C" fn(c_int, i64) -> c_int;
type Sync = unsafe extern "C" fn(c_int) -> c_int;
type Unlink = unsafe extern "C" fn(*const c_char) -> c_int;
type Link = unsafe extern "C" fn(c_int, *const c_char, c_int, *const c_char, c_int) -> c_int;

/// The C library's own functions.
struct Real {
    write: Write,
    pwrite: PWrite,
    truncate: Truncate,
    fsync: Sync,
    fdatasync: Sync,
    unlink: Unlink,
    linkat: Link,
}

static REAL: LazyLock<Real> = LazyLock::new(|| {
    // SAFETY: these are the C library's functions of these names and signatures.
    unsafe {
        let find = |name: &CStr| dlsym(RTLD_NEXT, name.as_ptr());
        Real {
            write: std::mem::transmute::<*mut c_void, Write>(find(c"write")),
            pwrite: std::mem::transmute::<*mut c_void, PWrite>(find(c"pwrite64")),
            truncate: std::mem::transmute::<*mut c_void, Truncate>(find(c"ftruncate64")),
            fsync: std::mem::transmute::<*mut c_void, Sync>(find(c"fsync")),
            fdatasync: std::mem::transmute::<*mut c_void, Sync>(find(c"fdatasync")),
            unlink: std::mem::transmute::<*mut c_void, Unlink>(find(c"unlink")),
            linkat: std::mem::transmute::<*mut c_void, Link>(find(c"linkat")),
        }
    }
});

struct WriteLog {
    to: c_int,
    of: Vec<u8>,
}

static WRITE_LOG: LazyLock<Option<Mutex<WriteLog>>> = LazyLock::new(|| {
    let of = env::var_os("WRITE_LOG_OF")?.as_bytes().to_vec();
    let to = CString::new(env::var_os("WRITE_LOG_TO")?.as_bytes()).ok()?;
    // SAFETY: a C string and constant flags.
    let to = unsafe { open64(to.as_ptr(), APPEND, 0o644) };
    (to >= 0).then(|| Mutex::new(WriteLog { to, of }))
});

impl WriteLog {
    /// Which of the files a path is.
    fn file(&self, path: &[u8]) -> Option<u8> {
        let folder = self.of.rsplitn(2, |byte| *byte == b'/').nth(1)?;
        match path.strip_prefix(folder) {
            Some(b"") => return Some(3),
            // As /proc has a file that was opened with O_TMPFILE.
            Some([b'/', b'#', ..]) => return Some(4),
            _ => {}
        }
        match path.strip_prefix(self.of.as_slice())? {
            b"" => Some(0),
            b"-wal" => Some(1),
            b"-journal" => Some(2),
            _ => None,
        }
    }

    fn file_of(&self, fd: c_int) -> Option<u8> {
        let link = CString::new(format!("/proc/self/fd/{fd}")).ok()?;
        let mut path = [0_u8; 4096];
        // SAFETY: the buffer is as long as said.
        let len = unsafe { readlink(link.as_ptr(), path.as_mut_ptr().cast(), path.len()) };
        let path = path.get(..usize::try_from(len).ok()?)?;
        self.file(OsStr::from_bytes(path).as_bytes())
    }

    fn record(&self, kind: u8, file: u8, offset: i64, bytes: &[u8]) {
        let mut record = vec![kind, file];
        record.extend_from_slice(&offset.to_le_bytes());
        record.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        record.extend_from_slice(bytes);
        // SAFETY: the write log's own descriptor, and the bytes of a vector.
        unsafe { (REAL.write)(self.to, record.as_ptr().cast(), record.len()) };
    }
}

fn log() -> Option<MutexGuard<'static, WriteLog>> {
    WRITE_LOG.as_ref()?.lock().ok()
}

/// What an operation wrote, once it has said how much.
unsafe fn written<'b>(bytes: *const c_void, count: isize) -> &'b [u8] {
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: the caller's buffer has at least as many bytes as were written from it.
    unsafe { std::slice::from_raw_parts(bytes.cast(), count) }
}

/// # Safety
/// As `write(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(fd: c_int, bytes: *const c_void, count: usize) -> isize {
    let Some(log) = log() else { return unsafe { (REAL.write)(fd, bytes, count) } };
    let file = if fd == STDOUT { None } else { log.file_of(fd) };
    let offset = if file.is_some() { unsafe { lseek64(fd, 0, SEEK_CUR) } } else { 0 };
    let done = unsafe { (REAL.write)(fd, bytes, count) };
    if fd == STDOUT {
        log.record(SAID, 0, 0, unsafe { written(bytes, done) });
    } else if let Some(file) = file {
        log.record(WRITE, file, offset, unsafe { written(bytes, done) });
    }
    done
}

/// # Safety
/// As `pwrite(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwrite64(fd: c_int, bytes: *const c_void, count: usize, at: i64) -> isize {
    let Some(log) = log() else { return unsafe { (REAL.pwrite)(fd, bytes, count, at) } };
    let done = unsafe { (REAL.pwrite)(fd, bytes, count, at) };
    if let Some(file) = log.file_of(fd) {
        log.record(WRITE, file, at, unsafe { written(bytes, done) });
    }
    done
}

/// # Safety
/// As `pwrite(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwrite(fd: c_int, bytes: *const c_void, count: usize, at: i64) -> isize {
    unsafe { pwrite64(fd, bytes, count, at) }
}

/// # Safety
/// As `ftruncate(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ftruncate64(fd: c_int, length: i64) -> c_int {
    let Some(log) = log() else { return unsafe { (REAL.truncate)(fd, length) } };
    let done = unsafe { (REAL.truncate)(fd, length) };
    if let Some(file) = log.file_of(fd) {
        log.record(TRUNCATE, file, length, &[]);
    }
    done
}

/// # Safety
/// As `ftruncate(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ftruncate(fd: c_int, length: i64) -> c_int {
    unsafe { ftruncate64(fd, length) }
}

unsafe fn sync(real: Sync, fd: c_int) -> c_int {
    let Some(log) = log() else { return unsafe { real(fd) } };
    let done = unsafe { real(fd) };
    if let Some(file) = log.file_of(fd) {
        log.record(SYNC, file, 0, &[]);
    }
    done
}

/// # Safety
/// As `fsync(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fsync(fd: c_int) -> c_int {
    unsafe { sync(REAL.fsync, fd) }
}

/// # Safety
/// As `fdatasync(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdatasync(fd: c_int) -> c_int {
    unsafe { sync(REAL.fdatasync, fd) }
}

/// # Safety
/// As `unlink(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    let Some(log) = log() else { return unsafe { (REAL.unlink)(path) } };
    let done = unsafe { (REAL.unlink)(path) };
    // SAFETY: the caller's path is a C string.
    if let Some(file) = log.file(unsafe { CStr::from_ptr(path) }.to_bytes()) {
        log.record(UNLINK, file, 0, &[]);
    }
    done
}

/// # Safety
/// As `linkat(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn linkat(
    from_folder: c_int,
    from: *const c_char,
    to_folder: c_int,
    to: *const c_char,
    flags: c_int,
) -> c_int {
    let link = || unsafe { (REAL.linkat)(from_folder, from, to_folder, to, flags) };
    let Some(log) = log() else { return link() };
    let done = link();
    // SAFETY: the caller's path is a C string.
    if let (0, Some(file)) = (done, log.file(unsafe { CStr::from_ptr(to) }.to_bytes())) {
        log.record(LINK, file, 0, &[]);
    }
    done
}
