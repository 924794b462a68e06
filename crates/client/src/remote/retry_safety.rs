//! Which writes may be sent a second time after an unknown outcome.
//!
//! Without an id by which the server detects a repetition (`write_ids.rs`) the write's own checks must
//! do. Versionstamps increase and never repeat. So a write that changes an entry and checks
//! its versionstamp cannot be applied twice. A check for absence is no such guard: another client
//! may delete the first try's entry in between. A plain `set` is not safe either: it would undo a
//! write of another client in between.

use openkv_core::model::{AtomicWrite, Target};
use openkv_wire::protocol::RetrySafety;

/// The retry safety of a write.
pub(super) fn of(write: &AtomicWrite) -> RetrySafety {
    let (checks, mutations, messages) = write.parts();
    // A lock belongs to one delivery, which ends once.
    if !write.acks().is_empty() {
        return RetrySafety::Conditional;
    }
    if mutations.is_empty() && messages.is_empty() {
        return RetrySafety::Idempotent;
    }
    // A key that the commit fills in is not a checked key.
    let is_made = |at: usize| write.patches().iter().any(|patch| patch.target == Target::Key(at));
    let demanded = checks.iter().filter(|check| check.expected.is_some()).map(|check| &check.key);
    // A checked range checks the versionstamp of each entry that was seen in it.
    let seen = write.ranges().iter().flat_map(|range| range.seen.iter().map(|(key, _)| key));
    let is_guarded = demanded.chain(seen).any(|demanded| {
        mutations.iter().enumerate().any(|(at, mutation)| {
            !is_made(at) && mutation.changes_versionstamp() && mutation.key() == demanded
        })
    });
    if is_guarded { RetrySafety::Conditional } else { RetrySafety::Unsafe }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openkv_core::model::{
        Check, EncodedValue, Key, Limits, Message, Mutation, RangeCheck, Versionstamp, WriteParts,
    };

    fn whole(parts: WriteParts) -> AtomicWrite {
        AtomicWrite::new(parts, &Limits::default()).unwrap()
    }

    fn key(name: u8) -> Key {
        Key::from_encoded(vec![2, name, 0])
    }

    fn set(name: u8, suffixed: bool) -> Mutation {
        Mutation::Set { key: key(name), suffixed, value: EncodedValue::le64(1), expiry: None }
    }

    fn check(name: u8, expected: Option<Versionstamp>) -> Check {
        Check { key: key(name), expected }
    }

    fn is_guarded(write: &AtomicWrite) -> bool {
        of(write) == RetrySafety::Conditional
    }

    fn write(checks: Vec<Check>, mutations: Vec<Mutation>) -> AtomicWrite {
        whole(WriteParts { checks, mutations, ..WriteParts::default() })
    }

    #[test]
    fn a_check_of_a_changed_key_makes_a_write_conditional() {
        let stamp = Some(Versionstamp::new(7));
        assert!(is_guarded(&write(vec![check(b'a', stamp)], vec![set(b'a', false)])));
        assert!(is_guarded(&write(
            vec![check(b'a', stamp)],
            vec![set(b'b', true), Mutation::Delete { key: key(b'a') }],
        )));
    }

    #[test]
    fn a_write_that_only_checks_changes_nothing() {
        for expected in [None, Some(Versionstamp::new(7))] {
            assert_eq!(of(&write(vec![check(b'a', expected)], vec![])), RetrySafety::Idempotent);
        }
    }

    #[test]
    fn an_entry_in_a_checked_range_makes_a_write_conditional() {
        let range = |seen: &[u8]| RangeCheck {
            start: key(b'a'),
            end: key(b'z'),
            seen: seen.iter().map(|name| (key(*name), Versionstamp::new(7))).collect(),
            found_by: None,
        };
        let checked = |seen: &[u8], mutations| {
            whole(WriteParts { ranges: vec![range(seen)], mutations, ..WriteParts::default() })
        };
        assert!(is_guarded(&checked(b"bc", vec![set(b'c', false)])));
        assert!(
            !is_guarded(&checked(b"", vec![set(b'c', false)])),
            "another client may remove it between"
        );
        assert!(!is_guarded(&checked(b"b", vec![set(b'c', false)])));
        let set_expiry =
            Mutation::SetExpiry { key: key(b'b'), expiry: None, required: true, shortens: false };
        assert!(!is_guarded(&checked(b"b", vec![set_expiry])));
    }

    #[test]
    fn other_writes_are_unsafe() {
        let stamp = Some(Versionstamp::new(7));
        assert!(!is_guarded(&write(vec![], vec![set(b'a', false)])));
        assert!(!is_guarded(&write(vec![check(b'a', None)], vec![set(b'a', false)])));
        assert!(!is_guarded(&write(vec![check(b'a', stamp)], vec![set(b'b', false)])));
        assert!(!is_guarded(&write(vec![check(b'a', stamp)], vec![set(b'a', true)])));
        let message = Message::default();
        assert!(!is_guarded(&whole(WriteParts {
            messages: vec![message],
            ..WriteParts::default()
        })));
    }
}
