//! When to look at which file: soon and ever more seldom after an announcement, else at a slow
//! tick that all files share.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::model::{
    EXTERNAL_POLL_MS, EXTERNAL_POLL_UNANNOUNCED_MS, EXTERNAL_RETRY_MS, EXTERNAL_RETRY_MS_MAX,
};

/// The number of a watched file.
pub(super) type FileId = u64;

/// How soon after an announcement to look; each further wait is twice as long.
const FIRST_LOOK: Duration = Duration::from_millis(1);

/// The longest time between two looks at a file.
pub(super) fn tick(announced: bool) -> Duration {
    Duration::from_millis(if announced { EXTERNAL_POLL_MS } else { EXTERNAL_POLL_UNANNOUNCED_MS })
}

/// How long to wait before the operating system is asked again for what it has refused so often.
pub(super) fn retry_delay(refusals: u32) -> Duration {
    let doubled = EXTERNAL_RETRY_MS.saturating_mul(1 << refusals.saturating_sub(1).min(16));
    Duration::from_millis(doubled.min(EXTERNAL_RETRY_MS_MAX))
}

/// The next look at a file that was announced.
struct Look {
    at: Instant,
    wait: Duration,
}

/// The times of the next looks.
pub(super) struct Schedule {
    /// When all files are looked at.
    tick_at: Instant,
    announced: HashMap<FileId, Look>,
}

/// What is to be looked at.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Due {
    All,
    Files(Vec<FileId>),
}

impl Schedule {
    pub(super) fn new(now: Instant) -> Self {
        Self { tick_at: now, announced: HashMap::new() }
    }

    /// A file has just come: it is looked at now.
    pub(super) fn came(&mut self, file: FileId, now: Instant) {
        self.announced.insert(file, Look { at: now, wait: FIRST_LOOK });
    }

    /// A commit to a file is under way. A look that is nearer stays: announcements that follow each
    /// other quickly put none off.
    pub(super) fn announced(&mut self, file: FileId, now: Instant) {
        let first = now + FIRST_LOOK;
        let at = self.announced.get(&file).map_or(first, |look| look.at.min(first));
        self.announced.insert(file, Look { at, wait: FIRST_LOOK });
    }

    pub(super) fn left(&mut self, file: FileId) {
        self.announced.remove(&file);
    }

    /// When to come back.
    pub(super) fn next(&self) -> Instant {
        self.announced.values().map(|look| look.at).fold(self.tick_at, Instant::min)
    }

    /// Takes what is due, and sets the time of the look after it: at most `tick` from now.
    pub(super) fn take(&mut self, now: Instant, tick: Duration) -> Due {
        // A tick that has become shorter counts at once.
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
    fn looks_after_an_announcement_become_ever_rarer_until_only_the_tick_is_left() {
        let start = Instant::now();
        let mut schedule = Schedule::new(start);
        assert_eq!(schedule.take(start, SECOND), Due::All);
        schedule.announced(7, start);
        let looks = looks_of(&mut schedule, start, 3 * SECOND);
        assert_eq!(looks, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000, 2000, 3000]);
    }

    #[test]
    fn announcements_that_follow_each_other_put_no_look_off() {
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
    fn a_tick_that_becomes_shorter_counts_at_once() {
        let start = Instant::now();
        let mut schedule = Schedule::new(start);
        assert_eq!(schedule.take(start, SECOND), Due::All);
        assert_eq!(schedule.take(start, SECOND / 50), Due::Files(Vec::new()));
        assert_eq!(schedule.next(), start + SECOND / 50);
    }

    #[test]
    fn what_was_refused_is_asked_for_ever_more_seldom() {
        assert_eq!(retry_delay(1), Duration::from_millis(EXTERNAL_RETRY_MS));
        assert_eq!(retry_delay(2), Duration::from_millis(EXTERNAL_RETRY_MS * 2));
        assert_eq!(retry_delay(u32::MAX), Duration::from_millis(EXTERNAL_RETRY_MS_MAX));
    }
}
