//! Excludes other copies of openkv in this process from a file whose locks cannot exclude them.
//!
//! Duty: refuse a file without OFD locks to all copies except the one that has it open. POSIX locks
//! belong to the process: they admit a second copy, and are lost when any copy closes the file.
//! Invariant: all copies use one list, that of the first loaded copy, which is never unloaded.
//! Never: open the file, since closing it would drop the locks of another copy.
//!
//! Addons are loaded with local symbols, so the list is found through the handles of the loaded
//! objects, by a symbol that each copy exports. Copies of other versions call it, so its signature
//! and meaning must not change.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, OnceLock};

use parking_lot::Mutex;

use super::support;
use openkv_core::model::{COPY_NAME_BYTES_MAX, Error, Result};

/// Claims (1) or releases (0) the file at a path for a copy, which is named by its version and the
/// path of its addon. Returns 0; or 1 if another copy has the file, with the name of that copy as a
/// C string in `other`.
type Claims =
    unsafe extern "C" fn(c_int, *const c_char, *const c_char, *mut c_char, usize) -> c_int;

const SYMBOL: &CStr = c"openkv_open_files_1";

/// The claimed files of all copies, used only in the first copy: the name of the owner, and the
/// number of its claims.
static FILES: LazyLock<Mutex<HashMap<CString, (CString, usize)>>> = LazyLock::new(Mutex::default);

/// # Safety
/// The names are C strings, and `other` has room for so many bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn openkv_open_files_1(
    take: c_int,
    path: *const c_char,
    copy: *const c_char,
    other: *mut c_char,
    room: usize,
) -> c_int {
    // SAFETY: the caller guarantees it.
    let (path, copy) = unsafe { (CStr::from_ptr(path), CStr::from_ptr(copy)) };
    let mut files = FILES.lock();
    match files.get_mut(path) {
        Some((owner, _)) if owner.as_c_str() != copy => {
            let name = owner.as_bytes();
            let length = name.len().min(room.saturating_sub(1));
            if take == 1 && room > 0 {
                // SAFETY: the caller guarantees room for the name and its terminator.
                unsafe {
                    std::ptr::copy_nonoverlapping(name.as_ptr().cast(), other, length);
                    *other.add(length) = 0;
                }
            }
            return 1;
        }
        Some((_, count)) if take == 1 => *count += 1,
        Some((_, count)) if *count > 1 => *count -= 1,
        Some(_) => drop(files.remove(path)),
        None if take == 1 => drop(files.insert(path.to_owned(), (copy.to_owned(), 1))),
        None => {}
    }
    0
}

/// A file that only this copy may open, until the claim is dropped.
#[derive(Debug)]
pub(in crate::sqlite) struct FileClaim(CString);

impl FileClaim {
    /// Claims a file that has no OFD locks; `None` for one that has them.
    ///
    /// # Errors
    /// `Unavailable` if another copy in this process has the file open.
    pub(in crate::sqlite) fn of(path: &Path) -> Result<Option<Self>> {
        if support::path_has_ofd_locks(path) {
            return Ok(None);
        }
        let Ok(name) = CString::new(resolved(path).as_os_str().as_bytes()) else { return Ok(None) };
        let mut other = vec![0; COPY_NAME_BYTES_MAX];
        // SAFETY: both names are C strings, and the buffer has the given size.
        let taken = unsafe {
            claims()(1, name.as_ptr(), this_copy().as_ptr(), other.as_mut_ptr().cast(), other.len())
        };
        if taken == 0 {
            return Ok(Some(Self(name)));
        }
        let other = CStr::from_bytes_until_nul(&other).unwrap_or_default().to_string_lossy();
        Err(Error::unavailable(format!(
            "another copy of openkv in this process has the file open, and this file system has \
             no locks that would keep the copies apart: {other} has it, {} asks for it; load \
             one copy only, or close the file in the other one first",
            this_copy().to_string_lossy(),
        )))
    }
}

