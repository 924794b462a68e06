//! The point read, as a plain function.
//!
//! A method of a class costs a look at its object's private tag and a borrow check, together a
//! tenth of a whole `await kv.get()`; so this one export takes the lane by number and is made by
//! hand.

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
    // SAFETY: names are C strings, `function` is a valid place for the answer, and `exports` is a
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

/// The entry of the key in the scratch, behind it; the arguments are the lane's number and the
/// key's length.
unsafe extern "C" fn get(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
    let mut arguments = [ptr::null_mut(); 2];
    let mut count = arguments.len();
    let (mut number, mut key_len) = (u32::MAX, 0);
    let mut answer = ptr::null_mut();
    // SAFETY: called by Node-API with a live environment; every out pointer is valid. A missing or
    // wrong argument leaves its number as it is: a lane that does not exist.
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
