//! The frames of writes.

use std::ops::Range;

use super::change;
use super::reader::Reader;
use super::write_id::{WRITE_ID, parse_write_id};
use crate::codec::{Malformed, key};
use crate::model::{
    Arith, AtomicWrite, Check, Error, Key, Limits, Message, Mutation, RangeCheck, Result,
    Versionstamp, WriteParts,
};
use crate::protocol::numbers::timed::RELATIVE;
use crate::protocol::numbers::{record, set, tell};

/// Parses `count` writes. A write over the limits gives an error in its position; the others are
/// unaffected.
///
/// # Errors
/// A malformed frame, which is a bug of openkv.
pub fn parse_writes(
    bytes: &[u8],
    count: usize,
    limits: &Limits,
) -> Result<Vec<Result<AtomicWrite>>, Malformed> {
    let writes = parse_writes_apart(bytes, count, limits, usize::MAX)?;
    Ok(writes.into_iter().map(|(write, _)| write).collect())
}

/// A write, and the position of its bytes in the frame.
pub type Placed = (Result<AtomicWrite>, Range<usize>);

/// As [`parse_writes`], with the position of each. A record takes more memory than its bytes, so
/// the number of records in an untrusted frame is limited to `records_max` before anything is
/// allocated.
///
/// # Errors
/// As [`parse_writes`], and for a frame with more records.
pub fn parse_writes_apart(
    bytes: &[u8],
    count: usize,
    limits: &Limits,
    records_max: usize,
) -> Result<Vec<Placed>, Malformed> {
    let mut reader = Reader::new(bytes);
    let mut writes = reader.room(count.min(records_max), 1);
    let mut left = records_max;
    for _ in 0..count {
        let tell = |key: &Key| key::print(key.as_bytes());
        let start = reader.at();
        let parts = parse_write(&mut reader, limits, &mut left)?;
        let write = parts.and_then(|parts| AtomicWrite::telling(parts, limits, &tell));
        writes.push((write, start..reader.at()));
    }
    reader.end()?;
    Ok(writes)
}

/// The outer error rejects the frame, the inner one the write.
fn parse_write(
    reader: &mut Reader<'_>,
    limits: &Limits,
    left: &mut usize,
) -> Result<Result<WriteParts>, Malformed> {
    let mut parts = WriteParts::default();
    let mut invalid = None;
    let max = limits.value_bytes_max;
    loop {
        let first = reader.u8()?;
        let (op, relative) = (first & !RELATIVE, first & RELATIVE != 0);
        *left = left.checked_sub(1).ok_or_else(|| reader.refused("too many records"))?;
        match op {
            record::END
            | record::CHECK
            | record::CHECK_RANGE
            | record::DELETE
            | record::SUM
            | record::MIN
            | record::MAX
            | record::TELL
            | record::PATCHES
            | WRITE_ID
                if relative =>
            {
                return Err(reader.refused("an unknown operation"));
            }
            record::END => return Ok(invalid.map_or(Ok(parts), Err)),
            record::CHECK => match parse_check(reader)? {
                Some(check) => parts.checks.push(check),
                None => {
                    let at = parts.checks.len();
                    invalid = invalid.or_else(|| {
                        Some(Error::invalid(format!(
                            "Invalid check: checks[{at}].versionstamp must be 20 hexadecimal digits"
                        )))
                    });
                }
            },
            record::CHECK_RANGE => match parse_range_check(reader)? {
                Some(range) => parts.ranges.push(range),
                None => {
                    let at = parts.ranges.len();
                    invalid = invalid.or_else(|| {
                        Some(Error::invalid(format!(
                            "Invalid check: a versionstamp of checked range {at} (from 0) must be 20 \
                             hexadecimal digits"
                        )))
                    });
                }
            },
            record::SET => parts.mutations.push(parse_set(reader, relative)?),
            record::DELETE => parts.mutations.push(Mutation::Delete { key: reader.key()? }),
            record::SUM | record::MIN | record::MAX => {
                let op = match op {
                    record::SUM => Arith::Sum,
                    record::MIN => Arith::Min,
                    _ => Arith::Max,
                };
                let (key, operand) = (reader.key()?, reader.value()?);
                parts.mutations.push(Mutation::Arith { op, key, operand });
            }
            record::ENQUEUE => parts.messages.push(parse_message(reader, relative, false)?),
            record::ENQUEUE_NAMED => parts.messages.push(parse_message(reader, relative, true)?),
            record::CALCULATE => parts.mutations.push(change::calculate(reader, relative, max)?),
            record::APPEND => parts.mutations.push(change::append(reader, relative, max)?),
            record::SET_EXPIRY => parts.mutations.push(change::set_expiry(reader, relative)?),
            record::TELL => {
                if reader.u8()? != tell::VALUES {
                    return Err(reader.refused("unknown flags of a record::TELL"));
                }
                parts.tells_values = true;
            }
            record::PATCHES => change::patches(reader, left, &mut parts)?,
            WRITE_ID => parts.attempt = Some(parse_write_id(reader, parts.attempt)?),
            _ => return Err(reader.refused("an unknown operation")),
        }
    }
}

