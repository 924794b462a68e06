//! The point read and the brief steps of lists, as plain functions.
//!
//! A method of a class checks the type tag of its object and a borrow flag, together a tenth of an
//! `await kv.get()`. These exports take the lane by number instead, and are registered by hand.

use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use napi::bindgen_prelude::{Env, Object};
use napi::{JsValue, Result, sys};
use napi_derive::napi;

use super::lane::{self, Code};
use super::scratch::{self, check};
use crate::model::Error;

/// Adds `get(lane, keyLen)` and `step(lane, requestLen, command)` to the exports.
#[napi(module_exports)]
pub fn exports(exports: Object, env: Env) -> Result<()> {
    export(&exports, &env, c"get", read::<GET>)?;
    export(&exports, &env, c"step", read::<STEP>)
}

/// A function of Node-API.
type Function = unsafe extern "C" fn(sys::napi_env, sys::napi_callback_info) -> sys::napi_value;

fn export(exports: &Object, env: &Env, name: &CStr, called: Function) -> Result<()> {
    let mut function = ptr::null_mut();
    let (name, len) = (name.as_ptr(), name.count_bytes() as isize);
    // SAFETY: names are C strings, `function` is a valid pointer to the result, and `exports` is a
    // live object of `env`.
    unsafe {
        let none = ptr::null_mut();
        let code =
            sys::napi_create_function(env.raw(), name, len, Some(called), none, &mut function);
        check(code, "making a function")?;
        check(
            sys::napi_set_named_property(env.raw(), exports.raw(), name, function),
            "exporting a function",
        )
    }
}

const GET: bool = false;
const STEP: bool = true;

/// Reads the entry of the key in the scratch, or does the step of the command there, and writes it behind the request. The
/// arguments are the number of the lane, the length of the request, and for a step the command.
unsafe extern "C" fn read<const IS_STEP: bool>(
    env: sys::napi_env,
    info: sys::napi_callback_info,
) -> sys::napi_value {
    let mut arguments = [ptr::null_mut(); 3];
    let mut count = arguments.len();
    let (mut number, mut request_len, mut command) = (u32::MAX, 0, 0);
    let mut answer = ptr::null_mut();
    // SAFETY: called by Node-API with a live environment; every out pointer is valid. For a missing
    // or wrong argument its number stays that of no lane.
    unsafe {
        let [lane_value, len_value, command_value] = {
            let (this, data) = (ptr::null_mut(), ptr::null_mut());
            sys::napi_get_cb_info(env, info, &mut count, arguments.as_mut_ptr(), this, data);
            arguments
        };
        sys::napi_get_value_uint32(env, lane_value, &mut number);
        sys::napi_get_value_uint32(env, len_value, &mut request_len);
        if IS_STEP {
            sys::napi_get_value_uint32(env, command_value, &mut command);
        }
    }
    let read = catch_unwind(AssertUnwindSafe(|| {
        lane::with(number as usize, |lane| match IS_STEP {
            true => lane.step(request_len as usize, command),
            false => lane.get(request_len as usize),
        })
    }));
    let code = read.unwrap_or_else(|_| {
        scratch::keep_error(&Error::internal("a read ended by a panic; please report this"));
        Code::Error as i32
    });
    // SAFETY: as above.
    unsafe { sys::napi_create_int32(env, code, &mut answer) };
    answer
}
