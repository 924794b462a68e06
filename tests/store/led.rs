//! Databases on PostgreSQL that a process leads, and what others may do meanwhile.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;

use openkv::engine::postgres::{PostgresEngine, Server};
use openkv::model::{
    Arith, Decision, EncodedValue, Error, Key, Kind, Mutation, OrderPath, ValueIndexRequest,
    ValueIndexSpec, ValueIndexState,
};

use crate::database::{Answer, Database, START_MS};
use crate::kit::until;
use crate::postgres_server::{fresh_url, on_server};
use crate::writes::{enqueue, key, set, write};

/// Writes that are answered between two cuts of all connections.
const WRITES_BETWEEN_CUTS: usize = 10;

fn open(url: &str) -> Database {
    let (server, name) = Server::parse(url).expect("a URL");
    Database::over(PostgresEngine::open_in_time_of_caller(&server, &name).expect("opened"))
}

fn leading(url: &str, name: &str) -> Database {
    open(&format!("{url}&lead={name}"))
}

/// Runs SQL about the database of a URL, whose name is `$1`. Returns the number of rows.
fn alter(url: &str, sql: &str) -> u64 {
    let name = url.split_once("kv=").expect("a name").1.to_owned();
    let mut rows = 0;
    on_server(url, async |client| {
        rows = client.execute(sql, &[&name.as_bytes()]).await.expect(sql);
    });
    rows
}

fn add_one(name: &str) -> Mutation {
    Mutation::Arith { op: Arith::Sum, key: key(name), operand: EncodedValue::le64(1) }
}

fn refusal(database: &Database) -> Error {
    match database.commit(vec![write(vec![set("a", b"")])]).remove(0) {
        Decision::Rejected(error) => error,
        other => panic!("{other:?}"),
    }
}

fn number(database: &Database, name: &str) -> u64 {
    let bytes = database.read(name).unwrap_or_else(|| vec![0; 8]);
    u64::from_le_bytes(bytes.try_into().expect("a number"))
}

#[test]
fn others_get_the_name_of_the_leader_until_it_closes() {
    let url = fresh_url();
    let leader = leading(&url, "one");
    leader.must(write(vec![set("a", b"1")]));
    for other in [open(&url), leading(&url, "two")] {
        let error = refusal(&other);
        assert_eq!(error.kind(), Kind::Unavailable);
        assert!(error.message().contains("\"one\""), "{error}");
        assert_eq!(other.read("a"), Some(b"1".to_vec()), "reads go on");
    }
    drop(leader);
    open(&url).must(write(vec![set("a", b"2")]));
    leading(&url, "two").must(write(vec![set("a", b"3")]));
    assert_eq!(open(&url).read("a"), Some(b"3".to_vec()));
}

/// As after a stop that lasts longer than the lease: the first write of the old leader is refused, also
/// one that its cache would decide, and the second one leads again.
#[test]
fn a_leader_whose_lease_has_ended_is_deposed_and_follows() {
    let url = fresh_url();
    let (leader, other) = (leading(&url, "one"), open(&url));
    leader.must(write(vec![add_one("n")]));
    alter(&url, "UPDATE openkv.databases SET leader = '\\x00' WHERE name = $1");
    other.must(write(vec![add_one("n")]));
    let error = refusal(&leader);
    assert_eq!(error.kind(), Kind::Unavailable);
    assert!(error.message().contains("taken the database over"), "{error}");
    leader.must(write(vec![add_one("n")]));
    assert_eq!(number(&leader, "n"), 3);
    assert_eq!(refusal(&other).kind(), Kind::Unavailable, "it leads again");
}

/// As after a failover to a standby that lacks the last `createIndex`: the leader went on with the index that was lost,
/// and stored its entries.
#[test]
fn a_leader_forgets_an_index_that_a_failover_has_lost() {
    let url = fresh_url();
    let leader = leading(&url, "one");
    let on = vec![OrderPath { path: "t".into(), descending: false }];
    let (name, prefix) = ("t".into(), Key::from_encoded(Vec::new()));
    let spec = ValueIndexSpec { name, prefix, on, unique: false, multi: false, sparse: false };
    let (sender, made) = channel();
    let request = ValueIndexRequest { spec, replace: false };
    leader.store().create_value_index(request, move |made| sender.send(made).expect("awaited"));
    let made = Answer::of(made).get().expect("made");
    assert_eq!(made.state, ValueIndexState::Ready);
    leader.must(write(vec![set("a", b"1")]));
    let entries =
        "FROM openkv.value_entries WHERE db = (SELECT id FROM openkv.databases WHERE name = $1)";
    assert_eq!(alter(&url, &format!("DELETE {entries}")), 1);
    alter(&url, &format!("DELETE {}", entries.replace("value_entries", "value_indexes")));
    let lost = "UPDATE openkv.databases SET indexes = 0, epoch = epoch + 1 WHERE name = $1";
    alter(&url, lost);
    assert_eq!(refusal(&leader).kind(), Kind::Unavailable);
    leader.must(write(vec![set("b", b"2")]));
    assert_eq!(alter(&url, &format!("DELETE {entries}")), 0);
}