impl Drop for FileClaim {
    fn drop(&mut self) {
        // SAFETY: both names are C strings; nothing is written.
        let _free =
            unsafe { claims()(0, self.0.as_ptr(), this_copy().as_ptr(), std::ptr::null_mut(), 0) };
    }
}

/// The path under which all copies register a file, which may not exist yet.
fn resolved(path: &Path) -> PathBuf {
    let within_folder = || {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        Some(folder.canonicalize().ok()?.join(path.file_name()?))
    };
    path.canonicalize().ok().or_else(within_folder).unwrap_or_else(|| path.to_owned())
}

/// This copy's version, and the path of its addon.
fn this_copy() -> &'static CStr {
    static NAME: LazyLock<CString> = LazyLock::new(|| {
        let mut found = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
        // SAFETY: `found` has room for the result; its name is a C string that lives as long as
        // this library.
        let path = unsafe {
            let status =
                libc::dladdr(openkv_open_files_1 as Claims as *const c_void, found.as_mut_ptr());
            let name = found.assume_init().dli_fname;
            if status == 0 || name.is_null() { c"an unknown path" } else { CStr::from_ptr(name) }
        };
        let name = [b"openkv ", env!("CARGO_PKG_VERSION").as_bytes(), b" at ", path.to_bytes()];
        CString::new(name.concat()).unwrap_or_default()
    });
    &NAME
}

/// The list of the first loaded copy. Keeps its library loaded.
fn claims() -> Claims {
    static FOUND: OnceLock<Claims> = OnceLock::new();
    *FOUND.get_or_init(|| {
        loaded().iter().find_map(|name| exported(name)).unwrap_or(openkv_open_files_1)
    })
}

/// The function that a loaded library exports, if it does.
fn exported(library: &CStr) -> Option<Claims> {
    // SAFETY: the name is a C string, and the call loads no new library. The symbol has this type
    // in every copy. The handle is not closed, so the library stays loaded.
    unsafe {
        let handle = libc::dlopen(library.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if handle.is_null() {
            return None;
        }
        let symbol = libc::dlsym(handle, SYMBOL.as_ptr());
        if symbol.is_null() {
            libc::dlclose(handle);
            return None;
        }
        Some(std::mem::transmute::<*mut c_void, Claims>(symbol))
    }
}

/// The names of all loaded libraries, in the order of their loading.
#[cfg(not(target_vendor = "apple"))]
fn loaded() -> Vec<CString> {
    unsafe extern "C" fn note(
        info: *mut libc::dl_phdr_info,
        _: usize,
        names: *mut c_void,
    ) -> c_int {
        // SAFETY: the system passes its record, and the list that is passed below.
        let (name, names) = unsafe { ((*info).dlpi_name, &mut *names.cast::<Vec<CString>>()) };
        if !name.is_null() {
            // SAFETY: it is a C string.
            names.push(unsafe { CStr::from_ptr(name) }.to_owned());
        }
        0
    }
    let mut names: Vec<CString> = Vec::new();
    // SAFETY: the callback receives the list that is passed with it.
    unsafe { libc::dl_iterate_phdr(Some(note), std::ptr::from_mut(&mut names).cast()) };
    // The main program has no name, or one that cannot be opened.
    names.retain(|name| !name.is_empty());
    names
}

/// The names of all loaded libraries, in the order of their loading.
#[cfg(target_vendor = "apple")]
fn loaded() -> Vec<CString> {
    unsafe extern "C" {
        fn _dyld_image_count() -> u32;
        fn _dyld_get_image_name(at: u32) -> *const c_char;
    }
    // SAFETY: neither function takes a pointer.
    let names = (0..unsafe { _dyld_image_count() }).map(|at| unsafe { _dyld_get_image_name(at) });
    // SAFETY: each name that is not null is a C string.
    names
        .filter(|name| !name.is_null())
        .map(|name| unsafe { CStr::from_ptr(name) }.to_owned())
        .collect()
}
