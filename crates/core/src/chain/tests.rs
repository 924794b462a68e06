//! The rules of the chain, each by the invariant of docs/internals/bucket.md that it guards.

use super::*;

fn fence(position: &Position) -> (Entry, Digest) {
    let entry = position.fence();
    (entry, encode(&entry, &[]).1)
}

/// A position of a leader of epoch 1, behind its fence.
fn led() -> Position {
    let mut position = Position::default();
    let (entry, digest) = fence(&position);
    assert_eq!(position.take(&entry, digest), Standing::Fence);
    position
}

fn created(steps: &[Step]) -> Vec<(u64, Entry, Digest)> {
    let decoded = |bytes: &[u8]| decode(bytes).map(|(entry, _, digest)| (entry, digest)).unwrap();
    let object = |step: &Step| match step {
        Step::Create { number, bytes } => {
            let (entry, digest) = decoded(bytes);
            Some((*number, entry, digest))
        }
        Step::Answer(_) | Step::Lost(_) => None,
    };
    steps.iter().filter_map(object).collect()
}

fn answered(steps: &[Step]) -> Vec<u64> {
    let ticket = |step: &Step| if let Step::Answer(ticket) = step { Some(*ticket) } else { None };
    steps.iter().filter_map(ticket).collect()
}

#[test]
fn an_object_survives_the_round_trip_and_damage_is_found() {
    let position = led();
    let kind = EntryKind::Batch { before: 0, after: 3 };
    let entry = Entry { number: 1, epoch: 1, previous: position.digest, kind };
    let (bytes, digest) = encode(&entry, b"content");
    assert_eq!(decode(&bytes).unwrap(), (entry, &b"content"[..], digest));
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        assert!(decode(&damaged).is_err(), "{at}");
        assert!(decode(&bytes[..at]).is_err(), "{at}");
    }
}

#[test]
fn invariant_1_a_batch_is_answered_when_all_before_it_exist() {
    let mut window = Window::new(led());
    let first = created(&window.submit(1, (0, 1), vec![1]));
    let second = created(&window.submit(2, (1, 3), vec![2]));
    let (_, entry, digest) = second[0];
    assert!(answered(&window.filled(entry, digest)).is_empty());
    let (_, entry, digest) = first[0];
    assert_eq!(answered(&window.filled(entry, digest)), [1, 2]);
    assert_eq!((window.position().version, window.position().next), (3, 3));
    assert_eq!(window.in_flight(), 0);
}

#[test]
fn invariant_1_a_taken_number_moves_the_batch_and_all_behind_it() {
    let mut window = Window::new(led());
    let first = created(&window.submit(1, (0, 1), vec![1]));
    let second = created(&window.submit(2, (1, 2), vec![2]));
    // A late write of epoch 0 has number 1.
    let kind = EntryKind::Batch { before: 0, after: 9 };
    let late = Entry { number: 1, epoch: 0, previous: [0; 32], kind };
    let moved = created(&window.filled(late, encode(&late, b"late").1));
    assert_eq!(moved.iter().map(|(number, ..)| *number).collect::<Vec<_>>(), [3, 4]);
    assert_eq!(first[0].0, 1);
    for (_, entry, digest) in &moved {
        assert!(answered(&window.filled(*entry, *digest)).is_empty(), "number 2 has no object yet");
    }
    let (_, entry, digest) = second[0];
    assert_eq!(answered(&window.filled(entry, digest)), [1, 2]);
    assert_eq!(window.position().version, 2);
}

/// The simulation found that a batch moved again when a second number before it was taken, one that a batch had
/// left: its object was valid where it was, and so was the one at its next number.
#[test]
fn invariant_2_a_number_that_its_batch_has_left_moves_nothing() {
    let mut window = Window::new(led());
    window.submit(1, (0, 1), vec![1]);
    window.submit(2, (1, 2), vec![2]);
    let kind = EntryKind::Batch { before: 0, after: 9 };
    let late = |number| Entry { number, epoch: 0, previous: [0; 32], kind };
    let digest = |entry: &Entry| encode(entry, b"late").1;
    let moved = created(&window.filled(late(1), digest(&late(1))));
    assert_eq!(moved.len(), 2);
    assert!(window.filled(late(2), digest(&late(2))).is_empty());
    let (_, entry, digest) = moved[0];
    assert_eq!(answered(&window.filled(entry, digest)), [1]);
}

#[test]
fn invariant_2_what_is_behind_the_fence_of_another_leader_is_void() {
    let mut window = Window::new(led());
    let first = created(&window.submit(1, (0, 1), vec![1]));
    let second = created(&window.submit(2, (1, 2), vec![2]));
    let mut rival = window.position();
    rival.next = 2;
    let (entry, digest) = fence(&rival);
    assert_eq!(window.filled(entry, digest), []);
    let (_, entry, digest) = first[0];
    // Number 1 is before the fence, so it counts.
    assert_eq!(window.filled(entry, digest), [Step::Answer(1), Step::Lost(vec![2])]);
    assert_eq!(window.submit(3, (2, 3), vec![]), [Step::Lost(vec![3])]);
    // A reader judges the same.
    let mut reader = led();
    assert_eq!(reader.take(&first[0].1, first[0].2), Standing::Batch);
    assert_eq!(reader.take(&fence(&rival).0, fence(&rival).1), Standing::Fence);
    let mut late = second[0].1;
    late.number = 3;
    assert_eq!(reader.take(&late, second[0].2), Standing::Void);
}

