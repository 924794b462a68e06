//! Dead messages and the sync of a transaction.

use super::*;
use std::time::{Duration, Instant};

use crate::sqlite::fresh;
use crate::{Engine, Work, Writer};
use openkv_core::model::{AtomicWrite, Key, Limits, WriteParts};

/// A transaction without a sync failed an expired lock. The value of the dead message was read,
/// a power loss undid the transaction, and its versionstamp was assigned again.
#[test]
fn the_undelivered_value_of_a_dead_message_is_synced() {
    let (engine, _folder) = fresh();
    let mut writer = engine.writer().unwrap();
    let key = Key::from_encoded(vec![2, b'k', 0]);
    let message =
        Message { keys_if_undelivered: vec![key.clone()], value: vec![1], ..Message::default() };
    let parts = WriteParts { messages: vec![message], ..WriteParts::default() };
    let writes = vec![AtomicWrite::new(parts, &Limits::default()).unwrap()];
    let deadline = Instant::now() + Duration::from_secs(5);
    writer.apply(Work { writes, ..Work::default() }, 0, deadline).unwrap();
    let mut claim = |now_ms| {
        let claims = vec![Claim { queue: String::new(), max: 1, lock_ms: 10, lock: 7 }];
        let report = writer.apply(Work { claims, ..Work::default() }, now_ms, deadline).unwrap();
        let level = "PRAGMA synchronous";
        let level: i64 = writer.connection().query_row(level, [], |row| row.get(0)).unwrap();
        (report.deliveries[0].len(), report.touched, level)
    };
    let (full, normal) = (2, 1);
    assert_eq!(claim(0), (1, vec![], normal));
    assert_eq!(claim(9), (0, vec![], normal));
    assert_eq!(claim(10), (0, vec![key], full));
}
