//! Indexes are decided by the leader, and are the same in every process.

use super::*;
use crate::{Indexer as _, Snapshot};
use openkv_core::model::{
    INDEX_BUILD_ROWS_MAX, IndexChoice, IndexRequest, IndexSpec, OrderPath, Tokenizer,
    ValueIndexInfo, ValueIndexRequest, ValueIndexSpec, ValueIndexState,
};

const NOW: i64 = 1_000_000;

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(30)
}

fn unique() -> ValueIndexRequest {
    let on = vec![OrderPath { path: "t".into(), descending: false }];
    let (name, prefix) = ("t".into(), of(&["d"]));
    let spec = ValueIndexSpec { name, prefix, on, unique: true, multi: false, sparse: false };
    ValueIndexRequest { spec, replace: false }
}

fn full_text() -> IndexRequest {
    IndexRequest::exact(IndexSpec {
        name: "words".into(),
        prefix: of(&["d"]),
        fields: vec!["t".into()],
        tokenizer: Tokenizer::Unicode61,
        prefix_lengths: vec![],
    })
}

impl Process {
    fn see<T>(&self, mut look: impl FnMut(&mut dyn Snapshot) -> Result<T>) -> T {
        let mut reader = self.local.engine.reader().unwrap();
        let mut found = None;
        let read = reader.read(NOW, &mut |snapshot| {
            found = Some(look(snapshot)?);
            Ok(())
        });
        read.unwrap();
        found.unwrap()
    }

    fn index(&self) -> ValueIndexInfo {
        self.see(|snapshot| Ok(snapshot.value_indexes()?[0].info.clone()))
    }

    /// The entries of the value index.
    fn entries(&self) -> Vec<Vec<u8>> {
        self.see(|snapshot| {
            let id = snapshot.value_indexes()?[0].info.id;
            let mut entries = Vec::new();
            snapshot.walk_index(id, (&[], &[0xff]), false, &mut |entry| {
                entries.push(entry.to_vec());
                true
            })?;
            Ok(entries)
        })
    }

    fn documents(&self) -> u64 {
        self.see(|snapshot| Ok(snapshot.indexes(true)?[0].documents))
    }

    fn decide(&self, name: &str, text: &str) -> Decision {
        let writes = vec![write(vec![], vec![doc(name, text)])];
        let work = Work { writes, durable: true, ..Work::default() };
        self.writer().apply(work, NOW, soon()).unwrap().decisions.remove(0)
    }
}

/// A leader with entries for two steps of building.
fn with_entries(store: &Arc<Store>) -> Process {
    let process = leader(store);
    let count = INDEX_BUILD_ROWS_MAX + 9;
    for from in (0..count).step_by(100) {
        let docs = (from..(from + 100).min(count)).map(|n| doc(&format!("{n}"), &format!("w{n}")));
        process.apply(vec![write(vec![], docs.collect())]).unwrap();
    }
    process
}

#[test]
fn a_build_goes_on_under_the_next_leader() {
    let store = Arc::new(Store::default());
    let mut first = with_entries(&store);
    first.writer().create_index(&full_text(), soon()).unwrap();
    first.writer().create_value_index(&unique(), soon()).unwrap();
    assert!(first.writer().build_indexes(NOW, soon()).unwrap());
    assert!(first.writer().build_indexes(NOW, soon()).unwrap());
    assert!(first.writer().build_indexes(NOW, soon()).unwrap());
    assert_eq!(first.index().scanned, INDEX_BUILD_ROWS_MAX as u64);
    // A snapshot carries what the log behind it goes on from.
    begin_snapshot(&mut first);
    first.driver.snapshots.finish();
    first.driver.release().unwrap();
    let second = leader(&store);
    assert_eq!(second.index().state, ValueIndexState::Building);
    assert_eq!(second.index().scanned, INDEX_BUILD_ROWS_MAX as u64);
    assert!(second.writer().next_deadlines().unwrap().building);
    while second.writer().build_indexes(NOW, soon()).unwrap() {}
    assert_eq!(second.index().state, ValueIndexState::Ready);
    let count = INDEX_BUILD_ROWS_MAX + 9;
    assert_eq!(second.entries().len(), count);
    assert_eq!(second.documents(), count as u64);
    // The one before follows, and a process without a cache reads all of it.
    first.driver.round();
    assert!(first.reads());
    first.driver.round();
    let reader = opened(&store, LeadMode::Never, true).unwrap();
    for other in [&first, &reader] {
        assert_eq!(other.entries(), second.entries());
        assert_eq!((other.index(), other.documents()), (second.index(), second.documents()));
    }
    // Nothing is left to build there.
    assert_eq!(first.writer().build_indexes(NOW, soon()), Ok(false));
    assert!(matches!(second.decide("new", "w7"), Decision::NotUnique(_)));
    assert!(matches!(second.decide("7", "other"), Decision::Committed(_)));
    assert!(matches!(second.decide("new", "w7"), Decision::Committed(_)));
}

