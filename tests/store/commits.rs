//! Commits: grouped, each answered in its place; submitted writes are completed.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use openkv::engine::memory::MemoryEngine;
use openkv::engine::{Engine, Reader, Work};
use openkv::model::{Decision, Error, GROUP_WRITES_MAX, Kind, Result};
use openkv::store::Store;

use crate::database::{Database, deno};
use crate::faulty::{Faulty, Plan};
use crate::on_both;
use crate::writes::{absent, checked, key, set, stamp, write};

/// A plan whose first transaction with a write waits until it is released. It reports the number of
/// writes of each transaction; of the first one when that reaches the gate.
fn gate() -> (Plan, Sender<()>, Receiver<usize>) {
    let (open, opened) = channel::<()>();
    let (size, sizes) = channel();
    let gate = Mutex::new((Some(opened), size));
    let before_apply = move |_, work: &Work| -> Result<()> {
        let mut gate = gate.lock().expect("no panic");
        if !work.writes.is_empty() {
            gate.1.send(work.writes.len()).expect("counted");
            if let Some(opened) = gate.0.take() {
                opened.recv().expect("opened");
            }
        }
        Ok(())
    };
    (Plan { before_apply: Box::new(before_apply), ..Plan::default() }, open, sizes)
}

#[test]
fn waiting_writes_share_a_transaction_and_are_answered_in_order() {
    let (plan, open, sizes) = gate();
    let database = Database::sqlite_wrapped(|engine| Faulty(engine, Arc::new(plan)));
    let first = database.submit(vec![Ok(write(vec![set("first", b"")]))]);
    assert_eq!(sizes.recv(), Ok(1));
    let refused = || Error::invalid("Value too large");
    let answers: Vec<_> = (0..20_usize)
        .map(|count| {
            let lost = checked(vec![absent("first"), absent("b"), absent("first")], vec![]);
            let mut writes = vec![Err(refused()), Ok(lost)];
            writes.extend((0..count).map(|_| Ok(write(vec![set("a", b"")]))));
            writes.push(Err(refused()));
            database.submit(writes)
        })
        .collect();
    let none = database.submit(Vec::new());
    open.send(()).expect("waiting");

    assert_eq!(first.get(), [Decision::Committed(stamp(1))]);
    let mut version = 1;
    for (count, answer) in answers.iter().enumerate() {
        let decisions = answer.get();
        assert_eq!(decisions.len(), count + 3);
        assert_eq!(decisions[0], Decision::Rejected(refused()));
        assert_eq!(decisions[1], Decision::CheckFailed(vec![0, 2]));
        for decision in &decisions[2..count + 2] {
            version += 1;
            assert_eq!(*decision, Decision::Committed(stamp(version)));
        }
        assert_eq!(decisions[count + 2], Decision::Rejected(refused()));
    }
    assert_eq!(none.get(), []);
    assert_eq!(sizes.try_iter().collect::<Vec<_>>(), [20 + 190]);
}

/// The bound once counted submissions instead of their writes.
#[test]
fn a_group_is_bounded_by_its_writes() {
    let (plan, open, sizes) = gate();
    let database = Database::over(Faulty(MemoryEngine::new(), Arc::new(plan)));
    let submit = |count| database.submit((0..count).map(|_| Ok(write(vec![]))).collect());
    let first = submit(1);
    assert_eq!(sizes.recv(), Ok(1));
    let part = GROUP_WRITES_MAX / 2 - 1;
    let others = [part, part, part, GROUP_WRITES_MAX + 1, 1].map(submit);
    open.send(()).expect("waiting");
    let total: usize = others.iter().map(|answer| answer.get().len()).sum();
    assert_eq!((first.get().len(), total), (1, 3 * part + GROUP_WRITES_MAX + 2));
    let groups: Vec<usize> = sizes.try_iter().collect();
    // Writes of one submission stay together, even beyond the bound.
    assert_eq!(groups, [2 * part, part, GROUP_WRITES_MAX + 1, 1]);
}

fn refused_writes_reach_no_engine(database: Database) {
    let error = Error::invalid("too much");
    let answer = database.submit(vec![Err(error.clone())]);
    assert_eq!(answer.get(), [Decision::Rejected(error)]);
    assert_eq!(database.must(write(vec![])), 1, "no stamp was used");
}

