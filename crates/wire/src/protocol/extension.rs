//! openkv's own extension of the protocol: requests whose bodies are the frames of
//! `js/native/contract.md`, between a client that requests the extension and a server that offers
//! it.
//!
//! Each is a `POST` to a path below an endpoint's URL, with the token and the headers of the data
//! path:
//!
//! | path | body | answer |
//! |---|---|---|
//! | `/openkv/read` | u32 count, range requests | range answers |
//! | `/openkv/watch` | u8 raw, u32 count, keys | a stream of range answers (`state`) |
//! | `/openkv/write` | u32 count, writes | outcomes |
//! | `/openkv/call/COMMAND` | the command's frame | the command's answer |
//! | `/openkv/feed` | a feed request | a stream of batches (`feed`) |
//! | `/openkv/follow` | a request of a follower | a stream of the log (`follow`) |
//! | `/openkv/consume` | `protocol::frame` | a stream |
//! | `/openkv/receive` | `protocol::frame` | a message, or nothing |
//! | `/openkv/grant` | | u8 rights, u64 ms: what the token of the request may do, and for how long |
//!
//! An answer of status 200 begins with a byte: after 0 the answer follows, otherwise the body is an
//! error record. The error is the store's, so it is the same as that of a local database. Errors of
//! the server itself have an HTTP status, as on every other route.

use crate::protocol::frame::{frame_of, parse_error, push_error};
use openkv_core::model::{Error, Kind, Limits};

/// The extension that offers all requests of this file.
pub const FRAMES: &str = "frames-1";

/// The extension that offers change feeds (`protocol::feed`).
pub const FEEDS: &str = "feeds-1";

/// The extension that offers consumers of queues (`protocol::frame`). Those of `queues-1` had no
/// attempts left, no DEAD and no DEDUPLICATE.
pub const QUEUES: &str = "queues-2";

/// The extension that offers the replication log (`protocol::follow`).
pub const LOG: &str = "log-1";

/// The extension that tells followers of the log the definitions of value indexes too.
pub const LOG_INDEXES: &str = "log-indexes-1";

/// The extension that offers ids of writes (`model::WriteId`), for databases whose leader remembers them.
pub const WRITE_IDS: &str = "write-ids-1";

/// The extension that offers writes which acknowledge messages (record ACKNOWLEDGE).
pub const ACKS: &str = "acks-1";

/// The extension that offers limiters (record LIMIT).
pub const LIMITERS: &str = "limiters-1";

/// The extension that offers schedules of queues (records SCHEDULE and UNSCHEDULE).
pub const SCHEDULES: &str = "schedules-1";

/// The mark of a server that follows another one. A replica of it follows it, and not the server that it
/// names for strong reads.
pub const READ_SERVER: &str = "read-server-1";

/// The extensions that openkv's server offers for every database.
pub const OFFERED: [&str; 8] = [FRAMES, FEEDS, QUEUES, LOG, LOG_INDEXES, ACKS, LIMITERS, SCHEDULES];

/// The paths of the extension, below an endpoint's URL.
pub const CALL: &str = "openkv/call";
/// As [`CALL`].
pub const CONSUME: &str = "openkv/consume";
/// As [`CALL`].
pub const RECEIVE: &str = "openkv/receive";
/// As [`CALL`].
pub const FEED: &str = "openkv/feed";
/// As [`CALL`].
pub const FOLLOW: &str = "openkv/follow";
/// See [`CALL`]. A read server asks its primary with the tokens of its clients.
pub const GRANT: &str = "openkv/grant";
/// See [`CALL`].
pub const READ: &str = "openkv/read";
/// See [`CALL`].
pub const WATCH: &str = "openkv/watch";
/// See [`CALL`].
pub const WRITE: &str = "openkv/write";

/// The header with the limits that a handle has lowered below the server's: `name=number`,
/// separated by commas. The server enforces the lower ones.
pub const LIMITS_HEADER: &str = "x-openkv-limits";

/// The header in a request of [`WRITE`] by a client that knows every status of an outcome. Without
/// it, and from older servers, the answer has only the status bytes 0 to 3.
pub const RESULTS_HEADER: &str = "x-openkv-results";

/// The header in every request: the highest number of a [`Kind`] that the client knows. Without it, and from
/// earlier clients, that is [`Kind::KNOWN`].
pub const KINDS_HEADER: &str = "x-openkv-kinds";

/// The header in a request of [`WRITE`] with ids of writes, if an earlier attempt of it may still arrive. The
/// leader remembers a refusal then, as it remembers a commit.
pub const REPEATED_HEADER: &str = "x-openkv-repeated";

/// The header in a request of [`FEED`] by a client that knows the expiries of changes. Without it, and
/// from older servers, a batch has only the types 0 and 1.
pub const EXPIRIES_HEADER: &str = "x-openkv-expiries";

/// The header in a request by a client with a replica, and in the answer to it: the last commit, as a
/// versionstamp, that the answer can depend on. The replica must have it before a later read of the
/// client is answered there.
pub const SEEN_HEADER: &str = "x-openkv-seen";

/// The header in a request of [`FOLLOW`] by a read server: its URL for clients, whom the server names it to
/// for eventual reads while it follows. The token needs the highest rights.
pub const ADVERTISE_HEADER: &str = "x-openkv-advertise";

/// The header beside [`ADVERTISE_HEADER`] with the region of the read server.
pub const REGION_HEADER: &str = "x-openkv-region";

/// The content type of requests and answers.
pub const FRAMES_TYPE: &str = "application/octet-stream";

