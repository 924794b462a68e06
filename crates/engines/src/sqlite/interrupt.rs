//! Cancels work on a connection whose caller no longer waits.

use rusqlite::Connection;

use super::errors::failure;
use crate::GoesOn;
use openkv_core::model::{Error, LONG_READ_INSTRUCTIONS, Result};

/// Runs `work`. SQLite checks `goes_on` during long statements; `false` makes the statement fail.
pub(super) fn interruptible<T>(
    connection: &mut Connection,
    goes_on: &GoesOn,
    work: impl FnOnce(&Connection) -> Result<T>,
) -> Result<T> {
    let wanted = goes_on.clone();
    connection
        .progress_handler(LONG_READ_INSTRUCTIONS, Some(move || !wanted()))
        .map_err(failure)?;
    let done = work(connection);
    let removed = connection.progress_handler(0, None::<fn() -> bool>).map_err(failure);
    done.and_then(|done| removed.map(|()| done))
}

/// As [`interruptible`], with an error for cancelled work.
///
/// # Errors
/// `Closed` if `goes_on` returned `false`; the errors of `work`.
pub(super) fn interrupted_unless<T>(
    connection: &mut Connection,
    goes_on: &GoesOn,
    work: impl FnOnce(&Connection) -> Result<T>,
) -> Result<T> {
    if !goes_on() {
        return Err(Error::closed());
    }
    let done = interruptible(connection, goes_on, work);
    done.map_err(|error| if goes_on() { error } else { Error::closed() })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    use rusqlite::Connection;

    use super::*;
    use crate::sqlite::fresh;
    use crate::{Engine, Maintenance, Writer};
    use openkv_core::model::Kind;

    const ENTRIES: &str = "
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
        INSERT INTO kv SELECT unhex('02' || hex(printf('%08d', i)) || '00'), zeroblob(100), 3, 0, 0, -1 FROM n;
        DELETE FROM kv WHERE k >= unhex('02' || hex('00004000') || '00');
    ";

    /// A vacuum and an integrity check once continued to their end although their caller had gone.
    #[test]
    fn cancelled_work_ends_and_leaves_the_file_unchanged() {
        let (engine, folder) = fresh();
        let other = Connection::open(folder.path().join("kv")).unwrap();
        // As a file of Deno, which is written anew.
        other.execute_batch("PRAGMA auto_vacuum = NONE; VACUUM").unwrap();
        other.execute_batch(ENTRIES).unwrap();
        let mut writer = engine.writer().unwrap();
        let deadline = Instant::now() + Duration::from_secs(5);
        let always: GoesOn = Arc::new(|| true);
        for asks in [0, 1, 3] {
            // Each of them checks more often than that.
            let after = || -> GoesOn {
                let calls = AtomicUsize::new(0);
                Arc::new(move || calls.fetch_add(1, Ordering::SeqCst) < asks)
            };
            let ended = writer.vacuum(deadline, &after()).map_err(|error| error.kind());
            assert_eq!(ended, Err(Kind::Closed), "a vacuum, after {asks}");
            let ended = engine.check(100, &after()).map_err(|error| error.kind());
            assert_eq!(ended, Err(Kind::Closed), "a check, after {asks}");
            assert_eq!(engine.check(100, &always).unwrap(), Vec::<String>::new());
        }
        let done = writer.vacuum(deadline, &always).unwrap();
        assert!(done.after_bytes < done.before_bytes, "{done:?}");
    }
}