/// A leader that dies while it creates several objects can leave one out.
#[test]
fn invariant_8_the_fence_in_a_gap_voids_what_is_behind_it_and_the_missing_object_validates_it() {
    let mut window = Window::new(led());
    let first = created(&window.submit(1, (0, 1), vec![1]))[0];
    let second = created(&window.submit(2, (1, 2), vec![2]))[0];
    // Without number 1 nothing is answered.
    assert_eq!(window.filled(second.1, second.2), []);
    let mut fenced = led();
    let (entry, digest) = fence(&fenced);
    assert_eq!(entry.number, first.0);
    assert_eq!(fenced.take(&entry, digest), Standing::Fence);
    assert_eq!(fenced.take(&second.1, second.2), Standing::Void);
    // The next leader's first batch moves behind it.
    let mut next = Window::new(Position { next: second.0, ..fenced });
    let batch = created(&next.submit(1, (0, 1), vec![3]))[0];
    let moved = created(&next.filled(second.1, second.2))[0];
    assert_eq!((batch.0, moved.0), (second.0, second.0 + 1));
    assert_eq!(answered(&next.filled(moved.1, moved.2)), [1]);
    // A late number 1 comes before a fence, and then both are valid for all.
    let mut late = led();
    assert_eq!(late.take(&first.1, first.2), Standing::Batch);
    assert_eq!(late.take(&second.1, second.2), Standing::Batch);
}

#[test]
fn invariant_3_only_what_follows_the_chain_is_valid() {
    let reader = led();
    let kind = EntryKind::Batch { before: 0, after: 1 };
    let right = Entry { number: 1, epoch: 1, previous: reader.digest, kind };
    let standing = |entry: Entry| reader.clone().take(&entry, [7; 32]);
    assert_eq!(standing(right), Standing::Batch);
    let wrong = [
        Entry { epoch: 0, ..right },
        Entry { epoch: 2, ..right },
        Entry { previous: [1; 32], ..right },
        Entry { kind: EntryKind::Batch { before: 1, after: 2 }, ..right },
        Entry { kind: EntryKind::Batch { before: 0, after: 0 }, ..right },
        Entry { kind: EntryKind::Fence, ..right },
    ];
    for entry in wrong {
        assert_eq!(standing(entry), Standing::Void, "{entry:?}");
    }
}

#[test]
fn invariant_4_a_leader_answers_for_half_a_lease_from_the_start_of_its_renewal() {
    let mut tenure = Tenure::new(3000, 100);
    assert!(tenure.may_answer(1599) && !tenure.may_answer(1600));
    assert!(!tenure.is_due(1099) && tenure.is_due(1100));
    tenure.renewed(1100, 9000);
    assert!(tenure.may_answer(2599) && !tenure.may_answer(2600));
    // An answer to an older renewal.
    tenure.renewed(500, 9000);
    assert!(!tenure.may_answer(2600));
}

#[test]
fn invariant_4_the_lead_is_claimed_after_a_silent_lease() {
    let mut watch = LeaseWatch::default();
    let held = |beat: &str| LeaseState::Held(beat.to_owned());
    assert!(watch.may_claim(&LeaseState::Free, (0, 1), 3000));
    assert!(!watch.may_claim(&held("a"), (2, 10), 3000));
    assert!(!watch.may_claim(&held("a"), (3009, 9000), 3000) && !watch.is_alive(3009, 3000));
    assert!(!watch.may_claim(&held("b"), (3002, 3010), 3000) && watch.is_alive(3010, 3000));
    assert!(!watch.may_claim(&held("b"), (6009, 9000), 3000));
    assert!(watch.may_claim(&held("b"), (6010, 6011), 3000) && !watch.is_alive(6010, 3000));
}

#[test]
fn invariant_5_only_what_an_old_snapshot_contains_is_deleted() {
    let mut deletion = Deletion::default();
    let mark = |number| Mark { version: number * 2, number };
    // The chain does not go on behind the snapshot yet.
    assert_eq!(deletion.look(&[mark(5)], 6, 0, 1000), (None, vec![]));
    assert_eq!(deletion.look(&[mark(5)], 7, 10_000, 1000), (None, vec![]));
    assert_eq!(deletion.look(&[mark(5)], 7, 13_999, 1000), (None, vec![]));
    assert_eq!(deletion.look(&[mark(5)], 7, 14_000, 1000), (Some(5), vec![]));
    let all = [mark(5), mark(8), mark(9)];
    assert_eq!(deletion.look(&all, 20, 14_001, 1000), (Some(5), vec![]));
    assert_eq!(deletion.look(&all, 20, 18_001, 1000), (Some(9), vec![mark(5)]));
    // A snapshot that is gone protects nothing and allows nothing.
    assert_eq!(deletion.look(&[mark(8)], 20, 18_002, 1000), (Some(8), vec![]));
}

#[test]
fn invariant_5_a_reader_that_slept_does_not_take_a_deleted_object_for_the_end() {
    let mut end = EndWatch::default();
    assert!(!end.trusts(0, 1000));
    end.found(0);
    assert!(end.trusts(1999, 1000) && !end.trusts(2000, 1000));
}