/// The first byte of a successful answer.
pub(super) const GOOD: u8 = 0;

/// The body of a successful answer.
pub fn write_good(answer: &[u8]) -> Vec<u8> {
    [&[GOOD], answer].concat()
}

/// The body of an error.
pub fn write_bad(error: &Error) -> Vec<u8> {
    frame_of(|out| push_error(out, error))
}

/// Decodes a body: the answer, or the error of the store.
///
/// # Errors
/// A description of the fault in a malformed body.
pub fn read_answer(body: &[u8]) -> Result<Result<&[u8], Error>, &'static str> {
    match body.split_first() {
        Some((&GOOD, answer)) => Ok(Ok(answer)),
        Some(_) => parse_error(body).map(Err).map_err(|malformed| malformed.what()),
        None => Err("an empty answer"),
    }
}

/// The answer about a token: the number of its rights, and the ms until it ends.
pub fn write_grant(rights: u8, left_ms: u64) -> Vec<u8> {
    write_good(&[&[rights][..], &left_ms.to_le_bytes()].concat())
}

/// Decodes an answer about a token.
pub fn read_grant(body: &[u8]) -> Result<Result<(u8, u64), Error>, &'static str> {
    let answer = match read_answer(body)? {
        Ok(answer) => answer,
        Err(error) => return Ok(Err(error)),
    };
    let (rights, left) = answer.split_first().ok_or("an answer without rights")?;
    let left = left.try_into().map_err(|_| "an answer about a token has nine bytes")?;
    Ok(Ok((*rights, u64::from_le_bytes(left))))
}

/// The body of a read or write: the number of items, then their frame.
pub fn with_count(count: usize, frame: &[u8]) -> Vec<u8> {
    [&(count as u32).to_le_bytes()[..], frame].concat()
}

/// The number of items and the frame in such a body.
///
/// # Errors
/// A description of the fault in a body that is too short.
pub fn split_count(body: &[u8]) -> Result<(usize, &[u8]), &'static str> {
    let (count, frame) = body.split_first_chunk().ok_or("the frame is cut short")?;
    Ok((u32::from_le_bytes(*count) as usize, frame))
}

/// The highest number of a [`Kind`], for [`KINDS_HEADER`].
pub fn write_kinds() -> String {
    Kind::ALL.iter().map(|kind| *kind as u8).max().unwrap_or(Kind::KNOWN).to_string()
}

/// The highest number of a [`Kind`] that a client knows, by the text of its [`KINDS_HEADER`].
pub fn read_kinds(text: Option<&str>) -> u8 {
    text.and_then(|text| text.parse().ok()).unwrap_or(Kind::KNOWN)
}

/// The limits that differ from the defaults, for [`LIMITS_HEADER`].
pub fn write_limits(limits: &Limits) -> String {
    let (wide, mut text) = (Limits::wide(), String::new());
    for ((name, value), (_, most)) in limits.entries().zip(wide.entries()) {
        if value < most {
            let comma = if text.is_empty() { "" } else { "," };
            text += &format!("{comma}{name}={value}");
        }
    }
    text
}

/// The server's limits, lowered by those of a client. Ignores unknown names.
///
/// # Errors
/// `Invalid` for malformed text.
pub fn read_limits(text: &str) -> Result<Limits, Error> {
    let (wide, mut limits) = (Limits::wide(), Limits::wide());
    for item in text.split(',').filter(|item| !item.is_empty()) {
        let parsed = item.split_once('=').and_then(|(name, n)| Some((name, n.parse().ok()?)));
        let (name, value): (&str, usize) = parsed.ok_or_else(|| {
            Error::invalid(format!("{LIMITS_HEADER} is like valueBytesMax=65536,checksMax=100"))
        })?;
        if let Some((_, most)) = wide.entries().find(|(known, _)| *known == name) {
            limits.set(name, value.min(most));
        }
    }
    Ok(limits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::frame::no_part_is_parsed;

    #[test]
    fn answers_and_errors_round_trip() {
        assert_eq!(read_answer(&write_good(b"ab")), Ok(Ok(&b"ab"[..])));
        assert_eq!(read_answer(&write_good(b"")), Ok(Ok(&b""[..])));
        let error = Error::new(Kind::FeedGap, "a gap");
        assert_eq!(read_answer(&write_bad(&error)), Ok(Err(error.clone())));
        no_part_is_parsed(&write_bad(&error), |bytes| read_answer(bytes).map(drop));
        assert!(read_answer(&[99, 0, 0, 0, 0]).is_err());
        assert!(read_answer(&[1, 1, 0, 0, 0, 0xff]).is_err());
    }

    #[test]
    fn answers_about_tokens_round_trip() {
        let answer = write_grant(2, 3_600_000);
        assert_eq!(read_grant(&answer), Ok(Ok((2, 3_600_000))));
        let error = Error::invalid("no");
        assert_eq!(read_grant(&write_bad(&error)), Ok(Err(error)));
        no_part_is_parsed(&answer, |bytes| read_grant(bytes).map(drop));
    }

    #[test]
    fn limits_can_only_be_lowered() {
        assert_eq!(write_limits(&Limits::wide()), "");
        let deno = Limits::default();
        assert_eq!(read_limits(&write_limits(&deno)), Ok(deno));
        let wider = read_limits("valueBytesMax=99999999999,later=5,checksMax=7,").unwrap();
        assert_eq!(wider, Limits { checks_max: 7, ..Limits::wide() });
        for bad in ["a", "a=", "a=-1", "checksMax=1x", "=,"] {
            assert!(read_limits(bad).is_err(), "{bad}");
        }
    }
}
