//! The rules on a real server, with time as the rules give it.

use std::sync::mpsc;
use std::time::Duration;

use super::{NOW, apply_at, commit, key, server, set, set_until, write};
use crate::postgres::{PostgresEngine, Server};
use crate::{Engine, ExternalCommits, Work};
use openkv_core::model::{Key, POSTGRES_LOG_KEYS_BYTES_MAX};

fn open(url: &str) -> PostgresEngine {
    let (server, name) = Server::parse(url).unwrap();
    PostgresEngine::open_in_time_of_caller(&server, &name).unwrap()
}

fn fresh() -> (PostgresEngine, ()) {
    (open(&server::fresh_url()), ())
}

/// Commits of this process between those of others are reported with them, since they are announced
/// only later.
#[test]
fn commits_of_other_processes_are_reported_with_their_keys() {
    let url = server::fresh_url();
    let (engine, other) = (open(&url), open(&url));
    let (mut ours, mut theirs) = (engine.writer().unwrap(), other.writer().unwrap());
    let (sender, reported) = mpsc::channel();
    let tell = move |commits: &ExternalCommits| sender.send(commits.clone()).unwrap();
    let watch = engine.watch_external(Box::new(tell)).unwrap();
    // Until `last` is reported: the versions without a gap, and all keys.
    let until = |last: u64| {
        let (mut span, mut all) = (None::<(u64, u64)>, Vec::<Key>::new());
        while span.is_none_or(|(_, end)| end < last) {
            match reported.recv_timeout(Duration::from_secs(10)).unwrap() {
                ExternalCommits::Unknown => panic!("the keys are known"),
                ExternalCommits::Lost(error) => panic!("{error}"),
                ExternalCommits::Known { versions: (from, to), keys } => {
                    assert!(span.is_none_or(|(_, end)| end <= from));
                    span = Some((span.map_or(from, |(start, _)| start), to));
                    all.extend(keys);
                }
            }
        }
        (span.unwrap().0, all)
    };
    let sets = |names: &[&str]| write(vec![], names.iter().map(|name| set(name, b"")).collect());
    commit(&mut theirs, vec![sets(&["b", "a"]), sets(&["c"])]);
    assert_eq!(until(2), (0, ["a", "b", "c"].map(key).to_vec()));
    commit(&mut ours, vec![sets(&["own"])]);
    commit(&mut theirs, vec![write(vec![], vec![set_until("ending", b"", Some(NOW + 10))])]);
    // The poll may meet an own commit before this process has noted it.
    let (from, keys) = until(4);
    assert!((2..4).contains(&from) && keys.last() == Some(&key("ending")), "{from} {keys:?}");
    commit(&mut theirs, vec![sets(&["d"])]);
    commit(&mut ours, vec![sets(&["own"])]);
    let (from, keys) = until(5);
    assert!(from == 4 && keys.first() == Some(&key("d")), "{from} {keys:?}");
    commit(&mut theirs, vec![sets(&["e"])]);
    let swept = apply_at(&mut theirs, Work { sweep_max: 10, ..Work::default() }, NOW + 20);
    assert_eq!(swept.versions.1, 8);
    let (_, keys) = until(8);
    assert!(keys.ends_with(&[key("e"), key("ending")]), "{keys:?}");
    // A batch with too many keys does not tell any.
    let long = "k".repeat(1000);
    let names: Vec<String> =
        (0..POSTGRES_LOG_KEYS_BYTES_MAX / long.len() + 1).map(|n| format!("{n}{long}")).collect();
    commit(&mut theirs, vec![sets(&names.iter().map(String::as_str).collect::<Vec<_>>())]);
    let unknown = reported.recv_timeout(Duration::from_secs(10)).unwrap();
    assert_eq!(unknown, ExternalCommits::Unknown);
    commit(&mut theirs, vec![sets(&["f"])]);
    assert_eq!(until(10), (9, vec![key("f")]));
    drop(watch);
    assert!(reported.recv().is_err(), "the guard ends the watch");
}

rules_of_every_engine!(super::fresh());
rules_of_shared_engines!(super::fresh());
rules_of_value_indexes!(super::fresh());
rules_of_history!(super::fresh());
rules_of_logged_messages!(super::fresh());

/// The same, led by this process.
mod led {
    use super::{PostgresEngine, open, server};

    fn fresh() -> (PostgresEngine, ()) {
        (open(&format!("{}&lead=test", server::fresh_url())), ())
    }

    rules_of_every_engine!(super::fresh());
    rules_of_value_indexes!(super::fresh());
    rules_of_history!(super::fresh());
    rules_of_logged_messages!(super::fresh());
}

laws! { super::fresh();
    unsupported {
        definitions_of_indexes_are_kept_and_searches_are_unsupported
        work_on_a_file_is_unsupported
    }
}
