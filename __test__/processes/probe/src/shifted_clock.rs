//! Lets a process believe that it is another time.
//!
//! Loaded into the process with `LD_PRELOAD` (Linux). `CLOCK_SHIFT_SECONDS` is added to what
//! `clock_gettime` and `gettimeofday` say of the time of day, and so are the ms in the 8 bytes of `CLOCK_SHIFT_FILE`, which can change
//! meanwhile; how long something takes stays as it is.

#![cfg(target_os = "linux")]

use std::env;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicI64, Ordering};

const RTLD_NEXT: *mut c_void = -1_isize as *mut c_void;
const CLOCK_REALTIME: c_int = 0;
const CLOCK_REALTIME_COARSE: c_int = 5;

#[repr(C)]
pub struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

#[repr(C)]
pub struct Timeval {
    seconds: i64,
    microseconds: i64,
}

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn mmap(
        at: *mut c_void,
        len: usize,
        prot: c_int,
        flags: c_int,
        file: c_int,
        offset: i64,
    ) -> *mut c_void;
}

const PROT_READ: c_int = 1;
const MAP_SHARED: c_int = 1;
const MAP_FAILED: *mut c_void = -1_isize as *mut c_void;

type Gettime = unsafe extern "C" fn(c_int, *mut Timespec) -> c_int;
type Timeofday = unsafe extern "C" fn(*mut Timeval, *mut c_void) -> c_int;

static GETTIME: LazyLock<Gettime> = LazyLock::new(|| {
    let name: &CStr = c"clock_gettime";
    // SAFETY: this is the C library's function of this name and signature.
    unsafe { std::mem::transmute::<*mut c_void, Gettime>(dlsym(RTLD_NEXT, name.as_ptr())) }
});

static TIMEOFDAY: LazyLock<Timeofday> = LazyLock::new(|| {
    let name: &CStr = c"gettimeofday";
    // SAFETY: this is the C library's function of this name and signature.
    unsafe { std::mem::transmute::<*mut c_void, Timeofday>(dlsym(RTLD_NEXT, name.as_ptr())) }
});

static SHIFT_SECONDS: LazyLock<i64> = LazyLock::new(|| {
    let given = env::var("CLOCK_SHIFT_SECONDS").ok();
    given.and_then(|seconds| seconds.parse().ok()).unwrap_or(0)
});

/// The shift that another process sets, in ms.
static SHIFT_MS: LazyLock<Option<&'static AtomicI64>> = LazyLock::new(|| {
    let file = File::open(env::var_os("CLOCK_SHIFT_FILE")?).ok()?;
    // SAFETY: a new mapping of 8 bytes, which is never removed.
    let at = unsafe { mmap(std::ptr::null_mut(), 8, PROT_READ, MAP_SHARED, file.as_raw_fd(), 0) };
    // SAFETY: a page has room for 8 bytes, aligned, that are only read here.
    (at != MAP_FAILED).then(|| unsafe { &*at.cast::<AtomicI64>() })
});

/// The seconds and ns of a time with the shifts.
fn shifted(seconds: i64, nanoseconds: i64) -> (i64, i64) {
    let ms = SHIFT_MS.map_or(0, |ms| ms.load(Ordering::Relaxed));
    let nanoseconds = nanoseconds + ms.rem_euclid(1000) * 1_000_000;
    let seconds = seconds + *SHIFT_SECONDS + ms.div_euclid(1000);
    (seconds + nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000)
}

/// # Safety
/// As `clock_gettime(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int {
    // SAFETY: the caller's pointer, under the contract of this function.
    let result = unsafe { (GETTIME)(clock, time) };
    if result == 0 && matches!(clock, CLOCK_REALTIME | CLOCK_REALTIME_COARSE) {
        // SAFETY: the call above has just written it.
        let time = unsafe { &mut *time };
        (time.seconds, time.nanoseconds) = shifted(time.seconds, time.nanoseconds);
    }
    result
}

/// # Safety
/// As `gettimeofday(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gettimeofday(time: *mut Timeval, zone: *mut c_void) -> c_int {
    // SAFETY: the caller's pointers, under the contract of this function.
    let result = unsafe { (TIMEOFDAY)(time, zone) };
    if result == 0 && !time.is_null() {
        // SAFETY: the call above has just written it.
        let time = unsafe { &mut *time };
        let (seconds, nanoseconds) = shifted(time.seconds, time.microseconds * 1000);
        (time.seconds, time.microseconds) = (seconds, nanoseconds / 1000);
    }
    result
}
