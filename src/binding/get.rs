//! The point read, as a plain function.
//!
//! A method of a class checks the type tag of its object and a borrow flag, together a tenth of an
//! `await kv.get()`. This export takes the lane by number instead, and is registered by hand.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use napi::bindgen_prelude::{Env, Object};
use napi::{JsValue, Result, sys};
use napi_derive::napi;

use super::lane::{self, Code};
use super::scratch::{self, check};
use crate::model::Error;

/// Adds `get(lane, keyLen)` to the exports.
#[napi(module_exports)]
pub fn exports(exports: Object, env: Env) -> Result<()> {
    let mut function = ptr::null_mut();
    // SAFETY: names are C strings, `function` is a valid pointer to the result, and `exports` is a
    // live object of `env`.
    unsafe {
        let name = c"get".as_ptr();
        let code = sys::napi_create_function(
            env.raw(),
            name,
            3,
            Some(get),
            ptr::null_mut(),
            &mut function,
        );
        check(code, "making get()")?;
        check(
            sys::napi_set_named_property(env.raw(), exports.raw(), name, function),
            "exporting get()",
        )
    }
}

/// Reads the entry of the key in the scratch and writes it behind the key. The arguments are the
/// number of the lane and the length of the key.
unsafe extern "C" fn get(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
    let mut arguments = [ptr::null_mut(); 2];
    let mut count = arguments.len();
    let (mut number, mut key_len) = (u32::MAX, 0);
    let mut answer = ptr::null_mut();
    // SAFETY: called by Node-API with a live environment; every out pointer is valid. For a missing
    // or wrong argument its number stays that of no lane.
    unsafe {
        let [lane_value, len_value] = {
            let (this, data) = (ptr::null_mut(), ptr::null_mut());
            sys::napi_get_cb_info(env, info, &mut count, arguments.as_mut_ptr(), this, data);
            arguments
        };
        sys::napi_get_value_uint32(env, lane_value, &mut number);
        sys::napi_get_value_uint32(env, len_value, &mut key_len);
    }
    let read = catch_unwind(AssertUnwindSafe(|| {
        lane::with(number as usize, |lane| lane.get(key_len as usize))
    }));
    let code = read.unwrap_or_else(|_| {
        scratch::keep_error(&Error::internal("a read ended by a panic; please report this"));
        Code::Error as i32
    });
    // SAFETY: as above.
    unsafe { sys::napi_create_int32(env, code, &mut answer) };
    answer
}
