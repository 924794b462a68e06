//! The stream of a replication log: a copy of all entries where the follower needs one, then the
//! segments of the log.
//!
//! A message is an answer of the extension. After the byte of success comes a kind:
//!
//! | kind | then | meaning |
//! |---|---|---|
//! | 0 | u8 length, text of that length, a place | a copy of one snapshot begins; the text says why one is needed |
//! | 1 | entries | some of its entries, in the order of their keys |
//! | 2 | | it is complete: the follower has every change up to its place |
//! | 3 | u8 1 if nothing was left, u64 version, segments | the changes after the place before, up to the version |
//! | 4 | definitions | all full-text indexes of the database |
//! | 5 | definitions of both types | all full-text indexes of the database, and all value indexes that lists may read, in place of kind 4 if the follower wants them |
//!
//! Kind 3 with no segments tells the position of the database. The end of a stream is an error record.

use super::extension::{GOOD, read_answer};
pub use crate::protocol::frame::Follow;
use crate::protocol::frame::{
    frame_of, parse_copied_indexes, parse_entries, parse_follow, parse_followed, parse_segments,
    parse_specs, push_copied_indexes, push_error, push_follow, push_followed, push_segments,
    push_specs, unreadable,
};
use openkv_core::codec::framing::framed;
use openkv_core::model::{
    CopiedEntry, CopiedIndexes, Error, FEED_FRAME_BYTES_MAX, FOLLOW_BEAT_MS_MIN, Followed,
    REPLICA_PREFIXES_MAX, Result, Segment,
};

const BEGIN: u8 = 0;
const ENTRIES: u8 = 1;
const COMPLETE: u8 = 2;
const CHANGES: u8 = 3;
const TEXT_INDEXES: u8 = 4;
const INDEXES: u8 = 5;

/// The bytes before the entries of a page.
const PAGE_HEAD: [u8; 2] = [GOOD, ENTRIES];

/// A message of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FollowMessage {
    /// A copy begins, for this reason. It has everything up to this place.
    CopyBegins(String, Followed),
    /// Entries of the copy.
    Entries(Vec<CopiedEntry>),
    /// The copy is complete.
    CopyEnds,
    /// Changes.
    Changes {
        /// The commit up to which the follower has every change with them.
        version: u64,
        /// Whether the database had no later commit.
        newest: bool,
        /// The segments, in order.
        segments: Vec<Segment>,
    },
    /// The indexes of the database.
    Indexes(CopiedIndexes),
    /// The end of the stream.
    Ended(Error),
}

/// Encodes a request.
pub fn write_request(follow: &Follow) -> Vec<u8> {
    frame_of(|out| push_follow(out, follow))
}

/// Decodes a request.
///
/// # Errors
/// `Invalid` for a malformed request, and for one with too many prefixes.
pub fn read_request(bytes: &[u8]) -> Result<Follow> {
    let follow = parse_follow(bytes).map_err(unreadable)?;
    let given = follow.prefixes.len();
    if given > REPLICA_PREFIXES_MAX {
        return Err(Error::invalid(format!(
            "Too many prefixes (max {REPLICA_PREFIXES_MAX}): {given}"
        )));
    }
    let beat_ms = follow.beat_ms.max(FOLLOW_BEAT_MS_MIN as u32);
    Ok(Follow { beat_ms, ..follow })
}

/// The frame that begins a copy.
///
/// # Errors
/// `Invalid` for a message that exceeds the limit of clients.
pub fn write_copy_begins(why: &str, place: &Followed) -> Result<Vec<u8>> {
    let why: String = why.chars().take(60).collect();
    framed(FEED_FRAME_BYTES_MAX, |out| {
        out.extend_from_slice(&[GOOD, BEGIN, why.len() as u8]);
        out.extend_from_slice(why.as_bytes());
        push_followed(out, place);
    })
}

/// The frame of a page of encoded entries ([`crate::protocol::frame::push_entry`]).
///
/// # Errors
/// As [`write_copy_begins`].
pub fn write_entries(entries: &[u8]) -> Result<Vec<u8>> {
    framed(FEED_FRAME_BYTES_MAX, |out| {
        out.extend_from_slice(&PAGE_HEAD);
        out.extend_from_slice(entries);
    })
}

/// The frame that ends a copy.
///
/// # Errors
/// As [`write_copy_begins`].
pub fn write_copy_ends() -> Result<Vec<u8>> {
    framed(FEED_FRAME_BYTES_MAX, |out| out.extend_from_slice(&[GOOD, COMPLETE]))
}

/// The frame of changes.
///
/// # Errors
/// As [`write_copy_begins`].
pub fn write_changes(version: u64, newest: bool, segments: &[Segment]) -> Result<Vec<u8>> {
    framed(FEED_FRAME_BYTES_MAX, |out| {
        out.extend_from_slice(&[GOOD, CHANGES, u8::from(newest)]);
        out.extend_from_slice(&version.to_le_bytes());
        push_segments(out, segments);
    })
}

/// The frame of the definitions of all indexes.
///
/// # Errors
/// As [`write_copy_begins`].
pub fn write_indexes(CopiedIndexes { texts, values }: &CopiedIndexes) -> Result<Vec<u8>> {
    framed(FEED_FRAME_BYTES_MAX, |out| match values {
        None => {
            out.extend_from_slice(&[GOOD, TEXT_INDEXES]);
            push_specs(out, texts);
        }
        Some(values) => {
            out.extend_from_slice(&[GOOD, INDEXES]);
            push_copied_indexes(out, texts, values);
        }
    })
}