/// Whether a unique index refuses a value follows from the log: a process that built it over other entries would decide
/// otherwise.
#[test]
fn a_build_that_fails_has_failed_everywhere() {
    let store = Arc::new(Store::default());
    let mut first = with_entries(&store);
    first.apply(vec![write(vec![], vec![doc("last", "w7")])]).unwrap();
    first.writer().create_value_index(&unique(), soon()).unwrap();
    while first.writer().build_indexes(NOW, soon()).unwrap() {}
    assert!(matches!(first.index().state, ValueIndexState::Failed(_)));
    // The reason is gone when others repeat it.
    first.apply(vec![write(vec![], vec![doc("last", "other")])]).unwrap();
    first.driver.release().unwrap();
    let second = leader(&store);
    assert_eq!(second.index(), first.index());
    assert!(matches!(second.decide("new", "w7"), Decision::Committed(_)));
    // It is replaced by one that refuses.
    second.writer().drop_index(&IndexChoice::Name("t".into()), soon()).unwrap();
    second.decide("new", "new");
    second.writer().create_value_index(&unique(), soon()).unwrap();
    while second.writer().build_indexes(NOW, soon()).unwrap() {}
    assert!(matches!(second.decide("newer", "w7"), Decision::NotUnique(_)));
}

#[test]
fn a_process_that_reads_is_told_of_an_index_that_is_there() {
    let store = Arc::new(Store::default());
    let first = leader(&store);
    first.writer().create_index(&full_text(), soon()).unwrap();
    first.writer().create_value_index(&unique(), soon()).unwrap();
    let before = store.requests("PUT log/").len();
    first.writer().create_value_index(&unique(), soon()).unwrap();
    assert_eq!(store.requests("PUT log/").len(), before);
    let reader = opened(&store, LeadMode::Never, false).unwrap();
    reader.writer().create_index(&full_text(), soon()).unwrap();
    assert_eq!(reader.writer().create_value_index(&unique(), soon()), Ok(first.index()));
    let other = ValueIndexRequest { replace: true, ..unique() };
    let other = ValueIndexRequest { spec: ValueIndexSpec { unique: false, ..other.spec }, ..other };
    let refused = reader.writer().create_value_index(&other, soon()).unwrap_err();
    assert_eq!(refused.kind(), Kind::Denied);
    let refused = reader.writer().drop_index(&IndexChoice::Name("t".into()), soon()).unwrap_err();
    assert_eq!(refused.kind(), Kind::Denied);
}

/// The definition of an index that the file has lost is read from the log.
#[test]
fn an_index_that_the_file_loses_is_read_from_the_log() {
    let store = Arc::new(Store::default());
    let mut process = leader(&store);
    process.add().unwrap();
    process.change_file(
        "CREATE TRIGGER lost BEFORE INSERT ON openkv_meta WHEN NEW.name = 'bucket'
         BEGIN SELECT RAISE(ABORT, 'lost'); END",
    );
    let error = process.writer().create_value_index(&unique(), soon()).unwrap_err();
    assert_eq!(error.kind(), Kind::OutcomeUnknown, "{error}");
    process.change_file("DROP TRIGGER lost");
    process.lead_again();
    assert_eq!(process.index().state, ValueIndexState::Ready);
    assert!(matches!(process.decide("1", "same"), Decision::Committed(_)));
    assert!(matches!(process.decide("2", "same"), Decision::NotUnique(_)));
}
