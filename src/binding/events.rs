//! Events from any thread to the one JavaScript callback of an attachment, and replies: a reply that is
//! dropped without an answer sends an INTERNAL error.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use napi::bindgen_prelude::Env;
use napi::{Result, sys};
use parking_lot::RwLock;

use super::scratch::check;
use crate::call;
use crate::model::Error;
use crate::protocol::frame::{frame_of, push_error};
use crate::protocol::numbers::event;
use crate::store::{on_file_thread, on_thread};

/// The kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Event {
    Opened = event::OPENED,
    OpenFailed = event::OPEN_FAILED,
    Read = event::READ,
    ReadFailed = event::READ_FAILED,
    Settled = event::SETTLED,
    Watch = event::WATCH,
    WatchEnd = event::WATCH_END,
    Delivery = event::DELIVERY,
    ListenEnd = event::LISTEN_END,
    Replied = event::REPLIED,
    CallFailed = event::CALL_FAILED,
    LockLost = event::LOCK_LOST,
}

impl Event {
    /// The event with an error record that replaces this one if its bytes cannot be sent. SETTLED
    /// and LOCK_LOST have none, because they are short.
    fn failing(self) -> Option<Self> {
        match self {
            Self::Opened | Self::OpenFailed => Some(Self::OpenFailed),
            Self::Read | Self::ReadFailed => Some(Self::ReadFailed),
            Self::Watch | Self::WatchEnd => Some(Self::WatchEnd),
            Self::Delivery | Self::ListenEnd => Some(Self::ListenEnd),
            Self::Replied | Self::CallFailed => Some(Self::CallFailed),
            Self::Settled | Self::LockLost => None,
        }
    }
}

/// An event that waits for the JavaScript thread.
struct QueuedEvent {
    event: Event,
    id: f64,
    data: Option<Vec<u8>>,
}

/// A thread-safe function; `None` once its environment is gone.
struct Port(RwLock<Option<sys::napi_threadsafe_function>>);

// SAFETY: any thread may use a thread-safe function of Node-API; the lock keeps every use before
// the finalizer, which removes the pointer.
unsafe impl Send for Port {}
// SAFETY: as above.
unsafe impl Sync for Port {}

/// Sends events to one callback on its thread. After the end of that thread events are dropped.
#[derive(Clone)]
pub(super) struct Events(Arc<Port>);

impl Events {
    /// Makes `callback` the receiver of events, which do not keep the event loop alive.
    pub(super) fn new(env: &Env, callback: sys::napi_value) -> Result<Self> {
        let port = Arc::new(Port(RwLock::new(None)));
        let mut name = ptr::null_mut();
        let mut function = ptr::null_mut();
        // SAFETY: every pointer is valid for the call; `finalize` takes back the reference that is
        // passed as finalize data.
        unsafe {
            let text = c"openkv".as_ptr();
            check(sys::napi_create_string_utf8(env.raw(), text, 6, &mut name), "naming the port")?;
            let code = sys::napi_create_threadsafe_function(
                env.raw(),
                callback,
                ptr::null_mut(),
                name,
                0,
                1,
                Arc::into_raw(port.clone()).cast_mut().cast(),
                Some(finalize),
                ptr::null_mut(),
                Some(deliver),
                &mut function,
            );
            check(code, "making the port")?;
            check(sys::napi_unref_threadsafe_function(env.raw(), function), "unref of the port")?;
        }
        *port.0.write() = Some(function);
        Ok(Self(port))
    }

    /// Sets whether pending events keep the event loop alive.
    pub(super) fn keep_alive(&self, env: &Env, keep: bool) {
        let port = self.0.0.read();
        let Some(function) = *port else { return };
        // SAFETY: called on the function's own thread, before it is finalized.
        let code = unsafe {
            if keep {
                sys::napi_ref_threadsafe_function(env.raw(), function)
            } else {
                sys::napi_unref_threadsafe_function(env.raw(), function)
            }
        };
        debug_assert_eq!(code, sys::Status::napi_ok);
    }

    /// Sends an event with its bytes.
    pub(super) fn send(&self, event: Event, id: f64, data: Option<Vec<u8>>) {
        let port = self.0.0.read();
        let Some(function) = *port else { return };
        let sent = Box::into_raw(Box::new(QueuedEvent { event, id, data }));
        // SAFETY: the lock is held, so the function has not been finalized.
        let code = unsafe {
            sys::napi_call_threadsafe_function(
                function,
                sent.cast(),
                sys::ThreadsafeFunctionCallMode::nonblocking,
            )
        };
        if code != sys::Status::napi_ok {
            // SAFETY: the call did not take the pointer, so this code still owns it.
            drop(unsafe { Box::from_raw(sent) });
        }
    }

    /// Sends an error record.
    pub(super) fn send_error(&self, event: Event, id: f64, error: &Error) {
        self.send(event, id, Some(frame_of(|out| push_error(out, error))));
    }
}

