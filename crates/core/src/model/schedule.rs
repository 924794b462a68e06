//! Schedules: messages that a queue gets at due times, by a cron pattern or at an interval.
//!
//! A schedule is kept as a message of the queue [`SCHEDULES_QUEUE`], which is due at the next due time. So every
//! engine, log and archive carries it as it carries messages.

use croner::errors::CronError;
use croner::parser::{CronParser, Seconds, Year};
use croner::{Cron, CronPattern, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

use super::{
    CRON_BYTES_MAX, Error, Result, SCHEDULE_INTERVAL_MS_MAX, SCHEDULE_INTERVAL_MS_MIN,
    SCHEDULE_MISSED_MS, SCHEDULE_NAME_BYTES_MAX, SCHEDULE_YEARS_MAX, SCHEDULES_QUEUE,
};

/// When a schedule is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Timing {
    /// At the times of a cron pattern.
    Cron {
        /// The pattern, with five fields, or six with seconds in front, or seven with years behind.
        pattern: String,
        /// The IANA name of the time zone of the pattern.
        zone: String,
    },
    /// At all times that are the offset after a multiple of the interval since the epoch.
    Every {
        /// In ms.
        every_ms: i64,
        /// In ms, less than the interval.
        offset_ms: i64,
    },
}

/// What happens for due times that no process could keep, for [`SCHEDULE_MISSED_MS`] or longer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missed {
    /// They give no message.
    Skip,
    /// All of them give one message together.
    #[default]
    Once,
    /// Each gives its message.
    All,
}

impl Missed {
    /// All ways.
    pub const ALL: [Self; 3] = [Self::Skip, Self::Once, Self::All];

    /// Its name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Once => "once",
            Self::All => "all",
        }
    }
}

/// A schedule of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    name: String,
    timing: Timing,
    missed: Missed,
    /// Made of the timing once, since reading a pattern takes longer than a search.
    times: Times,
}

/// A change of the schedules of a queue. Its message has the queue and what each message of the schedule is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleChange {
    /// The queue has this schedule, in place of one with the same name.
    Set(Schedule),
    /// The queue has no schedule with this name.
    Remove(String),
}

impl ScheduleChange {
    /// The name of the schedule.
    pub fn name(&self) -> &str {
        match self {
            Self::Set(schedule) => &schedule.name,
            Self::Remove(name) => name,
        }
    }
}

/// The messages of a schedule that are due.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Firing {
    /// Their due times, in order, in ms since the epoch.
    pub due_ms: Vec<i64>,
    /// The next due time, which may be in the past; `None` if there is none.
    pub next_ms: Option<i64>,
}

impl Schedule {
    /// Checks the name, the pattern, the zone and the interval.
    ///
    /// # Errors
    /// `Invalid`, with the argument, its bounds and what was given.
    pub fn new(name: String, timing: Timing, missed: Missed) -> Result<Self> {
        check_name(&name)?;
        let times = match &timing {
            Timing::Every { every_ms, offset_ms } => every(*every_ms, *offset_ms)?,
            Timing::Cron { pattern, zone } => cron(pattern, zone)?,
        };
        let schedule = Self { name, timing, missed, times };
        if let Times::Cron(cron, _) = &schedule.times
            && !has_a_day(&cron.pattern)
        {
            return Err(schedule.never_due("no month has such a day"));
        }
        Ok(schedule)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// When it is due.
    pub fn timing(&self) -> &Timing {
        &self.timing
    }

    /// What happens for due times that no process could keep.
    pub fn missed(&self) -> Missed {
        self.missed
    }

    /// The first due time after `now_ms`.
    ///
    /// # Errors
    /// `Invalid` if there is none, by a pattern within [`SCHEDULE_YEARS_MAX`].
    pub fn first_after(&self, now_ms: i64) -> Result<i64> {
        self.times.clone().after(now_ms).ok_or_else(|| {
            self.never_due(&format!("there is no time in the next {SCHEDULE_YEARS_MAX} years"))
        })
    }

    fn never_due(&self, why: &str) -> Error {
        match &self.timing {
            Timing::Every { .. } => Error::invalid("schedule: every is too large: it is never due"),
            Timing::Cron { pattern, .. } => {
                Error::invalid(format!("schedule: cron never fires: {pattern:?}: {why}"))
            }
        }
    }

    /// The messages that are due at `now_ms`, if the first is due at `due_ms`, and the next due time. At most `max`
    /// messages: then the next due time is that of the first message that is left.
    pub fn fire(&self, due_ms: i64, now_ms: i64, max: usize) -> Firing {
        let mut times = self.times.clone();
        let kept_ms = now_ms.saturating_sub(SCHEDULE_MISSED_MS);
        let is_missed = due_ms <= kept_ms;
        let mut next = match (is_missed, self.missed) {
            (false, _) | (true, Missed::All) => Some(due_ms),
            (true, Missed::Skip | Missed::Once) => times.after(kept_ms),
        };
        let mut firing = Firing::default();
        while let Some(at) = next.filter(|at| *at <= now_ms)
            && firing.due_ms.len() < max
        {
            firing.due_ms.push(at);
            next = times.after(at);
        }
        if is_missed && self.missed == Missed::Once && firing.due_ms.is_empty() {
            let last = times.at_or_before(kept_ms).filter(|at| *at >= due_ms);
            firing.due_ms.push(last.unwrap_or(due_ms));
        }
        firing.next_ms = next;
        firing
    }
}

/// The deduplication key of a schedule in [`SCHEDULES_QUEUE`].
pub fn schedule_key(queue: &str, name: &str) -> String {
    format!("{}:{queue}{name}", queue.len())
}

/// Checks the name of a schedule.
///
/// # Errors
/// `Invalid`, with its bounds and what was given.
pub fn check_name(name: &str) -> Result<()> {
    let bytes = name.len();
    if bytes == 0 || bytes > SCHEDULE_NAME_BYTES_MAX {
        return Err(Error::invalid(format!(
            "schedule: name must have 1 to {SCHEDULE_NAME_BYTES_MAX} bytes: {bytes} bytes given"
        )));
    }
    if name.chars().any(char::is_control) {
        return Err(Error::invalid(format!(
            "schedule: name must have no control characters: received {name:?}"
        )));
    }
    Ok(())
}

/// Whether a queue is one of openkv's own, which no caller can name.
pub fn is_own_queue(queue: &str) -> bool {
    queue.starts_with(|first| SCHEDULES_QUEUE.starts_with(first))
}

/// A timing that can be calculated with.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Times {
    Every { every_ms: i64, offset_ms: i64 },
    Cron(Box<Cron>, TimeZone),
}

