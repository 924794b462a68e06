//! Which writes may be sent a second time when nobody knows whether the first one happened.
//!
//! The protocol has no number by which a server could tell a repetition. What is left is the
//! write's own checks: stamps increase and never come again, so a write that changes an entry of
//! which it demands a stamp cannot happen twice. A check for absence is no such guard: another
//! client may delete in between what the first try has written. Nor is a plain `set` harmless: it
//! would undo what others wrote in between.

use crate::model::{AtomicWrite, Mutation};

/// Whether the write has at most one effect however often it is sent.
pub(super) fn is_safe(write: &AtomicWrite) -> bool {
    let (checks, mutations, messages) = write.parts();
    let changes_nothing = mutations.is_empty() && messages.is_empty();
    changes_nothing
        || checks.iter().any(|check| {
            let moves_on = |mutation: &Mutation| match mutation {
                Mutation::Set { key, suffixed: false, .. }
                | Mutation::Delete { key }
                | Mutation::Arith { key, .. } => *key == check.key,
                _ => false,
            };
            check.expected.is_some() && mutations.iter().any(moves_on)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Check, EncodedValue, Key, Limits, Message, Versionstamp, WriteParts};

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

    fn write(checks: Vec<Check>, mutations: Vec<Mutation>) -> AtomicWrite {
        whole(WriteParts { checks, mutations, ..WriteParts::default() })
    }

    #[test]
    fn a_stamp_that_the_write_itself_moves_on_is_a_guard() {
        let stamp = Some(Versionstamp::new(7));
        assert!(is_safe(&write(vec![check(b'a', stamp)], vec![set(b'a', false)])));
        assert!(is_safe(&write(
            vec![check(b'a', stamp)],
            vec![set(b'b', true), Mutation::Delete { key: key(b'a') }],
        )));
        assert!(is_safe(&write(vec![check(b'a', None)], vec![])), "it changes nothing");
    }

    #[test]
    fn everything_else_could_happen_twice() {
        let stamp = Some(Versionstamp::new(7));
        assert!(!is_safe(&write(vec![], vec![set(b'a', false)])));
        assert!(!is_safe(&write(vec![check(b'a', None)], vec![set(b'a', false)])));
        assert!(!is_safe(&write(vec![check(b'a', stamp)], vec![set(b'b', false)])));
        assert!(!is_safe(&write(vec![check(b'a', stamp)], vec![set(b'a', true)])));
        let message = Message::default();
        assert!(!is_safe(&whole(WriteParts { messages: vec![message], ..WriteParts::default() })));
    }
}
