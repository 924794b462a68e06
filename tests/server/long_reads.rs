//! Reads that take long: other clients do not wait for them, and they end with their client.

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use ciborium::Value as Cbor;
use openkv::call::{Call, Fault, Reply, carry_out};
use openkv::database::Database;
use openkv::model::{
    AtomicWrite, DELETE_STEP_ROWS_MAX, EncodedValue, Encoding, Kind, Limits, Mutation, PageMemory,
    WriteParts,
};
use openkv::open::{Target, open};
use openkv::protocol::Command;
use openkv::remote::Cancel;
use openkv::store::Store;

use crate::client::send;
use crate::extension::{call, connect, count_all};
use crate::kit::until;
use crate::served::{ACCESS, READ, Served, Session, file, key};

fn encoded(value: &Cbor) -> Vec<u8> {
    let mut bytes = Vec::new();
    ciborium::into_writer(value, &mut bytes).expect("CBOR");
    bytes
}

/// An array of this many numbers.
fn numbers(count: usize) -> Vec<u8> {
    encoded(&Cbor::Array(vec![Cbor::from(7); count]))
}

/// A count with a filter of this many conditions, each of which walks through the whole value.
fn slow_count(conditions: usize) -> Vec<u8> {
    let contains = Cbor::Map(vec![(Cbor::from("$contains"), Cbor::from(8))]);
    let any = Cbor::Map(vec![(Cbor::from("$or"), Cbor::Array(vec![contains; conditions]))]);
    let filter = encoded(&any);
    let mut frame = count_all();
    frame[0] = 8;
    frame.extend((filter.len() as u32).to_le_bytes());
    frame.extend(filter);
    frame
}

/// Stores values over which a count of `slow_count(400)` takes many seconds.
fn fill(store: &Store) {
    for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        let value = EncodedValue { encoding: Encoding::Cbor, bytes: numbers(60_000) };
        let set = Mutation::Set { key: key(name), suffixed: false, value, expiry: None };
        let parts = WriteParts { mutations: vec![set], ..WriteParts::default() };
        let write = AtomicWrite::new(parts, &Limits::wide()).expect("a write");
        let (tell, answered) = channel();
        let reply = Box::new(move |decisions| drop(tell.send(decisions)));
        store.commit(vec![Ok(write)], false, Duration::from_secs(5), reply);
        answered.recv().expect("decisions");
    }
}

/// A server on a file over which counts take long.
fn served() -> Served {
    let served = file(|_| ());
    let path = served.folder.path().join("kv.sqlite3");
    let busy = Duration::from_secs(5);
    let here = open(&Target::File {
        path,
        readonly: false,
        busy,
        encoding: None,
        memory: PageMemory::default(),
    });
    let here = here.expect("the store of the server");
    fill(here.store("here").expect("here"));
    served
}

/// How many operations of a kind have ended, and how many of them failed.
fn operations(served: &Served, kind: &str) -> (u64, u64) {
    let client = connect(served, READ);
    let metrics = call(&client, Command::Metrics, &[0]).expect("metrics");
    let metrics: serde_json::Value = serde_json::from_slice(&metrics).expect("JSON");
    let of = &metrics["operations"][kind];
    (of["count"].as_u64().unwrap_or(0), of["errors"].as_u64().unwrap_or(0))
}

/// As [`operations`], once `count` have ended.
fn ended(served: &Served, kind: &str, count: u64) -> (u64, u64) {
    until(|| operations(served, kind).0 == count);
    operations(served, kind)
}

fn begin(session: &Session, command: Command, body: &[u8]) -> std::net::TcpStream {
    let headers = session.headers();
    let headers: Vec<_> = headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    let path = format!("/v2/openkv/call/{}", command.number());
    let mut stream = send(session.address, "POST", &path, &headers, body);
    stream.flush().expect("sent");
    stream
}

/// A count with an expensive filter took 10.9 s, and every other client's `get` waited for it. It
/// continued after its client had gone.
#[test]
fn a_count_does_not_block_reads_and_ends_with_its_client() {
    let served = served();
    let session = served.session("/", ACCESS);
    assert_eq!(operations(&served, "count"), (0, 0));
    // More than there are threads for long reads.
    let slow: Vec<_> = (0..4).map(|_| begin(&session, Command::Count, &slow_count(400))).collect();
    std::thread::sleep(Duration::from_millis(100));
    for _ in 0..10 {
        assert!(session.get("a").is_some());
    }
    assert_eq!(operations(&served, "count"), (0, 0), "all of them are still under way");
    drop(slow);
    assert_eq!(ended(&served, "count", 4), (4, 4), "each has ended without an answer");
    // A later request is answered.
    let client = connect(&served, ACCESS);
    assert_eq!(call(&client, Command::Count, &count_all()), Ok(8_f64.to_le_bytes().to_vec()));
}

