//! The rules of writes that acknowledge messages.

use super::queues::{claim, end, enqueue, message, stats, values};
use super::*;
use openkv_core::model::{Ack, Enqueued};

pub(super) fn a_commit_acknowledges_its_messages_or_does_nothing(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    let keyed = || Message { deduplication_key: Some("k".into()), ..message(1) };
    enqueue(&mut writer, vec![keyed(), message(2)]);
    let [a, b] = claim(&mut writer, 7, 10, NOW).try_into().unwrap();
    let ack = |delivery: &Delivery, lock| Ack { id: delivery.id, lock };
    let parts = |acks: Vec<Ack>, checks: Vec<Check>, name: &str| {
        let mutations = vec![set(name, b"")];
        atomic(WriteParts {
            acks,
            checks,
            mutations,
            messages: vec![keyed()],
            ..Default::default()
        })
    };
    let decisions = commit(
        &mut writer,
        vec![
            parts(vec![ack(&a, 7)], vec![at_version("none", 1)], "refused"),
            parts(vec![ack(&b, 8), ack(&a, 7)], vec![absent("none")], "lost"),
            // A message keeps its deduplication key until a later write acknowledges it.
            atomic(WriteParts { messages: vec![keyed()], ..WriteParts::default() }),
            parts(vec![ack(&a, 7), ack(&a, 7)], vec![], "done"),
            parts(vec![ack(&a, 7)], vec![], "again"),
            parts(vec![ack(&b, 0)], vec![], "without a lock"),
        ],
    );
    assert_eq!(decisions[0], Decision::CheckFailed(vec![0]));
    assert_eq!(decisions[1], Decision::CheckFailed(vec![1]));
    let results = |decision: &Decision| match decision {
        Decision::CommittedWith(_, results) => results.enqueued[0],
        other => panic!("{other:?}"),
    };
    assert_eq!(results(&decisions[2]), Enqueued { id: Some(a.id), deduplicated: true });
    assert!(!results(&decisions[3]).deduplicated, "the acknowledged message has left its key");
    assert_eq!(decisions[4], Decision::CheckFailed(vec![0]));
    assert_eq!(decisions[5], Decision::CheckFailed(vec![0]));
    let mut reader = engine.reader().unwrap();
    let names = ["refused", "lost", "done", "again", "without a lock"];
    let found = names.map(|name| get(&mut reader, name).is_some());
    assert_eq!(found, [false, false, true, false, false]);
    assert_eq!(stats(engine, NOW), [1, 0, 1, 0]);
    assert_eq!(end(&mut writer, Settlement::new(a.id, 7, Outcome::Done), NOW).settled, [false]);

    // As a settlement, it comes before the claims of its batch.
    let writes = vec![parts(vec![ack(&b, 7)], vec![at_version("none", 1)], "refused")];
    let claims = vec![Claim { queue: "mail".into(), max: 1, lock_ms: 1000, lock: 8 }];
    let late = NOW + 6000;
    let refused = Work { writes, claims: claims.clone(), durable: true, ..Work::default() };
    let report = apply_at(&mut writer, refused, late);
    assert_eq!(values(&report.deliveries[0]), [1], "the lock that expired is not taken away");
    let writes = vec![parts(vec![ack(&b, 7)], vec![], "late")];
    let work = Work { writes, claims, durable: true, ..Work::default() };
    let report = apply_at(&mut writer, work, late);
    assert!(!report.decisions[0].is_refused(), "{:?}", report.decisions[0]);
    assert!(report.deliveries[0].is_empty());
    assert_eq!(stats(engine, late), [0, 0, 1, 0]);
}
