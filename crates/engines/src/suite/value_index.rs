//! The rules of value indexes.

use std::collections::BTreeSet;

use super::search::{doc, doc_until, of, texts_at};
use super::*;
use crate::Indexer;
use openkv_core::codec::change_log;
use openkv_core::model::{
    BEFORE_EXPIRY_MS, Change, ChangeKind, CopiedEntry, Followed, INDEX_BUILD_ROWS_MAX, IndexChoice,
    IndexRequest, IndexSpec, LogSegment, OrderPath, Origin, Replacement, Tokenizer,
    ValueIndexRequest, ValueIndexSpec, ValueIndexState, Walk,
};

fn request(unique: bool) -> ValueIndexRequest {
    let on = vec![OrderPath { path: "t".into(), descending: true }];
    let (name, prefix) = ("t".into(), of(&["d"]));
    let spec = ValueIndexSpec { name, prefix, on, unique, multi: false, sparse: false };
    ValueIndexRequest { spec, replace: false }
}

/// The index has exactly the entries that follow from the entries of the database, of expired ones too.
#[track_caller]
fn agrees(engine: &impl Engine) -> usize {
    let mut reader = engine.reader().unwrap();
    let (found, expected) = read(&mut reader, BEFORE_EXPIRY_MS, |snapshot| {
        let indexes = snapshot.value_indexes()?;
        let index = &indexes[0];
        assert!(index.is_ready());
        let mut found = Vec::new();
        snapshot.walk_index(index.info.id, (&[], &[0xff]), false, &mut |entry| {
            found.push(entry.to_vec());
            true
        })?;
        let mut expected = Vec::new();
        let walk = Walk { start: &[], end: &[0xff], reverse: false, values: true };
        snapshot.walk(walk, &mut |seen| {
            if index.spec().covers(seen.row.key) {
                let row = seen.row;
                expected.extend(index.entries(row.key, row.encoding, row.value));
            }
            openkv_core::model::Step::Next
        })?;
        expected.sort();
        Ok((found, expected))
    });
    assert_eq!(found, expected);
    found.len()
}

fn build(writer: &mut impl Writer) {
    while writer.build_indexes(NOW, soon()).unwrap() {}
}

pub(super) fn entries_follow_every_change(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    let count = INDEX_BUILD_ROWS_MAX + 9;
    for from in (0..count).step_by(100) {
        let docs = (from..(from + 100).min(count)).map(|n| doc(&format!("{n}"), &format!("w{n}")));
        mutate(&mut writer, docs.collect());
    }
    mutate(&mut writer, vec![doc_until("ends", "x", Some(NOW + 5))]);
    let made = writer.create_value_index(&request(false), soon()).unwrap();
    assert_eq!(made.state, ValueIndexState::Building);
    assert!(writer.build_indexes(NOW, soon()).unwrap());
    // Of entries that the index has, of others, and of new ones.
    let delete = |name: &str| Mutation::Delete { key: of(&["d", name]) };
    mutate(&mut writer, vec![doc("0", "changed"), doc("99", "changed"), doc("new", "n")]);
    mutate(&mut writer, vec![delete("1"), delete("98"), doc("2", "a"), delete("2")]);
    build(&mut writer);
    assert_eq!(agrees(engine), count - 3 + 2);
    mutate(&mut writer, vec![doc("new", "m"), doc_until("later", "y", Some(NOW + 6))]);
    mutate(&mut writer, vec![set("other", b"")]);
    assert_eq!(agrees(engine), count - 3 + 3);
    apply_at(&mut writer, Work { sweep_max: 9, ..Work::default() }, NOW + 10);
    assert_eq!(agrees(engine), count - 3 + 1);
    assert!(writer.drop_index(&IndexChoice::Name("t".into()), soon()).unwrap());
    assert_eq!(read(&mut engine.reader().unwrap(), NOW, |of| of.value_indexes()).len(), 0);
}

pub(super) fn entries_of_value_indexes_follow_a_repeated_log(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    mutate(&mut writer, vec![doc("0", "a"), doc("3", "b")]);
    writer.create_value_index(&request(false), soon()).unwrap();
    build(&mut writer);
    assert_eq!(agrees(engine), 2);
    let version = read(&mut engine.reader().unwrap(), NOW, |of| of.stats()).stamp.version() + 1;
    let set = |name, text, version| {
        let Mutation::Set { key, value, .. } = doc(name, text) else { panic!("a set") };
        Change { key, version, kind: ChangeKind::Set { value, expire_at_ms: None } }
    };
    let changes = [
        set("repeated", "z", version),
        Change { key: of(&["d", "3"]), version, kind: ChangeKind::Deleted },
        set("0", "changed", version),
    ];
    let changes = change_log::encode(version, &changes);
    let segment = LogSegment { first: version, last: version, at_ms: NOW, changes: &changes };
    writer.replay(segment, soon()).unwrap();
    assert_eq!(agrees(engine), 2);
}

