//! The attachments of this thread. An attachment is one copy of the package's JavaScript, with its
//! scratch and its events. There is usually one; reloading modules, by a test runner, hot
//! replacement or two bundles over one addon, creates more.

use std::cell::RefCell;
use std::rc::Rc;

use napi::bindgen_prelude::{Env, Object};
use napi::{Error, Result, sys};

use super::events::Events;
use super::scratch::Scratch;

/// The scratch and events of one copy, which its handles and lanes share.
#[derive(Clone)]
pub(super) struct Attachment {
    pub(super) scratch: Rc<Scratch>,
    pub(super) events: Events,
}

thread_local! {
    /// By number. No entry is removed, because the end of a copy cannot be detected.
    static ATTACHMENTS: RefCell<Vec<Attachment>> = const { RefCell::new(Vec::new()) };
}

/// Registers a scratch and a callback; returns the number of the attachment.
pub(super) fn attach(env: &Env, scratch: &Object, callback: sys::napi_value) -> Result<u32> {
    let scratch = Rc::new(Scratch::new(env, scratch)?);
    let events = Events::new(env, callback)?;
    ATTACHMENTS.with_borrow_mut(|attachments| {
        let number = u32::try_from(attachments.len());
        attachments.push(Attachment { scratch, events });
        number.map_err(|_| Error::from_reason("attach() has been called too often"))
    })
}

/// The attachment of this thread with this number.
pub(super) fn find(number: u32) -> Result<Attachment> {
    let found = ATTACHMENTS.with_borrow(|all| all.get(number as usize).cloned());
    found.ok_or_else(|| Error::from_reason("attach() has not given this number on this thread"))
}
