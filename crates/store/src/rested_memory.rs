//! Memory that stores without work have freed.
//!
//! Duty: give it back to the system once many stores of the process rest: the allocator keeps what is free between
//! other allocations.
//! Never: for a few stores. It looks at all free memory of the process, and other allocations wait meanwhile.

use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::alarm::{Alarm, Wakes};
use openkv_core::model::{RESTED_LOOK_MS, RESTED_LOOKS_MAX, RESTED_MIN};

/// The writers and readers that came to rest since memory was last given back.
#[derive(Default)]
struct Rested {
    count: usize,
    /// Those at the last look, and the number of looks.
    seen: usize,
    looks: u32,
}

impl Rested {
    /// Whether this one begins a wait for more to come to rest.
    fn one_more(&mut self) -> bool {
        self.count += 1;
        self.count == RESTED_MIN
    }

    /// Whether to give memory back now: none came to rest since the last look, or that was long ago.
    fn is_over(&mut self) -> bool {
        self.looks += 1;
        let is_over = self.count == self.seen || self.looks > RESTED_LOOKS_MAX;
        self.seen = self.count;
        if is_over {
            *self = Self::default();
        }
        is_over
    }
}

struct FreedMemory {
    rested: Mutex<Rested>,
    alarm: Alarm,
}

impl FreedMemory {
    fn look_later(&self) {
        self.alarm.set(Some(Instant::now() + Duration::from_millis(RESTED_LOOK_MS)));
    }
}

impl Wakes for FreedMemory {
    fn wake(&self) {
        if self.rested.lock().is_over() {
            openkv_engines::give_back_freed_memory();
        } else {
            self.look_later();
        }
    }
}

/// A writer or a reader has given back what it can load again.
pub(super) fn one_rests() {
    static FREED: OnceLock<Arc<FreedMemory>> = OnceLock::new();
    let freed = FREED.get_or_init(|| {
        Arc::new_cyclic(|myself: &Weak<FreedMemory>| FreedMemory {
            rested: Mutex::default(),
            alarm: Alarm::new(myself.clone()),
        })
    });
    if freed.rested.lock().one_more() {
        freed.look_later();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_goes_back_once_many_rest_and_no_more_come() {
        let mut rested = Rested::default();
        let begun: Vec<_> = (0..RESTED_MIN + 2).filter(|_| rested.one_more()).collect();
        assert_eq!(begun, [RESTED_MIN - 1]);
        assert!(!rested.is_over());
        rested.one_more();
        assert!(!rested.is_over());
        assert!(rested.is_over());
        assert_eq!((rested.count, rested.looks), (0, 0));
    }

    #[test]
    fn memory_goes_back_at_last_if_more_and_more_come_to_rest() {
        let mut rested = Rested::default();
        let mut looks = 0;
        while {
            rested.one_more();
            !rested.is_over()
        } {
            looks += 1;
        }
        assert_eq!(looks, RESTED_LOOKS_MAX);
    }
}
