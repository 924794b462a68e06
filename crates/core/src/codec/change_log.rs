//! The changes of a segment of the replication log (docs/format.md §6).
//!
//! A segment has the changes of one transaction, in the order of its commits. Keys of a transaction are
//! often alike, so each one is stored as what differs from the key before it.

use super::Malformed;
use std::borrow::Cow;

use super::fields::{Fields, put_bytes, put_number};
use super::{database_log, message_log};
use crate::model::{Change, ChangeKind, DatabaseChange, Logged, LoggedMessage};

/// The first byte of a segment with changes of entries alone.
const FORM: u8 = 1;
/// The first byte of a segment with messages too: the changes follow behind their length, then the messages.
const FORM_WITH_MESSAGES: u8 = 2;
/// The first byte of a segment with changes of the database alone.
const FORM_OF_DATABASE: u8 = 3;
/// The first byte of a segment with writes that have ids: these stand behind their length, then a segment of
/// another form.
const FORM_WITH_WRITES: u8 = 4;

/// The kinds of changes. A kind with an expiry has it behind everything else.
const DELETED: u8 = 0;
const EXPIRED: u8 = 1;
const SET: u8 = 2;
const SET_WITH_EXPIRY: u8 = 3;
const EXPIRY_REMOVED: u8 = 4;
const EXPIRY_SET: u8 = 5;

/// Encodes the changes of commits from `first` on, in the order of the commits.
#[must_use]
pub fn encode(first: u64, changes: &[Change]) -> Vec<u8> {
    let mut out = Vec::with_capacity(room(changes) + 1);
    out.push(FORM);
    put_changes(&mut out, first, changes);
    out
}

/// As [`encode`], with what the same commits have made of messages, in the order of the commits.
#[must_use]
pub fn encode_all(first: u64, changes: &[Change], messages: &[LoggedMessage]) -> Vec<u8> {
    if messages.is_empty() {
        return encode(first, changes);
    }
    let mut of_entries = Vec::with_capacity(room(changes));
    put_changes(&mut of_entries, first, changes);
    let mut out = vec![FORM_WITH_MESSAGES];
    put_bytes(&mut out, &of_entries);
    message_log::put(&mut out, first, messages);
    out
}

/// Encodes changes of the database, which are a commit of their own.
#[must_use]
pub fn encode_database(changes: &[DatabaseChange]) -> Vec<u8> {
    let mut out = vec![FORM_OF_DATABASE];
    database_log::put(&mut out, changes);
    out
}

/// A segment with the writes of its commits that have ids, as [`super::write_log`] has them; without any it is the same.
#[must_use]
pub fn with_writes(segment: Vec<u8>, writes: &[u8]) -> Vec<u8> {
    if writes.is_empty() {
        return segment;
    }
    let mut out = Vec::with_capacity(segment.len() + writes.len() + 8);
    out.push(FORM_WITH_WRITES);
    put_bytes(&mut out, writes);
    out.extend_from_slice(&segment);
    out
}

/// Bytes that the changes have at most, nearly.
fn room(changes: &[Change]) -> usize {
    changes.iter().map(|change| change.size_bytes() + 8).sum()
}

fn put_changes(out: &mut Vec<u8>, first: u64, changes: &[Change]) {
    let (mut version, mut before): (u64, &[u8]) = (first, &[]);
    for change in changes {
        let (kind, value, expiry) = match &change.kind {
            ChangeKind::Deleted => (DELETED, None, None),
            ChangeKind::Expired => (EXPIRED, None, None),
            ChangeKind::Set { value, expire_at_ms: None } => (SET, Some(value), None),
            ChangeKind::Set { value, expire_at_ms } => {
                (SET_WITH_EXPIRY, Some(value), *expire_at_ms)
            }
            ChangeKind::ExpirySet { expire_at_ms: None } => (EXPIRY_REMOVED, None, None),
            ChangeKind::ExpirySet { expire_at_ms } => (EXPIRY_SET, None, *expire_at_ms),
        };
        out.push(kind);
        put_number(out, change.version - version);
        let key = change.key.as_bytes();
        let shared = key.iter().zip(before).take_while(|(a, b)| a == b).count();
        put_number(out, shared as u64);
        put_bytes(out, key.get(shared..).unwrap_or_default());
        if let Some(value) = value {
            out.push(value.encoding.id());
            put_bytes(out, &value.bytes);
        }
        if let Some(end) = expiry {
            out.extend_from_slice(&end.to_le_bytes());
        }
        (version, before) = (change.version, key);
    }
}

