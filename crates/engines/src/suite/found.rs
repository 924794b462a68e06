//! The rules of checks of what value indexes have found.

use super::search::{doc, doc_until, of};
use super::*;
use crate::Indexer;
use openkv_core::index::{parse_paths, plan_order, position_mark};
use openkv_core::model::{
    Encoding, FoundBy, IndexChoice, OrderPart, OrderPath, RangeCheck, ValueIndexRequest,
    ValueIndexSpec,
};

/// `{ t: "1" }`
const IS_ONE: &[u8] = b"\xa1\x61t\x61\x31";
/// `{ t: { $gte: "1" } }`
const FROM_ONE: &[u8] = b"\xa1\x61t\xa1\x64$gte\x61\x31";

fn create(writer: &mut impl Writer) {
    let on = vec![OrderPath { path: "t".into(), descending: false }];
    let (name, prefix) = ("t".into(), of(&["d"]));
    let spec = ValueIndexSpec { name, prefix, on, unique: false, multi: false, sparse: false };
    writer.create_value_index(&ValueIndexRequest { spec, replace: false }, soon()).unwrap();
    while writer.build_indexes(NOW, soon()).unwrap() {}
}

/// The first key behind a document and all that are below it.
fn behind(name: &str) -> Key {
    Key::from_encoded([of(&["d", name]).as_bytes(), &[0xff]].concat())
}

/// A write that changes another entry if the indexes find exactly these documents for a filter, up to one of them.
fn if_found(filter: &[u8], seen: &[(&str, Versionstamp)], last: &str) -> AtomicWrite {
    let seen = seen.iter().map(|(name, stamp)| (of(&["d", name]), *stamp)).collect();
    let start = Key::from_encoded([of(&["d"]).as_bytes(), &[0]].concat());
    let found_by = Some(FoundBy { filter: filter.to_vec(), now_ms: NOW, order: None });
    let ranges = vec![RangeCheck { start, end: behind(last), seen, found_by }];
    atomic(WriteParts { ranges, mutations: vec![set("z", b"")], ..WriteParts::default() })
}

