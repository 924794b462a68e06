//! Which files have OFD locks that can be relied on.
//!
//! Duty: the same answer for every descriptor of a file.

use std::os::fd::RawFd;

use super::{READ, call, over};

/// Whether the locks of a file that was just opened can be OFD locks.
pub(super) fn has_ofd_locks(file: RawFd) -> bool {
    // Old kernels, and those that only imitate Linux, answer EINVAL.
    relied_on(file) && call(file, libc::F_OFD_GETLK, &mut over(READ, (0, 1))).is_ok()
}

/// FUSE tells its server of a process's end, but not of an open file description's: where the server
/// keeps the locks, those of a killed process would stay for ever.
#[cfg(target_os = "linux")]
fn relied_on(file: RawFd) -> bool {
    let mut found = std::mem::MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the descriptor is open, and there is room for the answer.
    if unsafe { libc::fstatfs(file, found.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: it was filled in.
    let found = unsafe { found.assume_init() };
    #[allow(clippy::unnecessary_cast, reason = "the types differ between C libraries")]
    let (is, fuse) = (found.f_type as i64, libc::FUSE_SUPER_MAGIC as i64);
    is != fuse
}

/// Apple's own file systems of local disks.
#[cfg(target_vendor = "apple")]
fn relied_on(file: RawFd) -> bool {
    let mut found = std::mem::MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the descriptor is open, and there is room for the answer, which is looked at if it
    // was filled in; a name ends with a zero.
    let name = unsafe {
        if libc::fstatfs(file, found.as_mut_ptr()) != 0 {
            return false;
        }
        std::ffi::CStr::from_ptr(found.assume_init_ref().f_fstypename.as_ptr()).to_bytes()
    };
    matches!(name, b"apfs" | b"hfs") && super::behaviour::is_as_expected()
}
