//! The frames of writes.

use std::ops::Range;

use super::form::{Hex, List8, List16, List32};
use super::reader::Reader;
use super::records::{
    self, Acknowledge, CheckFound, CheckRange, Deduplicate, End, Enqueue, EnqueueNamed, Id,
    Patches, Record, Return, Schedule, Unschedule, returns, to_mutation, to_record,
};
use openkv_core::codec::{Malformed, key, uuid};
use openkv_core::filter::Filter;
use openkv_core::model::{
    self, Ack, AtomicWrite, Attempt, Check, Deduplication, Error, FoundBy, Key, Limits, Message,
    Missed, Mutation, Patch, RangeCheck, Result, ScheduleChange, Target, Timing, Versionstamp,
    WriteId, WriteParts,
};

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
    loop {
        let record = Record::read(reader)?;
        take(reader, left, 1)?;
        match record {
            Record::End(_) => return Ok(invalid.map_or(Ok(parts), Err)),
            Record::Check(check) => match parse_check(check) {
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
            Record::CheckRange(range) => match parse_range_check(range) {
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
            Record::CheckFound(CheckFound { now, filter }) => {
                let range = parts.ranges.last_mut().filter(|range| range.found_by.is_none());
                let range =
                    range.ok_or_else(|| reader.refused("a filter without its checked range"))?;
                if let Err(error) = Filter::parse(&filter, now) {
                    invalid = invalid.or(Some(error));
                }
                range.found_by = Some(FoundBy { filter, now_ms: now });
            }
            Record::Enqueue(message) => parts.messages.push(Message {
                due: message.time,
                backoff_ms: numbers(message.backoff),
                keys_if_undelivered: keys(message.undelivered),
                value: message.value,
                ..Message::default()
            }),
            Record::EnqueueNamed(message) => {
                if message.queue.is_empty() {
                    return Err(reader.refused("a queue without a name"));
                }
                parts.messages.push(Message {
                    queue: message.queue,
                    priority: message.priority,
                    due: message.time,
                    backoff_ms: numbers(message.backoff),
                    keys_if_undelivered: keys(message.undelivered),
                    deduplication_key: message.deduplication,
                    deduplication: Deduplication::Drop,
                    dead_retention_ms: Some(message.dead_retention).filter(|ms| *ms >= 0),
                    schedule: None,
                    value: message.value,
                });
            }
            Record::Acknowledge(Acknowledge { message: id, lock }) => {
                parts.acks.push(Ack { id, lock: i64::from_le_bytes(lock) });
            }
            Record::Deduplicate(Deduplicate { mode }) => {
                let message = parts.messages.last_mut();
                let keyed = message.filter(|message| message.deduplication_key.is_some());
                let mode = Deduplication::ALL.get(usize::from(mode));
                let (Some(message), Some(mode)) = (keyed, mode) else {
                    return Err(reader.refused("an unknown deduplication, or one without a key"));
                };
                message.deduplication = *mode;
            }
            Record::Schedule(schedule) => {
                let message = parts.messages.last_mut();
                let named = message.filter(|of| of.is_named() && of.schedule.is_none());
                let missed = Missed::ALL.get(usize::from(schedule.missed));
                let (Some(message), Some(missed)) = (named, missed) else {
                    return Err(reader.refused("a schedule without a message of a named queue"));
                };
                match parse_schedule(schedule, *missed) {
                    Ok(schedule) => {
                        message.schedule = Some(Box::new(ScheduleChange::Set(schedule)));
                    }
                    Err(error) => invalid = invalid.or(Some(error)),
                }
            }
            Record::Unschedule(Unschedule { queue, name }) => {
                if queue.is_empty() {
                    return Err(reader.refused("a queue without a name"));
                }
                let schedule = Some(Box::new(ScheduleChange::Remove(name)));
                parts.messages.push(Message { queue, schedule, ..Message::default() });
            }
            Record::Return(Return { flags: returns::VALUES }) => parts.returns_values = true,
            Record::Return(_) => return Err(reader.refused("a RETURN that asks for nothing")),
            Record::Patches(Patches { patches }) => {
                take(reader, left, patches.0.len())?;
                for patch in patches.0 {
                    let patch =
                        parse_patch(patch, &mut parts).map_err(|what| reader.refused(what))?;
                    parts.patches.push(patch);
                }
            }
            Record::Id(Id { id }) if parts.attempt.is_none() => {
                parts.attempt = Some(Attempt::first(WriteId::from_bytes(id)));
            }
            Record::Id(_) => return Err(reader.refused("a write with two ids")),
            change => {
                let mutation = to_mutation(change, limits.value_bytes_max);
                parts.mutations.push(mutation.map_err(|what| reader.refused(what))?);
            }
        }
    }
}

/// A cron pattern counts rather than an interval.
fn parse_schedule(record: Schedule, missed: Missed) -> Result<model::Schedule> {
    let Schedule { missed: _, every, offset, cron, zone, name } = record;
    let timing = match cron {
        Some(pattern) => Timing::Cron { pattern, zone },
        None => Timing::Every { every_ms: every, offset_ms: offset },
    };
    model::Schedule::new(name, timing, missed)
}

/// Counts records, and placeholders, against those that are left.
fn take(reader: &Reader<'_>, left: &mut usize, records: usize) -> Result<(), Malformed> {
    *left = left.checked_sub(records).ok_or_else(|| reader.refused("too many records"))?;
    Ok(())
}

/// `None` for an invalid versionstamp.
fn parse_check(records::Check { stamp, key }: records::Check) -> Option<Check> {
    let expected = match stamp {
        None => None,
        Some(Hex(stamp)) => Some(Versionstamp::parse(&stamp)?),
    };
    Some(Check { key, expected })
}

/// `None` for an invalid versionstamp.
fn parse_range_check(range: CheckRange) -> Option<RangeCheck> {
    let seen = range.seen.0.into_iter();
    let seen = seen.map(|(Hex(stamp), key)| Some((key, Versionstamp::parse(&stamp)?)));
    let seen = seen.collect::<Option<_>>()?;
    Some(RangeCheck { start: range.from, end: range.to, seen, found_by: None })
}

fn numbers(list: List8<(u32,)>) -> Vec<u32> {
    list.0.into_iter().map(|(number,)| number).collect()
}

fn keys(list: List16<(Key,)>) -> Vec<Key> {
    list.0.into_iter().map(|(key,)| key).collect()
}

/// Where the placeholder of a PATCHES record is.
const IN_KEY: u8 = 0;
const IN_VALUE: u8 = 1;
const IN_MESSAGE: u8 = 2;

/// The placeholder in the key, the value or the message before. The error says why it is refused.
fn parse_patch(
    (place, offset, placeholder): (u8, u32, u64),
    parts: &mut WriteParts,
) -> Result<Patch, &'static str> {
    let (mutation, message) = (parts.mutations.len(), parts.messages.len());
    let (target, bytes) = match place {
        IN_KEY => (
            Target::Key(mutation.wrapping_sub(1)),
            parts.mutations.last().map(|mutation| mutation.key().as_bytes()),
        ),
        IN_VALUE => (
            Target::Value(mutation.wrapping_sub(1)),
            parts.mutations.last_mut().and_then(Mutation::value_mut).map(|v| v.as_slice()),
        ),
        IN_MESSAGE => (
            Target::Message(message.wrapping_sub(1)),
            parts.messages.last().map(|message| message.value.as_slice()),
        ),
        _ => return Err("an unknown place of a placeholder"),
    };
    let offset = offset as usize;
    let room =
        bytes.and_then(|bytes| bytes.get(offset..)).and_then(|rest| rest.get(..uuid::TEXT_BYTES));
    if room != Some(&uuid::NIL_TEXT[..]) {
        return Err("a placeholder without its room");
    }
    Ok(Patch { target, offset, placeholder })
}

