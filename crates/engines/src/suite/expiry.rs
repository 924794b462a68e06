//! The rules of expiring entries.

use super::*;
use openkv_core::model::{Calculation, Operand};

pub(super) fn expired_entries_are_absent_at_once_and_swept_in_steps(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    let ending = |at: i64| set_until(&format!("k{at}"), b"v", Some(NOW + at));
    let writes = vec![write(vec![], (1..=5).map(ending).collect())];
    let report = apply_at(&mut writer, Work { writes, durable: true, ..Work::default() }, NOW);
    assert_eq!(report.expiry_ms, Some(NOW + 1));
    assert_eq!(writer.next_deadlines().unwrap().expiry_ms, Some(NOW + 1));
    assert!(get_at(&mut reader, "k3", NOW + 2).is_some());
    assert_eq!(get_at(&mut reader, "k3", NOW + 3), None);

    // Absent to checks and sums as well.
    let writes = vec![write(vec![absent("k1")], vec![]), write(vec![], vec![sum("k2", 7)])];
    let work = Work { writes, durable: true, ..Work::default() };
    let decisions = apply_at(&mut writer, work, NOW + 3).decisions;
    assert_eq!(decisions, [committed(2), committed(3)]);

    let sweep = || Work { sweep_max: 2, durable: true, ..Work::default() };
    let first = apply_at(&mut writer, sweep(), NOW + 4);
    assert_eq!((first.touched.len(), first.sweep_more), (2, true));
    let second = apply_at(&mut writer, sweep(), NOW + 4);
    assert_eq!((second.touched, second.sweep_more), (vec![key("k4")], false));
    assert_eq!(writer.next_deadlines().unwrap().expiry_ms, Some(NOW + 5));
    assert!(get_at(&mut reader, "k2", NOW + 4).is_some(), "the sum has no end");
    // Each sweep that deleted an entry is a commit of its own.
    assert_eq!(mutate(&mut writer, vec![]), [committed(6)]);
}

/// The expiry of an entry; the outer `None` means that there is no entry.
fn expiry(reader: &mut impl Reader, name: &str) -> Option<Option<i64>> {
    read(reader, NOW, |snapshot| snapshot.expiry(key(name).as_bytes()))
}

fn set_expiry(name: &str, expire_at_ms: Option<i64>, required: bool) -> AtomicWrite {
    let expiry = expire_at_ms.map(Time::At);
    write(vec![], vec![Mutation::SetExpiry { key: key(name), expiry, required, shortens: false }])
}

pub(super) fn setting_an_expiry_keeps_value_and_versionstamp(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    let large = vec![7; 5000];
    mutate(&mut writer, vec![set("a", &large), set("b", b"1")]);
    assert_eq!((expiry(&mut reader, "a"), expiry(&mut reader, "c")), (Some(None), None));
    let decisions = commit(
        &mut writer,
        vec![
            set_expiry("a", Some(NOW + 10), true),
            set_expiry("c", None, true),
            set_expiry("c", None, false),
        ],
    );
    assert_eq!(decisions, [committed(2), Decision::CheckFailed(vec![]), committed(3)]);
    assert_eq!(get(&mut reader, "a"), Some((1, large.clone())));
    assert_eq!(expiry(&mut reader, "a"), Some(Some(NOW + 10)));
    assert_eq!(get_at(&mut reader, "a", NOW + 10), None);
    assert_eq!(writer.next_deadlines().unwrap().expiry_ms, Some(NOW + 10));
    commit(&mut writer, vec![set_expiry("a", None, true)]);
    assert_eq!(writer.next_deadlines().unwrap().expiry_ms, None);
    assert_eq!(get_at(&mut reader, "a", NOW + 10), Some((1, large)));
}

pub(super) fn a_new_expiry_takes_effect_inside_a_batch(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    mutate(&mut writer, vec![set("a", b"1"), set("b", b"1")]);
    let one = vec![at_version("a", 1)];
    let absent = vec![absent("b")];
    let decisions = commit(
        &mut writer,
        vec![
            set_expiry("a", Some(NOW + 5), true),
            write(one, vec![]),
            set_expiry("b", Some(NOW), true),
            write(absent, vec![]),
            set_expiry("b", None, true),
            write(vec![], vec![set("b", b"2")]),
            set_expiry("b", Some(NOW + 7), true),
        ],
    );
    let lost = Decision::CheckFailed(vec![]);
    let stamps = [2, 3, 4, 5].map(committed);
    assert_eq!(decisions[..4], stamps);
    assert_eq!(decisions[4..], [lost, committed(6), committed(7)]);
    assert_eq!(get(&mut reader, "b"), Some((6, b"2".to_vec())));
    assert_eq!(expiry(&mut reader, "b"), Some(Some(NOW + 7)));
}

/// In each kind of mutation that has an expiry; and with 0 ms the entry is absent at once, also to the
/// later writes of the batch.
pub(super) fn a_relative_expiry_counts_from_the_time_of_the_batch(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    let commit_at = |writer: &mut _, mutations, now_ms| {
        let writes = vec![write(vec![], mutations), write(vec![absent("gone")], vec![])];
        apply_at(writer, Work { writes, durable: true, ..Work::default() }, now_ms).decisions
    };
    mutate(&mut writer, vec![set("touched", b"1")]);
    let set_for = |name, ms| Mutation::Set {
        key: key(name),
        suffixed: false,
        value: bytes(b"1"),
        expiry: Some(Time::After(ms)),
    };
    let calculation = Calculation {
        op: Arith::Sum,
        operand: Operand::U64(1),
        bounds: None,
        value_bytes_max: 100,
    };
    let mutations = vec![
        set_for("set", 10),
        set_for("gone", 0),
        Mutation::SetExpiry {
            key: key("touched"),
            expiry: Some(Time::After(20)),
            required: true,
            shortens: false,
        },
        Mutation::Calculate { key: key("sum"), calculation, expiry: Some(Time::After(30)) },
        Mutation::Append {
            key: key("list"),
            items: vec![0x80],
            front: false,
            value_bytes_max: 100,
            expiry: Some(Time::After(40)),
        },
    ];
    assert_eq!(commit_at(&mut writer, mutations, NOW + 3), [committed(2), committed(3)]);
    for (name, ms) in [("set", 10), ("touched", 20), ("sum", 30), ("list", 40)] {
        assert_eq!(expiry(&mut reader, name), Some(Some(NOW + 3 + ms)), "{name}");
    }
    assert_eq!(get_at(&mut reader, "gone", NOW + 3), None);
    assert_eq!(commit_at(&mut writer, vec![set_for("set", 10)], NOW + 5)[0], committed(4));
    assert_eq!(expiry(&mut reader, "set"), Some(Some(NOW + 15)));
}

/// Found by random operations: an entry that a batch stored with a past expiry was still visible to
/// the later writes of the batch.
pub(super) fn entries_stored_as_expired_are_absent_in_the_batch(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    let text = |end: i64| set_until("a", b"text", Some(end));
    let absent = || vec![absent("a")];
    let decisions = commit(
        &mut writer,
        vec![
            write(vec![], vec![text(NOW)]),
            write(absent(), vec![sum("a", 1)]),
            write(vec![], vec![text(NOW - 1), sum("a", 2)]),
            write(vec![], vec![text(NOW + 1)]),
            write(absent(), vec![]),
        ],
    );
    assert_eq!(decisions[..4], [committed(1), committed(2), committed(3), committed(4)]);
    assert!(matches!(decisions[4], Decision::CheckFailed(_)));
}