/// A copy can have commits from before the followed database made the index.
pub(super) fn a_copy_builds_unique_indexes_without_a_check(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    let entry = |name: &str| {
        let Mutation::Set { key, value, .. } = doc(name, "same") else { panic!("a set") };
        CopiedEntry { key, version: 1, value, expire_at_ms: None }
    };
    let origin = Origin { database: [1; 16], incarnation: 2 };
    let place = |version| Followed { origin, version, at_ms: NOW, prefixes: Vec::new() };
    let replace = |writer: &mut dyn Writer, before, version, names: &[&str]| {
        let mut pages = vec![names.iter().map(|name| entry(name)).collect()].into_iter();
        let replacement = Replacement { before, after: place(version), generation: 9 };
        writer.replace_all(&replacement, &mut || Ok(pages.next()), soon()).unwrap();
    };
    replace(&mut writer, None, 1, &["a", "b"]);
    writer.create_value_index(&request(true), soon()).unwrap();
    build(&mut writer);
    assert_eq!(agrees(engine), 2);
    replace(&mut writer, Some(place(1)), 2, &["b", "c", "d"]);
    assert_eq!(agrees(engine), 3);
}

/// Entries of one index that begin with the same thousands of bytes: an engine may index their beginnings.
pub(super) fn long_values_are_in_order(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    let on = ["t", "u", "v", "w"].map(|path| OrderPath { path: path.into(), descending: false });
    let mut long = request(false);
    long.spec.on = on.to_vec();
    writer.create_value_index(&long, soon()).unwrap();
    let same = "\0x".repeat(500);
    let docs: Vec<_> = (0..40)
        .map(|n| {
            // In another order than that of the keys.
            let last = format!("{:02}", n * 7 % 40);
            let texts = [("t", same.as_str()), ("u", &same), ("v", &last), ("w", &same)];
            texts_at(&["d", &n.to_string()], &texts, None)
        })
        .collect();
    mutate(&mut writer, docs);
    mutate(&mut writer, vec![doc("short", &same), doc("a", "a")]);
    let all = 42;
    assert_eq!(agrees(engine), all);
    let walk = |reader: &mut _, range: (&[u8], &[u8]), reverse| {
        read(reader, NOW, |snapshot| {
            let id = snapshot.value_indexes()?[0].info.id;
            let mut found = Vec::new();
            snapshot.walk_index(id, range, reverse, &mut |entry| {
                found.push(entry.to_vec());
                found.len() < 30
            })?;
            Ok(found)
        })
    };
    let mut reader = engine.reader().unwrap();
    let forward = walk(&mut reader, (&[], &[0xff]), false);
    assert!(forward.is_sorted() && forward.len() == 30);
    let backward = walk(&mut reader, (&[], &[0xff]), true);
    assert!(backward.iter().rev().is_sorted() && backward.len() == 30);
    let (from, to) = (&forward[5], &forward[20]);
    assert_eq!(walk(&mut reader, (from, to), false), forward[5..20]);
    let reversed: Vec<_> = forward[5..20].iter().rev().cloned().collect();
    assert_eq!(walk(&mut reader, (from, to), true), reversed);
    mutate(
        &mut writer,
        (0..40).map(|n| Mutation::Delete { key: of(&["d", &n.to_string()]) }).collect(),
    );
    assert_eq!(agrees(engine), 2);
}

pub(super) fn an_index_that_is_replaced_leaves_nothing(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    mutate(&mut writer, vec![doc("a", "1"), doc("b", "2")]);
    let first = writer.create_value_index(&request(true), soon()).unwrap();
    build(&mut writer);
    let again = writer.create_value_index(&request(true), soon()).unwrap();
    assert_eq!((again.id, again.state), (first.id, ValueIndexState::Ready));
    let other = request(false);
    let refused = writer.create_value_index(&other, soon()).unwrap_err();
    assert!(refused.message().contains("another index 't'"), "{refused}");
    let replaced = writer.create_value_index(&ValueIndexRequest { replace: true, ..other }, soon());
    let ids = BTreeSet::from([first.id, replaced.unwrap().id]);
    build(&mut writer);
    assert_eq!(agrees(engine), 2);
    let left = read(&mut engine.reader().unwrap(), NOW, |snapshot| {
        assert_eq!(snapshot.value_indexes()?.len(), 1);
        let mut left = 0;
        for id in &ids {
            snapshot.walk_index(*id, (&[], &[0xff]), false, &mut |_| {
                left += 1;
                true
            })?;
        }
        Ok(left)
    });
    assert_eq!(left, 2);
    // It refuses nothing any more.
    let decisions = mutate(&mut writer, vec![doc("c", "1")]);
    assert!(matches!(decisions[0], Decision::Committed(_)), "{decisions:?}");
    let taken = IndexRequest::exact(IndexSpec {
        name: "t".into(),
        prefix: of(&["e"]),
        fields: vec!["t".into()],
        tokenizer: Tokenizer::Unicode61,
        prefix_lengths: vec![],
    });
    let refused = writer.create_index(&taken, soon()).unwrap_err();
    assert!(refused.message().contains("that of a value index"), "{refused}");
}

