//! Which writes may be sent a second time when nobody knows whether the first one happened.
//!
//! The protocol has no number by which a server could tell a repetition. What is left is the
//! write's own checks: stamps increase and never come again, so a write that changes an entry of
//! which it demands a stamp cannot happen twice. A check for absence is no such guard: another
//! client may delete in between what the first try has written. Nor is a plain `set` harmless: it
//! would undo what others wrote in between.

use super::ask::Again;
use crate::model::{AtomicWrite, Mutation, Target};

/// What sending the write again can do.
pub(super) fn again(write: &AtomicWrite) -> Again {
    let (checks, mutations, messages) = write.parts();
    if mutations.is_empty() && messages.is_empty() {
        return Again::Harmless;
    }
    // A key that is only known when it commits is no key that was checked.
    let is_made = |at: usize| write.patches().iter().any(|patch| patch.target == Target::Key(at));
    let demanded = checks.iter().filter(|check| check.expected.is_some()).map(|check| &check.key);
    // A checked range demands the stamp of each entry that was seen in it.
    let seen = write.ranges().iter().flat_map(|range| range.seen.iter().map(|(key, _)| key));
    let is_guarded = demanded.chain(seen).any(|demanded| {
        mutations.iter().enumerate().any(|(at, mutation)| match mutation {
            _ if is_made(at) => false,
            Mutation::Set { key, suffixed: false, .. }
            | Mutation::Delete { key }
            | Mutation::Arith { key, .. }
            | Mutation::Calculate { key, .. }
            | Mutation::Append { key, .. } => key == demanded,
            // An end moves without a new stamp, and a key with the stamp in it is another key.
            Mutation::Set { suffixed: true, .. } | Mutation::Retime { .. } => false,
        })
    });
    if is_guarded { Again::Guarded } else { Again::Harmful }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{
        Check, EncodedValue, Key, Limits, Message, RangeCheck, Versionstamp, WriteParts,
    };

    fn whole(parts: WriteParts) -> AtomicWrite {
        AtomicWrite::new(parts, &Limits::default()).unwrap()
    }

    fn key(name: u8) -> Key {
        Key::from_encoded(vec![2, name, 0])
    }

    fn set(name: u8, suffixed: bool) -> Mutation {
        Mutation::Set { key: key(name), suffixed, value: EncodedValue::le64(1), expire_at_ms: None }
    }

    fn check(name: u8, expected: Option<Versionstamp>) -> Check {
        Check { key: key(name), expected }
    }

    fn is_guarded(write: &AtomicWrite) -> bool {
        again(write) == Again::Guarded
    }

    fn write(checks: Vec<Check>, mutations: Vec<Mutation>) -> AtomicWrite {
        whole(WriteParts { checks, mutations, ..WriteParts::default() })
    }

    #[test]
    fn a_stamp_that_the_write_itself_moves_on_is_a_guard() {
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
            assert_eq!(again(&write(vec![check(b'a', expected)], vec![])), Again::Harmless);
        }
    }

    #[test]
    fn an_entry_that_was_seen_in_a_checked_range_is_a_guard_too() {
        let range = |seen: &[u8]| RangeCheck {
            start: key(b'a'),
            end: key(b'z'),
            seen: seen.iter().map(|name| (key(*name), Versionstamp::new(7))).collect(),
        };
        let checked = |seen: &[u8], mutations| {
            whole(WriteParts { ranges: vec![range(seen)], mutations, ..WriteParts::default() })
        };
        assert!(is_guarded(&checked(b"bc", vec![set(b'c', false)])));
        assert!(
            !is_guarded(&checked(b"", vec![set(b'c', false)])),
            "somebody may remove it between"
        );
        assert!(!is_guarded(&checked(b"b", vec![set(b'c', false)])));
        let retime = Mutation::Retime { key: key(b'b'), expire_at_ms: None, required: true };
        assert!(!is_guarded(&checked(b"b", vec![retime])));
    }

    #[test]
    fn everything_else_could_happen_twice() {
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
