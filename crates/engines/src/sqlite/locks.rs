//! Replaces SQLite's process-wide file locks with locks of an open file description (OFD).
//!
//! Duty: give the bundled SQLite an `open`, a `close` and an `fcntl` that turn its POSIX locks into
//! OFD locks if the kernel and the file system support them.
//! Invariant: at any time, all locks of this copy of SQLite on one main file belong to one open
//! file description.
//! Never: wait for a lock; lock a file with both kinds.
//!
//! A POSIX lock belongs to the process. It does not exclude a second SQLite in the process (another
//! copy of openkv, `better-sqlite3`, `node:sqlite`), and it is lost when that one closes any
//! descriptor of the file. An OFD lock conflicts with all others, of any process and of both kinds,
//! and ends with its open file description.
//!
//! SQLite counts the locks of its connections for each inode, and releases through the descriptor
//! of one connection what it locked through that of another; [`main_file`] directs all of them to
//! one descriptor. SQLite opens one descriptor of the `-shm` file for each inode and releases its
//! locks by closing it, so its locks stay on that descriptor.

use std::collections::HashSet;
use std::ffi::{CStr, c_char, c_int, c_short, c_void};
use std::os::fd::RawFd;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{LazyLock, Once, OnceLock};

use parking_lot::Mutex;
use rusqlite::ffi;

#[cfg(any(target_vendor = "apple", test))]
mod behaviour;
mod copies;
mod main_file;
mod support;
#[cfg(test)]
mod tests;
mod unclosed;

pub(super) use copies::FileClaim;

/// The kinds of locks, whose type differs between systems.
const READ: c_short = libc::F_RDLCK as c_short;
const WRITE: c_short = libc::F_WRLCK as c_short;
const UNLOCKED: c_short = libc::F_UNLCK as c_short;

type OpenCall = unsafe extern "C" fn(*const c_char, c_int, c_int) -> c_int;

/// SQLite's original `open`.
static OPEN: OnceLock<OpenCall> = OnceLock::new();

/// The open descriptors of files without OFD locks.
static WITHOUT: LazyLock<Mutex<HashSet<RawFd>>> = LazyLock::new(Mutex::default);

/// Whether there has been one. Most processes have none and skip the lookup.
static ANY_WITHOUT: AtomicBool = AtomicBool::new(false);

/// How often SQLite has found no free descriptor.
static REFUSED: AtomicU64 = AtomicU64::new(0);

/// How often SQLite has opened no file because this process, or the machine, had no descriptor left.
pub(super) fn refused() -> u64 {
    REFUSED.load(Ordering::Relaxed)
}

/// Must be called before the process opens its first connection to a file.
pub(super) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        if !replace_calls() {
            tracing::warn!("SQLite's locks stay those of the process");
        }
    });
}

/// Puts our functions into SQLite's table; returns whether all of them are set.
fn replace_calls() -> bool {
    // SAFETY: the default VFS lives as long as the library, which it initializes; its methods take
    // the VFS and a C string. SQLite has no file open yet. `open` in SQLite's table has the type
    // `OpenCall`, by the cast with which SQLite calls it.
    unsafe {
        let vfs = ffi::sqlite3_vfs_find(ptr::null());
        let Some(methods) = vfs.as_ref() else { return false };
        let (Some(get), Some(set)) = (methods.xGetSystemCall, methods.xSetSystemCall) else {
            return false;
        };
        let Some(open) = get(vfs, c"open".as_ptr()) else { return false };
        let _first = OPEN.set(std::mem::transmute::<unsafe extern "C" fn(), OpenCall>(open));
        let calls = [
            (c"open", own_open as *const c_void),
            (c"close", own_close as *const c_void),
            (c"fcntl", own_fcntl as *const c_void),
        ];
        calls.into_iter().all(|(name, call)| {
            let call = std::mem::transmute::<*const c_void, unsafe extern "C" fn()>(call);
            set(vfs, name.as_ptr(), Some(call)) == ffi::SQLITE_OK
        })
    }
}

/// Locks a whole main file against every connection, until the file is closed. Returns whether none
/// had it open.
pub(super) fn exclude(file: &std::fs::File) -> bool {
    use std::os::fd::AsRawFd;
    let file = file.as_raw_fd();
    let ofd = support::has_ofd_locks(file);
    let command = if ofd { libc::F_OFD_SETLK } else { libc::F_SETLK };
    call(file, command, &mut over(WRITE, main_file::ALL)).is_ok()
}

/// Device and inode number of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Inode(u64, u64);

impl Inode {
    fn of(file: RawFd) -> Result<Self, c_int> {
        // SAFETY: `found` has room for the result.
        Self::stat_of(|found| unsafe { libc::fstat(file, found) }).ok_or_else(failed)
    }

    /// The inode at a path; does not follow a symbolic link.
    fn at(path: &CStr) -> Option<Self> {
        // SAFETY: the path is a C string, and `found` has room for the result.
        Self::stat_of(|found| unsafe { libc::lstat(path.as_ptr(), found) })
    }

