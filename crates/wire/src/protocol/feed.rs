//! The stream of a feed: its opening, its batches and its end.
//!
//! A message is an answer of the extension: a batch, or the error that ends the stream. A batch
//! without changes carries the position of the feed: at the start the position of its opening,
//! later that nothing has changed in its range up to there. So a client that reconnects resumes
//! without a gap, and a waiting feed does not fall behind.

use super::extension::{GOOD, read_answer};
use crate::protocol::frame::{
    frame_of, parse_changes, parse_feed, push_changes, push_error, push_feed, unreadable,
};
use openkv_core::codec::framing::framed;
use openkv_core::model::{
    Change, Error, FEED_FRAME_BYTES_MAX, FEED_PART_BYTES, KeyRange, Limits, Result, Versionstamp,
};

/// A message of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeedMessage {
    /// Changes. With them everything up to the versionstamp is reported.
    Changes(Versionstamp, Vec<Change>),
    /// The end of the stream.
    Ended(Error),
}

/// Encodes a request.
pub fn write_request(range: &KeyRange, since: Option<Versionstamp>) -> Vec<u8> {
    frame_of(|out| push_feed(out, range, since))
}

/// Decodes a request.
///
/// # Errors
/// `Invalid` for a malformed request, one over the limits, and a range that ends before it starts.
pub fn read_request(bytes: &[u8], limits: &Limits) -> Result<(KeyRange, Option<Versionstamp>)> {
    let (range, since) = parse_feed(bytes).map_err(unreadable)?;
    let max = limits.range_key_bytes_max;
    if let Some(long) = [&range.start, &range.end].into_iter().find(|bound| bound.len() > max) {
        return Err(Error::invalid(format!(
            "A bound of the range exceeds the key size limit (max {max} bytes): {} bytes",
            long.len()
        )));
    }
    if range.start > range.end {
        return Err(Error::invalid("Start key is greater than end key"));
    }
    Ok((range, since))
}

/// The frames of a batch. A long batch is split between commits, so that a feed also advances over
/// a connection that breaks often. `expiries`: the client knows expiries.
///
/// # Errors
/// `Invalid` for a commit that exceeds the limit of clients.
pub fn write_batch(position: Versionstamp, changes: &[Change], expiries: bool) -> Result<Vec<u8>> {
    let (mut frames, mut rest) = (Vec::new(), changes);
    loop {
        let (part, behind) = rest.split_at(first_part(rest));
        let last = part.last().filter(|_| !behind.is_empty());
        let up_to = last.map_or(position, |last| Versionstamp::new(last.version));
        frames.extend(framed(FEED_FRAME_BYTES_MAX, |out| {
            out.push(GOOD);
            push_changes(out, up_to, part, expiries);
        })?);
        if behind.is_empty() {
            return Ok(frames);
        }
        rest = behind;
    }
}

/// The number of changes in the next frame.
fn first_part(changes: &[Change]) -> usize {
    let mut bytes = 0;
    let ends = changes.windows(2).position(|two| {
        let [change, next] = two else { return false };
        bytes += change.size_bytes();
        bytes >= FEED_PART_BYTES && next.version != change.version
    });
    ends.map_or(changes.len(), |at| at + 1)
}

/// The frame of an error, which ends the stream.
///
/// # Errors
/// `Invalid` for a text that exceeds the limit of clients.
pub fn write_end(error: &Error) -> Result<Vec<u8>> {
    framed(FEED_FRAME_BYTES_MAX, |out| push_error(out, error))
}

