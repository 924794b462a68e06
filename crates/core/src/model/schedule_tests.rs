//! The tests of schedules: their due times, over changes of time zones too.

use super::*;

fn ms(time: &str) -> i64 {
    time.parse::<Timestamp>().unwrap().as_millisecond()
}

fn of_cron(pattern: &str, zone: &str, missed: Missed) -> Result<Schedule> {
    let timing = Timing::Cron { pattern: pattern.into(), zone: zone.into() };
    Schedule::new("s".into(), timing, missed)
}

fn of_interval(every_ms: i64, offset_ms: i64, missed: Missed) -> Result<Schedule> {
    Schedule::new("s".into(), Timing::Every { every_ms, offset_ms }, missed)
}

/// The next times after one, in UTC.
fn next(pattern: &str, zone: &str, from: &str, count: usize) -> Vec<String> {
    let schedule = of_cron(pattern, zone, Missed::Once).unwrap();
    let mut at = ms(from);
    let mut found = Vec::new();
    for _ in 0..count {
        at = schedule.first_after(at).unwrap();
        let time = Timestamp::from_millisecond(at).unwrap();
        found.push(time.strftime("%m-%dT%H:%M:%S").to_string());
    }
    found
}

#[test]
fn patterns_have_seconds_names_last_days_and_years() {
    let from = "2026-01-30T12:00:00Z";
    for (pattern, expected) in [
        ("0 9 L * *", ["01-31T09:00:00", "02-28T09:00:00", "03-31T09:00:00"]),
        ("0 9 * * MON#1", ["02-02T09:00:00", "03-02T09:00:00", "04-06T09:00:00"]),
        ("*/20 * * * * *", ["01-30T12:00:20", "01-30T12:00:40", "01-30T12:01:00"]),
        ("0 0 9 * JAN,MAR FRI#L", ["03-27T09:00:00", "01-29T09:00:00", "03-26T09:00:00"]),
        ("@daily", ["01-31T00:00:00", "02-01T00:00:00", "02-02T00:00:00"]),
        ("0 0 29 2 *", ["02-29T00:00:00", "02-29T00:00:00", "02-29T00:00:00"]),
        ("0 0 12 1 1 * 2027-2029", ["01-01T12:00:00", "01-01T12:00:00", "01-01T12:00:00"]),
    ] {
        assert_eq!(next(pattern, "UTC", from, 3), expected, "{pattern}");
    }
}

/// A time of day that the change leaves out is the first time after the gap; one that comes twice counts once. A
/// pattern of every so many minutes or hours goes by the time that passes.
#[test]
fn changes_of_daylight_saving_in_four_zones() {
    for (zone, pattern, from, expected) in [
        // 2:00 to 3:00 is left out; 2:00 to 3:00 comes twice.
        (
            "Europe/Berlin",
            "30 2 * * *",
            "2026-03-28T00:00:00Z",
            ["03-28T01:30:00", "03-29T01:00:00", "03-30T00:30:00"],
        ),
        (
            "Europe/Berlin",
            "30 2 * * *",
            "2026-10-24T00:00:00Z",
            ["10-24T00:30:00", "10-25T00:30:00", "10-26T01:30:00"],
        ),
        (
            "Europe/Berlin",
            "*/30 * * * *",
            "2026-03-29T00:10:00Z",
            ["03-29T00:30:00", "03-29T01:00:00", "03-29T01:30:00"],
        ),
        (
            "Europe/Berlin",
            "*/30 * * * *",
            "2026-10-25T00:10:00Z",
            ["10-25T00:30:00", "10-25T01:00:00", "10-25T01:30:00"],
        ),
        // 2:00 to 3:00 is left out; 1:00 to 2:00 comes twice.
        (
            "America/New_York",
            "0 2 * * *",
            "2026-03-07T00:00:00Z",
            ["03-07T07:00:00", "03-08T07:00:00", "03-09T06:00:00"],
        ),
        (
            "America/New_York",
            "30 1 * * *",
            "2026-10-31T00:00:00Z",
            ["10-31T05:30:00", "11-01T05:30:00", "11-02T06:30:00"],
        ),
        (
            "America/New_York",
            "0 * * * *",
            "2026-11-01T04:30:00Z",
            ["11-01T05:00:00", "11-01T06:00:00", "11-01T07:00:00"],
        ),
        // 2:00 to 2:30 is left out; 1:30 to 2:00 comes twice.
        (
            "Australia/Lord_Howe",
            "0 2 * * *",
            "2026-10-02T00:00:00Z",
            ["10-02T15:30:00", "10-03T15:30:00", "10-04T15:00:00"],
        ),
        (
            "Australia/Lord_Howe",
            "45 1 * * *",
            "2026-04-03T00:00:00Z",
            ["04-03T14:45:00", "04-04T14:45:00", "04-05T15:15:00"],
        ),
        // 0:00 to 1:00 is left out, so the day begins at 1:00; 23:00 to 24:00 comes twice.
        (
            "America/Santiago",
            "0 0 * * *",
            "2026-09-04T12:00:00Z",
            ["09-05T04:00:00", "09-06T04:00:00", "09-07T03:00:00"],
        ),
        (
            "America/Santiago",
            "0 23 * * *",
            "2026-04-03T12:00:00Z",
            ["04-04T02:00:00", "04-05T02:00:00", "04-06T03:00:00"],
        ),
    ] {
        assert_eq!(next(pattern, zone, from, 3), expected, "{zone} {pattern}");
    }
}

