//! Lets a process believe that it is another time.
//!
//! Loaded into the process with `LD_PRELOAD` (Linux). `CLOCK_SHIFT_SECONDS` is added to what
//! `clock_gettime` says of the time of day; how long something takes stays as it is.

#![cfg(target_os = "linux")]

use std::env;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::LazyLock;

const RTLD_NEXT: *mut c_void = -1_isize as *mut c_void;
const CLOCK_REALTIME: c_int = 0;
const CLOCK_REALTIME_COARSE: c_int = 5;

#[repr(C)]
pub struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

type Gettime = unsafe extern "C" fn(c_int, *mut Timespec) -> c_int;

static REAL: LazyLock<Gettime> = LazyLock::new(|| {
    let name: &CStr = c"clock_gettime";
    // SAFETY: this is the C library's function of this name and signature.
    unsafe { std::mem::transmute::<*mut c_void, Gettime>(dlsym(RTLD_NEXT, name.as_ptr())) }
});

static SHIFT_SECONDS: LazyLock<i64> = LazyLock::new(|| {
    let given = env::var("CLOCK_SHIFT_SECONDS").ok();
    given.and_then(|seconds| seconds.parse().ok()).unwrap_or(0)
});

/// # Safety
/// As `clock_gettime(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int {
    // SAFETY: the caller's pointer, under the contract of this function.
    let result = unsafe { (REAL)(clock, time) };
    if result == 0 && matches!(clock, CLOCK_REALTIME | CLOCK_REALTIME_COARSE) {
        // SAFETY: the call above has just written it.
        unsafe { (*time).seconds += *SHIFT_SECONDS };
    }
    result
}