/// An operation beyond its time ends with an error that clients do not repeat.
#[test]
fn a_count_has_a_deadline() {
    let database = open(&Target::Memory).expect("a database");
    let Database::Store(store) = &database else { panic!("it is local") };
    fill(store);
    let ask = |frame: &[u8], long_most| {
        let (tell, answered) = channel();
        let reply = Reply::new(move |answer| drop(tell.send(answer)));
        let (store, busy, limits) = (store.clone(), Duration::ZERO, Limits::wide());
        let answer_bytes_max = usize::MAX;
        let call = Call { store, reply, durable: true, busy, limits, answer_bytes_max, long_most };
        carry_out(Command::Count, frame, call);
        answered.recv().expect("an answer")
    };
    let ended = ask(&slow_count(400), Duration::from_millis(50));
    let Err(Fault::Begun(error)) = ended else { panic!("{ended:?}") };
    assert_eq!(error.kind(), Kind::Unavailable);
    assert!(error.message().starts_with("kv.count: ended after 50 ms"), "{error}");
    assert_eq!(ask(&slow_count(1), Duration::from_secs(60)), Ok(0_f64.to_le_bytes().to_vec()));
}

/// A deletion by an expensive filter kept all writes waiting for 14.8 s, and continued after its
/// client had gone.
#[test]
fn a_deletion_does_not_block_writes_and_ends_with_its_client() {
    let served = served();
    let session = served.session("/", ACCESS);
    let count = slow_count(400);
    // The same range and filter.
    let (filter, span) = (&count[5 + 8 + 9..], &count[5 + 8..5 + 8 + 9]);
    let frame = [&[8, 255, 255, 255, 255][..], filter, span].concat();
    let slow = begin(&session, Command::DeleteMany, &frame);
    std::thread::sleep(Duration::from_millis(100));
    for n in 0..10_u8 {
        session.set("written", &[n]);
    }
    assert_eq!(operations(&served, "deleteMany"), (0, 0), "it is still under way");
    drop(slow);
    assert_eq!(ended(&served, "deleteMany", 1), (1, 1));
    let client = connect(&served, ACCESS);
    assert_eq!(call(&client, Command::Count, &count_all()), Ok(9_f64.to_le_bytes().to_vec()));
}

/// The deletion of all entries, without a filter.
fn delete_all() -> Vec<u8> {
    [&[0, 255, 255, 255, 255][..], &count_all()[5 + 8..]].concat()
}

/// A deletion of many commits continued to its end after its caller had gone.
#[test]
fn a_deletion_stops_when_its_caller_is_gone() {
    const ENTRIES: usize = DELETE_STEP_ROWS_MAX * 2;
    let database = open(&Target::Memory).expect("a database");
    let Database::Store(store) = &database else { panic!("it is local") };
    let value = EncodedValue { encoding: Encoding::Cbor, bytes: numbers(1) };
    let mutations = (0..ENTRIES).map(|n| Mutation::Set {
        key: key(&n.to_string()),
        suffixed: false,
        value: value.clone(),
        expiry: None,
    });
    let parts = WriteParts { mutations: mutations.collect(), ..WriteParts::default() };
    let write = AtomicWrite::new(parts, &Limits::wide()).expect("a write");
    let (tell, answered) = channel();
    let reply = Box::new(move |decisions| drop(tell.send(decisions)));
    store.commit(vec![Ok(write)], false, Duration::from_secs(5), reply);
    answered.recv().expect("decisions");
    let ask = |command, frame: &[u8], commits| {
        let (tell, answered) = channel();
        let checks = AtomicUsize::new(0);
        let reply = Reply::new(move |answer| drop(tell.send(answer)))
            .while_wanted(move || checks.fetch_add(1, Ordering::SeqCst) < commits);
        let (store, busy, limits) = (store.clone(), Duration::ZERO, Limits::wide());
        let (answer_bytes_max, long_most) = (usize::MAX, Duration::from_secs(60));
        let call = Call { store, reply, durable: true, busy, limits, answer_bytes_max, long_most };
        carry_out(command, frame, call);
        answered.recv().expect("an answer")
    };
    // The store checks before each commit.
    let ended = ask(Command::DeleteMany, &delete_all(), 1);
    let Err(Fault::Begun(error)) = ended else { panic!("{ended:?}") };
    assert!(error.message().contains("2048 entries have been deleted"), "{error}");
    let left = (ENTRIES - DELETE_STEP_ROWS_MAX) as f64;
    assert_eq!(ask(Command::Count, &count_all(), usize::MAX), Ok(left.to_le_bytes().to_vec()));
}

/// A cancelled call continued at the server. Another call on the same connection is not affected.
#[test]
fn a_call_that_is_cancelled_ends_at_the_server() {
    let served = served();
    let client = connect(&served, ACCESS);
    let begin = || {
        let (cancel, (tell, answered)) = (Cancel::default(), channel());
        let reply = Box::new(move |answer| drop(tell.send(answer)));
        client.call(Command::Count, &slow_count(400), &Limits::wide(), Some(cancel.clone()), reply);
        (cancel, answered)
    };
    let ((cancel, ended), (other, goes_on)) = (begin(), begin());
    std::thread::sleep(Duration::from_millis(100));
    cancel.raise();
    let answer = ended.recv().expect("an answer");
    assert_eq!(answer.map_err(|error| error.kind()), Err(Kind::Closed));
    assert_eq!(self::ended(&served, "count", 1), (1, 1));
    assert!(goes_on.try_recv().is_err(), "the other one is under way");
    other.raise();
    assert_eq!(self::ended(&served, "count", 2), (2, 2));
}
