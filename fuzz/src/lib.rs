//! The fuzz targets, by name, and an allocator that counts, so that they can bound the memory. `target.rs` gives
//! them to libFuzzer, `tests/fuzz.rs` of the root tries them without it.

mod call;
mod cbor;
mod connect;
mod filter;
mod frame;
mod interchange;
mod key;
mod paths;
mod query;
mod v8;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Gives an input to a target. A target that finds something panics.
pub fn check(target: &str, data: &[u8]) {
    match target {
        "call" => call::check(data),
        "cbor" => cbor::check(data),
        "connect" => connect::check(data),
        "filter" => filter::check(data),
        "frame" => frame::check(data),
        "interchange" => interchange::check(data),
        "key" => key::check(data),
        "paths" => paths::check(data),
        "query" => query::check(data),
        "v8" => v8::check(data),
        other => panic!("there is no target {other}"),
    }
}

static LIVE_BYTES: AtomicUsize = AtomicUsize::new(0);
static PEAK_BYTES: AtomicUsize = AtomicUsize::new(0);

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn grown(bytes: usize) {
    let live = LIVE_BYTES.fetch_add(bytes, Relaxed) + bytes;
    PEAK_BYTES.fetch_max(live, Relaxed);
}

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        // SAFETY: the caller fulfils the requirements of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE_BYTES.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

/// Runs `work` and fails if it had more than `bytes_max` allocated at any moment.
pub(crate) fn within<T>(bytes_max: usize, work: impl FnOnce() -> T) -> T {
    let before = LIVE_BYTES.load(Relaxed);
    PEAK_BYTES.store(before, Relaxed);
    let result = work();
    let taken = PEAK_BYTES.load(Relaxed).saturating_sub(before);
    assert!(taken <= bytes_max, "{taken} bytes allocated where {bytes_max} should do");
    result
}