/// Writes `count` times: adds one to `n` and sets a key of its own. Returns the names of the keys whose
/// writes were refused.
fn write_many(
    leader: &Database,
    writer: usize,
    count: usize,
    answered: &AtomicUsize,
) -> Vec<String> {
    let names = (0..count).map(|n| format!("{writer}-{n}"));
    let is_refused = |own: &String| {
        let both = write(vec![add_one("n"), set(own, b"")]);
        let decision = leader.commit(vec![both]).remove(0);
        answered.fetch_add(1, Ordering::SeqCst);
        match decision {
            Decision::Committed(_) => false,
            Decision::Rejected(error) => {
                assert_eq!(error.kind(), Kind::Unavailable, "{error}");
                true
            }
            other => panic!("{other:?}"),
        }
    };
    names.filter(is_refused).collect()
}

/// Every write has one outcome, and it is the right one.
#[test]
fn cut_connections_lose_and_repeat_nothing() {
    const WRITERS: usize = 4;
    const WRITES: usize = 150;
    let application = format!("cut-{:x}", getrandom::u32().expect("random"));
    let url = fresh_url();
    let leader = leading(&format!("{url}&application_name={application}"), "one");
    let (ended, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let refused: Vec<String> = std::thread::scope(|scope| {
        let cutter = scope.spawn(|| cut(&url, &application, &answered, &ended));
        let start = |writer| {
            let (leader, answered) = (&leader, &answered);
            scope.spawn(move || write_many(leader, writer, WRITES, answered))
        };
        let writers: Vec<_> = (0..WRITERS).map(start).collect();
        let refused: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        ended.store(true, Ordering::SeqCst);
        assert!(cutter.join().expect("cut") > 0);
        refused.into_iter().flat_map(|refused| refused.expect("written")).collect()
    });
    let done = WRITERS * WRITES - refused.len();
    assert!(done > 0);
    assert_eq!(number(&leader, "n"), done as u64);
    for name in refused {
        assert_eq!(leader.read(&name), None, "{name}");
    }
}

/// Ends all connections of an application, again and again. Returns how many.
fn cut(url: &str, application: &str, answered: &AtomicUsize, ended: &AtomicBool) -> usize {
    let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1";
    let mut cuts = 0;
    on_server(url, async |client| {
        while !ended.load(Ordering::SeqCst) {
            cuts += client.query(sql, &[&application]).await.expect("cut").len();
            let next = answered.load(Ordering::SeqCst) + WRITES_BETWEEN_CUTS;
            until(|| ended.load(Ordering::SeqCst) || answered.load(Ordering::SeqCst) >= next);
        }
    });
    cuts
}

#[test]
fn feeds_show_what_a_leader_commits() {
    let url = fresh_url();
    let leader = leading(&url, "one");
    leader.must(write(vec![set("before", b"")]));
    // The log is turned on by a transaction that the layer does not decide.
    let feed = leader.feed(None);
    let batch = leader.batch(feed);
    leader.settle_down();
    let first = leader.must(write(vec![set("a", b"1"), set("b", b"1")]));
    let changes = batch.get().expect("read").expect("not ended").changes;
    assert_eq!(changes.iter().map(|change| change.version).collect::<Vec<_>>(), [first, first]);
    for n in 0..200_u8 {
        let batch = leader.batch(feed);
        let version = leader.must(write(vec![set("a", &[n])]));
        let changes = batch.get().expect("read").expect("not ended").changes;
        assert_eq!(changes.iter().map(|change| change.version).collect::<Vec<_>>(), [version]);
    }
}

#[test]
fn messages_of_a_leader_are_delivered() {
    let leader = leading(&fresh_url(), "one");
    let consumer = leader.listen(4);
    for n in 0..50 {
        leader.must(enqueue(n..n + 1, START_MS, &[], &[]));
        let (id, value) = consumer.get();
        assert_eq!(value, n);
        leader.store().settle(consumer.id, id, openkv::model::Outcome::Done, None);
    }
}
