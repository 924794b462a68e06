//! The page cache as SQLite calls it, and as this module reads it beside SQLite.
//!
//! Duty: hand each call on to the pages of its cache.
//! Invariant: between two calls of SQLite on a connection, each page of its cache has the content that SQLite has read or written.
//! Never: a panic, which cannot pass SQLite.

use std::cell::{RefCell, UnsafeCell};
use std::ffi::{c_int, c_uint, c_void};
use std::ptr;
use std::sync::{Arc, Once};

use rusqlite::ffi;

use super::memory::{Memory, Page};
use super::pages::{Make, Pages};

/// The cache of one file of a connection.
struct Cache {
    pages: Pages<Page>,
    memory: Memory,
    /// The pages that were read beside SQLite since they were counted.
    looks: u64,
}

impl Cache {
    fn fetch(&mut self, number: u32, make: Make) -> Option<Page> {
        if let Some(page) = self.pages.pin(number) {
            return Some(page);
        }
        if !self.pages.may_make(make) {
            return None;
        }
        let room = self.pages.replace_at_bound().or_else(|| self.memory.take());
        let page = room.or_else(|| self.pages.replace_one())?;
        if !self.pages.add(number, page) {
            self.put([page]);
            return None;
        }
        // SAFETY: it is not freed.
        unsafe { page.begin_anew(number) };
        Some(page)
    }

    /// Puts pages back that the table has no more.
    fn put(&mut self, pages: impl IntoIterator<Item = Page>) {
        // SAFETY: pages of the table are from this memory, and each comes out of it once.
        pages.into_iter().for_each(|page| unsafe { self.memory.put(page) });
    }

    fn truncate(&mut self, from: u32) {
        let Self { pages, memory, .. } = self;
        // SAFETY: as in `put`.
        if pages.truncate(from, |page| unsafe { memory.put(page) }) {
            memory.give_back(0);
        }
    }

    fn shrink(&mut self) {
        let Self { pages, memory, .. } = self;
        // SAFETY: as in `put`.
        pages.shrink(|page| unsafe { memory.put(page) });
        memory.give_back(pages.count());
    }

    fn set_bound(&mut self, bound: usize) {
        let Self { pages, memory, .. } = self;
        // SAFETY: as in `put`.
        pages.set_bound(bound, |page| unsafe { memory.put(page) });
    }
}

/// A cache that SQLite and this module read. SQLite's pointer to it is one of the counted.
type Shared = Arc<UnsafeCell<Cache>>;

thread_local! {
    /// The last cache that was made during [`caught`].
    static CAUGHT: RefCell<Option<Option<CachedPages>>> = const { RefCell::new(None) };
}

/// The pages that the cache of a connection has.
#[derive(Clone)]
pub(in super::super) struct CachedPages(Shared);

// SAFETY: a connection, its cache and this belong to one thread at a time, and move together.
unsafe impl Send for CachedPages {}

impl CachedPages {
    /// The content of a page that the cache has.
    ///
    /// # Safety
    /// The connection of the cache belongs to this thread, and during `'a` no call of SQLite is made on it.
    pub(in super::super) unsafe fn page<'a>(&self, number: u32) -> Option<&'a [u8]> {
        // SAFETY: no other call uses the cache, by the caller's condition; a page of the table is not freed, and only SQLite
        // changes it.
        unsafe {
            let cache = &mut *self.0.get();
            let page = cache.pages.peek(number)?;
            cache.looks += 1;
            Some(cache.memory.content(page))
        }
    }

    /// How many pages were read by [`Self::page`] since the last call.
    ///
    /// # Safety
    /// The connection of the cache belongs to this thread.
    pub(super) unsafe fn take_looks(&self) -> u64 {
        // SAFETY: the caller's condition.
        unsafe { std::mem::take(&mut (*self.0.get()).looks) }
    }
}

/// Opens a connection with `open`, and returns the cache of its main file too: the last one that it has made. SQLite makes
/// another one once it knows the size of the pages. `None` if SQLite keeps its own cache.
pub(in super::super) fn caught<T>(open: impl FnOnce() -> T) -> (T, Option<CachedPages>) {
    CAUGHT.set(Some(None));
    let opened = open();
    (opened, CAUGHT.take().flatten())
}