#[test]
fn an_interval_counts_from_the_epoch() {
    let schedule = of_interval(1000, 250, Missed::Once).unwrap();
    assert_eq!(schedule.first_after(0), Ok(250));
    assert_eq!(schedule.first_after(250), Ok(1250));
    assert_eq!(schedule.first_after(1249), Ok(1250));
    assert_eq!(schedule.first_after(-1), Ok(250));
    assert_eq!(schedule.first_after(-751), Ok(-750));
}

#[test]
fn a_due_time_gives_its_message_and_leads_to_the_next() {
    let schedule = of_interval(1000, 0, Missed::Skip).unwrap();
    let fired = |due_ms, now_ms, max| {
        let Firing { due_ms, next_ms } = schedule.fire(due_ms, now_ms, max);
        (due_ms, next_ms)
    };
    assert_eq!(fired(5000, 4999, 9), (vec![], Some(5000)));
    assert_eq!(fired(5000, 5000, 9), (vec![5000], Some(6000)));
    // Late, but not missed: none is left out.
    assert_eq!(fired(5000, 7500, 9), (vec![5000, 6000, 7000], Some(8000)));
    assert_eq!(fired(5000, 7500, 2), (vec![5000, 6000], Some(7000)));
}

#[test]
fn missed_times_give_none_one_or_all_messages() {
    let minute = 60_000;
    let now_ms = 10 * minute + 20_000;
    for (missed, expected) in [
        (Missed::Skip, vec![]),
        (Missed::Once, vec![10 * minute]),
        (Missed::All, (7..=10).map(|n| n * minute).collect()),
    ] {
        for schedule in [of_interval(minute, 0, missed), of_cron("* * * * *", "UTC", missed)] {
            let Firing { due_ms, next_ms } = schedule.unwrap().fire(7 * minute, now_ms, 100);
            assert_eq!((due_ms, next_ms), (expected.clone(), Some(11 * minute)), "{missed:?}");
        }
    }
    // One that is late stands for those that are missed.
    let recent = 10 * minute + SCHEDULE_MISSED_MS - 1;
    let fired = |missed| of_interval(minute, 0, missed).unwrap().fire(7 * minute, recent, 100);
    assert_eq!(fired(Missed::Skip).due_ms, [10 * minute]);
    assert_eq!(fired(Missed::Once).due_ms, [10 * minute]);
    assert_eq!(fired(Missed::All).due_ms.len(), 4);
    let edge = 10 * minute + SCHEDULE_MISSED_MS;
    let schedule = of_interval(minute, 0, Missed::Skip).unwrap();
    assert!(schedule.fire(10 * minute, edge, 9).due_ms.is_empty());
}

#[test]
fn a_pattern_ends_after_its_last_year() {
    let schedule = of_cron("0 0 0 1 1 * 2027", "UTC", Missed::Once).unwrap();
    let due_ms = schedule.first_after(ms("2026-05-01T00:00:00Z")).unwrap();
    let fired = schedule.fire(due_ms, due_ms, 9);
    assert_eq!(fired, Firing { due_ms: vec![due_ms], next_ms: None });
    assert!(schedule.first_after(due_ms).unwrap_err().to_string().contains("never fires"));
}