/// Visits the changes of a segment, in order, until `visit` returns `false`.
///
/// # Errors
/// For bytes that are not those of a segment; changes before the fault have been visited.
pub fn decode(
    first: u64,
    bytes: &[u8],
    mut visit: impl FnMut(Logged<'_>) -> bool,
) -> Result<(), Malformed> {
    let (mut rest, _) = parts(bytes)?;
    let (mut version, mut key) = (first, Vec::new());
    while !rest.is_at_end() {
        let start = rest.at();
        let kind = rest.byte()?;
        let ahead = rest.number()?;
        version = match version.checked_add(ahead) {
            Some(version) => version,
            None => return Err(Malformed::new("a version that is too large", start)),
        };
        let shared = rest.length()?;
        if shared > key.len() {
            return Err(Malformed::new("a key that shares more than there is", start));
        }
        key.truncate(shared);
        key.extend_from_slice(rest.slice()?);
        let kind = match kind {
            DELETED => ChangeKind::Deleted,
            EXPIRED => ChangeKind::Expired,
            SET => ChangeKind::Set { value: rest.value()?, expire_at_ms: None },
            SET_WITH_EXPIRY => {
                let value = rest.value()?;
                ChangeKind::Set { value, expire_at_ms: Some(rest.time()?) }
            }
            EXPIRY_REMOVED => ChangeKind::ExpirySet { expire_at_ms: None },
            EXPIRY_SET => ChangeKind::ExpirySet { expire_at_ms: Some(rest.time()?) },
            _ => return Err(Malformed::new("an unknown kind of change", start)),
        };
        if !visit(Logged { version, key: &key, kind }) {
            break;
        }
    }
    Ok(())
}

/// The messages of a segment, in the order of the commits.
///
/// # Errors
/// For bytes that are not those of a segment.
pub fn messages(first: u64, bytes: &[u8]) -> Result<Vec<LoggedMessage>, Malformed> {
    let (_, mut rest) = parts(bytes)?;
    message_log::read_all(first, &mut rest)
}

/// The changes of the database in a segment.
///
/// # Errors
/// For bytes that are not those of a segment.
pub fn database(bytes: &[u8]) -> Result<Vec<DatabaseChange>, Malformed> {
    let (_, segment) = split_writes(bytes)?;
    let mut all = Fields::of(segment);
    match all.byte()? {
        FORM_OF_DATABASE => database_log::read_all(&mut all),
        _ => Ok(Vec::new()),
    }
}

/// The writes with ids in a segment, for [`super::write_log::decode`], and the segment without them.
///
/// # Errors
/// For bytes that are not those of a segment.
pub fn split_writes(bytes: &[u8]) -> Result<(&[u8], &[u8]), Malformed> {
    if bytes.first() != Some(&FORM_WITH_WRITES) {
        return Ok((&[], bytes));
    }
    let mut all = Fields::of(bytes);
    all.byte()?;
    Ok((all.slice()?, all.all_left()))
}

/// The segment for a copy that has entries only.
///
/// # Errors
/// For bytes that are not those of a segment.
pub fn without_messages(bytes: &[u8]) -> Result<Cow<'_, [u8]>, Malformed> {
    if bytes.first() == Some(&FORM) {
        return Ok(Cow::Borrowed(bytes));
    }
    let (mut changes, _) = parts(bytes)?;
    Ok(Cow::Owned([&[FORM], changes.all_left()].concat()))
}

