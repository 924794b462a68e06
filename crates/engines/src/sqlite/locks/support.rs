//! Decides which files have reliable OFD locks.
//!
//! Duty: the same decision for every descriptor of a file.

use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;

use super::{READ, call, over};

/// Whether an opened file supports OFD locks.
pub(super) fn has_ofd_locks(file: RawFd) -> bool {
    // Old kernels, and emulations of Linux, return EINVAL.
    relied_on(file) && call(file, libc::F_OFD_GETLK, &mut over(READ, (0, 1))).is_ok()
}

/// Whether a file supports OFD locks, without opening the file.
pub(super) fn path_has_ofd_locks(path: &Path) -> bool {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // If the folder cannot be read, only the kernel is tested.
    let folder = File::open(folder).or_else(|_| File::open("/"));
    let of_folder = folder.is_ok_and(|folder| has_ofd_locks(folder.as_raw_fd()));
    of_folder && file_relied_on(path)
}

/// A single file can be a mount point. An `O_PATH` descriptor is used, since closing it drops no
/// locks.
#[cfg(target_os = "linux")]
fn file_relied_on(path: &Path) -> bool {
    use std::os::unix::fs::OpenOptionsExt;
    let place = File::options().read(true).custom_flags(libc::O_PATH).open(path);
    place.is_ok_and(|place| relied_on(place.as_raw_fd())) || !path.exists()
}

#[cfg(not(target_os = "linux"))]
fn file_relied_on(_path: &Path) -> bool {
    true
}

/// FUSE notifies its server when a process ends, but not when an open file description ends. If the
/// server keeps the locks, those of a killed process would never end.
#[cfg(target_os = "linux")]
fn relied_on(file: RawFd) -> bool {
    let mut found = std::mem::MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the descriptor is open, and `found` has room for the result.
    if unsafe { libc::fstatfs(file, found.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: the successful call has filled it in.
    let found = unsafe { found.assume_init() };
    #[allow(clippy::unnecessary_cast, reason = "the types differ between C libraries")]
    let (is, fuse) = (found.f_type as i64, libc::FUSE_SUPER_MAGIC as i64);
    is != fuse
}

/// Apple's file systems of local disks.
#[cfg(target_vendor = "apple")]
fn relied_on(file: RawFd) -> bool {
    let mut found = std::mem::MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the descriptor is open, and `found` has room for the result, which is read only after
    // success; its name is a C string.
    let name = unsafe {
        if libc::fstatfs(file, found.as_mut_ptr()) != 0 {
            return false;
        }
        std::ffi::CStr::from_ptr(found.assume_init_ref().f_fstypename.as_ptr()).to_bytes()
    };
    matches!(name, b"apfs" | b"hfs") && super::behaviour::is_as_expected()
}