    fn stat_of(ask: impl FnOnce(*mut libc::stat) -> c_int) -> Option<Self> {
        let mut found = std::mem::MaybeUninit::<libc::stat>::uninit();
        if ask(found.as_mut_ptr()) != 0 {
            return None;
        }
        // SAFETY: the successful call has filled it in.
        let found = unsafe { found.assume_init() };
        #[allow(clippy::unnecessary_cast, reason = "the types differ between systems")]
        Some(Self(found.st_dev as u64, found.st_ino as u64))
    }
}

/// Calls SQLite's `open`, and records the descriptors of files without OFD locks.
unsafe extern "C" fn own_open(path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    let Some(open) = OPEN.get() else { return -1 };
    if let Some(file) = unclosed::reopen(path, flags) {
        return file;
    }
    // SAFETY: the arguments are those of SQLite's call.
    let file = unsafe { open(path, flags, mode) };
    if file < 0 && matches!(failed(), libc::EMFILE | libc::ENFILE) {
        REFUSED.fetch_add(1, Ordering::Relaxed);
    }
    if file >= 0 && !support::has_ofd_locks(file) {
        ANY_WITHOUT.store(true, Ordering::Release);
        WITHOUT.lock().insert(file);
    }
    file
}

unsafe extern "C" fn own_close(file: c_int) -> c_int {
    if ANY_WITHOUT.load(Ordering::Acquire) && WITHOUT.lock().remove(&file) {
        // SAFETY: SQLite closes its own descriptor.
        return unsafe { libc::close(file) };
    }
    main_file::closing(file);
    unclosed::close(file)
}

/// SQLite calls it with two or three arguments, as a variadic function. The third argument has the
/// position of an ordinary third one, except on Apple's ARM: there it is on the stack, at the
/// position of an ordinary ninth one.
#[cfg(not(all(target_vendor = "apple", target_arch = "aarch64")))]
unsafe extern "C" fn own_fcntl(file: c_int, command: c_int, argument: *mut c_void) -> c_int {
    // SAFETY: the arguments are those of SQLite's call.
    unsafe { control(file, command, argument) }
}

#[cfg(all(target_vendor = "apple", target_arch = "aarch64"))]
#[expect(clippy::too_many_arguments, reason = "eight of them are in registers")]
unsafe extern "C" fn own_fcntl(
    file: c_int,
    command: c_int,
    _x2: usize,
    _x3: usize,
    _x4: usize,
    _x5: usize,
    _x6: usize,
    _x7: usize,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: the arguments are those of SQLite's call.
    unsafe { control(file, command, argument) }
}

/// # Safety
/// As `fcntl`.
unsafe fn control(file: RawFd, command: c_int, argument: *mut c_void) -> c_int {
    // SQLite is compiled without waiting locks (SQLITE_ENABLE_SETLK_TIMEOUT).
    let ofd = match command {
        libc::F_SETLK => libc::F_OFD_SETLK,
        libc::F_GETLK => libc::F_OFD_GETLK,
        // SAFETY: the arguments are those of SQLite's call.
        _ => return unsafe { libc::fcntl(file, command, argument) },
    };
    if ANY_WITHOUT.load(Ordering::Acquire) && WITHOUT.lock().contains(&file) {
        // SAFETY: the arguments are those of SQLite's call.
        return unsafe { libc::fcntl(file, command, argument) };
    }
    // SAFETY: the argument of these commands is a lock of the caller.
    let Some(lock) = (unsafe { argument.cast::<libc::flock>().as_mut() }) else {
        // SAFETY: the arguments are those of SQLite's call, which the system rejects.
        return unsafe { libc::fcntl(file, command, argument) };
    };
    // OFD locks require 0 here, which SQLite does not set.
    lock.l_pid = 0;
    let done = if main_file::is_of(lock) {
        main_file::set_or_get(file, ofd, lock)
    } else {
        call(file, ofd, lock)
    };
    match done {
        Ok(()) => 0,
        Err(code) => {
            set_errno(code);
            -1
        }
    }
}

/// Calls `fcntl` with a lock; an error is its `errno`.
fn call(file: RawFd, command: c_int, lock: &mut libc::flock) -> Result<(), c_int> {
    // SAFETY: the system checks the descriptor, and `lock` is a valid lock.
    match unsafe { libc::fcntl(file, command, ptr::from_mut(lock)) } {
        -1 => Err(failed()),
        _ => Ok(()),
    }
}

/// The `errno` of the last call.
fn failed() -> c_int {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

/// A lock of a range, given by start and length.
fn over(kind: c_short, (start, length): (libc::off_t, libc::off_t)) -> libc::flock {
    // SAFETY: all of its fields are integers.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind;
    lock.l_whence = libc::SEEK_SET as c_short;
    (lock.l_start, lock.l_len) = (start, length);
    lock
}

fn set_errno(code: c_int) {
    #[cfg(target_os = "linux")]
    use libc::__errno_location as place;
    #[cfg(target_vendor = "apple")]
    use libc::__error as place;
    // SAFETY: it points to this thread's `errno`.
    unsafe { *place() = code };
}