fn dropping_the_store_completes_submitted_writes(mut database: Database) {
    let writes = |name: &str| vec![Ok(write(vec![set(name, name.as_bytes())]))];
    let answers: Vec<_> = (0..50).map(|n| database.submit(writes(&format!("k{n}")))).collect();
    database.close();
    for (at, answer) in answers.iter().enumerate() {
        // Already answered, because closing has waited for it.
        let decisions = answer.now().expect("answered before the store was closed");
        assert_eq!(decisions, [Decision::Committed(stamp(at as u64 + 1))]);
    }
}

fn dropping_the_store_answers_reads_and_watches(mut database: Database) {
    let watch = database.watch(&["a"]);
    assert_eq!(database.next(watch).get(), Ok(Some(vec![None])));
    let waiting = database.next(watch);
    let (sender, read) = channel();
    for _ in 0..20 {
        let sender = sender.clone();
        let end = move |read: Result<Vec<_>>| sender.send(read.is_ok()).expect("a receiver");
        database.store().expiries(vec![key("a")], end);
    }
    database.close();
    assert_eq!(waiting.now(), Some(Ok(None)));
    assert_eq!(read.try_iter().collect::<Vec<_>>(), [true; 20]);
}

fn the_last_reference_may_go_in_a_reply(mut database: Database) {
    let store = Arc::new(database.store.take().expect("open"));
    let (sender, gone) = channel();
    let held: Arc<Store> = store.clone();
    let (go, going) = channel::<()>();
    let reply = move |decisions: Vec<Decision>| {
        going.recv().expect("a signal");
        drop(held);
        sender.send(decisions).expect("a receiver");
    };
    store.commit(vec![Ok(write(vec![]))], false, Duration::from_secs(5), Box::new(reply));
    drop(store);
    go.send(()).expect("waiting");
    let decisions = gone.recv_timeout(Duration::from_secs(30)).expect("not stuck");
    assert_eq!(decisions, [Decision::Committed(stamp(1))]);
}

on_both! {
    refused_writes_reach_no_engine
    dropping_the_store_completes_submitted_writes
    dropping_the_store_answers_reads_and_watches
    the_last_reference_may_go_in_a_reply
}

#[test]
fn commits_survive_a_dropped_store() {
    let engine = MemoryEngine::new();
    let mut database = Database::over(engine.clone());
    let answers: Vec<_> =
        (0..100).map(|_| database.submit(vec![Ok(write(vec![set("a", b"x")]))])).collect();
    database.close();
    assert!(answers.iter().all(|answer| answer.now().is_some()));
    let mut found = None;
    let read = engine.reader().expect("a reader").read(0, &mut |snapshot| {
        snapshot.get(key("a").as_bytes(), &mut |row| found = Some(row.stamp))?;
        Ok(())
    });
    assert_eq!((read, found), (Ok(()), Some(stamp(100))));
}

#[test]
fn a_read_only_store_reads_and_refuses_the_rest() {
    let database = Database::sqlite();
    database.must(write(vec![set("a", b"1")]));
    let readonly = database.another(true);
    assert_eq!(readonly.read("a"), Some(b"1".to_vec()));
    let own = Error::invalid("its own error");
    let decisions = readonly.submit(vec![Ok(write(vec![])), Err(own.clone())]).get();
    assert!(matches!(&decisions[0], Decision::Rejected(e) if e.kind() == Kind::Denied));
    assert_eq!(decisions[1], Decision::Rejected(own));
    let listening = readonly.store().listen(deno(), 1, Box::new(|_| Vec::new()), Box::new(drop));
    assert_eq!(listening.map_err(|error| error.kind()), Err(Kind::Denied));
    let watch = readonly.watch(&["a"]);
    assert_eq!(readonly.next(watch).get(), Ok(Some(vec![Some(b"1".to_vec())])));
    let waiting = readonly.next(watch);
    database.must(write(vec![set("a", b"2")]));
    assert_eq!(waiting.get(), Ok(Some(vec![Some(b"2".to_vec())])));
}