#[track_caller]
fn is_held(decision: &Decision) -> bool {
    match decision {
        Decision::Committed(_) => true,
        Decision::CheckFailed(failed) if *failed == [0] => false,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn held(writer: &mut impl Writer, filter: &[u8], seen: &[(&str, Versionstamp)]) -> bool {
    is_held(&commit(writer, vec![if_found(filter, seen, "z")]).remove(0))
}

#[track_caller]
fn stamp_of(decision: &Decision) -> Versionstamp {
    let Decision::Committed(stamp) = decision else { panic!("{decision:?}") };
    *stamp
}

#[track_caller]
fn changed(writer: &mut impl Writer, mutations: Vec<Mutation>) -> Versionstamp {
    stamp_of(&mutate(writer, mutations)[0])
}

fn delete(name: &str) -> Mutation {
    Mutation::Delete { key: of(&["d", name]) }
}

pub(super) fn a_change_of_what_indexes_have_found_fails_the_write(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    assert!(!held(&mut writer, IS_ONE, &[]), "there is no index");
    create(&mut writer);
    assert!(held(&mut writer, IS_ONE, &[]));
    let expired = doc_until("e", "1", Some(NOW - 1));
    let docs = vec![doc("a", "1"), doc("b", "0"), doc("c", "1"), doc("d", "0"), expired];
    let first = changed(&mut writer, docs);
    let other = Versionstamp::new(first.version() - 1);
    assert!(held(&mut writer, IS_ONE, &[("a", first), ("c", first)]));
    assert!(held(&mut writer, FROM_ONE, &[("a", first), ("c", first)]));
    for wrong in [
        &[][..],
        &[("a", first)],
        &[("c", first)],
        &[("a", first), ("c", other)],
        &[("c", first), ("a", first)],
        &[("a", first), ("b", first), ("c", first)],
        &[("a", first), ("c", first), ("e", first)],
    ] {
        assert!(!held(&mut writer, IS_ONE, wrong), "{wrong:?}");
    }
    // As far as the list was read.
    let decisions = commit(
        &mut writer,
        vec![
            if_found(IS_ONE, &[("a", first)], "b"),
            if_found(IS_ONE, &[("a", first)], "c"),
            if_found(FROM_ONE, &[("a", first)], "b"),
        ],
    );
    assert_eq!(decisions.iter().map(is_held).collect::<Vec<_>>(), [true, false, true]);
    // What the index does not find is free.
    changed(&mut writer, vec![doc("b", "00"), delete("d")]);
    let seen = [("a", first), ("c", first)];
    assert!(held(&mut writer, IS_ONE, &seen) && held(&mut writer, FROM_ONE, &seen));
    // One comes, one is changed, one goes.
    let second = changed(&mut writer, vec![doc("b", "1"), doc("c", "1"), doc("a", "0")]);
    assert!(!held(&mut writer, IS_ONE, &seen));
    assert!(held(&mut writer, IS_ONE, &[("b", second), ("c", second)]));
    changed(&mut writer, vec![delete("b")]);
    assert!(held(&mut writer, FROM_ONE, &[("c", second)]));
    assert!(writer.drop_index(&IndexChoice::Name("t".into()), soon()).unwrap());
    assert!(!held(&mut writer, FROM_ONE, &[("c", second)]));
}

pub(super) fn such_a_check_includes_earlier_writes_of_the_batch(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    create(&mut writer);
    let first = changed(&mut writer, vec![doc("a", "1"), doc("b", "0"), doc("c", "1")]);
    for filter in [IS_ONE, FROM_ONE] {
        let before = changed(&mut writer, vec![doc("a", "1"), doc("b", "0"), delete("d")]);
        let set_expiry = Mutation::SetExpiry {
            key: of(&["d", "c"]),
            expiry: Some(Time::At(NOW + 1000)),
            required: true,
            shortens: false,
        };
        let change = vec![doc("b", "1"), doc("d", "1"), doc("a", "0"), set_expiry];
        // The commits of a batch follow one another, but refused writes have none.
        let after = Versionstamp::new(before.version() + 1);
        let decisions = commit(
            &mut writer,
            vec![
                write(vec![], change),
                if_found(filter, &[("a", before), ("c", first)], "z"),
                if_found(filter, &[("b", after), ("c", first)], "z"),
                if_found(filter, &[("b", after), ("c", first), ("d", after)], "z"),
            ],
        );
        assert_eq!(stamp_of(&decisions[0]), after);
        assert_eq!(decisions[1..].iter().map(is_held).collect::<Vec<_>>(), [false, false, true]);
    }
}

/// A write that changes another entry if a list in the order of `t` has exactly these documents behind a position, and
/// up to another one.
fn if_ordered(
    descending: bool,
    seen: &[(&str, Versionstamp)],
    [after, until]: [Option<Vec<u8>>; 2],
) -> AtomicWrite {
    let order = vec![OrderPath { path: "t".into(), descending }];
    let seen = seen.iter().map(|(name, stamp)| (of(&["d", name]), *stamp)).collect();
    let start = Key::from_encoded([of(&["d"]).as_bytes(), &[0]].concat());
    let order = Some(OrderPart { order, after, until });
    let found_by = Some(FoundBy { filter: b"\xa0".to_vec(), now_ms: NOW, order });
    let ranges = vec![RangeCheck { start, end: behind("z"), seen, found_by }];
    atomic(WriteParts { ranges, mutations: vec![set("z", b"")], ..WriteParts::default() })
}

pub(super) fn a_check_of_an_order_is_about_the_part_that_was_read(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    assert!(!is_held(&commit(&mut writer, vec![if_ordered(false, &[], [None, None])]).remove(0)));
    create(&mut writer);
    let indexes = read(&mut engine.reader().unwrap(), NOW, |snapshot| snapshot.value_indexes());
    let expired = doc_until("e", "2", Some(NOW - 1));
    let docs = vec![doc("a", "3"), doc("b", "1"), doc("c", "2"), expired];
    let first = changed(&mut writer, docs);
    let at = |descending: bool, name: &str, text: &str| {
        let paths = [OrderPath { path: "t".into(), descending }];
        let order = parse_paths(&paths).unwrap();
        let (start, end) = ([of(&["d"]).as_bytes(), &[0]].concat(), behind("z"));
        let plan = plan_order(&indexes, None, &order, &start, end.as_bytes()).unwrap();
        let value = [&b"\xa1\x61t\x61"[..], text.as_bytes()].concat();
        let key = of(&["d", name]);
        let at = plan.position_of(&indexes, key.as_bytes(), Encoding::Cbor, &value).unwrap();
        Some([position_mark(indexes.first(), &paths), at].concat())
    };
    let up = |name, text| at(false, name, text);
    let down = |name, text| at(true, name, text);
    let (a, b, c) = (("a", first), ("b", first), ("c", first));
    let held = |writer: &mut _, wanted: bool, checks: Vec<AtomicWrite>| {
        for (number, check) in checks.into_iter().enumerate() {
            assert_eq!(is_held(&commit(writer, vec![check]).remove(0)), wanted, "{number}");
        }
    };
    let hold = vec![
        if_ordered(false, &[a, b, c], [None, None]),
        if_ordered(false, &[b, c], [None, up("c", "2")]),
        if_ordered(false, &[c], [up("b", "1"), up("c", "2")]),
        if_ordered(false, &[a], [up("c", "2"), None]),
        if_ordered(true, &[a, c], [None, down("c", "2")]),
        if_ordered(true, &[c], [down("a", "3"), down("c", "2")]),
        if_ordered(true, &[b], [down("c", "2"), None]),
    ];
    held(&mut writer, true, hold);
    let fail = vec![
        if_ordered(false, &[b, c], [None, None]),
        if_ordered(false, &[b], [None, up("c", "2")]),
        if_ordered(false, &[a, b, c], [None, up("c", "2")]),
        if_ordered(true, &[a], [None, down("c", "2")]),
        if_ordered(true, &[a, c], [down("a", "3"), down("c", "2")]),
        if_ordered(false, &[b, c], [None, Some(vec![1, 2, 3])]),
        if_ordered(false, &[a, b, c], [Some(vec![]), None]),
    ];
    held(&mut writer, false, fail);
    // Earlier writes of the batch count, as far as they are in the part.
    let part = |text| {
        vec![write(vec![], vec![doc("d", text)]), if_ordered(false, &[b, c], [None, up("c", "2")])]
    };
    for (text, wanted) in [("3", true), ("1", false)] {
        assert_eq!(is_held(&commit(&mut writer, part(text))[1]), wanted, "{text}");
    }
}