/// The changes of entries, and the messages.
fn parts(bytes: &[u8]) -> Result<(Fields<'_>, Fields<'_>), Malformed> {
    let (_, segment) = split_writes(bytes)?;
    let mut all = Fields::of(segment);
    match all.byte()? {
        FORM => Ok((all, Fields::of(&[]))),
        FORM_OF_DATABASE => Ok((Fields::of(&[]), Fields::of(&[]))),
        FORM_WITH_MESSAGES => {
            let changes = all.slice()?;
            Ok((Fields::of(changes), all))
        }
        _ => Err(Malformed::new("a segment of another format", 0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{EncodedValue, Encoding, KeptMessage, KeptState, Key, Reason};

    fn change(version: u64, key: &[u8], kind: ChangeKind<EncodedValue>) -> Change {
        Change { key: Key::from_encoded(key.to_vec()), version, kind }
    }

    fn set(bytes: &[u8], expire_at_ms: Option<i64>) -> ChangeKind<EncodedValue> {
        let value = EncodedValue { encoding: Encoding::Bytes, bytes: bytes.to_vec() };
        ChangeKind::Set { value, expire_at_ms }
    }

    fn all_kinds() -> Vec<Change> {
        vec![
            change(7, b"users/1", set(b"one", None)),
            change(7, b"users/12", set(&[9; 300], Some(i64::MAX))),
            change(8, b"users/12", ChangeKind::Deleted),
            change(300, b"", ChangeKind::Expired),
            change(300, b"users/1", ChangeKind::ExpirySet { expire_at_ms: None }),
            change(u64::MAX, b"u", ChangeKind::ExpirySet { expire_at_ms: Some(-1) }),
        ]
    }

    fn decoded(first: u64, bytes: &[u8]) -> Result<Vec<Change>, Malformed> {
        let mut changes = Vec::new();
        decode(first, bytes, |logged| {
            changes.push(logged.to_change());
            true
        })?;
        Ok(changes)
    }

    #[test]
    fn every_kind_survives_the_round_trip() {
        assert_eq!(decoded(5, &encode(5, &all_kinds())), Ok(all_kinds()));
        assert_eq!(decoded(5, &encode(5, &[])), Ok(vec![]));
    }

    #[test]
    fn the_bytes_are_those_of_the_format_page() {
        let bytes = encode(
            3,
            &[
                change(3, b"ab", set(b"x", None)),
                change(4, b"ac", ChangeKind::ExpirySet { expire_at_ms: Some(5) }),
            ],
        );
        let expected = [
            &[1, 2, 0, 0, 2][..],
            b"ab",
            &[3, 1],
            b"x",
            &[5, 1, 1, 1],
            b"c",
            &[5, 0, 0, 0, 0, 0, 0, 0],
        ];
        assert_eq!(bytes, expected.concat());
    }

    fn all_messages() -> Vec<LoggedMessage> {
        let waiting = KeptMessage {
            queue: "mail".into(),
            priority: 9,
            attempts: 300,
            enqueued_ms: -1,
            first_ms: Some(5),
            last_ms: None,
            deduplication_key: Some("é".into()),
            dead_retention_ms: None,
            backoff_ms: vec![0, u32::MAX],
            keys_if_undelivered: vec![Key::from_encoded(b"users".to_vec())],
            value: vec![1, 2],
            state: KeptState::Waiting { due_ms: i64::MAX },
        };
        let dead = KeptMessage {
            queue: String::new(),
            first_ms: None,
            last_ms: Some(6),
            deduplication_key: None,
            dead_retention_ms: Some(7),
            backoff_ms: vec![],
            keys_if_undelivered: vec![],
            state: KeptState::Dead {
                died_ms: 8,
                reason: Reason::new("Error", "no"),
                purge_ms: Some(15),
            },
            ..waiting.clone()
        };
        let message = |version, id, kept| LoggedMessage { version, id, kept };
        vec![message(5, 1, Some(waiting)), message(5, i64::MAX, None), message(300, 2, Some(dead))]
    }

    #[test]
    fn messages_stand_behind_the_changes_of_entries() {
        let (changes, sent) = (all_kinds(), all_messages());
        let bytes = encode_all(5, &changes, &sent);
        assert_eq!(decoded(5, &bytes), Ok(changes.clone()));
        assert_eq!(messages(5, &bytes), Ok(sent.clone()));
        assert_eq!(without_messages(&bytes).unwrap(), encode(5, &changes));
        let alone = encode_all(5, &[], &sent);
        assert_eq!((decoded(5, &alone), messages(5, &alone)), (Ok(vec![]), Ok(sent.clone())));
        assert_eq!(encode_all(5, &changes, &[]), encode(5, &changes));
        assert_eq!(messages(5, &encode(5, &changes)), Ok(vec![]));
        for end in 0..bytes.len() {
            if let Ok(found) = messages(5, &bytes[..end]) {
                assert_eq!(found, sent[..found.len()]);
            }
        }
    }

    #[test]
    fn writes_with_ids_stand_before_a_segment_of_any_other_form() {
        let (changes, sent) = (all_kinds(), all_messages());
        let dropped = vec![DatabaseChange::IndexDropped("é".into())];
        let plain = encode_all(5, &changes, &sent);
        let bytes = with_writes(plain.clone(), b"writes");
        assert_eq!(bytes, [&[4, 6][..], b"writes", &plain].concat());
        assert_eq!(split_writes(&bytes), Ok((&b"writes"[..], &plain[..])));
        assert_eq!((decoded(5, &bytes), messages(5, &bytes)), (Ok(changes.clone()), Ok(sent)));
        assert_eq!(without_messages(&bytes).unwrap(), encode(5, &changes));
        assert_eq!(database(&with_writes(encode_database(&dropped), b"w")), Ok(dropped));
        assert_eq!(split_writes(&plain), Ok((&[][..], &plain[..])));
        assert_eq!(with_writes(plain.clone(), &[]), plain);
    }

    #[test]
    fn the_bytes_of_messages_are_those_of_the_format_page() {
        let kept = KeptMessage {
            queue: "q".into(),
            priority: 5,
            attempts: 1,
            enqueued_ms: 2,
            first_ms: Some(3),
            last_ms: None,
            deduplication_key: Some("d".into()),
            dead_retention_ms: None,
            backoff_ms: vec![200],
            keys_if_undelivered: vec![],
            value: b"v".to_vec(),
            state: KeptState::Waiting { due_ms: 4 },
        };
        let bytes = encode_all(
            3,
            &[],
            &[
                LoggedMessage { version: 4, id: 7, kept: Some(kept) },
                LoggedMessage { version: 4, id: 6, kept: None },
            ],
        );
        let expected = [
            &[2, 0, 1, 7, 1, 5, 5, 1][..],
            b"q",
            &[1, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 1],
            b"d",
            &[1, 0xc8, 1, 0, 1],
            b"v",
            &[4, 0, 0, 0, 0, 0, 0, 0, 0, 6, 0],
        ];
        assert_eq!(bytes, expected.concat());
    }

    #[test]
    fn a_cut_segment_is_rejected_or_ends_at_a_change() {
        let bytes = encode(5, &all_kinds());
        for end in 0..bytes.len() {
            if let Ok(changes) = decoded(5, &bytes[..end]) {
                assert_eq!(changes, all_kinds()[..changes.len()]);
            }
        }
    }

    #[test]
    fn other_bytes_are_rejected() {
        for bytes in [
            &[][..],
            &[5],
            &[4, 0],
            &[4, 1, 9],
            &[4, 0, 4, 0, 1],
            &[2, 1],
            &[1, 9, 0, 0, 0],
            &[1, 0, 0, 1, 0],
            &[1, 2, 0, 0, 0, 4, 0],
            &[1, 0, 0, 0, 0x80],
            &[1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0],
        ] {
            assert!(decoded(0, bytes).is_err(), "{bytes:?}");
        }
        let too_late = [1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0, 0];
        assert!(decoded(1, &too_late).is_err());
    }
}