/// Appends a write, for [`parse_writes`]. A deletion of many is no part of it.
pub fn push_write(out: &mut Vec<u8>, parts: WriteParts) {
    if let Some(attempt) = parts.attempt {
        push_write_id(out, attempt.id);
    }
    for Check { key, expected } in parts.checks {
        let stamp = expected.map(|stamp| Hex(stamp.hex()));
        Record::Check(records::Check { stamp, key }).push(out);
    }
    for RangeCheck { start, end, seen, found_by } in parts.ranges {
        let seen = seen.into_iter().map(|(key, stamp)| (Hex(stamp.hex()), key)).collect();
        Record::CheckRange(CheckRange { from: start, to: end, seen: List32(seen) }).push(out);
        if let Some(FoundBy { filter, now_ms }) = found_by {
            Record::CheckFound(CheckFound { now: now_ms, filter }).push(out);
        }
    }
    for Ack { id, lock } in parts.acks {
        Record::Acknowledge(Acknowledge { message: id, lock: lock.to_le_bytes() }).push(out);
    }
    for (at, mutation) in parts.mutations.into_iter().enumerate() {
        to_record(mutation).push(out);
        push_patches(
            out,
            &parts.patches,
            &[(IN_KEY, Target::Key(at)), (IN_VALUE, Target::Value(at))],
        );
    }
    for (at, mut message) in parts.messages.into_iter().enumerate() {
        let deduplication = message.deduplication;
        let schedule = match message.schedule.take().map(|change| *change) {
            Some(ScheduleChange::Remove(name)) => {
                Record::Unschedule(Unschedule { queue: message.queue, name }).push(out);
                continue;
            }
            Some(ScheduleChange::Set(schedule)) => Some(schedule_record(&schedule)),
            None => None,
        };
        message_record(message).push(out);
        if deduplication != Deduplication::Drop {
            Record::Deduplicate(Deduplicate { mode: deduplication as u8 }).push(out);
        }
        if let Some(schedule) = schedule {
            schedule.push(out);
        }
        push_patches(out, &parts.patches, &[(IN_MESSAGE, Target::Message(at))]);
    }
    if parts.returns_values {
        Record::Return(Return { flags: returns::VALUES }).push(out);
    }
    Record::End(End {}).push(out);
}

