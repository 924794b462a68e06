//! The JavaScript memory in which sync reads find their request and write their answer.

use std::cell::RefCell;
use std::ptr;

use napi::bindgen_prelude::{Env, Object};
use napi::{JsValue, Result, Status, sys};

use crate::model::Error;
use crate::protocol::frame::push_error;

thread_local! {
    static LAST_ERROR: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The scratch of one attachment. It stays on its thread.
pub(super) struct Scratch(RefCell<Memory>);

struct Memory {
    start: *mut u8,
    len: usize,
    /// Prevents garbage collection of the buffer until it is replaced or the environment ends.
    reference: sys::napi_ref,
}

impl Memory {
    fn of(env: &Env, scratch: &Object) -> Result<Self> {
        let mut start = ptr::null_mut();
        let mut len = 0;
        // SAFETY: `scratch` is a live value of `env`; a value that is no buffer gives an error
        // code.
        let code =
            unsafe { sys::napi_get_buffer_info(env.raw(), scratch.raw(), &mut start, &mut len) };
        check(code, "the scratch is not a Uint8Array")?;
        let mut reference = ptr::null_mut();
        // SAFETY: as above.
        let code =
            unsafe { sys::napi_create_reference(env.raw(), scratch.raw(), 1, &mut reference) };
        check(code, "the scratch cannot be kept")?;
        Ok(Self { start: start.cast(), len, reference })
    }
}

impl Scratch {
    /// Pins a `Uint8Array`.
    pub(super) fn new(env: &Env, scratch: &Object) -> Result<Self> {
        Memory::of(env, scratch).map(|memory| Self(RefCell::new(memory)))
    }

    /// Replaces the memory. `env` must be the environment of the earlier one.
    pub(super) fn replace(&self, env: &Env, scratch: &Object) -> Result<()> {
        let old = self.0.replace(Memory::of(env, scratch)?);
        // SAFETY: this environment created the reference, and deletes it once.
        unsafe { sys::napi_delete_reference(env.raw(), old.reference) };
        Ok(())
    }

    /// Lends the first `request_len` bytes as the request and the rest as room for the answer.
    /// `None` if the scratch is shorter or already lent.
    pub(super) fn lend<R>(
        &self,
        request_len: usize,
        job: impl FnOnce(&[u8], &mut [u8]) -> R,
    ) -> Option<R> {
        let memory = self.0.try_borrow_mut().ok()?;
        let room = memory.len.checked_sub(request_len)?;
        // SAFETY: the memory is JavaScript's, pinned by `reference`. Only this thread accesses it,
        // and JavaScript does not run during a sync call. The borrow prevents a second loan and a
        // replacement while `job` uses it.
        let (request, room) = unsafe {
            let request = std::slice::from_raw_parts(memory.start, request_len);
            (request, std::slice::from_raw_parts_mut(memory.start.add(request_len), room))
        };
        Some(job(request, room))
    }
}

pub(super) fn check(code: sys::napi_status, what: &str) -> Result<()> {
    if code == sys::Status::napi_ok {
        return Ok(());
    }
    Err(napi::Error::new(Status::from(code), what))
}

/// Stores an error for `takeError`.
pub(super) fn keep_error(error: &Error) {
    LAST_ERROR.with_borrow_mut(|last| {
        last.clear();
        push_error(last, error);
    });
}

pub(super) fn take_error() -> Vec<u8> {
    LAST_ERROR.take()
}
