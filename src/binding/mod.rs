//! JavaScript ⇄ Rust, by the contract of `js/native/contract.md`.
//!
//! Duty: transfer bytes and numbers; it makes no decisions.
//! Invariant: a failure crosses as a value (a negative code or an error record), never as a thrown
//! error; every request gets exactly one event, even if the code that should answer it panics.
//! Never: a JavaScript object for each entry, a blocking call on the JavaScript thread other than
//! `waitClosed` and reads inside the turn's budget.
//!
//! Every export catches panics, which must not cross into C: JavaScript sees them thrown.

#![expect(unreachable_pub, reason = "#[napi] takes public items, and makes them JavaScript's")]

mod archive;
mod attachment;
mod calls;
mod consume;
mod consumers;
mod events;
mod feed;
mod get;
mod handle;
mod lane;
mod log;
mod log_options;
mod restore;
mod scratch;
mod server;
mod snapshot_timeout;
mod write;

use std::collections::HashMap;
use std::time::Duration;

use napi::bindgen_prelude::{Buffer, Env, Function, Object};
use napi::{JsValue, Result};
use napi_derive::napi;

use crate::model::{DISPOSE_WAIT_MS_MAX, DROP_WAIT_MS_MAX, Limits, VALUE_DEPTH_MAX};

/// Registers one copy of the package's JavaScript on a thread, with the memory of its sync reads
/// and the callback for its events. Returns its number for the other functions.
#[napi(catch_unwind)]
pub fn attach(env: Env, scratch: Object, on_event: Function) -> Result<u32> {
    log::start();
    attachment::attach(&env, &scratch, on_event.raw())
}

/// Replaces the scratch of an attachment.
#[napi(catch_unwind)]
pub fn rescratch(env: Env, attachment: u32, scratch: Object) -> Result<()> {
    attachment::find(attachment)?.scratch.replace(&env, &scratch)
}

/// From now on, pending events of an attachment keep the event loop alive.
#[napi(js_name = "ref", catch_unwind)]
pub fn reference(env: Env, attachment: u32) -> Result<()> {
    attachment::find(attachment).map(|found| found.events.keep_alive(&env, true))
}

/// From now on, pending events of an attachment do not keep the event loop alive.
#[napi(catch_unwind)]
pub fn unref(env: Env, attachment: u32) -> Result<()> {
    attachment::find(attachment).map(|found| found.events.keep_alive(&env, false))
}

/// A set of limits, by name: `wide`, otherwise the default.
#[napi(catch_unwind)]
pub fn limits(set: Option<String>) -> HashMap<String, f64> {
    let limits = if set.as_deref() == Some("wide") { Limits::wide() } else { Limits::default() };
    let entries = limits.entries().map(|(name, value)| (name.to_owned(), value as f64));
    entries.chain([("valueDepthMax".to_owned(), VALUE_DEPTH_MAX as f64)]).collect()
}

/// The bounds of queues by name, which a handle cannot change.
#[napi(catch_unwind)]
pub fn bounds() -> HashMap<String, f64> {
    consume::bounds().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The error of the last sync call of this thread that returned ERROR, as an error record.
#[napi(catch_unwind)]
pub fn take_error() -> Buffer {
    scratch::take_error().into()
}

/// Waits until all closing databases of the process are closed. The wait is bounded; the bound is
/// longer at the end of the process than at the end of a block.
#[napi(catch_unwind)]
pub fn wait_closed(at_exit: bool) {
    let longest_ms = if at_exit { DROP_WAIT_MS_MAX } else { DISPOSE_WAIT_MS_MAX };
    crate::open::wait_closed(Duration::from_millis(longest_ms));
}

/// The SQL that creates the tables of databases on PostgreSQL; empty in a build without them.
#[napi(catch_unwind)]
#[must_use]
pub fn postgres_schema() -> String {
    crate::open::postgres_schema()
}

/// The version of this addon.
#[napi(catch_unwind)]
pub fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