/// The frame of an error, which ends the stream.
///
/// # Errors
/// As [`write_copy_begins`].
pub fn write_end(error: &Error) -> Result<Vec<u8>> {
    framed(FEED_FRAME_BYTES_MAX, |out| push_error(out, error))
}

/// Decodes a message.
///
/// # Errors
/// `Corrupt` for any other message.
pub fn read_message(bytes: &[u8]) -> Result<FollowMessage> {
    let strange = |why: &str| Error::corrupt(format!("a message of the log cannot be read: {why}"));
    let body = match read_answer(bytes).map_err(strange)? {
        Ok(body) => body,
        Err(error) => return Ok(FollowMessage::Ended(error)),
    };
    let (kind, rest) = body.split_first().ok_or_else(|| strange("it is empty"))?;
    let malformed = |fault: openkv_core::codec::Malformed| strange(fault.what());
    match *kind {
        BEGIN => {
            let (len, rest) = rest.split_first().ok_or_else(|| strange("it is cut short"))?;
            let parts = rest.split_at_checked(usize::from(*len));
            let (why, place) = parts.ok_or_else(|| strange("it is cut short"))?;
            let place = parse_followed(place).map_err(malformed)?;
            Ok(FollowMessage::CopyBegins(String::from_utf8_lossy(why).into_owned(), place))
        }
        ENTRIES => parse_entries(rest).map(FollowMessage::Entries).map_err(malformed),
        COMPLETE if rest.is_empty() => Ok(FollowMessage::CopyEnds),
        CHANGES => {
            let (newest, rest) = rest.split_first().ok_or_else(|| strange("it is cut short"))?;
            let parts = rest.split_first_chunk();
            let (version, rest) = parts.ok_or_else(|| strange("it is cut short"))?;
            let segments = parse_segments(rest).map_err(malformed)?;
            let version = u64::from_le_bytes(*version);
            let mut last = 0;
            for segment in &segments {
                if segment.first > segment.last || segment.first < last || segment.last > version {
                    return Err(strange("its segments are out of order"));
                }
                last = segment.last.saturating_add(1);
            }
            Ok(FollowMessage::Changes { version, newest: *newest == 1, segments })
        }
        TEXT_INDEXES => {
            let texts = parse_specs(rest).map_err(malformed)?;
            Ok(FollowMessage::Indexes(CopiedIndexes { texts, values: None }))
        }
        INDEXES => parse_copied_indexes(rest).map(FollowMessage::Indexes).map_err(malformed),
        _ => Err(strange("it is of an unknown kind")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openkv_core::model::{Key, Kind, OrderPath, Origin, ValueIndexSpec};

    fn read(frame: Result<Vec<u8>>) -> Result<FollowMessage> {
        read_message(&frame.unwrap()[4..])
    }

    fn segment(first: u64, last: u64) -> Segment {
        Segment { first, last, at_ms: 5, changes: vec![1] }
    }

    #[test]
    fn messages_round_trip() {
        let origin = Origin { database: [3; 16], incarnation: 4 };
        let place = Followed { origin, version: 9, at_ms: 8, prefixes: Vec::new() };
        let begins = FollowMessage::CopyBegins("why".into(), place.clone());
        assert_eq!(read(write_copy_begins("why", &place)), Ok(begins));
        assert_eq!(read(write_copy_ends()), Ok(FollowMessage::CopyEnds));
        let segments = vec![segment(1, 2), segment(3, 3)];
        let changes = FollowMessage::Changes { version: 4, newest: true, segments };
        assert_eq!(read(write_changes(4, true, &[segment(1, 2), segment(3, 3)])), Ok(changes));
        let value = ValueIndexSpec {
            name: "v".into(),
            prefix: Key::from_encoded(vec![1]),
            on: vec![OrderPath { path: "a.b".into(), descending: true }],
            unique: true,
            multi: false,
            sparse: true,
        };
        for values in [None, Some(Vec::new()), Some(vec![value.clone(), value])] {
            let indexes = CopiedIndexes { texts: Vec::new(), values };
            assert_eq!(read(write_indexes(&indexes)), Ok(FollowMessage::Indexes(indexes)));
        }
        assert_eq!(read(write_entries(&[])), Ok(FollowMessage::Entries(Vec::new())));
        let error = Error::new(Kind::Unavailable, "later");
        assert_eq!(read(write_end(&error)), Ok(FollowMessage::Ended(error)));
    }

    #[test]
    fn disordered_and_unknown_messages_are_rejected() {
        for segments in [[segment(3, 3), segment(1, 2)], [segment(1, 3), segment(3, 4)]] {
            assert!(read(write_changes(9, true, &segments)).is_err(), "{segments:?}");
        }
        assert!(read(write_changes(2, true, &[segment(1, 3)])).is_err());
        for bad in [&[][..], &[0], &[0, 9], &[0, 2, 1], &[0, 3, 1], &[0, 0, 5, 1]] {
            assert!(read_message(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_request_has_bounds() {
        let prefixes = |count| vec![Key::from_encoded(vec![1]); count];
        let follow = |count| Follow {
            from: None,
            prefixes: prefixes(count),
            beat_ms: 1,
            wants_values: false,
        };
        let read = read_request(&write_request(&follow(REPLICA_PREFIXES_MAX))).unwrap();
        assert_eq!(u64::from(read.beat_ms), FOLLOW_BEAT_MS_MIN);
        assert!(read_request(&write_request(&follow(REPLICA_PREFIXES_MAX + 1))).is_err());
    }
}
