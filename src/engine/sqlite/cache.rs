//! How often a connection found a page in its cache.

use std::ffi::c_int;

use rusqlite::{Connection, ffi};

/// Hits and misses since the last call.
pub(super) fn taken(connection: &Connection) -> (u64, u64) {
    let take = |which| {
        let (mut current, mut highest): (c_int, c_int) = (0, 0);
        // SAFETY: the connection is borrowed, and with it this thread's alone; both places are
        // valid. A failure leaves zeros.
        unsafe {
            ffi::sqlite3_db_status(connection.handle(), which, &mut current, &mut highest, 1);
        }
        u64::try_from(current).unwrap_or(0)
    };
    (take(ffi::SQLITE_DBSTATUS_CACHE_HIT), take(ffi::SQLITE_DBSTATUS_CACHE_MISS))
}
