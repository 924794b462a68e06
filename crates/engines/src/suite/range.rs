//! The rules of walks and of deletions of many.

use super::*;
use openkv_core::model::{
    Among, Beyond, DELETE_STEP_ROWS_MAX, Deleted, Deletion, FilterResults, Kind, Step, Walk,
};

/// Key, expiry, and length of the value in a walk.
type Shown = (Key, Option<i64>, usize);

fn walk(
    reader: &mut impl Reader,
    (start, end): (&str, &str),
    reverse: bool,
    values: bool,
    step: impl Fn(&[u8]) -> Step,
) -> Vec<Shown> {
    let mut shown = Vec::new();
    let (start, end) = (key(start), key(end));
    let walk = Walk { start: start.as_bytes(), end: end.as_bytes(), reverse, values };
    let walked = reader.read(NOW, &mut |snapshot| {
        snapshot.walk(walk, &mut |seen| {
            let key = Key::from_encoded(seen.row.key.to_vec());
            shown.push((key, seen.expire_at_ms, seen.row.value.len()));
            step(seen.row.key)
        })
    });
    walked.unwrap();
    shown
}

fn names(shown: Vec<Shown>) -> String {
    let name = |key: Key| String::from_utf8_lossy(&key.as_bytes()[1..key.len() - 1]).into_owned();
    shown.into_iter().map(|(key, ..)| name(key)).collect()
}

pub(super) fn walks_have_expiries_and_seek(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    let mutations = vec![
        set("a", b"1"),
        set_until("b", b"22", Some(NOW + 5)),
        set_until("c", b"3", Some(NOW)),
        set("d", &[4; 5000]),
        set("e", b""),
    ];
    mutate(&mut writer, mutations);
    let all = ("a", "z");
    let next = |_: &[u8]| Step::Next;
    let full = vec![
        (key("a"), None, 1),
        (key("b"), Some(NOW + 5), 2),
        (key("d"), None, 5000),
        (key("e"), None, 0),
    ];
    assert_eq!(walk(&mut reader, all, false, true, next), full);
    let without = full.iter().map(|(key, end, _)| (key.clone(), *end, 0)).rev().collect::<Vec<_>>();
    assert_eq!(walk(&mut reader, all, true, false, next), without);
    assert_eq!(names(walk(&mut reader, all, false, true, |_| Step::Stop)), "a");
    assert_eq!(names(walk(&mut reader, ("b", "e"), false, false, next)), "bd");
    assert_eq!(names(walk(&mut reader, ("e", "b"), false, false, next)), "");
    let over_b = |at: &[u8]| {
        if at == key("a").as_bytes() { Step::Seek(key("c").into_bytes()) } else { Step::Next }
    };
    assert_eq!(names(walk(&mut reader, all, false, true, over_b)), "ade");
    let below_d = |at: &[u8]| {
        if at == key("e").as_bytes() { Step::Seek(key("d").into_bytes()) } else { Step::Next }
    };
    assert_eq!(names(walk(&mut reader, all, true, true, below_d)), "eba");
}

pub(super) fn deletion(deletion: Deletion) -> AtomicWrite {
    atomic(WriteParts { deletion: Some(Box::new(deletion)), ..WriteParts::default() })
}

pub(super) fn within(start: &str, end: &str, count_max: usize) -> Deletion {
    let among = Among::Span { start: key(start), end: key(end) };
    let known = FilterResults::new();
    Deletion { among, filter: None, known, now_ms: NOW, count_max, beyond: Beyond::Resume }
}

fn deleted(count: usize, version: u64, resume: Option<&str>) -> Decision {
    let stamp = (count > 0).then(|| Versionstamp::new(version));
    let resume = resume.map(|name| {
        let mut bytes = key(name).into_bytes();
        bytes.push(0);
        Key::from_encoded(bytes)
    });
    Decision::Deleted(Deleted { count, stamp, resume })
}

pub(super) fn a_deletion_sees_its_batch(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    let old = vec![set("a", b"1"), set("b", b"2"), set_until("c", b"3", Some(NOW)), set("x", b"9")];
    mutate(&mut writer, old);
    let decisions = commit(
        &mut writer,
        vec![
            write(vec![], vec![set("aa", b"4"), delete("b")]),
            deletion(within("a", "d", usize::MAX)),
            write(vec![], vec![set("a", b"5")]),
            deletion(within("b", "d", 10)),
        ],
    );
    assert_eq!(decisions, [committed(2), deleted(2, 3, None), committed(4), deleted(0, 0, None)]);
    assert_eq!(get(&mut reader, "a"), Some((4, b"5".to_vec())));
    assert_eq!(get(&mut reader, "aa"), None);
    assert_eq!(get(&mut reader, "x"), Some((1, b"9".to_vec())));
}

pub(super) fn a_deletion_selects_by_its_filter(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    let values = vec![set("a", b"ab"), set("b", b"b"), set("c", b"ac"), set("d", b"ad")];
    mutate(&mut writer, values);
    // { $startsWith: the byte "a" }
    let filter = Some(b"\xa1\x6b$startsWith\x41a".to_vec());
    let mut first = within("a", "z", 2);
    first.filter.clone_from(&filter);
    assert_eq!(commit(&mut writer, vec![deletion(first)]), [deleted(2, 2, Some("c"))]);
    assert_eq!(get(&mut reader, "b"), Some((1, b"b".to_vec())));
    let keys = vec![key("b"), key("d"), key("d"), key("e")];
    let by_keys = Deletion { among: Among::Keys(keys), filter, ..within("", "", 10) };
    assert_eq!(commit(&mut writer, vec![deletion(by_keys)]), [deleted(1, 3, None)]);
    let broken = Deletion { filter: Some(vec![0xff]), ..within("a", "z", 1) };
    let decisions = commit(&mut writer, vec![deletion(broken)]);
    assert!(matches!(&decisions[0], Decision::Rejected(error) if error.kind() == Kind::Invalid));
    assert_eq!(bytes(b"").encoding, Encoding::Bytes);
}