/// `None` for an invalid versionstamp.
fn parse_check(reader: &mut Reader<'_>) -> Result<Option<Check>, Malformed> {
    let present = reader.u8()? != 0;
    let stamp = reader.optional(present, |reader| reader.take(Versionstamp::HEX_BYTES))?;
    let key = reader.key()?;
    Ok(match stamp.map(Versionstamp::parse) {
        None => Some(Check { key, expected: None }),
        Some(Some(stamp)) => Some(Check { key, expected: Some(stamp) }),
        Some(None) => None,
    })
}

/// `None` for an invalid versionstamp.
fn parse_range_check(reader: &mut Reader<'_>) -> Result<Option<RangeCheck>, Malformed> {
    let (start, end) = (reader.key()?, reader.key()?);
    let seen = reader.counted(4 + Versionstamp::HEX_BYTES, |reader| {
        let stamp = Versionstamp::parse(reader.take(Versionstamp::HEX_BYTES)?);
        let key = reader.key()?;
        Ok(stamp.map(|stamp| (key, stamp)))
    })?;
    let seen = seen.into_iter().collect::<Option<Vec<_>>>();
    Ok(seen.map(|seen| RangeCheck { start, end, seen }))
}

fn parse_set(reader: &mut Reader<'_>, relative: bool) -> Result<Mutation, Malformed> {
    let flags = reader.flags(set::EXPIRES | set::SUFFIXED)?;
    let expiry = reader.expiry(flags & set::EXPIRES != 0, relative)?;
    let (key, value) = (reader.key()?, reader.value()?);
    Ok(Mutation::Set { key, suffixed: flags & set::SUFFIXED != 0, value, expiry })
}

fn parse_message(
    reader: &mut Reader<'_>,
    relative: bool,
    named: bool,
) -> Result<Message, Malformed> {
    let due = reader.time(relative)?;
    let intervals = usize::from(reader.u8()?);
    let backoff_ms = reader.items(intervals, 4, Reader::u32)?;
    let count = reader.u16()?;
    let keys_if_undelivered = reader.items(count, 4, Reader::key)?;
    let mut message = Message { due, backoff_ms, keys_if_undelivered, ..Message::default() };
    if named {
        message.priority = reader.u8()?;
        message.dead_retention_ms = Some(reader.time_ms()?).filter(|ms| *ms >= 0);
        message.queue = reader.string()?;
        if message.queue.is_empty() {
            return Err(reader.refused("a queue without a name"));
        }
        let is_unique = reader.u8()? != 0;
        message.deduplication_key = reader.optional(is_unique, Reader::string)?;
    }
    message.value = reader.sized()?.to_vec();
    Ok(message)
}

#[cfg(test)]
mod tests {
    use super::super::no_part_is_parsed;
    use super::*;
    use crate::model::Time;

    /// record::SET of the key `0n` to `null`, with the expiry 1 ms.
    const SET_FRAME: [u8; 24] =
        [2, 1, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 1, 0, 0, 0, 0x14, 67, 1, 0, 0, 0, 0xf6, 0, 0, 0];

