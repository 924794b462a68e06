//! The rules of commits and reads.

use uuid::Uuid;

use super::*;
use openkv_core::model::{Patch, Target};

fn scan(reader: &mut impl Reader, start: &str, end: &str, reverse: bool, max: usize) -> Vec<Key> {
    read(reader, NOW, |snapshot| {
        let mut keys = Vec::new();
        snapshot.scan(key(start).as_bytes(), key(end).as_bytes(), reverse, &mut |row| {
            keys.push(Key::from_encoded(row.key.to_vec()));
            keys.len() < max
        })?;
        Ok(keys)
    })
}

pub(super) fn committed_entries_are_read(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    assert_eq!(get(&mut reader, "a"), None);
    let writes = vec![write(vec![], vec![set("a", b"1"), set("b", b"2")]), write(vec![], vec![])];
    assert_eq!(commit(&mut writer, writes), [committed(1), committed(2)]);
    assert_eq!(get(&mut reader, "a"), Some((1, b"1".to_vec())));
    assert_eq!(get(&mut reader, "b"), Some((1, b"2".to_vec())));
    mutate(&mut writer, vec![delete("a")]);
    assert_eq!(get(&mut reader, "a"), None);
    reader.release();
    assert_eq!(get(&mut reader, "b"), Some((1, b"2".to_vec())));
}

pub(super) fn a_kept_snapshot_is_never_stale(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    for round in 1..200_u64 {
        let value = round.to_be_bytes();
        mutate(&mut writer, vec![set("a", &value)]);
        assert_eq!(get(&mut reader, "a"), Some((round, value.to_vec())));
        assert_eq!(get(&mut reader, "a"), Some((round, value.to_vec())));
    }
}

pub(super) fn a_rejected_write_leaves_nothing(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    mutate(&mut writer, vec![set("text", b"x"), set("old", b"1")]);
    let decisions = commit(
        &mut writer,
        vec![
            write(vec![], vec![set("old", b"2"), set("new", b"3"), sum("text", 1)]),
            write(vec![], vec![set("after", b"4")]),
        ],
    );
    assert!(matches!(decisions[0], Decision::Rejected(_)));
    assert_eq!(decisions[1], committed(2));
    assert_eq!(get(&mut reader, "old"), Some((1, b"1".to_vec())));
    assert_eq!(get(&mut reader, "new"), None);
    assert_eq!(get(&mut reader, "after"), Some((2, b"4".to_vec())));
}

pub(super) fn writes_of_a_batch_see_each_other(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    let absent = || vec![absent("a")];
    let stamped = |version| vec![at_version("a", version)];
    let decisions = commit(
        &mut writer,
        vec![
            write(absent(), vec![set("a", b"1")]),
            write(absent(), vec![set("a", b"2")]),
            write(stamped(1), vec![sum("n", 5)]),
            write(vec![], vec![sum("n", 6)]),
        ],
    );
    let lost = Decision::CheckFailed(vec![0]);
    assert_eq!(decisions, [committed(1), lost, committed(2), committed(3)]);
    assert_eq!(get(&mut reader, "a"), Some((1, b"1".to_vec())));
    assert_eq!(get(&mut reader, "n"), Some((3, 11_u64.to_le_bytes().to_vec())));
}

pub(super) fn large_values_are_stored_and_removed(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    for len in [900, 950, 960, 1000, 5000, 60_000, 10, 2000] {
        let value: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
        mutate(&mut writer, vec![set("a", &value)]);
        assert_eq!(get(&mut reader, "a").unwrap().1, value);
    }
    let scanned = scan(&mut reader, "", "z", false, 10);
    assert_eq!(scanned, [key("a")]);
    mutate(&mut writer, vec![delete("a")]);
    assert_eq!(get(&mut reader, "a"), None);
}

pub(super) fn scans_are_ordered_and_stop_on_request(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    let names = ["d", "a", "c", "b", "e"];
    mutate(&mut writer, names.map(|name| set(name, b"")).to_vec());
    let keys = |names: &[&str]| names.iter().map(|name| key(name)).collect::<Vec<_>>();
    assert_eq!(scan(&mut reader, "b", "e", false, 10), keys(&["b", "c", "d"]));
    assert_eq!(scan(&mut reader, "b", "e", true, 10), keys(&["d", "c", "b"]));
    assert_eq!(scan(&mut reader, "b", "e", true, 2), keys(&["d", "c"]));
    assert_eq!(scan(&mut reader, "e", "b", false, 10), keys(&[]));
}

fn uuids_of(decision: &Decision) -> Vec<Uuid> {
    let Decision::CommittedWith(_, results) = decision else { panic!("{decision:?}") };
    let resolved = &results.resolved;
    resolved.iter().map(|resolved| resolved.uuid).collect()
}

/// Sets the key `<uuid>` and another key to the same UUID, and a third key to another UUID.
pub(super) fn with_placeholders() -> AtomicWrite {
    let nil = std::str::from_utf8(openkv_core::codec::uuid::NIL_TEXT).unwrap();
    let patch = |target, offset, placeholder| Patch { target, offset, placeholder };
    atomic(WriteParts {
        mutations: vec![set(nil, b"v"), set("same", nil.as_bytes()), set("other", nil.as_bytes())],
        patches: vec![
            patch(Target::Key(0), 1, 5),
            patch(Target::Value(1), 0, 5),
            patch(Target::Value(2), 0, 6),
        ],
        ..WriteParts::default()
    })
}

pub(super) fn uuids_increase_from_commit_to_commit(engine: &impl Engine) {
    let mut reader = engine.reader().unwrap();
    let mut all = Vec::new();
    // Each writer stands for another process; the clock runs backwards.
    for round in 0..4 {
        let mut writer = engine.writer().unwrap();
        let writes = vec![with_placeholders(), with_placeholders()];
        let work = Work { writes, durable: true, seed: 9, ..Work::default() };
        let report = apply_at(&mut writer, work, NOW - round * 10);
        all.extend(report.decisions.iter().flat_map(uuids_of));
        let [.., one, other] = all.as_slice() else { panic!("two in each") };
        let text = |uuid: &Uuid| openkv_core::codec::uuid::text(*uuid);
        let name = String::from_utf8(text(one).to_vec()).unwrap();
        assert_eq!(get(&mut reader, &name).unwrap().1, b"v");
        assert_eq!(get(&mut reader, "same").unwrap().1, text(one));
        assert_eq!(get(&mut reader, "other").unwrap().1, text(other));
    }
    assert_eq!(all.len(), 16);
    assert!(all.is_sorted_by(|a, b| a < b), "{all:x?}");
}
