//! The frames of writes.

use std::ops::Range;

use super::form::{Hex, List8, List16, List32};
use super::reader::Reader;
use super::records::{
    self, Acknowledge, CheckFound, CheckOrder, CheckRange, Deduplicate, End, Enqueue, EnqueueNamed,
    Id, Patches, Record, Return, Schedule, Unschedule, returns, to_mutation, to_record,
};
use openkv_core::codec::{Malformed, key, uuid};
use openkv_core::filter::Filter;
use openkv_core::index::parse_paths;
use openkv_core::model::{
    self, Ack, AtomicWrite, Attempt, Check, Deduplication, Error, FoundBy, Key, Limits, Message,
    Missed, Mutation, OrderPart, OrderPath, Patch, RangeCheck, Result, ScheduleChange, Target,
    Timing, Versionstamp, WriteId, WriteParts,
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
                range.found_by = Some(FoundBy { filter, now_ms: now, order: None });
            }
            Record::CheckOrder(CheckOrder { paths, after, until }) => {
                let by = parts.ranges.last_mut().and_then(|range| range.found_by.as_mut());
                let by = by.filter(|by| by.order.is_none());
                let by = by.ok_or_else(|| reader.refused("an order without its filter"))?;
                let order = paths.0.into_iter().map(parse_path).collect::<Option<Vec<_>>>();
                let order = order.ok_or_else(|| reader.refused("an unknown order of a path"))?;
                if let Err(error) = parse_paths(&order) {
                    invalid = invalid.or(Some(error));
                }
                by.order = Some(OrderPart { order, after, until });
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

fn parse_path((descending, path): (u8, String)) -> Option<OrderPath> {
    (descending <= 1).then_some(OrderPath { path, descending: descending == 1 })
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
        if let Some(FoundBy { filter, now_ms, order }) = found_by {
            Record::CheckFound(CheckFound { now: now_ms, filter }).push(out);
            if let Some(OrderPart { order, after, until }) = order {
                let paths = order.into_iter().map(|of| (u8::from(of.descending), of.path));
                let paths = List8(paths.collect());
                Record::CheckOrder(CheckOrder { paths, after, until }).push(out);
            }
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
mod tests;