#[test]
fn an_error_names_the_argument_and_what_was_given() {
    let cron = |pattern: &str, zone: &str| of_cron(pattern, zone, Missed::Once).unwrap_err();
    let interval = |every, offset| of_interval(every, offset, Missed::Once).unwrap_err();
    let named = |name: String| {
        let timing = Timing::Every { every_ms: 10, offset_ms: 0 };
        Schedule::new(name, timing, Missed::Once).map(drop)
    };
    for (error, texts) in [
        (cron("61 * * * *", "UTC"), ["cron is invalid", "\"61 * * * *\""]),
        (cron("", "UTC"), ["cron is invalid", "\"\""]),
        (cron("* * *", "UTC"), ["cron is invalid", "between 5 and 7 fields"]),
        (cron(&"1,".repeat(200), "UTC"), ["cron is too long", "max 256 bytes"]),
        (cron("* * * * *", "Mars/Base"), ["timeZone", "\"Mars/Base\""]),
        (interval(SCHEDULE_INTERVAL_MS_MIN - 1, 0), ["every must be from 10", "9 given"]),
        (interval(SCHEDULE_INTERVAL_MS_MAX + 1, 0), ["every must be", "31536000001 given"]),
        (interval(10, 10), ["offset must be", "10 given"]),
        (interval(10, -1), ["offset must be", "-1 given"]),
        (named(String::new()).unwrap_err(), ["name must have 1 to 256", "0 bytes given"]),
        (named("n".repeat(SCHEDULE_NAME_BYTES_MAX + 1)).unwrap_err(), ["name must", "257 bytes"]),
        (named("a\nb".into()).unwrap_err(), ["no control characters", "\"a\\nb\""]),
    ] {
        let message = error.to_string();
        assert!(texts.iter().all(|text| message.contains(text)), "{message}");
    }
    assert_eq!(named("n".repeat(SCHEDULE_NAME_BYTES_MAX)), Ok(()));
}

/// Setting each of these looked at every day until the year 5000, in the transaction of the commit: 48 ms in which no
/// other writer did anything.
#[test]
fn a_pattern_that_never_fires_is_refused_without_a_search() {
    // No month has the day: refused before any commit.
    for pattern in ["0 0 30 2 *", "0 0 31 4,6 *", "0 0 1 * +MON#2", "0 0 30 2 * ", "0 0 0 30 2 * *"]
    {
        let error = of_cron(pattern, "UTC", Missed::Once).unwrap_err().to_string();
        assert!(error.contains("cron never fires") && error.contains("no month has"), "{error}");
    }
    // Its years are over, or too far ahead.
    let now_ms = ms("2026-01-30T12:00:00Z");
    for pattern in ["0 0 0 1 1 * 2020", "0 0 0 1 1 * 2067", "0 0 0 1 1 * 4999"] {
        let schedule = of_cron(pattern, "UTC", Missed::Once).unwrap();
        let error = schedule.first_after(now_ms).unwrap_err().to_string();
        assert!(error.contains("cron never fires") && error.contains("40 years"), "{error}");
    }
    // The rarest dates: 29 February on one weekday, over a year without it.
    for (pattern, from, expected) in [
        ("0 0 29 2 *", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z"),
        ("0 0 29 2 +WED", "2096-03-01T00:00:00Z", "2108-02-29T00:00:00Z"),
        ("0 0 29 2 +SUN", "2088-03-01T00:00:00Z", "2128-02-29T00:00:00Z"),
        ("0 0 0 1 1 * 2066", "2026-01-30T12:00:00Z", "2066-01-01T00:00:00Z"),
    ] {
        let schedule = of_cron(pattern, "UTC", Missed::Once).unwrap();
        assert_eq!(schedule.first_after(ms(from)), Ok(ms(expected)), "{pattern}");
    }
}

#[test]
fn names_of_two_queues_have_different_keys() {
    assert_ne!(schedule_key("a", "bc"), schedule_key("ab", "c"));
    assert_ne!(schedule_key("1", ":x"), schedule_key("1:", "x"));
    assert!(is_own_queue(SCHEDULES_QUEUE) && !is_own_queue("schedules") && !is_own_queue(""));
}
