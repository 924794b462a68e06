//! Two stores on one PostgreSQL database, as in two processes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use openkv::engine::postgres::{PostgresEngine, Server};

use crate::database::Database;
use crate::faulty::{Faulty, Plan};
use crate::postgres_server::fresh_url;
use crate::writes::{set, write};

fn two_stores() -> (Database, Database, Arc<Plan>) {
    let (server, name) = Server::parse(&fresh_url()).expect("a URL");
    let open = || PostgresEngine::open_in_time_of_caller(&server, &name).expect("opened");
    let plan = Arc::new(Plan::default());
    (Database::over(Faulty(open(), plan.clone())), Database::over(open()), plan)
}

#[test]
fn a_watch_reads_only_after_commits_of_its_keys() {
    let (ours, theirs, plan) = two_stores();
    let (_watches, [a, b]) = ours.watches_of_absent(["a", "b"]);
    ours.hears_others(&plan);
    let before = plan.reads.load(Ordering::SeqCst);
    for n in 0..50 {
        theirs.must(write(vec![set("other", &[n])]));
    }
    theirs.must(write(vec![set("a", b"1")]));
    assert_eq!(a.get(), Ok(Some(vec![Some(b"1".to_vec())])));
    assert_eq!(plan.reads.load(Ordering::SeqCst), before + 1);
    theirs.must(write(vec![set("b", b"1"), set("other", b"1")]));
    assert_eq!(b.get(), Ok(Some(vec![Some(b"1".to_vec())])));
    assert_eq!(plan.reads.load(Ordering::SeqCst), before + 2);
}

#[test]
fn a_watch_misses_no_commit_among_those_of_its_own_process() {
    let (ours, theirs, _plan) = two_stores();
    let watch = ours.watch(&["a"]);
    assert_eq!(ours.next(watch).get(), Ok(Some(vec![None])));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..100 {
                ours.must(write(vec![set("own", &[n])]));
            }
        });
        for n in 0..100 {
            let waiting = ours.next(watch);
            theirs.must(write(vec![set("a", &[n])]));
            assert_eq!(waiting.get(), Ok(Some(vec![Some(vec![n])])));
        }
    });
}
