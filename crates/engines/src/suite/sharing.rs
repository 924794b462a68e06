//! The figures of a process about a database on PostgreSQL that it shares with others.

use super::*;
use crate::ExternalCommits;
use crate::postgres::{PostgresEngine, Server};
use openkv_core::model::Sharing;

/// Like [`super::postgres`], with `lead=` or without.
fn open(url: &str) -> PostgresEngine {
    let (server, name) = Server::parse(url).unwrap();
    PostgresEngine::open_in_time_of_caller(&server, &name).unwrap()
}

fn sharing(engine: &PostgresEngine) -> Sharing {
    let mut reader = engine.reader().unwrap();
    read(&mut reader, NOW, |snapshot| snapshot.sharing()).unwrap()
}

#[test]
fn the_lag_is_what_the_poll_has_not_looked_at() {
    let url = server::fresh_url();
    let (engine, other) = (open(&url), open(&url));
    let mut theirs = other.writer().unwrap();
    assert_eq!(sharing(&engine), Sharing::default());
    let (sender, reported) = mpsc::channel();
    let (go, held) = mpsc::channel::<()>();
    let tell = move |_: &ExternalCommits| {
        sender.send(()).unwrap();
        // Ends with the test.
        let _ended = held.recv();
    };
    let watch = engine.watch_external(Box::new(tell)).unwrap();
    mutate(&mut theirs, vec![set("a", b"")]);
    // From here on the poll is held after the first commit.
    reported.recv_timeout(Duration::from_secs(10)).unwrap();
    assert_eq!(sharing(&engine).lag_commits, Some(0));
    for _ in 0..3 {
        mutate(&mut theirs, vec![set("a", b"")]);
    }
    assert_eq!(sharing(&engine).lag_commits, Some(3));
    go.send(()).unwrap();
    reported.recv_timeout(Duration::from_secs(10)).unwrap();
    assert_eq!(sharing(&engine).lag_commits, Some(0));
    drop((go, watch));
    assert_eq!(sharing(&engine), Sharing::default());
}

#[test]
fn a_leader_counts_its_batches() {
    let engine = open(&format!("{}&lead=test", server::fresh_url()));
    let mut writer = engine.writer().unwrap();
    assert_eq!(sharing(&engine).leader, None);
    commit(&mut writer, vec![write(vec![], vec![set("a", b"")]), write(vec![], vec![sum("n", 1)])]);
    let refused = commit(&mut writer, vec![write(vec![absent("a")], vec![])]);
    assert!(matches!(refused[0], Decision::CheckFailed(_)), "{refused:?}");
    // Runs in a transaction of its own.
    apply_at(&mut writer, Work { sweep_max: 1, ..Work::default() }, NOW);
    let leader = sharing(&engine).leader.unwrap();
    let counts = leader.counts;
    assert_eq!((counts.batches_begun, counts.batches_durable, counts.writes), (3, 3, 3));
    assert_eq!((counts.decisions_discarded, counts.writes_refused), (0, 0));
    assert!(leader.leading && leader.epoch > 0 && counts.epochs == 1, "{leader:?}");
    assert_eq!((leader.in_flight, leader.waiting_writes, leader.waiting_bytes), (0, 0, 0));
    assert!(leader.depth >= 1);
}

/// The thread of the leader then has the last hold on the lease, and ends it.
#[test]
fn a_leader_that_outlives_its_engine_resigns() {
    let name = format!("resigns{}", std::process::id());
    let url = format!("{}&lead={name}", server::fresh_url());
    let engine = open(&url);
    let mut writer = engine.writer().unwrap();
    mutate(&mut writer, vec![set("a", b"")]);
    drop(engine);
    let servers = || {
        let mut count = None;
        server::on_server(&url, async |client| {
            let sql = "SELECT count(*) FROM openkv.servers WHERE name = $1";
            let row = client.query_one(sql, &[&name.as_bytes()]).await.unwrap();
            count = Some(row.get::<_, i64>(0));
        });
        count.unwrap()
    };
    assert_eq!(servers(), 1);
    drop(writer);
    assert_eq!(servers(), 0);
}
