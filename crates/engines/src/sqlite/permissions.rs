//! What this process may do with a file, as far as its permissions tell.
//!
//! Never: opens the file, since closing it would drop locks of another library of this process.

use std::path::Path;

/// Whether a connection may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

/// Whether this process may read the file, but may not make files beside it.
pub(super) fn cannot_make_files_beside(path: &Path) -> bool {
    let folder = path.parent().map(|folder| match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    });
    may(path, Access::Read) == May::Yes
        && folder.is_some_and(|folder| may(folder, Access::Write) == May::Not)
}

/// The permissions of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum May {
    Yes,
    Not,
    /// The path does not exist or cannot be read.
    Missing,
}

#[cfg(unix)]
pub(super) fn may(path: &Path, access: Access) -> May {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;

    let Ok(name) = CString::new(path.as_os_str().as_bytes()) else { return May::Missing };
    let mode = match access {
        Access::Read => libc::R_OK,
        Access::Write => libc::R_OK | libc::W_OK,
    };
    // SAFETY: `name` is a C string and outlives the call, which changes nothing.
    let answer = unsafe { libc::faccessat(libc::AT_FDCWD, name.as_ptr(), mode, libc::AT_EACCESS) };
    let denied = [libc::EACCES, libc::EPERM, libc::EROFS];
    match (answer, std::io::Error::last_os_error().raw_os_error()) {
        (0, _) => May::Yes,
        (_, Some(code)) if denied.contains(&code) => May::Not,
        _ => May::Missing,
    }
}

/// On other systems the error of reading the metadata decides.
#[cfg(not(unix))]
pub(super) fn may(path: &Path, _access: Access) -> May {
    match path.metadata() {
        Ok(_) => May::Yes,
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => May::Not,
        Err(_) => May::Missing,
    }
}
