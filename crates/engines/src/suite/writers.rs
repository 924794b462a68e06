//! Several writers on one database.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

pub(super) fn two_writers_do_not_interleave(engine: &impl Engine) {
    // Two writers stand for two processes; every sum must count.
    let engine_writers = [engine.writer().unwrap(), engine.writer().unwrap()];
    let done = Arc::new(AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for mut writer in engine_writers {
            let done = done.clone();
            scope.spawn(move || {
                for _ in 0..50 {
                    let decisions = mutate(&mut writer, vec![sum("n", 1)]);
                    assert!(matches!(decisions[0], Decision::Committed(_)));
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let (_, value) = get(&mut engine.reader().unwrap(), "n").unwrap();
    assert_eq!(value, 100_u64.to_le_bytes());
}
