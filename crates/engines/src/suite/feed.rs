//! The rules of what change feeds read.

use super::history::ORIGIN;
use super::*;
use crate::FeedState;
use openkv_core::model::{ChangeKind, Time};

/// Bytes of a value that a file stores beside its entry.
const LARGE: usize = 65_537;

/// Commit, key, length of the value; `None` for a removal.
type Shown = (u64, Vec<u8>, Option<usize>);

/// The changes, with all that they tell. A value is shown by its length.
fn kinds(reader: &mut impl Reader, after: u64) -> Vec<(u64, Vec<u8>, ChangeKind<usize>)> {
    read(reader, NOW, |snapshot| {
        let mut kinds = Vec::new();
        snapshot.changes(after, &mut |change| {
            let kind = change.kind.map(|(_, bytes)| bytes.len());
            kinds.push((change.version, change.key.to_vec(), kind));
            true
        })?;
        Ok(kinds)
    })
}

fn state(reader: &mut impl Reader) -> FeedState {
    read(reader, NOW, |snapshot| snapshot.feed_state())
}

fn changes(reader: &mut impl Reader, after: u64) -> Vec<Shown> {
    let shown = |(version, key, kind)| match kind {
        ChangeKind::Set { value, .. } => (version, key, Some(value)),
        ChangeKind::Deleted | ChangeKind::Expired => (version, key, None),
        ChangeKind::ExpirySet { .. } => panic!("only the expiry of {key:?} changed"),
    };
    kinds(reader, after).into_iter().map(shown).collect()
}

fn shown(version: u64, name: &str, value: Option<usize>) -> Shown {
    (version, key(name).into_bytes(), value)
}

fn turn_on(writer: &mut impl Writer) -> u64 {
    writer.log_changes(ORIGIN, NOW, soon()).unwrap()
}

pub(super) fn changes_are_logged_only_after_the_log_is_enabled(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    mutate(&mut writer, vec![set("a", b"1"), set("b", b"1")]);
    mutate(&mut writer, vec![delete("a")]);
    mutate(&mut writer, vec![set("b", b"2")]);
    let off = FeedState { on: false, version: 3, complete: 3, removed: 2 };
    assert_eq!((state(&mut reader), changes(&mut reader, 0)), (off, vec![]));
    assert_eq!(turn_on(&mut writer), 3);
    mutate(&mut writer, vec![set("c", b"33")]);
    assert_eq!(turn_on(&mut writer), 4);
    let on = FeedState { on: true, version: 4, complete: 3, removed: 2 };
    assert_eq!(state(&mut reader), on);
    assert_eq!(changes(&mut reader, 0), [shown(4, "c", Some(2))]);
    assert_eq!(changes(&mut reader, 4), []);
}

pub(super) fn exactly_the_commits_of_a_batch_are_logged(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    turn_on(&mut writer);
    commit(
        &mut writer,
        vec![
            write(vec![], vec![set("a", b"1"), set("b", b"1"), set("a", b"22")]),
            write(vec![], vec![set("a", b"333")]),
            // Rejected, including the mutations before the failed one.
            write(vec![], vec![delete("b"), set("c", b"1"), sum("a", 1)]),
            write(vec![], vec![]),
            write(vec![], vec![delete("a"), delete("absent")]),
        ],
    );
    let mut found = changes(&mut reader, 0);
    found.sort();
    let expected = [
        shown(1, "a", Some(2)),
        shown(1, "b", Some(1)),
        shown(2, "a", Some(3)),
        shown(4, "a", None),
        shown(4, "absent", None),
    ];
    assert_eq!(found, expected);
}

pub(super) fn expiries_and_dead_messages_are_logged(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    turn_on(&mut writer);
    mutate(&mut writer, vec![set_until("a", b"1", Some(NOW + 1))]);
    commit(&mut writer, vec![enqueue(9, NOW, &[], &["dead"])]);
    apply_at(&mut writer, Work { sweep_max: 10, ..Work::default() }, NOW + 1);
    let (id, _) = claim(&mut writer, 5, NOW + 1).remove(0);
    settle(&mut writer, id, 5, Outcome::Failed, NOW + 1);
    let expected = [shown(1, "a", Some(1)), shown(3, "a", None), shown(4, "dead", Some(1))];
    assert_eq!(changes(&mut reader, 0), expected);
}

pub(super) fn the_log_has_expiries_and_tells_them_from_deletions(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    mutate(&mut writer, vec![set("old", b"1")]);
    turn_on(&mut writer);
    let touch = |name, end_ms: Option<i64>| Mutation::SetExpiry {
        key: key(name),
        expiry: end_ms.map(Time::At),
        required: false,
        shortens: false,
    };
    let large = vec![7; LARGE];
    let limits = Limits { value_bytes_max: large.len(), ..Limits::default() };
    let mutations = vec![set_until("large", &large, Some(NOW + 9))];
    let parts = WriteParts { mutations, ..WriteParts::default() };
    commit(
        &mut writer,
        vec![
            write(vec![], vec![set_until("a", b"1", Some(NOW + 5)), set("b", b"22")]),
            // Of an entry of this batch, of one from before it, and of none.
            write(vec![], vec![touch("a", None), touch("old", Some(NOW + 7)), touch("none", None)]),
            // In one commit with a set, before and behind it.
            write(vec![], vec![set("b", b"1"), touch("b", Some(NOW + 1))]),
            write(vec![], vec![touch("a", Some(NOW + 3)), set("a", b"333")]),
            write(vec![], vec![delete("a")]),
            AtomicWrite::new(parts, &limits).unwrap(),
        ],
    );
    apply_at(&mut writer, Work { sweep_max: 10, ..Work::default() }, NOW + 1);
    let logged = |version, name, kind| (version, key(name).into_bytes(), kind);
    let set = |value, expire_at_ms| ChangeKind::Set { value, expire_at_ms };
    let mut found = kinds(&mut reader, 0);
    found.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    let expected = [
        logged(2, "a", set(1, Some(NOW + 5))),
        logged(2, "b", set(2, None)),
        logged(3, "a", ChangeKind::ExpirySet { expire_at_ms: None }),
        logged(3, "old", ChangeKind::ExpirySet { expire_at_ms: Some(NOW + 7) }),
        logged(4, "b", set(1, Some(NOW + 1))),
        logged(5, "a", set(3, None)),
        logged(6, "a", ChangeKind::Deleted),
        logged(7, "large", set(large.len(), Some(NOW + 9))),
        logged(8, "b", ChangeKind::Expired),
    ];
    assert_eq!(found, expected);
}

pub(super) fn large_values_are_read_also_when_they_were_replaced(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    turn_on(&mut writer);
    let large = vec![7; LARGE];
    let limits = Limits { value_bytes_max: large.len(), ..Limits::default() };
    let mutations = vec![set("a", &large), set("b", &large)];
    let parts = WriteParts { mutations, ..WriteParts::default() };
    commit(&mut writer, vec![AtomicWrite::new(parts, &limits).unwrap()]);
    mutate(&mut writer, vec![set("a", &[])]);
    let all = [shown(1, "a", Some(LARGE)), shown(1, "b", Some(LARGE)), shown(2, "a", Some(0))];
    assert_eq!(changes(&mut reader, 0), all);
}
