//! Checks whether OFD locks behave here as on Linux.
//!
//! Duty: test it with a temporary file, because no documentation guarantees it.

use std::ffi::c_int;
use std::fs::{File, OpenOptions, remove_file};
use std::os::fd::AsRawFd;
use std::sync::OnceLock;

use super::{READ, UNLOCKED, WRITE, call, over};

/// Checked once for each process.
pub(super) fn is_as_expected() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| test_locks().unwrap_or(false))
}

/// OFD locks exclude each other and POSIX locks of the process, and end with their file
/// description.
fn test_locks() -> std::io::Result<bool> {
    let path = std::env::temp_dir().join(format!("openkv-locks-{}", std::process::id()));
    let _left_by_another_of_that_number = remove_file(&path);
    let one = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
    let two = OpenOptions::new().read(true).write(true).open(&path);
    remove_file(&path)?;
    let two = two?;
    let set = |file: &File, command: c_int, kind| {
        call(file.as_raw_fd(), command, &mut over(kind, (0, 1))).is_ok()
    };
    let ofd = libc::F_OFD_SETLK;
    let excludes = set(&one, ofd, READ)
        && !set(&two, ofd, WRITE)
        && !set(&two, libc::F_SETLK, WRITE)
        && set(&one, ofd, UNLOCKED)
        && set(&two, libc::F_SETLK, WRITE)
        && !set(&one, ofd, READ)
        && set(&two, libc::F_SETLK, UNLOCKED)
        && set(&two, ofd, WRITE)
        && !set(&one, ofd, READ);
    drop(two);
    Ok(excludes && set(&one, ofd, WRITE))
}

#[cfg(test)]
mod tests {
    #[test]
    fn this_system_has_ofd_locks() {
        assert!(super::is_as_expected());
    }
}