/// Decodes a message. Its changes must be in that range and in commit order, after the last
/// reported commit (if known).
///
/// # Errors
/// `Corrupt` for any other message.
pub fn read_message(
    bytes: &[u8],
    range: &KeyRange,
    after: Option<Versionstamp>,
) -> Result<FeedMessage> {
    let strange = |why: &str| Error::corrupt(format!("a feed's message cannot be read: {why}"));
    let batch = match read_answer(bytes).map_err(strange)? {
        Ok(batch) => batch,
        Err(error) => return Ok(FeedMessage::Ended(error)),
    };
    let (position, changes) =
        parse_changes(batch).map_err(|malformed| strange(malformed.what()))?;
    let after = after.map(Versionstamp::version);
    let mut least = after.map_or(0, |after| after.saturating_add(1));
    for change in &changes {
        if change.version < least {
            return Err(strange("its changes are out of order"));
        }
        if !range.contains(change.key.as_bytes()) {
            return Err(strange("it is about a key that is not watched"));
        }
        // A commit may have several changes.
        least = change.version;
    }
    if position.version() < changes.last().map(|change| change.version).or(after).unwrap_or(0) {
        return Err(strange("it goes back"));
    }
    Ok(FeedMessage::Changes(position, changes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::frame::no_part_is_parsed;
    use openkv_core::codec::framing::Frames;
    use openkv_core::model::{ChangeKind, EncodedValue, Encoding, Key, Kind};

    fn key(byte: u8) -> Key {
        Key::from_encoded(vec![byte])
    }

    fn range() -> KeyRange {
        KeyRange { start: key(b'b'), end: key(b'd') }
    }

    fn gone(name: u8, version: u64) -> Change {
        Change { key: key(name), version, kind: ChangeKind::Deleted }
    }

    fn read(position: u64, changes: &[Change], after: Option<u64>) -> Result<FeedMessage> {
        let frame = write_batch(Versionstamp::new(position), changes, true).unwrap();
        read_message(&frame[4..], &range(), after.map(Versionstamp::new))
    }

    #[test]
    fn requests_round_trip_and_malformed_ones_are_rejected() {
        let limits = Limits::default();
        let since = Some(Versionstamp::new(5));
        let request = write_request(&range(), since);
        assert_eq!(read_request(&request, &limits), Ok((range(), since)));
        no_part_is_parsed(&request, |bytes| read_request(bytes, &limits));
        let backwards = KeyRange { start: key(9), end: key(8) };
        let most = Key::from_encoded(vec![9; limits.range_key_bytes_max]);
        let more = Key::from_encoded(vec![9; limits.range_key_bytes_max + 1]);
        let up_to = |end| KeyRange { start: key(1), end };
        assert!(read_request(&write_request(&up_to(most), None), &limits).is_ok());
        for bad in [backwards, up_to(more)] {
            let refused = read_request(&write_request(&bad, None), &limits).unwrap_err();
            assert_eq!(refused.kind(), Kind::Invalid);
        }
    }

    #[test]
    fn batches_and_errors_round_trip() {
        let changes = [gone(b'b', 3), gone(b'c', 3), gone(b'b', 4)];
        let position = FeedMessage::Changes(Versionstamp::new(9), changes.to_vec());
        assert_eq!(read(9, &changes, Some(2)), Ok(position.clone()));
        assert_eq!(read(9, &changes, None), Ok(position));
        let nothing = FeedMessage::Changes(Versionstamp::new(9), Vec::new());
        assert_eq!(read(9, &[], Some(9)), Ok(nothing));
        let error = Error::new(Kind::FeedGap, "too late");
        let frame = write_end(&error).unwrap();
        assert_eq!(read_message(&frame[4..], &range(), None), Ok(FeedMessage::Ended(error)));
    }

    #[test]
    fn a_long_batch_is_split_between_commits() {
        let set = |version| {
            let bytes = vec![7; FEED_PART_BYTES / 3];
            let value = EncodedValue { encoding: Encoding::Bytes, bytes };
            let kind = ChangeKind::Set { value, expire_at_ms: None };
            Change { key: key(b'b'), version, kind }
        };
        let versions = [1, 2, 2, 3, 4, 4, 4, 4, 4, 4, 5];
        let changes: Vec<_> = versions.map(set).into();
        let mut frames = Frames::up_to(FEED_FRAME_BYTES_MAX);
        frames.push(&write_batch(Versionstamp::new(9), &changes, true).unwrap());
        let (mut after, mut parts, mut found) = (None, Vec::new(), Vec::new());
        while let Some(message) = frames.next_message().unwrap() {
            let Ok(FeedMessage::Changes(position, part)) = read_message(&message, &range(), after)
            else {
                panic!("a part that is none")
            };
            parts.push((position.version(), part.len()));
            found.extend(part);
            after = Some(position);
        }
        assert_eq!(found, changes);
        assert_eq!(parts, [(2, 3), (4, 7), (9, 1)]);
    }

    #[test]
    fn repeated_reordered_and_other_changes_are_rejected() {
        for (position, changes, after) in [
            (9, vec![gone(b'b', 3)], Some(3)),
            (9, vec![gone(b'b', 2)], Some(3)),
            (9, vec![gone(b'b', 5), gone(b'b', 4)], None),
            (9, vec![gone(b'd', 5)], None),
            (9, vec![gone(b'a', 5)], None),
            (4, vec![gone(b'b', 5)], None),
            (4, vec![], Some(5)),
        ] {
            let refused = read(position, &changes, after).unwrap_err();
            assert_eq!(refused.kind(), Kind::Corrupt, "{position} {changes:?}");
        }
        for bad in [&[][..], &[0], &[0; 30], &[99, 0, 0, 0, 0]] {
            assert!(read_message(bad, &range(), None).is_err(), "{bad:?}");
        }
    }
}
