//! How much a list by value indexes reads of a snapshot, and how its entries are fetched.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Included};
use std::sync::Arc;
use std::time::Duration;

use super::patience::{Closing, Patience};
use super::{OrderedPage, OrderedScan, Scan};
use openkv_core::codec::cbor;
use openkv_core::filter::Filter;
use openkv_core::index::ValueIndex;
use openkv_core::model::{
    Encoding, Error, Key, Needs, OrderPath, Result, Row, Seen, Stats, Step,
    VALUE_INDEX_SORTED_ENTRIES_MAX, ValueIndexInfo, ValueIndexSpec, ValueIndexState, Versionstamp,
    Walk,
};
use openkv_engines::{Finder, Snapshot};

const PREFIX: [u8; 3] = [2, b'p', 0];
/// Entries of all cases but one: more than one look of a list takes.
const COUNT: u16 = 300;

/// Entries with an index of their path `n`, and what was read of them.
struct Rows {
    rows: BTreeMap<Vec<u8>, Vec<u8>>,
    indexes: Arc<[ValueIndex]>,
    entries: BTreeSet<Vec<u8>>,
    /// The number of visited entries of the index.
    visited: u64,
    /// The numbers of keys that were fetched together.
    fetched: Vec<usize>,
}

/// The key of a number, with as many more parts.
fn key(n: u16, deeper: usize) -> Vec<u8> {
    // An integer has two bytes in a key from 256 on.
    let part = (256 + n).to_be_bytes();
    [&PREFIX[..], &[0x16], &part, &[0x15, 1].repeat(deeper)].concat()
}

/// `{ path: n }`
fn object(path: u8, n: u16) -> Vec<u8> {
    [&[0xa1, 0x61, path][..], &cbor::encode_number(f64::from(n))].concat()
}

impl Rows {
    /// An entry for each key, with this number in its value.
    fn of(rows: impl Iterator<Item = (Vec<u8>, u16)>) -> Self {
        let spec = ValueIndexSpec {
            name: "n".to_owned(),
            prefix: Key::from_encoded(PREFIX.to_vec()),
            on: vec![path("n")],
            unique: false,
            multi: false,
            sparse: false,
        };
        let info = ValueIndexInfo { id: 0, spec, state: ValueIndexState::Ready, scanned: 0 };
        let index = ValueIndex::new(info).unwrap();
        let rows: BTreeMap<_, _> = rows.map(|(key, n)| (key, object(b'n', n))).collect();
        let of = |(key, value): (&Vec<u8>, &Vec<u8>)| index.entries(key, Encoding::Cbor, value);
        let entries = rows.iter().flat_map(of).collect();
        Self { rows, entries, indexes: Arc::from([index]), visited: 0, fetched: Vec::new() }
    }

    fn numbered(count: u16) -> Self {
        Self::of((0..count).map(|n| (key(n, 0), n)))
    }
}

fn path(path: &str) -> OrderPath {
    OrderPath { path: path.to_owned(), descending: false }
}

impl Finder for Rows {
    fn value_indexes(&mut self) -> Result<Arc<[ValueIndex]>> {
        Ok(self.indexes.clone())
    }

    fn walk_index(
        &mut self,
        _id: i64,
        (lo, hi): (&[u8], &[u8]),
        reverse: bool,
        visit: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<()> {
        assert!(!reverse, "no case asks for it");
        let range = (Included(lo), Excluded(hi));
        for entry in self.entries.range::<[u8], _>(range) {
            self.visited += 1;
            if !visit(entry) {
                break;
            }
        }
        Ok(())
    }
}

impl Snapshot for Rows {
    fn prefetch(&mut self, Needs { keys, .. }: Needs<'_>) -> Result<()> {
        self.fetched.push(keys.len());
        Ok(())
    }

    fn stats(&mut self) -> Result<Stats> {
        Err(Error::internal("no list asks for it"))
    }

    fn walk(&mut self, walk: Walk<'_>, visit: &mut dyn FnMut(Seen<'_>) -> Step) -> Result<()> {
        let range = (Included(walk.start), Excluded(walk.end));
        for (key, value) in self.rows.range::<[u8], _>(range) {
            let stamp = Versionstamp::new(1);
            let row = Row { key, stamp, encoding: Encoding::Cbor, value };
            match visit(Seen { row, expire_at_ms: None }) {
                Step::Next => {}
                Step::Stop => break,
                Step::Seek(_) => panic!("no case skips keys of a walk"),
            }
        }
        Ok(())
    }
}

fn patience() -> Arc<Patience> {
    Patience::new("kv.list", Duration::from_secs(3600), None, Closing::default())
}