    #[test]
    fn a_message_of_a_named_queue_is_parsed() {
        let mut frame = vec![record::ENQUEUE_NAMED];
        frame.extend_from_slice(&5_f64.to_le_bytes());
        frame.extend_from_slice(&[1, 9, 0, 0, 0, 0, 0, 7]);
        frame.extend_from_slice(&(-1_f64).to_le_bytes());
        frame.extend_from_slice(&[
            1,
            0,
            0,
            0,
            b'q',
            1,
            2,
            0,
            0,
            0,
            b'k',
            b'y',
            1,
            0,
            0,
            0,
            0xf6,
            record::END,
        ]);
        let writes = parse_writes(&frame, 1, &Limits::default()).unwrap();
        let parts = writes.into_iter().next().unwrap().unwrap().into_parts();
        let expected = Message {
            queue: "q".into(),
            priority: 7,
            due: Time::At(5),
            backoff_ms: vec![9],
            deduplication_key: Some("ky".into()),
            value: vec![0xf6],
            ..Message::default()
        };
        assert_eq!(parts.messages, [expected]);
        no_part_is_parsed(&frame, |bytes| parse_writes(bytes, 1, &Limits::default()));
        frame[16] = 10; // the priority
        let writes = parse_writes(&frame, 1, &Limits::default()).unwrap();
        assert_eq!(
            writes[0].as_ref().unwrap_err().message(),
            "priority too high (max 9): 10 given"
        );
    }

    /// One record of each kind that has a time of 5 ms. `relative`: from the commit.
    fn timed_records(relative: bool) -> [Vec<u8>; 6] {
        let flag = if relative { RELATIVE } else { 0 };
        let (time, key) = (5_f64.to_le_bytes(), [1, 0, 0, 0, 0x14]);
        let number = [67, 1, 0, 0, 0, 1];
        let value = [1, 0, 0, 0, 0x80];
        let message = [&time[..], &[0, 0, 0]].concat();
        let queue = [&[7][..], &(-1_f64).to_le_bytes(), &[1, 0, 0, 0, b'q', 0]].concat();
        [
            [&[record::SET | flag, set::EXPIRES][..], &time, &key, &number].concat(),
            [&[record::CALCULATE | flag, 0, 8][..], &time, &key, &number].concat(),
            [&[record::APPEND | flag, 2][..], &time, &key, &value].concat(),
            [&[record::SET_EXPIRY | flag, 1][..], &time, &key].concat(),
            [&[record::ENQUEUE | flag][..], &message, &value].concat(),
            [&[record::ENQUEUE_NAMED | flag][..], &message, &queue, &value].concat(),
        ]
    }

    /// The time of the only record of a frame.
    fn time_of(record: &[u8]) -> Time {
        let frame = [record, &[record::END]].concat();
        let write = parse_writes(&frame, 1, &Limits::default()).unwrap().remove(0).unwrap();
        let (_, mutations, messages) = write.parts();
        match mutations.first() {
            None => messages[0].due,
            Some(
                Mutation::Set { expiry, .. }
                | Mutation::Calculate { expiry, .. }
                | Mutation::Append { expiry, .. }
                | Mutation::SetExpiry { expiry, .. },
            ) => expiry.unwrap(),
            Some(other) => panic!("{other:?} has no time"),
        }
    }

    #[test]
    fn a_time_is_absolute_or_relative_to_the_commit() {
        for (absolute, relative) in timed_records(false).iter().zip(timed_records(true)) {
            assert_eq!(time_of(absolute), Time::At(5), "{absolute:?}");
            assert_eq!(time_of(&relative), Time::After(5), "{relative:?}");
            no_part_is_parsed(&[&relative[..], &[record::END]].concat(), |bytes| {
                parse_writes(bytes, 1, &Limits::default())
            });
        }
    }

