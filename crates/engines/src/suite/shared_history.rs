//! The history of a database on PostgreSQL, which several processes write.

use super::history::{
    DAY_MS, Entries, ORIGIN, TRIMMED_COMMITS, entries, keep, random_history, state, versions,
};
use super::*;
use crate::postgres::{PostgresEngine, Server};
use openkv_core::model::{LogSettings, Moment, POSTGRES_LOG_TRIM_BATCHES, Setting, When};

fn open(url: &str) -> PostgresEngine {
    let (server, name) = Server::parse(url).unwrap();
    PostgresEngine::open_in_time_of_caller(&server, &name).unwrap()
}

fn assert_moments(engine: &PostgresEngine, moments: &[(Moment, Entries)]) {
    for (moment, expected) in moments {
        let mut past = engine.reader_at(*moment).unwrap();
        assert_eq!(entries(&mut past, NOW), *expected, "{moment:?}");
    }
}

/// The number of rows in the history of the only database with this name.
fn rows_of(url: &str) -> i64 {
    let name = url.split("kv=").nth(1).unwrap().split('&').next().unwrap().as_bytes().to_vec();
    let mut rows = 0;
    server::on_server(url, async |client| {
        let count = "SELECT count(*) FROM openkv.past WHERE db = \
                     (SELECT id FROM openkv.databases WHERE name = $1)";
        rows = client.query_one(count, &[&name]).await.unwrap().get(0);
    });
    rows
}

/// Commits of a process that has not turned on a history are in it, whoever leads.
#[test]
fn every_process_keeps_the_history_that_one_has_turned_on() {
    for leading in ["", "&lead=history"] {
        let url = server::fresh_url();
        let (written, other) = (open(&format!("{url}{leading}")), open(&url));
        let (mut ours, mut theirs) = (written.writer().unwrap(), other.writer().unwrap());
        mutate(&mut ours, vec![set("k1", b"before"), set("k2", &[7; 2000])]);
        let since = keep(&mut theirs, DAY_MS, NOW);
        let mut reader = other.reader().unwrap();
        let begun = (Moment { version: since, at_ms: NOW }, entries(&mut reader, NOW));
        drop(ours);
        let moments = random_history(&written, 30, 0xcafe);
        assert_moments(&other, &[begun]);
        assert_moments(&other, &moments);
        // Off again, it begins anew.
        let off = LogSettings { history_ms: Setting::Off, ..LogSettings::default() };
        theirs.set_log(&off, ORIGIN, NOW, soon()).unwrap();
        assert_eq!(rows_of(&url), 0);
        let mut past = other.reader_at(moments[3].0).unwrap();
        assert!(past.read(NOW, &mut |_| Ok(())).is_err());
        assert!(state(&mut reader).log.unwrap().history.is_none());
    }
}

#[test]
fn processes_that_write_by_turns_keep_one_history() {
    let url = server::fresh_url();
    let (one, two) = (open(&url), open(&url));
    let (mut ours, mut theirs) = (one.writer().unwrap(), two.writer().unwrap());
    let mut reader = one.reader().unwrap();
    keep(&mut ours, DAY_MS, NOW);
    let mut moments = Vec::new();
    for n in 0..30_u8 {
        mutate(&mut ours, vec![set("a", &[n]), set(&format!("k{}", n % 5), &vec![n; 3000])]);
        mutate(&mut theirs, vec![set("a", &[n + 100]), delete(&format!("k{}", (n + 2) % 5))]);
        let moment = Moment { version: state(&mut reader).version, at_ms: NOW };
        moments.push((moment, entries(&mut reader, NOW)));
    }
    assert_moments(&two, &moments);
    assert_eq!(versions(&mut reader, "a", None, usize::MAX).len(), 60);
}

/// What is older than the history is kept goes, by any process and in steps.
#[test]
fn old_rows_leave_the_history() {
    let url = server::fresh_url();
    let engine = open(&url);
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    keep(&mut writer, 50, NOW);
    let names: Vec<String> = (0..500).map(|n| format!("{n:04}")).collect();
    let all = |value: &[u8]| {
        vec![write(vec![], names.iter().map(|name| set(name, value)).collect::<Vec<_>>())]
    };
    for n in 0..4 {
        commit(&mut writer, all(&[n]));
    }
    assert_eq!(rows_of(&url), 2000);
    for at_ms in 0..TRIMMED_COMMITS as i64 + 1 {
        let writes = vec![write(vec![], vec![set("other", b"")])];
        apply_at(&mut writer, Work { writes, ..Work::default() }, NOW + 100 + at_ms / 30);
    }
    let history = state(&mut reader).log.unwrap().history.unwrap();
    assert_eq!(history.since, Moment { version: 4, at_ms: NOW });
    assert!(rows_of(&url) <= TRIMMED_COMMITS as i64 + 1, "{}", rows_of(&url));
    let mut past = engine.reader_at(Moment { version: 4, at_ms: NOW }).unwrap();
    assert_eq!(get(&mut past, "0007"), Some((4, vec![3])));
    // The log keeps the segments of the history, and loses those before it.
    let short = LogSettings {
        log: Setting::On(openkv_core::model::LogBounds { retention_ms: 1, bytes_max: 1 << 20 }),
        ..LogSettings::default()
    };
    writer.set_log(&short, ORIGIN, NOW + 200, soon()).unwrap();
    for _ in 0..POSTGRES_LOG_TRIM_BATCHES {
        let writes = vec![write(vec![], vec![set("other", b"")])];
        apply_at(&mut writer, Work { writes, ..Work::default() }, NOW + 140);
    }
    let log = state(&mut reader).log.unwrap();
    assert_eq!(log.complete, log.history.unwrap().since.version);
}

/// The halves of the search meet at every segment, also between segments of several commits.
#[test]
fn a_time_is_found_by_halves() {
    let engine = open(&server::fresh_url());
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    let find = |reader: &mut _, at_ms| {
        read(reader, NOW, |snapshot| snapshot.log()?.at_time(at_ms)).map(|(last, _)| last)
    };
    assert_eq!(find(&mut reader, NOW), None);
    keep(&mut writer, DAY_MS, NOW);
    assert_eq!(find(&mut reader, NOW), None);
    let mut last = Vec::new();
    for n in 0..23_i64 {
        let writes = (0..=n % 4).map(|_| write(vec![], vec![set("a", b"")])).collect();
        let work = Work { writes, ..Work::default() };
        last.push(apply_at(&mut writer, work, NOW + 10 * (n / 2)).versions.1);
    }
    assert_eq!(find(&mut reader, NOW - 1), None);
    for n in 0..23 {
        let at_ms = NOW + 10 * (i64::try_from(n).unwrap() / 2);
        let newest = last[(n / 2 * 2 + 1).min(22)];
        assert_eq!(find(&mut reader, at_ms), Some(newest), "{n}");
        assert_eq!(find(&mut reader, at_ms + 9), Some(newest), "{n}");
    }
    let when = When::Time(NOW + 25);
    let moment = read(&mut reader, NOW, |snapshot| snapshot.log()?.moment(when, NOW + 500));
    assert_eq!(moment, Moment { version: last[5], at_ms: NOW + 25 });
}
