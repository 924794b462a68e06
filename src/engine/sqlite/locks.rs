//! SQLite's file locks as locks of an open file description instead of locks of the process.
//!
//! Duty: give the bundled SQLite an `open`, a `close` and an `fcntl` that turn its POSIX locks into
//! OFD locks where the kernel and the file system have them.
//! Invariant: at any time, all that this copy of SQLite has locked of one main file is locked
//! through one open file description.
//! Never: wait for a lock; lock a file with both kinds.
//!
//! A POSIX lock belongs to the process. It does not exclude a second SQLite in the process (another
//! copy of openkv, `better-sqlite3`, `node:sqlite`), and it is gone once that one closes any
//! descriptor of the file. An OFD lock conflicts with all others, of this process and of any other,
//! of both kinds, and ends with its open file description.
//!
//! SQLite counts the locks of its connections for each inode, and releases through one connection's
//! descriptor what was locked through another's. [`main_file`] brings them together. The `-shm` file
//! has one descriptor for each inode, and SQLite leaves it to the closing to release what is locked:
//! its locks go through the descriptor that SQLite names.

use std::collections::HashSet;
use std::ffi::{CStr, c_char, c_int, c_short, c_void};
use std::os::fd::RawFd;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Once, OnceLock};

use parking_lot::Mutex;
use rusqlite::ffi;

#[cfg(any(target_vendor = "apple", test))]
mod behaviour;
mod copies;
mod main_file;
mod parked;
mod support;
#[cfg(test)]
mod tests;

pub(super) use copies::Claim;

/// The kinds of locks, whose type differs between systems.
const READ: c_short = libc::F_RDLCK as c_short;
const WRITE: c_short = libc::F_WRLCK as c_short;
const UNLOCKED: c_short = libc::F_UNLCK as c_short;

type OpenCall = unsafe extern "C" fn(*const c_char, c_int, c_int) -> c_int;

/// SQLite's own `open`.
static OPEN: OnceLock<OpenCall> = OnceLock::new();

/// The open descriptors whose file has no OFD locks.
static WITHOUT: LazyLock<Mutex<HashSet<RawFd>>> = LazyLock::new(Mutex::default);

/// Whether there ever were any: most processes have none, and do not look.
static ANY_WITHOUT: AtomicBool = AtomicBool::new(false);

/// Must precede the process's first connection to a file.
pub(super) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        if !replace_calls() {
            tracing::warn!("SQLite's locks stay those of the process");
        }
    });
}

/// Puts our calls into SQLite's table; answers whether all are there.
fn replace_calls() -> bool {
    // SAFETY: the default VFS lives as long as the library, which it initializes; its methods take
    // itself and a C string. Nothing of SQLite has a file open yet. `open` in SQLite's table has the
    // type `OpenCall`, by the cast with which SQLite calls it.
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

/// Locks a whole main file against every connection; answers whether none has it open. The lock ends
/// with the file.
pub(super) fn exclude(file: &std::fs::File) -> bool {
    use std::os::fd::AsRawFd;
    let file = file.as_raw_fd();
    let ofd = support::has_ofd_locks(file);
    let command = if ofd { libc::F_OFD_SETLK } else { libc::F_SETLK };
    call(file, command, &mut over(WRITE, main_file::ALL)).is_ok()
}

/// Device and number of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Inode(u64, u64);

impl Inode {
    fn of(file: RawFd) -> Result<Self, c_int> {
        // SAFETY: there is room for the answer.
        Self::told(|found| unsafe { libc::fstat(file, found) }).ok_or_else(failed)
    }

    /// What a path names, which is not what a symbolic link there leads to.
    fn at(path: &CStr) -> Option<Self> {
        // SAFETY: the path is a C string, and there is room for the answer.
        Self::told(|found| unsafe { libc::lstat(path.as_ptr(), found) })
    }

    fn told(ask: impl FnOnce(*mut libc::stat) -> c_int) -> Option<Self> {
        let mut found = std::mem::MaybeUninit::<libc::stat>::uninit();
        if ask(found.as_mut_ptr()) != 0 {
            return None;
        }
        // SAFETY: it was filled in.
        let found = unsafe { found.assume_init() };
        #[allow(clippy::unnecessary_cast, reason = "the types differ between systems")]
        Some(Self(found.st_dev as u64, found.st_ino as u64))
    }
}

/// SQLite's `open`, which notes the descriptors whose file has no OFD locks.
unsafe extern "C" fn own_open(path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    let Some(open) = OPEN.get() else { return -1 };
    if let Some(file) = parked::reopen(path, flags) {
        return file;
    }
    // SAFETY: the arguments are SQLite's, for its own call.
    let file = unsafe { open(path, flags, mode) };
    if file >= 0 && !support::has_ofd_locks(file) {
        ANY_WITHOUT.store(true, Ordering::Release);
        WITHOUT.lock().insert(file);
    }
    file
}

unsafe extern "C" fn own_close(file: c_int) -> c_int {
    if ANY_WITHOUT.load(Ordering::Acquire) && WITHOUT.lock().remove(&file) {
        // SAFETY: SQLite closes a descriptor of its own.
        return unsafe { libc::close(file) };
    }
    main_file::closing(file);
    parked::close(file)
}

/// SQLite calls it with two or three arguments, as the variadic function that it is. Its third one
/// is where an ordinary function's third one is, but on Apple's ARM: there it is on the stack, where
/// an ordinary function's ninth one is.
#[cfg(not(all(target_vendor = "apple", target_arch = "aarch64")))]
unsafe extern "C" fn own_fcntl(file: c_int, command: c_int, argument: *mut c_void) -> c_int {
    // SAFETY: as SQLite's call.
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
    // SAFETY: as SQLite's call.
    unsafe { control(file, command, argument) }
}

/// # Safety
/// As `fcntl`.
unsafe fn control(file: RawFd, command: c_int, argument: *mut c_void) -> c_int {
    // SQLite is compiled without waiting for locks (SQLITE_ENABLE_SETLK_TIMEOUT).
    let ofd = match command {
        libc::F_SETLK => libc::F_OFD_SETLK,
        libc::F_GETLK => libc::F_OFD_GETLK,
        // SAFETY: the arguments are SQLite's, whatever they are.
        _ => return unsafe { libc::fcntl(file, command, argument) },
    };
    if ANY_WITHOUT.load(Ordering::Acquire) && WITHOUT.lock().contains(&file) {
        // SAFETY: the arguments are SQLite's.
        return unsafe { libc::fcntl(file, command, argument) };
    }
    // SAFETY: the argument of these commands is a lock of the caller's.
    let Some(lock) = (unsafe { argument.cast::<libc::flock>().as_mut() }) else {
        // SAFETY: the arguments are SQLite's; the system refuses them.
        return unsafe { libc::fcntl(file, command, argument) };
    };
    // Required of OFD locks, and left unset by SQLite.
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

/// Sets or gets a lock; an error is its number.
fn call(file: RawFd, command: c_int, lock: &mut libc::flock) -> Result<(), c_int> {
    // SAFETY: the system looks at the descriptor, and the lock is one.
    match unsafe { libc::fcntl(file, command, ptr::from_mut(lock)) } {
        -1 => Err(failed()),
        _ => Ok(()),
    }
}

/// The number of the error of the call before.
fn failed() -> c_int {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

/// A lock of a range: start and length.
fn over(kind: c_short, (start, length): (libc::off_t, libc::off_t)) -> libc::flock {
    // SAFETY: all of its fields are numbers.
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
    // SAFETY: it is this thread's.
    unsafe { *place() = code };
}