/// Makes SQLite use these caches, for all connections of the process. It must be called before anything else that SQLite
/// does in it; later calls, and other copies of SQLite, change nothing.
pub(in super::super) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let methods = ffi::sqlite3_pcache_methods2 {
            iVersion: 1,
            pArg: ptr::null_mut(),
            xInit: Some(init),
            xShutdown: None,
            xCreate: Some(create),
            xCachesize: Some(set_bound),
            xPagecount: Some(count),
            xFetch: Some(fetch),
            xUnpin: Some(unpin),
            xRekey: Some(renumber),
            xTruncate: Some(truncate),
            xDestroy: Some(destroy),
            xShrink: Some(shrink),
        };
        // SAFETY: SQLite copies the methods, or refuses because it has begun its work.
        let code =
            unsafe { ffi::sqlite3_config(ffi::SQLITE_CONFIG_PCACHE2, ptr::from_ref(&methods)) };
        if code != ffi::SQLITE_OK {
            tracing::warn!("SQLite keeps its own page cache");
        }
    });
}

/// # Safety
/// SQLite has the pointer from [`create`], and calls from one thread at a time.
unsafe fn cache<'a>(cache: *mut ffi::sqlite3_pcache) -> &'a mut Cache {
    // SAFETY: the caller's condition.
    unsafe { &mut *(*cache.cast::<UnsafeCell<Cache>>()).get() }
}

unsafe extern "C" fn init(_: *mut c_void) -> c_int {
    ffi::SQLITE_OK
}

unsafe extern "C" fn create(
    page_bytes: c_int,
    extra_bytes: c_int,
    replaces: c_int,
) -> *mut ffi::sqlite3_pcache {
    let (Ok(page), Ok(extra)) = (usize::try_from(page_bytes), usize::try_from(extra_bytes)) else {
        return ptr::null_mut();
    };
    let Some(memory) = Memory::new(page, extra) else { return ptr::null_mut() };
    // Only this thread has the connection.
    #[allow(clippy::arc_with_non_send_sync)]
    let cache: Shared =
        Arc::new(UnsafeCell::new(Cache { pages: Pages::new(replaces != 0), memory, looks: 0 }));
    CAUGHT.with_borrow_mut(|caught| {
        if let Some(last) = caught {
            *last = Some(CachedPages(Arc::clone(&cache)));
        }
    });
    Arc::into_raw(cache).cast_mut().cast()
}

/// Whoever has the cache besides SQLite finds no page in it any more.
unsafe extern "C" fn destroy(own: *mut ffi::sqlite3_pcache) {
    // SAFETY: SQLite gives a cache of `create`.
    let cache = unsafe { cache(own) };
    cache.truncate(0);
    cache.shrink();
    // SAFETY: it is the pointer of `create`, and SQLite does not use it again.
    drop(unsafe { Shared::from_raw(own.cast_const().cast()) });
}

unsafe extern "C" fn set_bound(own: *mut ffi::sqlite3_pcache, pages: c_int) {
    // SAFETY: SQLite gives a cache of `create`.
    unsafe { cache(own) }.set_bound(usize::try_from(pages).unwrap_or(0));
}

unsafe extern "C" fn count(own: *mut ffi::sqlite3_pcache) -> c_int {
    // SAFETY: SQLite gives a cache of `create`.
    c_int::try_from(unsafe { cache(own) }.pages.count()).unwrap_or(c_int::MAX)
}

unsafe extern "C" fn fetch(
    own: *mut ffi::sqlite3_pcache,
    number: c_uint,
    make: c_int,
) -> *mut ffi::sqlite3_pcache_page {
    let make = match make {
        0 => Make::No,
        1 => Make::IfEasy,
        _ => Make::Always,
    };
    // SAFETY: SQLite gives a cache of `create`.
    unsafe { cache(own) }.fetch(number, make).map_or(ptr::null_mut(), Page::pointer)
}

unsafe extern "C" fn unpin(
    own: *mut ffi::sqlite3_pcache,
    page: *mut ffi::sqlite3_pcache_page,
    discard: c_int,
) {
    // SAFETY: SQLite gives a cache of `create`, and a page of `fetch`.
    unsafe {
        let cache = cache(own);
        if let Some(page) = Page::of(page) {
            let gone = cache.pages.unpin(page.number(), discard != 0);
            cache.put(gone);
        }
    }
}

unsafe extern "C" fn renumber(
    own: *mut ffi::sqlite3_pcache,
    page: *mut ffi::sqlite3_pcache_page,
    from: c_uint,
    to: c_uint,
) {
    // SAFETY: SQLite gives a cache of `create`, and a page of `fetch`.
    unsafe {
        let cache = cache(own);
        if let Some(page) = Page::of(page) {
            let gone = cache.pages.renumber(from, to);
            cache.put(gone);
            page.set_number(to);
        }
    }
}

unsafe extern "C" fn truncate(own: *mut ffi::sqlite3_pcache, from: c_uint) {
    // SAFETY: SQLite gives a cache of `create`.
    unsafe { cache(own) }.truncate(from);
}

unsafe extern "C" fn shrink(own: *mut ffi::sqlite3_pcache) {
    // SAFETY: SQLite gives a cache of `create`.
    unsafe { cache(own) }.shrink();
}