    #[test]
    fn a_relative_time_is_not_negative_and_not_missing() {
        let refusal = |record: &[u8]| {
            let frame = [record, &[record::END]].concat();
            parse_writes(&frame, 1, &Limits::default()).unwrap_err().what().to_owned()
        };
        for record in timed_records(true) {
            let time = record.windows(8).position(|bytes| bytes == 5_f64.to_le_bytes()).unwrap();
            let mut negative = record.clone();
            negative[time + 7] |= 0x80;
            assert_eq!(refusal(&negative), "a time before the commit", "{record:?}");
        }
        let key = [1, 0, 0, 0, 0x14];
        let set = [&[record::SET | RELATIVE, 0][..], &key, &[67, 1, 0, 0, 0, 1]].concat();
        assert_eq!(refusal(&set), "a relative time that is missing");
        let persist = [&[record::SET_EXPIRY | RELATIVE, 0][..], &key].concat();
        assert_eq!(refusal(&persist), "a relative time that is missing");
    }

    #[test]
    fn two_writes_are_parsed() {
        let frame = &SET_FRAME[..23];
        let writes = parse_writes(frame, 2, &Limits::default()).unwrap();
        let parts = writes.into_iter().map(|write| write.unwrap().into_parts());
        let counts: Vec<_> = parts.map(|parts| parts.mutations.len()).collect();
        assert_eq!(counts, [1, 0]);
    }

    #[test]
    fn a_range_check_has_its_rows() {
        let mut frame = vec![record::CHECK_RANGE, 1, 0, 0, 0, 0x14, 1, 0, 0, 0, 0x15, 1, 0, 0, 0];
        frame.extend_from_slice(b"00000000000000070000");
        frame.extend_from_slice(&[2, 0, 0, 0, 0x14, 0x15, record::END]);
        let write = parse_writes(&frame, 1, &Limits::default()).unwrap().remove(0).unwrap();
        let range = write.into_parts().ranges.remove(0);
        assert_eq!((range.start.as_bytes(), range.end.as_bytes()), (&[0x14][..], &[0x15][..]));
        let key = Key::from_encoded(vec![0x14, 0x15]);
        assert_eq!(range.seen, [(key, Versionstamp::new(7))]);
        no_part_is_parsed(&frame, |bytes| parse_writes(bytes, 1, &Limits::default()));
        let limits = Limits { checked_rows_max: 0, ..Limits::default() };
        let error = parse_writes(&frame, 1, &limits).unwrap().remove(0).unwrap_err();
        assert!(error.message().contains("limits.checkedRowsMax"), "{error}");
    }

    #[test]
    fn truncated_frames_are_rejected() {
        for len in 0..22 {
            assert!(parse_writes(&SET_FRAME[..len], 1, &Limits::default()).is_err(), "{len}");
        }
        assert!(parse_writes(&SET_FRAME[..23], 1, &Limits::default()).is_err());
    }

    #[test]
    fn writes_are_parsed_with_their_bytes_and_records_are_bounded() {
        let frame = &SET_FRAME[..23];
        let limits = Limits::default();
        let writes = parse_writes_apart(frame, 2, &limits, 3).unwrap();
        let places: Vec<_> = writes.into_iter().map(|(_, place)| place).collect();
        assert_eq!(places, [0..22, 22..23]);
        assert!(parse_writes_apart(frame, 2, &limits, 2).is_err());
    }

    #[test]
    fn a_write_over_the_limits_does_not_affect_others() {
        let mut frame = vec![3, 0, 0, 0, 0, record::END]; // delete of the empty key
        frame.extend_from_slice(&SET_FRAME[..22]);
        let writes = parse_writes(&frame, 2, &Limits::default()).unwrap();
        assert_eq!(writes[0].as_ref().unwrap_err().message(), "key cannot be empty");
        assert!(writes[1].is_ok());
    }

    #[test]
    fn an_invalid_versionstamp_does_not_affect_other_writes() {
        let mut frame = vec![record::CHECK, 1];
        frame.extend_from_slice(b"zz000000000000000000");
        frame.extend_from_slice(&[1, 0, 0, 0, 0x14, record::END, record::END]);
        let writes = parse_writes(&frame, 2, &Limits::default()).unwrap();
        assert_eq!(
            writes[0].as_ref().unwrap_err().message(),
            "Invalid check: checks[0].versionstamp must be 20 hexadecimal digits"
        );
        assert!(writes[1].is_ok());
    }
}
