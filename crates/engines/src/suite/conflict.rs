//! The rules of checks on ranges.

use super::*;
use openkv_core::model::RangeCheck;

/// A write that sets "done" if the entries from "b" to "e" are exactly these.
fn if_seen(seen: &[(&str, u64)]) -> AtomicWrite {
    let seen =
        seen.iter().map(|(name, version)| (key(name), Versionstamp::new(*version))).collect();
    let ranges = vec![RangeCheck { start: key("b"), end: key("e"), seen, found_by: None }];
    atomic(WriteParts { ranges, mutations: vec![set("z", b"")], ..WriteParts::default() })
}

fn held(writer: &mut impl Writer, seen: &[(&str, u64)]) -> bool {
    match commit(writer, vec![if_seen(seen)]).remove(0) {
        Decision::Committed(_) => true,
        Decision::CheckFailed(failed) if failed == [0] => false,
        other => panic!("{other:?}"),
    }
}

pub(super) fn a_changed_range_fails_the_write(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    assert!(held(&mut writer, &[]));
    let first = vec![set("a", b""), set("b", b""), set("d", b""), set("e", b"")];
    mutate(&mut writer, first); // 2
    assert!(held(&mut writer, &[("b", 2), ("d", 2)])); // 3
    for wrong in [
        &[][..],
        &[("b", 2)],
        &[("d", 2)],
        &[("b", 2), ("d", 1)],
        &[("b", 2), ("c", 2), ("d", 2)],
        &[("b", 2), ("d", 2), ("dd", 2)],
        &[("d", 2), ("b", 2)],
        &[("a", 2), ("b", 2), ("d", 2)],
    ] {
        assert!(!held(&mut writer, wrong), "{wrong:?}");
    }
    let ended = set_until("c", b"", Some(1));
    mutate(&mut writer, vec![ended, delete("b"), set("d", b"")]); // 4
    assert!(held(&mut writer, &[("d", 4)]));
}

pub(super) fn a_range_check_includes_earlier_writes_of_the_batch(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    mutate(&mut writer, vec![set("b", b""), set("d", b"")]); // 1
    let changes = vec![delete("b"), set("bb", b""), set("d", b""), set("dd", b"")];
    let decisions = commit(
        &mut writer,
        vec![
            write(vec![], changes), // 2
            if_seen(&[("b", 1), ("d", 1)]),
            if_seen(&[("bb", 2), ("d", 2), ("dd", 2)]), // 3
            if_seen(&[("bb", 2), ("d", 2)]),
        ],
    );
    assert_eq!(decisions[1], Decision::CheckFailed(vec![0]));
    assert_eq!(decisions[2], Decision::Committed(Versionstamp::new(3)));
    assert_eq!(decisions[3], Decision::CheckFailed(vec![0]));
    let empty = RangeCheck { start: key("e"), end: key("b"), seen: vec![], found_by: None };
    let parts = WriteParts { ranges: vec![empty], ..WriteParts::default() };
    assert!(matches!(commit(&mut writer, vec![atomic(parts)])[0], Decision::Committed(_)));
}
