//! Calls about queues, and their answers.

use super::reader::{Reader, push_f64, push_sized};
use crate::protocol::numbers::outcome;
use openkv_core::codec::Malformed;
use openkv_core::model::{
    DeadLetter, DeadLetterChange, MessageState, Outcome, Peek, PeekCursor, Peeked, QueueChange,
    QueueStats, Reason, Renewal, Settlement, check_group, queue_of_group,
};

/// Parses the number of a received message and that of its lock.
fn held(reader: &mut Reader<'_>) -> Result<(i64, i64), Malformed> {
    Ok((reader.time_ms()?, reader.i64()?))
}

fn reason(reader: &mut Reader<'_>) -> Result<Reason, Malformed> {
    Ok(Reason::new(reader.text()?, reader.text()?))
}

/// Parses the name and message of a handler's error.
pub fn parse_reason(bytes: &[u8]) -> Result<Reason, Malformed> {
    Reader::whole(bytes, reason)
}

/// Parses f64 id, i64 lock, u8 outcome; after FAILED f64 delay in ms (−1: the backoff schedule) and a
/// reason; after DEAD a reason.
pub fn parse_settlement(bytes: &[u8]) -> Result<Settlement, Malformed> {
    Reader::whole(bytes, settlement)
}

pub(super) fn settlement(reader: &mut Reader<'_>) -> Result<Settlement, Malformed> {
    let (id, lock) = held(reader)?;
    let mut settlement = Settlement::new(id, lock, Outcome::Done);
    match reader.u8()? {
        outcome::DONE => {}
        outcome::FAILED => {
            settlement.outcome = Outcome::Failed;
            settlement.delay_ms = Some(reader.time_ms()?).filter(|ms| *ms >= 0);
            settlement.reason = Some(reason(reader)?);
        }
        outcome::DEAD => {
            settlement.outcome = Outcome::Dead;
            settlement.reason = Some(reason(reader)?);
        }
        outcome::RETURNED => settlement.outcome = Outcome::Returned,
        _ => return Err(reader.refused("an unknown outcome")),
    }
    Ok(settlement)
}

/// Parses f64 id, i64 lock, f64 ms from now.
pub fn parse_renewal(bytes: &[u8]) -> Result<Renewal, Malformed> {
    Reader::whole(bytes, renewal)
}

pub(super) fn renewal(reader: &mut Reader<'_>) -> Result<Renewal, Malformed> {
    let (id, lock) = held(reader)?;
    Ok(Renewal { id, lock, lock_ms: reader.time_ms()? })
}

/// Parses the name of a queue.
pub fn parse_queue(bytes: &[u8]) -> Result<String, Malformed> {
    Reader::whole(bytes, Reader::string)
}

/// Parses the name of a queue at the start of a longer frame.
pub fn first_queue(bytes: &[u8]) -> Result<&str, Malformed> {
    Reader::new(bytes).text()
}

/// Parses the name of a queue and the number of a dead message.
pub fn parse_dead(bytes: &[u8]) -> Result<(String, i64), Malformed> {
    Reader::whole(bytes, |reader| Ok((reader.string()?, reader.time_ms()?)))
}

/// Parses a request for a page of dead messages: the queue, the number of messages, and the time of
/// death and number to continue after.
pub fn parse_dead_list(bytes: &[u8]) -> Result<(String, usize, (i64, i64)), Malformed> {
    Reader::whole(bytes, |reader| {
        let (queue, limit) = (reader.string()?, reader.u32()? as usize);
        Ok((queue, limit, (reader.time_ms()?, reader.time_ms()?)))
    })
}

/// Parses a request for a page of messages: the queue, the number of messages, their state (255: any)
/// and the cursor (empty: from the start).
pub fn parse_peek(bytes: &[u8]) -> Result<(String, usize, Peek), Malformed> {
    Reader::whole(bytes, |reader| {
        let (queue, limit) = (reader.string()?, reader.u32()? as usize);
        let state = match reader.u8()? {
            u8::MAX => None,
            number => Some(
                *(MessageState::ALL.get(usize::from(number)))
                    .ok_or_else(|| reader.refused("an unknown state"))?,
            ),
        };
        let after = match reader.text()? {
            "" => None,
            cursor => Some(
                PeekCursor::parse(cursor)
                    .ok_or_else(|| reader.refused("a cursor of another list"))?,
            ),
        };
        Ok((queue, limit, Peek { state, after }))
    })
}

/// Parses the name of a queue and the time before which dead messages are purged.
pub fn parse_purge(bytes: &[u8], max: usize) -> Result<(String, DeadLetterChange), Malformed> {
    let (queue, before_ms) = parse_dead(bytes)?;
    Ok((queue, DeadLetterChange::Purge { before_ms, max }))
}

/// Parses the name of a queue, whether it is to be paused, and the name of its group if only that is.
pub fn parse_pause(bytes: &[u8]) -> Result<(String, QueueChange), Malformed> {
    Reader::whole(bytes, |reader| {
        let queue = reader.string()?;
        let change = match reader.u8()? {
            0 => QueueChange::Resume,
            1 => QueueChange::Pause,
            _ => return Err(reader.refused("neither a pause nor a resumption")),
        };
        Ok((of_group(reader, queue)?, change))
    })
}