/// Appends the id, which a client puts in front of the records that it repeats.
pub fn push_write_id(out: &mut Vec<u8>, id: WriteId) {
    Record::Id(Id { id: *id.as_bytes() }).push(out);
}

/// Size of the record of an id.
pub const WRITE_ID_RECORD_BYTES: usize = 1 + WriteId::BYTES;

fn schedule_record(schedule: &model::Schedule) -> Record {
    let (missed, name) = (schedule.missed() as u8, schedule.name().to_owned());
    Record::Schedule(match schedule.timing().clone() {
        Timing::Cron { pattern, zone } => {
            Schedule { missed, every: 0, offset: 0, cron: Some(pattern), zone, name }
        }
        Timing::Every { every_ms: every, offset_ms: offset } => {
            Schedule { missed, every, offset, cron: None, zone: String::new(), name }
        }
    })
}

fn message_record(message: Message) -> Record {
    let is_named = message.is_named();
    let backoff = List8(message.backoff_ms.into_iter().map(|ms| (ms,)).collect());
    let undelivered = List16(message.keys_if_undelivered.into_iter().map(|key| (key,)).collect());
    let (time, value) = (message.due, message.value);
    if !is_named {
        return Record::Enqueue(Enqueue { time, backoff, undelivered, value });
    }
    Record::EnqueueNamed(EnqueueNamed {
        time,
        backoff,
        undelivered,
        priority: message.priority,
        dead_retention: message.dead_retention_ms.unwrap_or(-1),
        queue: message.queue,
        deduplication: message.deduplication_key,
        value,
    })
}

/// The placeholders in these places, in their order.
fn push_patches(out: &mut Vec<u8>, patches: &[Patch], places: &[(u8, Target)]) {
    let found = patches.iter().filter_map(|patch| {
        let (place, _) = places.iter().find(|(_, target)| *target == patch.target)?;
        Some((*place, patch.offset as u32, patch.placeholder))
    });
    let patches: Vec<_> = found.collect();
    if !patches.is_empty() {
        Record::Patches(Patches { patches: List32(patches) }).push(out);
    }
}

#[cfg(test)]
mod tests {
    use super::super::records::timed::RELATIVE;
    use super::super::records::{record, set};
    use super::super::{frame_of, no_part_is_parsed};
    use super::*;
    use openkv_core::model::Time;

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
    fn a_check_of_what_indexes_found_follows_its_range() {
        let range = |filter: &[u8]| RangeCheck {
            start: Key::from_encoded(vec![0x14]),
            end: Key::from_encoded(vec![0x15]),
            seen: vec![(Key::from_encoded(vec![0x14, 0x15]), Versionstamp::new(7))],
            found_by: Some(FoundBy { filter: filter.to_vec(), now_ms: 5 }),
        };
        let frame = |filter: &[u8]| {
            let parts = WriteParts { ranges: vec![range(filter)], ..WriteParts::default() };
            frame_of(|out| push_write(out, parts))
        };
        let parse = |frame: &[u8]| parse_writes(frame, 1, &Limits::default());
        let whole = frame(b"\xa1\x61n\x01");
        let write = parse(&whole).unwrap().remove(0).unwrap();
        assert_eq!(write.into_parts().ranges, [range(b"\xa1\x61n\x01")]);
        no_part_is_parsed(&whole, parse);
        let refused = parse(&frame(b"\x01")).unwrap().remove(0).unwrap_err();
        assert!(refused.message().contains("where"), "{refused}");
        let mut alone = vec![record::CHECK_FOUND];
        alone.extend(5_f64.to_le_bytes());
        alone.extend([1, 0, 0, 0, 0xa0, record::END]);
        let refused = parse(&alone).unwrap_err();
        assert_eq!(refused.what(), "a filter without its checked range");
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

    #[test]
    fn a_write_has_the_id_in_front_of_it() {
        let id = WriteId::new(5, [1, 2]);
        let frame = frame_of(|out| {
            push_write_id(out, id);
            out.extend_from_slice(&[3, 1, 0, 0, 0, 0x14, 0, 0]);
        });
        assert_eq!(frame.len(), WRITE_ID_RECORD_BYTES + 8);
        let parse = |bytes: &[u8]| parse_writes(bytes, 2, &Limits::default());
        let ids: Vec<_> = parse(&frame).unwrap().into_iter().map(|w| w.unwrap().id()).collect();
        assert_eq!(ids, [Some(id), None]);
        no_part_is_parsed(&frame, parse);
        let twice = frame_of(|out| (0..2).for_each(|_| push_write_id(out, id)));
        assert!(parse(&[twice, vec![0, 0]].concat()).is_err());
    }
}