fn scan(filter: Option<&[u8]>) -> Scan {
    let filter = filter.map(|filter| Filter::parse(filter, 0).unwrap());
    Scan { filter, ..Scan::of_range([&PREFIX[..], &[0]].concat(), [&PREFIX[..], &[0xff]].concat()) }
}

/// One page in the order of `n`. It can end early on a busy machine.
fn page(
    rows: &mut Rows,
    filter: Option<&[u8]>,
    limit: usize,
    after: Option<Vec<u8>>,
) -> OrderedPage {
    let order = vec![path("n")];
    let list = OrderedScan { scan: scan(filter), order, sort: false, after };
    list.step(&mut None, rows, limit, &patience()).unwrap().unwrap()
}

/// A page with one entry read thousands of entries of the index.
#[test]
fn an_ordered_page_reads_about_as_many_entries_of_the_index_as_it_has() {
    for limit in [1, 5, 100] {
        let mut rows = Rows::numbered(COUNT);
        let page = page(&mut rows, None, limit, None);
        assert!((1..=limit).contains(&page.entries.len()));
        assert!(page.next.is_some());
        assert_eq!(rows.visited, limit as u64 + 1);
        assert_eq!(page.read.index_entries, rows.visited);
        assert!(rows.fetched.iter().sum::<usize>() <= limit);
    }
    let mut rows = Rows::numbered(COUNT);
    page(&mut rows, None, usize::MAX, None);
    assert_eq!(rows.visited, u64::from(COUNT));
}

#[test]
fn a_brief_page_is_whole_and_goes_on_only_behind_its_own_order() {
    let mut rows = Rows::numbered(COUNT);
    let list = |after| OrderedScan { scan: scan(None), order: vec![path("n")], sort: true, after };
    // A thread that is interrupted may leave a page to another one.
    let mut brief =
        |list: &OrderedScan| (0..50).find_map(|_| list.brief_page(&mut rows, 10).unwrap()).unwrap();
    let first = brief(&list(None));
    let second = brief(&list(first.next));
    assert_eq!((first.entries.len(), second.entries.len()), (10, 10));
    let of_another = list(Some(b"of another order".to_vec()));
    assert!(of_another.brief_page(&mut rows, 10).unwrap().is_none());
    assert!(list(None).brief_page(&mut rows, COUNT.into()).unwrap().is_none());
}

/// Behind the first entries of a chunk, those of a page with a small limit were read one by one.
#[test]
fn entries_of_an_ordered_page_are_fetched_together() {
    for limit in [1, 5, 63, 64, 65, 1000] {
        let mut rows = Rows::numbered(COUNT);
        let (mut pages, mut read, mut after) = (0, 0, None);
        loop {
            // The index has no path `m`, so all entries are looked at.
            let page = page(&mut rows, Some(&object(b'm', 1)), limit, after);
            assert_eq!(page.entries.len(), 0);
            pages += 1;
            read += page.read.entries;
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(read, u64::from(COUNT));
        assert!(rows.fetched.iter().all(|together| (1..=64).contains(together)));
        // Of a page that ends early the last chunk is fetched again.
        let again = 64 * (pages - 1);
        assert!(rows.fetched.iter().sum::<usize>() <= usize::from(COUNT) + again);
        assert!(rows.fetched.len() < 20 * pages, "{:?}", rows.fetched);
    }
}

/// A fetch of no keys is a trip to a server.
#[test]
fn keys_that_a_depth_leaves_out_are_not_fetched() {
    let mut rows = Rows::of((0..COUNT).map(|n| (key(n, usize::from(n + 1 < COUNT)), 7)));
    let depth = Some((PREFIX.len(), 1));
    let mut scan = Scan { depth, ..scan(Some(&object(b'n', 7))) };
    let mut found = Vec::new();
    let mut show = |seen: &Seen<'_>, _| found.push(seen.row.key.to_vec());
    while !scan.step(&mut rows, usize::MAX, &patience(), &mut show).unwrap() {}
    assert_eq!(found, [key(COUNT - 1, 0)]);
    assert_eq!(rows.fetched, [1]);
}

/// Each step of a count read all that an index may have for it, and left it.
#[test]
fn a_count_leaves_indexes_with_too_many_entries_once() {
    let count = 2 * VALUE_INDEX_SORTED_ENTRIES_MAX as u16;
    let mut rows = Rows::numbered(count);
    // { n: { $gte: 0 } }
    let filter = b"\xa1\x61n\xa1\x64$gte\x00";
    let mut counted = scan(Some(filter)).counted();
    let patience = patience();
    let mut steps = 0;
    let found = loop {
        steps += 1;
        if let Some(found) = counted(&mut rows, &patience).unwrap() {
            break found;
        }
    };
    assert_eq!(found, u64::from(count));
    assert!(steps > 1);
    assert_eq!(rows.visited, VALUE_INDEX_SORTED_ENTRIES_MAX as u64 + 1);
}