fn every(every_ms: i64, offset_ms: i64) -> Result<Times> {
    let (min, max) = (SCHEDULE_INTERVAL_MS_MIN, SCHEDULE_INTERVAL_MS_MAX);
    if !(min..=max).contains(&every_ms) {
        return Err(Error::invalid(format!(
            "schedule: every must be from {min} to {max} ms: {every_ms} given"
        )));
    }
    if !(0..every_ms).contains(&offset_ms) {
        return Err(Error::invalid(format!(
            "schedule: offset must be from 0 ms to less than every ({every_ms} ms): {offset_ms} given"
        )));
    }
    Ok(Times::Every { every_ms, offset_ms })
}

fn cron(pattern: &str, zone: &str) -> Result<Times> {
    if pattern.len() > CRON_BYTES_MAX {
        let bytes = pattern.len();
        return Err(Error::invalid(format!(
            "schedule: cron is too long (max {CRON_BYTES_MAX} bytes): {bytes} bytes given"
        )));
    }
    let refused = |error: CronError| {
        let why = error.to_string();
        let why = why.trim_end_matches('.');
        Error::invalid(format!("schedule: cron is invalid: {why}: received {pattern:?}"))
    };
    let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Optional).build();
    let cron = parser.parse(pattern).map_err(refused)?;
    let zone = TimeZone::get(zone).map_err(|_| {
        Error::invalid(format!(
            "schedule: timeZone must be a name of the IANA time zones, like \"Europe/Berlin\": received {zone:?}"
        ))
    })?;
    Ok(Times::Cron(Box::new(cron), zone))
}

/// Whether some month of a pattern can have a day of it. Without one a search would look at every day up to the last
/// year that `croner` knows. Each date has each weekday in some year, so all of them are tried.
fn has_a_day(pattern: &CronPattern) -> bool {
    const LEAP_AND_OTHER: [i32; 2] = [2024, 2025];
    let is_day = |month, day| {
        let weekdays = (0..7).map(Weekday::from_days_from_sunday);
        let mut dates =
            LEAP_AND_OTHER.into_iter().flat_map(|year| weekdays.clone().map(move |of| (year, of)));
        dates.any(|(year, weekday)| pattern.day_match(year, month, day, weekday).unwrap_or(false))
    };
    let mut months = (1..=12).filter(|month| pattern.month_match(*month).unwrap_or(false));
    months.any(|month| (1..=31).any(|day| is_day(month, day)))
}

impl Times {
    /// The first time after this one, by a pattern within [`SCHEDULE_YEARS_MAX`].
    fn after(&mut self, at_ms: i64) -> Option<i64> {
        match self {
            Self::Every { every_ms, offset_ms } => {
                let start = (at_ms - *offset_ms).div_euclid(*every_ms);
                start.checked_add(1)?.checked_mul(*every_ms)?.checked_add(*offset_ms)
            }
            Self::Cron(cron, zone) => {
                let from = second_of(at_ms, zone)?;
                // The search ends with an error there.
                cron.pattern.years.max = from.year().unsigned_abs() + SCHEDULE_YEARS_MAX;
                let found = cron.find_next_occurrence(&from, false);
                found.ok().map(|time| time.timestamp().as_millisecond())
            }
        }
    }

    /// The last time that is not after this one.
    fn at_or_before(&self, at_ms: i64) -> Option<i64> {
        match self {
            Self::Every { every_ms, offset_ms } => {
                Some((at_ms - offset_ms).div_euclid(*every_ms) * every_ms + offset_ms)
            }
            Self::Cron(cron, zone) => {
                let found = cron.find_previous_occurrence(&second_of(at_ms, zone)?, true);
                found.ok().map(|time| time.timestamp().as_millisecond())
            }
        }
    }
}

/// The beginning of the second of a time.
fn second_of(at_ms: i64, zone: &TimeZone) -> Option<Zoned> {
    let second = Timestamp::from_second(at_ms.div_euclid(1000)).ok()?;
    Some(second.to_zoned(zone.clone()))
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
