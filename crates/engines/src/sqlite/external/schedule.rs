//! The times at which files are checked: at growing intervals after an announcement, otherwise at a
//! slow interval that all files share.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use openkv_core::model::{
    EXTERNAL_POLL_MS, EXTERNAL_POLL_UNANNOUNCED_MS, EXTERNAL_RETRY_MS, EXTERNAL_RETRY_MS_MAX,
};

/// The number of a watched file.
pub(super) type FileId = u64;

/// Delay of the first check after an announcement; it doubles for each further one.
const FIRST_LOOK: Duration = Duration::from_millis(1);

/// The polling interval of files.
pub(super) fn tick(announced: bool) -> Duration {
    Duration::from_millis(if announced { EXTERNAL_POLL_MS } else { EXTERNAL_POLL_UNANNOUNCED_MS })
}

/// Pause before another request to the operating system, after so many refusals.
pub(super) fn retry_delay(refusals: u32) -> Duration {
    let doubled = EXTERNAL_RETRY_MS.saturating_mul(1 << refusals.saturating_sub(1).min(16));
    Duration::from_millis(doubled.min(EXTERNAL_RETRY_MS_MAX))
}

/// The next check of an announced file.
struct Look {
    at: Instant,
    wait: Duration,
}

/// The times of the next checks.
pub(super) struct Schedule {
    /// The time at which all files are checked.
    tick_at: Instant,
    announced: HashMap<FileId, Look>,
}

/// The files to check.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Due {
    All,
    Files(Vec<FileId>),
}

impl Schedule {
    pub(super) fn new(now: Instant) -> Self {
        Self { tick_at: now, announced: HashMap::new() }
    }

    /// Adds a file, which is checked at once.
    pub(super) fn came(&mut self, file: FileId, now: Instant) {
        self.announced.insert(file, Look { at: now, wait: FIRST_LOOK });
    }

    /// Schedules checks after an announcement. An earlier check keeps its time, so frequent
    /// announcements do not postpone it.
    pub(super) fn announced(&mut self, file: FileId, now: Instant) {
        let first = now + FIRST_LOOK;
        let at = self.announced.get(&file).map_or(first, |look| look.at.min(first));
        self.announced.insert(file, Look { at, wait: FIRST_LOOK });
    }

    pub(super) fn left(&mut self, file: FileId) {
        self.announced.remove(&file);
    }

    /// The time of the next check.
    pub(super) fn next(&self) -> Instant {
        self.announced.values().map(|look| look.at).fold(self.tick_at, Instant::min)
    }

    /// Takes the files that are due and schedules their next check, at most `tick` from now.
    pub(super) fn take(&mut self, now: Instant, tick: Duration) -> Due {
        // A shorter interval takes effect at once.
        self.tick_at = self.tick_at.min(now + tick);
        let mut due = Vec::new();
        self.announced.retain(|file, look| {
            if look.at > now {
                return true;
            }
            due.push(*file);
            *look = Look { at: now + look.wait, wait: look.wait * 2 };
            look.wait < tick
        });
        if self.tick_at > now {
            return Due::Files(due);
        }
        self.tick_at = now + tick;
        Due::All
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn looks_of(schedule: &mut Schedule, from: Instant, until: Duration) -> Vec<u128> {
        let mut looks = Vec::new();
        loop {
            let now = schedule.next();
            if now > from + until {
                return looks;
            }
            match schedule.take(now, SECOND) {
                Due::All => looks.push((now - from).as_millis()),
                Due::Files(files) if files.is_empty() => {}
                Due::Files(files) => {
                    assert_eq!(files, [7]);
                    looks.push((now - from).as_millis());
                }
            }
        }
    }

    #[test]
    fn the_interval_of_checks_grows_up_to_the_tick() {
        let start = Instant::now();
        let mut schedule = Schedule::new(start);
        assert_eq!(schedule.take(start, SECOND), Due::All);
        schedule.announced(7, start);
        let looks = looks_of(&mut schedule, start, 3 * SECOND);
        assert_eq!(looks, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000, 2000, 3000]);
    }

    #[test]
    fn frequent_announcements_do_not_postpone_a_check() {
        let start = Instant::now();
        let mut schedule = Schedule::new(start + SECOND);
        schedule.announced(7, start);
        schedule.announced(7, start + FIRST_LOOK / 2);
        assert_eq!(schedule.next(), start + FIRST_LOOK);
        schedule.left(7);
        assert_eq!(schedule.next(), start + SECOND);
    }

    #[test]
    fn files_without_an_announcement_share_one_wakeup() {
        let start = Instant::now();
        let mut schedule = Schedule::new(start);
        for file in 0..300 {
            schedule.came(file, start);
        }
        let mut wakeups = 0;
        while schedule.next() < start + 100 * SECOND {
            let now = schedule.next();
            schedule.take(now, SECOND);
            wakeups += 1;
        }
        assert!(wakeups < 120, "{wakeups} wakeups");
    }

    #[test]
    fn a_shorter_tick_takes_effect_at_once() {
        let start = Instant::now();
        let mut schedule = Schedule::new(start);
        assert_eq!(schedule.take(start, SECOND), Due::All);
        assert_eq!(schedule.take(start, SECOND / 50), Due::Files(Vec::new()));
        assert_eq!(schedule.next(), start + SECOND / 50);
    }

    #[test]
    fn the_pause_after_refusals_grows() {
        assert_eq!(retry_delay(1), Duration::from_millis(EXTERNAL_RETRY_MS));
        assert_eq!(retry_delay(2), Duration::from_millis(EXTERNAL_RETRY_MS * 2));
        assert_eq!(retry_delay(u32::MAX), Duration::from_millis(EXTERNAL_RETRY_MS_MAX));
    }
}