/// Called when the environment ends: no event may be sent any more.
unsafe extern "C" fn finalize(_env: sys::napi_env, port: *mut c_void, _hint: *mut c_void) {
    // SAFETY: the pointer is the `Arc` that `attach` has passed; it is taken back once.
    let port: Arc<Port> = unsafe { Arc::from_raw(port.cast()) };
    *port.0.write() = None;
}

/// On the JavaScript thread: calls the callback.
unsafe extern "C" fn deliver(
    env: sys::napi_env,
    callback: sys::napi_value,
    _context: *mut c_void,
    sent: *mut c_void,
) {
    // SAFETY: the pointer is the box that `send` made, delivered once.
    let sent: Box<QueuedEvent> = unsafe { Box::from_raw(sent.cast()) };
    if env.is_null() || callback.is_null() {
        return;
    }
    let QueuedEvent { event, id, data } = *sent;
    let made = data.as_deref().map(|bytes| buffer(env, bytes).ok_or(bytes.len()));
    let (event, data) = match (made, event.failing()) {
        (Some(Ok(data)), _) => (event, Some(data)),
        (Some(Err(len)), Some(failing)) => (failing, buffer(env, &too_large(len))),
        (Some(Err(_)) | None, _) => (event, None),
    };
    // SAFETY: `env` is live and on its thread; every out pointer is valid.
    unsafe {
        let mut this = ptr::null_mut();
        let mut kind = ptr::null_mut();
        let mut number = ptr::null_mut();
        let mut null = ptr::null_mut();
        sys::napi_get_undefined(env, &mut this);
        sys::napi_get_null(env, &mut null);
        sys::napi_create_uint32(env, u32::from(event as u8), &mut kind);
        sys::napi_create_double(env, id, &mut number);
        let arguments = [kind, number, data.unwrap_or(null)];
        let mut answer = ptr::null_mut();
        sys::napi_call_function(env, this, callback, 3, arguments.as_ptr(), &mut answer);
    }
}

/// The error record of an event with so many bytes.
fn too_large(len: usize) -> Vec<u8> {
    let why = format!("The answer is too large for a Buffer ({len} bytes): ask for fewer entries");
    frame_of(|out| push_error(out, &Error::unsupported(why)))
}

/// A `Buffer` with a copy of the bytes; `None` if it cannot be allocated.
fn buffer(env: sys::napi_env, bytes: &[u8]) -> Option<sys::napi_value> {
    let (start, mut made, mut thrown) = (bytes.as_ptr().cast(), ptr::null_mut(), ptr::null_mut());
    // SAFETY: called by `deliver` with a live environment, on its thread; every out pointer is
    // valid. A failure may have thrown; a pending exception would make every later call fail.
    unsafe {
        let code =
            sys::napi_create_buffer_copy(env, bytes.len(), start, ptr::null_mut(), &mut made);
        if code == sys::Status::napi_ok {
            return Some(made);
        }
        sys::napi_get_and_clear_last_exception(env, &mut thrown);
    }
    None
}

/// The reply to a request that ends with one of two events.
pub(super) struct Reply {
    events: Events,
    id: f64,
    good: Event,
    bad: Event,
    answered: bool,
}

impl Reply {
    pub(super) fn new(events: Events, id: f64, good: Event, bad: Event) -> Self {
        Self { events, id, good, bad, answered: false }
    }

    /// Runs long work on a separate thread; answers `Unavailable` if the thread cannot be started.
    pub(super) fn on_thread(self, name: &str, work: impl FnOnce(Self) + Send + 'static) {
        on_thread(name, self, work, |reply, error| reply.bad(&error));
    }

    /// As [`Reply::on_thread`], for work that opens a database.
    pub(super) fn on_file_thread(self, work: impl FnOnce(Self) + Send + 'static) {
        on_file_thread(self, work, |reply, error| reply.bad(&error));
    }

    /// As the reply of a call. An empty answer becomes an event without bytes.
    pub(super) fn of_call(self) -> call::Reply {
        let bytes = |data: Vec<u8>| Some(data).filter(|data| !data.is_empty());
        call::Reply::new(move |answer| self.tell(answer.map(bytes)))
    }

    /// Sends the first event with these bytes, or the second with an error.
    pub(super) fn tell(self, answer: std::result::Result<Option<Vec<u8>>, impl Into<Error>>) {
        match answer {
            Ok(data) => self.good(data),
            Err(error) => self.bad(&error.into()),
        }
    }

    pub(super) fn good(mut self, data: Option<Vec<u8>>) {
        self.answered = true;
        self.events.send(self.good, self.id, data);
    }

    /// As the reply of a read, whose answer is never empty.
    pub(super) fn of_read(self) -> call::Reply {
        call::Reply::new(move |answer| self.tell(answer.map(Some)))
    }

    /// Sends the second event without an error, at the end of a stream.
    pub(super) fn over(mut self) {
        self.answered = true;
        self.events.send(self.bad, self.id, None);
    }

    pub(super) fn bad(mut self, error: &Error) {
        self.answered = true;
        self.events.send_error(self.bad, self.id, error);
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if !self.answered {
            let error = Error::internal("a request was not answered; please report this");
            self.events.send_error(self.bad, self.id, &error);
        }
    }
}