pub(super) fn unique_values_are_decided_in_the_order_of_the_writes(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    writer.create_value_index(&request(true), soon()).unwrap();
    let one = |mutations| write(vec![], mutations);
    let delete = |name: &str| Mutation::Delete { key: of(&["d", name]) };
    let refused = |decision: &Decision| matches!(decision, Decision::NotUnique(_));
    let decisions = commit(
        &mut writer,
        vec![
            one(vec![doc("a", "1")]),
            one(vec![doc("b", "1")]),
            one(vec![delete("a")]),
            one(vec![doc("b", "1"), doc("c", "2")]),
            one(vec![doc("d", "2"), doc("e", "3")]),
            one(vec![doc("e", "3")]),
            one(vec![doc("b", "2"), doc("c", "1")]),
            one(vec![doc_until("f", "9", Some(NOW - 1))]),
            one(vec![doc("g", "9")]),
        ],
    );
    let expected = [false, true, false, false, true, false, false, false, false];
    assert_eq!(decisions.iter().map(refused).collect::<Vec<_>>(), expected);
    agrees(engine);
    let decisions = mutate(&mut writer, vec![doc("h", "9"), doc("i", "9")]);
    let Decision::NotUnique(violations) = &decisions[0] else { panic!("{decisions:?}") };
    let names: Vec<_> = violations.iter().map(|one| (one.key.clone(), one.other.clone())).collect();
    assert_eq!(names, [(of(&["d", "h"]), of(&["d", "g"])), (of(&["d", "i"]), of(&["d", "h"]))]);
    agrees(engine);
}

pub(super) fn a_unique_index_over_duplicates_fails(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    mutate(&mut writer, vec![doc("a", "1"), doc("b", "1"), doc_until("c", "2", Some(NOW - 1))]);
    mutate(&mut writer, vec![doc("d", "2")]);
    writer.create_value_index(&request(true), soon()).unwrap();
    build(&mut writer);
    let state = |reader: &mut _| read(reader, NOW, |of| of.value_indexes())[0].info.state.clone();
    let ValueIndexState::Failed(failure) = state(&mut engine.reader().unwrap()) else {
        panic!("not failed")
    };
    assert_eq!((failure.key, failure.other), (of(&["d", "b"]), Some(of(&["d", "a"]))));
    assert!(writer.drop_index(&IndexChoice::Name("t".into()), soon()).unwrap());
    mutate(&mut writer, vec![doc("b", "3")]);
    writer.create_value_index(&request(true), soon()).unwrap();
    build(&mut writer);
    assert_eq!(state(&mut engine.reader().unwrap()), ValueIndexState::Ready);
    agrees(engine);
}

/// A build once added all entries before it looked for values that are there twice, and each commit read all those
/// of its value meanwhile.
pub(super) fn a_unique_index_over_duplicates_fails_at_the_first_step(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    let count = INDEX_BUILD_ROWS_MAX + 9;
    let docs = (0..count).map(|n| doc(&format!("{n:04}"), if n < 2 { "last" } else { "same" }));
    mutate(&mut writer, docs.collect());
    writer.create_value_index(&request(true), soon()).unwrap();
    writer.build_indexes(NOW, soon()).unwrap();
    let state =
        read(&mut engine.reader().unwrap(), NOW, |of| of.value_indexes())[0].info.state.clone();
    let ValueIndexState::Failed(failure) = state else { panic!("{state:?}") };
    assert_eq!((failure.key, failure.other), (of(&["d", "0001"]), Some(of(&["d", "0000"]))));
}

/// The two entries with one value are in different steps.
pub(super) fn a_duplicate_of_an_earlier_step_is_found(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    let count = 2 * INDEX_BUILD_ROWS_MAX + 9;
    for from in (0..count).step_by(100) {
        // The value of the first entry is there again in the second step.
        let text = |n| format!("w{}", if n == INDEX_BUILD_ROWS_MAX + 5 { 0 } else { n });
        let docs = (from..(from + 100).min(count)).map(|n| doc(&format!("{n:04}"), &text(n)));
        mutate(&mut writer, docs.collect());
    }
    writer.create_value_index(&request(true), soon()).unwrap();
    let mut state = || {
        writer.build_indexes(NOW, soon()).unwrap();
        read(&mut engine.reader().unwrap(), NOW, |of| of.value_indexes())[0].info.state.clone()
    };
    assert_eq!(state(), ValueIndexState::Building);
    let ValueIndexState::Failed(failure) = state() else { panic!("not failed") };
    let twice = format!("{:04}", INDEX_BUILD_ROWS_MAX + 5);
    assert_eq!((failure.key, failure.other), (of(&["d", &twice]), Some(of(&["d", "0000"]))));
}
