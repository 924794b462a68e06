//! The memory of the pages of a cache.
//!
//! Duty: a small cache takes memory page by page, and a large one by large pages of the system: with those, the processor finds
//! what it reads with fewer looks into its own tables.
//! Invariant: SQLite's bytes of a page lie behind it in the same allocation, as SQLite reads some bytes behind the last cell of
//! a damaged page.

use std::alloc::{Layout, alloc, dealloc};
use std::ffi::c_void;
use std::mem::size_of;
use std::ptr::{self, NonNull};

use rusqlite::ffi;

/// The line of a processor's caches, in bytes.
pub(in super::super) const LINE_BYTES: usize = 64;

/// What is known of a page, behind its content and before the bytes that SQLite keeps with it.
#[repr(C)]
struct Head {
    /// The first member, so a pointer to it is one to the head.
    handle: ffi::sqlite3_pcache_page,
    number: u32,
    /// The page is an allocation of its own.
    is_alone: bool,
}

/// A page, as SQLite knows it.
#[derive(Clone, Copy)]
pub(super) struct Page(NonNull<Head>);

impl Page {
    /// # Safety
    /// SQLite has the pointer from [`Page::pointer`], and the page is not freed.
    pub(super) unsafe fn of(page: *mut ffi::sqlite3_pcache_page) -> Option<Self> {
        NonNull::new(page.cast()).map(Self)
    }

    pub(super) fn pointer(self) -> *mut ffi::sqlite3_pcache_page {
        self.0.as_ptr().cast()
    }

    /// # Safety
    /// The page is not freed.
    pub(super) unsafe fn number(self) -> u32 {
        // SAFETY: the caller's condition.
        unsafe { (*self.0.as_ptr()).number }
    }

    /// # Safety
    /// The page is not freed.
    pub(super) unsafe fn set_number(self, number: u32) {
        // SAFETY: the caller's condition; one thread at a time uses a cache.
        unsafe { (*self.0.as_ptr()).number = number }
    }

    /// Makes it a page of which SQLite knows nothing yet: by a null pointer at the beginning of its bytes.
    ///
    /// # Safety
    /// The page is not freed.
    pub(super) unsafe fn begin_anew(self, number: u32) {
        // SAFETY: the caller's condition; SQLite's bytes are aligned for a pointer, and have room for several.
        unsafe {
            self.set_number(number);
            (*self.0.as_ptr()).handle.pExtra.cast::<*mut c_void>().write(ptr::null_mut());
        }
    }
}

/// Pages that are allocations of their own, at most.
const ALONE_MAX: usize = 256;
/// A large page of the system, on x86-64 and most others.
const CHUNK_BYTES: usize = 2 * 1024 * 1024;

/// The memory of all pages of a cache.
pub(super) struct Memory {
    page_bytes: usize,
    /// Of a page with what belongs to it.
    layout: Layout,
    /// How many pages are allocations of their own.
    alone: usize,
    /// Each has [`Self::chunk`] bytes, and as many pages as fit.
    chunks: Vec<NonNull<u8>>,
    /// Pages that are not used.
    free: Vec<Page>,
}

impl Memory {
    /// For pages of so many bytes, with each of which SQLite keeps `extra_bytes`.
    pub(super) fn new(page_bytes: usize, extra_bytes: usize) -> Option<Self> {
        let bytes = page_bytes.checked_add(size_of::<Head>())?.checked_add(extra_bytes)?;
        let layout =
            Layout::from_size_align(bytes.next_multiple_of(LINE_BYTES), LINE_BYTES).ok()?;
        let (chunks, free) = (Vec::new(), Vec::new());
        let is_aligned = page_bytes.is_multiple_of(LINE_BYTES);
        is_aligned.then_some(Self { page_bytes, layout, alone: 0, chunks, free })
    }

    /// A page that is not used, if there is memory.
    pub(super) fn take(&mut self) -> Option<Page> {
        if self.free.is_empty() {
            self.add()?;
        }
        self.free.pop()
    }

    /// # Safety
    /// The page is from [`Self::take`], and nobody uses it any more.
    pub(super) unsafe fn put(&mut self, page: Page) {
        // There is room for every page.
        self.free.push(page);
    }

    /// Gives free memory back: that of pages that are alone, and all if no page is `used`.
    pub(super) fn give_back(&mut self, used: usize) {
        let (page_bytes, layout) = (self.page_bytes, self.layout);
        let mut given = 0;
        self.free.retain(|page| {
            // SAFETY: a page that is alone is an allocation of this layout, which begins with its content; nobody uses it.
            unsafe {
                let is_alone = (*page.0.as_ptr()).is_alone;
                if is_alone {
                    dealloc(page.0.cast::<u8>().sub(page_bytes).as_ptr(), layout);
                    given += 1;
                }
                !is_alone
            }
        });
        self.alone -= given;
        if used == 0 {
            self.free = Vec::new();
            for chunk in std::mem::take(&mut self.chunks) {
                // SAFETY: it was allocated with this layout, and nobody uses its pages.
                unsafe { dealloc(chunk.as_ptr(), Self::chunk()) }
            }
        }
    }

    /// The content of a page.
    ///
    /// # Safety
    /// The page is from [`Self::take`], SQLite has filled it, and during `'a` it is neither put back nor changed.
    pub(super) unsafe fn content<'a>(&self, page: Page) -> &'a [u8] {
        // SAFETY: the caller's condition; the content lies before the head.
        unsafe {
            let content = page.0.cast::<u8>().sub(self.page_bytes);
            std::slice::from_raw_parts(content.as_ptr(), self.page_bytes)
        }
    }

    fn chunk() -> Layout {
        // SAFETY: the alignment is a power of two, and the size a multiple of it.
        unsafe { Layout::from_size_align_unchecked(CHUNK_BYTES, CHUNK_BYTES) }
    }

    /// Adds pages that are not used.
    fn add(&mut self) -> Option<()> {
        let in_chunk = CHUNK_BYTES / self.layout.size();
        let is_alone = self.alone < ALONE_MAX || in_chunk == 0;
        let count = if is_alone { 1 } else { in_chunk };
        let all = self.alone + self.chunks.len() * in_chunk + count;
        self.free.try_reserve(all).ok()?;
        self.chunks.try_reserve(1).ok()?;
        let layout = if is_alone { self.layout } else { Self::chunk() };
        // SAFETY: both layouts have at least the bytes of a head.
        let memory = NonNull::new(unsafe { alloc(layout) })?;
        if is_alone {
            self.alone += 1;
        } else {
            prefer_large_page(memory);
            self.chunks.push(memory);
        }
        for index in 0..count {
            // SAFETY: the memory has room for so many pages, each with its content, a head and SQLite's bytes, in this order. The
            // content ends at a multiple of the alignment of a head.
            unsafe {
                let content = memory.add(index * self.layout.size());
                let head = content.add(self.page_bytes).cast::<Head>();
                let handle = ffi::sqlite3_pcache_page {
                    pBuf: content.as_ptr().cast(),
                    pExtra: head.add(1).as_ptr().cast(),
                };
                head.write(Head { handle, number: 0, is_alone });
                self.free.push(Page(head));
            }
        }
        Some(())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.give_back(0);
    }
}

/// Asks the system for a large page. Without one, the memory is as any other.
fn prefer_large_page(chunk: NonNull<u8>) {
    #[cfg(target_os = "linux")]
    // SAFETY: the memory is a chunk's, and its content does not change.
    unsafe {
        libc::madvise(chunk.as_ptr().cast(), CHUNK_BYTES, libc::MADV_HUGEPAGE);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = chunk;
}