/// The queue, or that of its group which may follow.
fn of_group(reader: &mut Reader<'_>, queue: String) -> Result<String, Malformed> {
    if reader.rest().is_empty() {
        return Ok(queue);
    }
    let group = reader.text()?;
    match check_group(group) {
        Ok(()) => Ok(queue_of_group(&queue, group)),
        Err(_) => Err(reader.refused("no name of a group")),
    }
}

/// Parses the name of a queue, whether messages that are not due are deleted too, until when those to
/// delete were enqueued (0: until now), and the name of its group if only those of it are.
pub fn parse_drain(bytes: &[u8]) -> Result<(String, bool, i64), Malformed> {
    Reader::whole(bytes, |reader| {
        let (queue, delayed) = (reader.string()?, reader.u8()?);
        if delayed > 1 {
            return Err(reader.refused("a flag that is neither 0 nor 1"));
        }
        let until_ms = reader.time_ms()?;
        Ok((of_group(reader, queue)?, delayed == 1, until_ms))
    })
}

/// Appends u32 the number of deleted messages, f64 until when they were enqueued.
pub fn push_drained(out: &mut Vec<u8>, count: usize, until_ms: i64) {
    out.extend_from_slice(&(count as u32).to_le_bytes());
    push_f64(out, until_ms);
}

/// Appends f64 pending, delayed, processing, dead, and 1 for a queue that is paused.
pub fn push_stats(out: &mut Vec<u8>, stats: &QueueStats) {
    let QueueStats { pending, delayed, processing, dead, paused } = *stats;
    for count in [pending, delayed, processing, dead, u64::from(paused)] {
        push_f64(out, count.cast_signed());
    }
}

/// Appends u32 count and the cursor of the next page, empty at the end: the head of a page of messages.
pub fn push_peek_head(out: &mut Vec<u8>, count: u32, cursor: &str) {
    out.extend_from_slice(&count.to_le_bytes());
    push_sized(out, cursor.as_bytes());
}

/// Appends a message: u8 state, u8 priority, f64 id, times, end of its lock (NaN: not delivered),
/// u32 attempts, the value.
pub fn push_peeked(out: &mut Vec<u8>, message: &Peeked, state: MessageState) {
    out.extend_from_slice(&[state as u8, message.priority]);
    for number in [message.id, message.enqueued_ms, message.due_ms] {
        push_f64(out, number);
    }
    match message.lock_end_ms {
        Some(end_ms) => push_f64(out, end_ms),
        None => out.extend_from_slice(&f64::NAN.to_le_bytes()),
    }
    out.extend_from_slice(&message.attempts.to_le_bytes());
    push_sized(out, &message.value);
}

/// Appends a dead message: f64 id, times, u32 attempts, the error's name and message, the value.
pub fn push_dead(out: &mut Vec<u8>, letter: &DeadLetter) {
    for number in [letter.id, letter.enqueued_ms, letter.first_ms, letter.last_ms, letter.died_ms] {
        push_f64(out, number);
    }
    out.extend_from_slice(&letter.attempts.to_le_bytes());
    push_sized(out, letter.reason.name().as_bytes());
    push_sized(out, letter.reason.message().as_bytes());
    push_sized(out, &letter.value);
}

#[cfg(test)]
mod tests {
    use super::super::no_part_is_parsed;
    use super::*;
    use openkv_core::model::MessagePlace;

    #[test]
    fn peeks_are_parsed() {
        let mut frame = Vec::new();
        push_sized(&mut frame, b"mail");
        frame.extend_from_slice(&7_u32.to_le_bytes());
        frame.push(1);
        let place = MessagePlace::new(MessageState::Delayed, 20, 3, 5);
        let cursor = PeekCursor { as_of_ms: 10, place };
        let head = frame.len();
        push_sized(&mut frame, cursor.text().as_bytes());
        let peek = Peek { state: Some(MessageState::Delayed), after: Some(cursor) };
        let expected = ("mail".to_owned(), 7, peek);
        assert_eq!(parse_peek(&frame).unwrap(), expected);
        no_part_is_parsed(&frame, parse_peek);
        frame[head - 1] = 3;
        assert!(parse_peek(&frame).is_err());
        frame.truncate(head - 1);
        frame.push(u8::MAX);
        push_sized(&mut frame, b"");
        assert_eq!(parse_peek(&frame).unwrap().2, Peek::default());
        frame.truncate(head);
        push_sized(&mut frame, b"1-2");
        assert!(parse_peek(&frame).is_err());
    }

    #[test]
    fn settlements_are_parsed() {
        let mut frame = Vec::new();
        push_f64(&mut frame, 7);
        frame.extend_from_slice(&99_i64.to_le_bytes());
        frame.push(1);
        push_f64(&mut frame, -1);
        push_sized(&mut frame, b"Error");
        push_sized(&mut frame, b"no");
        let settlement = parse_settlement(&frame).unwrap();
        let reason = Some(Reason::new("Error", "no"));
        let expected = Settlement { reason, ..Settlement::new(7, 99, Outcome::Failed) };
        assert_eq!(settlement, expected);
        no_part_is_parsed(&frame, parse_settlement);
        frame[16] = 2;
        assert!(parse_settlement(&frame).is_err());
        assert_eq!(parse_settlement(&frame[..17]).unwrap().outcome, Outcome::Returned);
        frame[16] = 3;
        assert!(parse_settlement(&frame[..17]).is_err());
    }
}