/// Results computed before the commit apply only to entries that have not changed since.
pub(super) fn a_deletion_filters_changed_entries_again(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    let values = vec![set("a", b"a"), set("b", b"b"), set("c", b"a"), set("d", b"b")];
    mutate(&mut writer, values);
    // The results of { $startsWith: the byte "a" }. Two of them are wrong on purpose, so that the
    // test shows whether they are used.
    let results = [("a", false), ("b", true), ("c", true), ("d", false)];
    let known: FilterResults = results.iter().map(|(name, met)| (key(name), (1, *met))).collect();
    let filter = Some(b"\xa1\x6b$startsWith\x41a".to_vec());
    let changes = vec![set("c", b"b"), set("d", b"a"), set("e", b"a"), set("f", b"b")];
    mutate(&mut writer, changes);
    let of = |among| Deletion {
        among,
        filter: filter.clone(),
        known: known.clone(),
        ..within("a", "z", usize::MAX)
    };
    let keys = ["b", "c", "f", "missing"].map(key).to_vec();
    assert_eq!(commit(&mut writer, vec![deletion(of(Among::Keys(keys)))]), [deleted(1, 3, None)]);
    let all = Among::Span { start: key("a"), end: key("z") };
    assert_eq!(commit(&mut writer, vec![deletion(of(all))]), [deleted(2, 4, None)]);
    let left = ["a", "b", "c", "d", "e", "f"].map(|name| get(&mut reader, name).is_some());
    assert_eq!(left, [true, false, true, false, false, true]);
}

/// A filter over large values once made all other writes wait for 14.8 s.
pub(super) fn a_filter_does_not_block_other_writes(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    // An array of 60,000 numbers, and a filter that visits all of it forty times.
    let array = [&[0x99, 0xea, 0x60][..], &[7; 60_000]].concat();
    let value = |bytes: &[u8]| EncodedValue { encoding: Encoding::Cbor, bytes: bytes.to_vec() };
    let set = |name: &str, bytes: &[u8]| Mutation::Set {
        key: key(name),
        suffixed: false,
        value: value(bytes),
        expiry: None,
    };
    let (seven, costly) = ([0x81, 7], array.as_slice());
    let sets = vec![set("a", &seven), set("b", &seven), set("c", costly), set("d", &seven)];
    let parts = WriteParts { mutations: sets, ..WriteParts::default() };
    commit(&mut writer, vec![AtomicWrite::new(parts, &Limits::wide()).unwrap()]);
    let eight = b"\xa1\x69$contains\x08".repeat(40);
    let or = [b"\xa1\x63$or\x98\x29", &eight[..], b"\xa1\x69$contains\x07"].concat();
    let of = |known: &FilterResults| Deletion {
        filter: Some(or.clone()),
        known: known.clone(),
        ..within("a", "z", usize::MAX)
    };
    // The step ends before the entry that would take too long; in one commit nothing is deleted
    // then.
    let none = FilterResults::new();
    let whole = Deletion { beyond: Beyond::Refuse(100), ..of(&none) };
    let stopped =
        |count, stamp| Decision::Deleted(Deleted { count, stamp, resume: Some(key("c")) });
    assert_eq!(commit(&mut writer, vec![deletion(whole)]), [stopped(0, None)]);
    let stamp = Some(Versionstamp::new(2));
    assert_eq!(commit(&mut writer, vec![deletion(of(&none))]), [stopped(2, stamp)]);
    let known = FilterResults::from([(key("c"), (1, true))]);
    let whole = Deletion { beyond: Beyond::Refuse(100), ..of(&known) };
    assert_eq!(commit(&mut writer, vec![deletion(whole)]), [deleted(2, 3, None)]);
}

pub(super) fn a_deletion_is_bounded_or_rejected(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    let total = DELETE_STEP_ROWS_MAX + 10;
    let names: Vec<String> = (0..total).map(|n| format!("{n:05}")).collect();
    let writes = names.iter().map(|name| write(vec![], vec![set(name, b"1")])).collect();
    apply_at(&mut writer, Work { writes, durable: true, ..Work::default() }, NOW);
    let whole = |max| Deletion { beyond: Beyond::Refuse(max), ..within("", "z", usize::MAX) };
    let refused = commit(&mut writer, vec![deletion(whole(total - 1))]);
    let Decision::Rejected(error) = &refused[0] else { panic!("{refused:?}") };
    assert!(error.message().contains("limits.mutationsMax"), "{}", error.message());
    assert!(get(&mut reader, "00000").is_some());
    // A step examines no more than its bound; the next one continues behind it.
    let Decision::Deleted(step) =
        commit(&mut writer, vec![deletion(within("", "z", 9999))]).remove(0)
    else {
        panic!("it is no deletion")
    };
    assert_eq!((step.count, step.resume), (DELETE_STEP_ROWS_MAX, Some(key(&names[total - 10]))));
    assert_eq!(
        commit(&mut writer, vec![deletion(whole(10))]),
        [deleted(10, total as u64 + 2, None)]
    );
}
