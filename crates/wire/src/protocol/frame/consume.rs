//! Frames of remote consumers: their requests, their messages, and their updates of locks. Both
//! directions.
//!
//! The stream of a consumer is its number, then batches of messages. Settlements and renewals of
//! locks are sent by calls (`Command::LockUpdate`), on any connection.

use super::frame_of;
use super::queue::{renewal, settlement};
use super::reader::{Reader, push_f64, push_sized, unreadable};
use crate::protocol::numbers::outcome;
use openkv_core::codec::Malformed;
use openkv_core::codec::framing::framed;
use openkv_core::model::{
    Ask, CONCURRENCY_MAX, CONSUME_FRAME_BYTES_MAX, Delivery, Error, LOCK_DURATION_MS_MAX,
    LOCK_DURATION_MS_MIN, Outcome, QUEUE_NAME_BYTES_MAX, RECEIVE_POLL_MS_MAX, Reason, Renewal,
    Result, Settlement, is_own_queue, own_queue,
};

/// A request for a stream of messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consume {
    /// The queue; `""` is Deno's.
    pub queue: String,
    /// Duration of a lock, in ms.
    pub lock_ms: i64,
    /// Maximum number of unsettled messages.
    pub concurrency: u32,
    /// The number of free credits among these.
    pub credits: u32,
}

/// A request for one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Poll {
    /// The queue; `""` is Deno's.
    pub queue: String,
    /// Duration of the lock, in ms.
    pub lock_ms: i64,
    /// The number with which the wait can be ended.
    pub number: u64,
    /// Maximum wait, in ms; 0 for a message that is due now.
    pub wait_ms: u32,
}

/// The settlements, renewals and credits of a consumer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockUpdate {
    /// Its stream; 0 for none.
    pub stream: u64,
    /// The total of credits granted to that stream.
    pub granted: u64,
    /// Settlements and renewals.
    pub asks: Vec<Ask>,
}

/// Appends f64 lock, u32 concurrency, u32 credits, u32 length and the name of the queue.
fn push_consume(out: &mut Vec<u8>, request: &Consume) {
    push_f64(out, request.lock_ms);
    out.extend_from_slice(&request.concurrency.to_le_bytes());
    out.extend_from_slice(&request.credits.to_le_bytes());
    push_sized(out, request.queue.as_bytes());
}

/// Parses the frame of [`push_consume`].
fn parse_consume(bytes: &[u8]) -> Result<Consume, Malformed> {
    Reader::whole(bytes, |reader| {
        let (lock_ms, concurrency, credits) = (reader.time_ms()?, reader.u32()?, reader.u32()?);
        Ok(Consume { queue: reader.string()?, lock_ms, concurrency, credits })
    })
}

/// Appends u64 number, f64 lock, u32 wait, u32 length and the name of the queue.
fn push_poll(out: &mut Vec<u8>, request: &Poll) {
    out.extend_from_slice(&request.number.to_le_bytes());
    push_f64(out, request.lock_ms);
    out.extend_from_slice(&request.wait_ms.to_le_bytes());
    push_sized(out, request.queue.as_bytes());
}

/// Parses the frame of [`push_poll`].
fn parse_poll(bytes: &[u8]) -> Result<Poll, Malformed> {
    Reader::whole(bytes, |reader| {
        let (number, lock_ms, wait_ms) = (reader.u64()?, reader.time_ms()?, reader.u32()?);
        Ok(Poll { queue: reader.string()?, lock_ms, number, wait_ms })
    })
}

/// Parses the number of a stream or of a wait.
pub fn parse_number(bytes: &[u8]) -> Result<u64, Malformed> {
    Reader::whole(bytes, Reader::u64)
}

/// Appends messages, each after its lock.
fn push_dispatched<'a>(out: &mut Vec<u8>, dispatched: impl ExactSizeIterator<Item = &'a Delivery>) {
    out.extend_from_slice(&(dispatched.len() as u32).to_le_bytes());
    for delivery in dispatched {
        push_received(out, delivery);
    }
}

/// Parses the frame of [`push_dispatched`].
fn parse_dispatched(bytes: &[u8]) -> Result<Vec<Delivery>, Malformed> {
    Reader::whole(bytes, |reader| reader.counted(DELIVERY_BYTES_MIN, received))
}

/// Parses one message after its lock.
pub fn parse_received(bytes: &[u8]) -> Result<Delivery, Malformed> {
    Reader::whole(bytes, received)
}

/// Parses a message after its lock.
fn received(reader: &mut Reader<'_>) -> Result<Delivery, Malformed> {
    let lock = reader.i64()?;
    let (id, enqueued_ms) = (reader.time_ms()?, reader.time_ms()?);
    let (attempts, attempts_left) = (reader.u32()?, reader.u32()?);
    let value = reader.sized()?.to_vec();
    Ok(Delivery { id, lock, attempts, attempts_left, enqueued_ms, value })
}

/// Appends a received message, after its lock: f64 id, f64 enqueued, u32 attempts, u32 attempts left, u32 length and value.
pub fn push_received(out: &mut Vec<u8>, delivery: &Delivery) {
    out.extend_from_slice(&delivery.lock.to_le_bytes());
    push_f64(out, delivery.id);
    push_f64(out, delivery.enqueued_ms);
    out.extend_from_slice(&delivery.attempts.to_le_bytes());
    out.extend_from_slice(&delivery.attempts_left.to_le_bytes());
    push_sized(out, &delivery.value);
}

/// Appends deliveries of a listener, each after its number for settling and its lock.
pub fn push_deliveries<'a>(
    out: &mut Vec<u8>,
    deliveries: impl ExactSizeIterator<Item = (i64, &'a Delivery)>,
) {
    out.extend_from_slice(&(deliveries.len() as u32).to_le_bytes());
    for (number, delivery) in deliveries {
        push_f64(out, number);
        push_received(out, delivery);
    }
}

/// Size of lock, number, time, attempts, attempts left and the value's length.
const DELIVERY_BYTES_MIN: usize = 36;
/// Size of kind, number, lock and outcome.
const ASK_BYTES_MIN: usize = 18;

const SETTLE: u8 = 0;
const EXTEND: u8 = 1;

/// Appends u64 stream, u64 credits, u32 count, and count × (u8 0, a settlement; or u8 1, a
/// renewal).
pub fn push_lock_update(out: &mut Vec<u8>, update: &LockUpdate) {
    out.extend_from_slice(&update.stream.to_le_bytes());
    out.extend_from_slice(&update.granted.to_le_bytes());
    out.extend_from_slice(&(update.asks.len() as u32).to_le_bytes());
    for ask in &update.asks {
        match ask {
            Ask::Settle(settlement) => {
                out.push(SETTLE);
                push_settlement(out, settlement);
            }
            Ask::Extend(renewal) => {
                out.push(EXTEND);
                push_renewal(out, renewal);
            }
        }
    }
}

/// Parses the frame of [`push_lock_update`]; at most so many settlements and renewals.
pub fn parse_lock_update(bytes: &[u8], asks_max: usize) -> Result<LockUpdate, Malformed> {
    let ask = |reader: &mut Reader<'_>| match reader.u8()? {
        SETTLE => settlement(reader).map(Ask::Settle),
        EXTEND => renewal(reader).map(Ask::Extend),
        _ => Err(reader.refused("neither an end nor a renewal")),
    };
    Reader::whole(bytes, |reader| {
        let (stream, granted) = (reader.u64()?, reader.u64()?);
        let count = reader.u32()? as usize;
        if count > asks_max {
            return Err(reader.refused("more ends and renewals than one request may have"));
        }
        Ok(LockUpdate { stream, granted, asks: reader.items(count, ASK_BYTES_MIN, ask)? })
    })
}

/// Appends a settlement, for `parse_settlement`.
pub fn push_settlement(out: &mut Vec<u8>, settlement: &Settlement) {
    let Settlement { id, lock, outcome: how, delay_ms, reason, queue: _, value: _ } = settlement;
    push_f64(out, *id);
    out.extend_from_slice(&lock.to_le_bytes());
    match how {
        // A client stores results and progress by commits of its own.
        Outcome::Done | Outcome::Completed => out.push(outcome::DONE),
        // A consumer cancels nothing.
        Outcome::Returned | Outcome::Cancelled | Outcome::Progressed => {
            out.push(outcome::RETURNED);
        }
        Outcome::Failed => {
            out.push(outcome::FAILED);
            push_f64(out, delay_ms.unwrap_or(-1));
            push_reason(out, reason.as_ref());
        }
        Outcome::Dead => {
            out.push(outcome::DEAD);
            push_reason(out, reason.as_ref());
        }
    }
}

fn push_reason(out: &mut Vec<u8>, reason: Option<&Reason>) {
    push_sized(out, reason.map_or("", Reason::name).as_bytes());
    push_sized(out, reason.map_or("", Reason::message).as_bytes());
}

fn push_renewal(out: &mut Vec<u8>, renewal: &Renewal) {
    push_f64(out, renewal.id);
    out.extend_from_slice(&renewal.lock.to_le_bytes());
    push_f64(out, renewal.lock_ms);
}

/// A message of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConsumeMessage {
    /// The number of the stream, for granting credits; always the first message.
    Opened(u64),
    /// Messages that belong to the consumer until their locks expire.
    Dispatched(Vec<Delivery>),
}

/// Encodes a request for a stream.
pub fn write_consume(request: &Consume) -> Vec<u8> {
    frame_of(|out| push_consume(out, request))
}

/// Decodes a request for a stream.
///
/// # Errors
/// `Invalid` for a malformed request, and for one over a bound.
pub fn read_consume(bytes: &[u8]) -> Result<Consume> {
    let request = parse_consume(bytes).map_err(unreadable)?;
    check(&request.queue, request.lock_ms)?;
    if !(1..=CONCURRENCY_MAX).contains(&request.concurrency)
        || request.credits > request.concurrency
    {
        return Err(Error::invalid(format!(
            "The concurrency of a consumer is from 1 to {CONCURRENCY_MAX}, its credits are at \
             most as many: {} and {} given",
            request.concurrency, request.credits
        )));
    }
    Ok(request)
}

/// Encodes a request for one message.
pub fn write_poll(request: &Poll) -> Vec<u8> {
    frame_of(|out| push_poll(out, request))
}

/// Decodes a request for one message; its wait is limited to the maximum.
///
/// # Errors
/// `Invalid` for a malformed request, and for one over a bound.
pub fn read_poll(bytes: &[u8]) -> Result<Poll> {
    let mut request = parse_poll(bytes).map_err(unreadable)?;
    check(&request.queue, request.lock_ms)?;
    request.wait_ms = request.wait_ms.min(RECEIVE_POLL_MS_MAX);
    Ok(request)
}

fn check(queue: &str, lock_ms: i64) -> Result<()> {
    if is_own_queue(queue) {
        return Err(own_queue());
    }
    if queue.len() > QUEUE_NAME_BYTES_MAX {
        return Err(Error::invalid(format!(
            "The name of a queue is too long (max {QUEUE_NAME_BYTES_MAX} bytes): {} bytes",
            queue.len()
        )));
    }
    let (least, most) = (i64::from(LOCK_DURATION_MS_MIN), i64::from(LOCK_DURATION_MS_MAX));
    if !(least..=most).contains(&lock_ms) {
        return Err(Error::invalid(format!(
            "The lock of a message lasts from {least} to {most} ms: {lock_ms} given"
        )));
    }
    Ok(())
}

/// The frame of the first message.
///
/// # Errors
/// None in practice.
pub fn write_opened(stream: u64) -> Result<Vec<u8>> {
    framed(CONSUME_FRAME_BYTES_MAX, |out| out.extend_from_slice(&stream.to_le_bytes()))
}

/// The frame of some messages.
///
/// # Errors
/// `Invalid` for more than clients accept.
pub fn write_dispatched<'a>(
    dispatched: impl ExactSizeIterator<Item = &'a Delivery>,
) -> Result<Vec<u8>> {
    framed(CONSUME_FRAME_BYTES_MAX, |out| push_dispatched(out, dispatched))
}

/// Decodes a message of the stream.
///
/// # Errors
/// `Corrupt` for a malformed message.
pub fn read_message(bytes: &[u8], is_first: bool) -> Result<ConsumeMessage> {
    let message = match is_first {
        true => parse_number(bytes).map(ConsumeMessage::Opened),
        false => parse_dispatched(bytes).map(ConsumeMessage::Dispatched),
    };
    message.map_err(|why| Error::corrupt(format!("a message of a consumer's stream: {why}")))
}

#[cfg(test)]
mod tests {
    use super::super::no_part_is_parsed;
    use super::*;
    use openkv_core::codec::framing::Frames;

    #[test]
    fn requests_round_trip() {
        let consume = Consume { queue: "mail".into(), lock_ms: 5000, concurrency: 10, credits: 3 };
        let out = frame_of(|out| push_consume(out, &consume));
        assert_eq!(parse_consume(&out), Ok(consume));
        no_part_is_parsed(&out, parse_consume);
        let poll = Poll { queue: String::new(), lock_ms: 100, number: u64::MAX, wait_ms: 7 };
        let out = frame_of(|out| push_poll(out, &poll));
        assert_eq!(parse_poll(&out), Ok(poll));
        no_part_is_parsed(&out, parse_poll);
    }

    #[test]
    fn messages_of_a_stream_round_trip() {
        let of = |id, value| Delivery {
            id,
            lock: -id,
            attempts: 2,
            attempts_left: 7,
            enqueued_ms: 5,
            value,
        };
        let dispatched = vec![of(1, vec![1, 2, 3]), of(2, vec![])];
        let out = frame_of(|out| push_dispatched(out, dispatched.iter()));
        assert_eq!(parse_dispatched(&out), Ok(dispatched));
        no_part_is_parsed(&out, parse_dispatched);
        assert!(parse_dispatched(&[0xff; 4]).is_err(), "a count alone allocates nothing");
    }

    #[test]
    fn lock_updates_round_trip() {
        let settled = |outcome| Ask::Settle(Settlement::new(7, 99, outcome));
        let failed = |delay_ms| {
            let reason = Some(Reason::new("Error", "no"));
            Ask::Settle(Settlement { delay_ms, reason, ..Settlement::new(8, -3, Outcome::Failed) })
        };
        let update = LockUpdate {
            stream: 5,
            granted: u64::MAX,
            asks: vec![
                settled(Outcome::Done),
                failed(None),
                Ask::Extend(Renewal { id: 1, lock: 2, lock_ms: 300 }),
                failed(Some(0)),
                Ask::Settle(Settlement {
                    reason: Some(Reason::new("KvDoNotRetry", "never")),
                    ..Settlement::new(9, 4, Outcome::Dead)
                }),
                settled(Outcome::Returned),
            ],
        };
        let out = frame_of(|out| push_lock_update(out, &update));
        assert_eq!(parse_lock_update(&out, 6), Ok(update));
        no_part_is_parsed(&out, |bytes| parse_lock_update(bytes, 6));
        assert!(parse_lock_update(&out, 5).is_err());
        let out = frame_of(|out| push_lock_update(out, &LockUpdate::default()));
        assert_eq!(parse_lock_update(&out, 0), Ok(LockUpdate::default()));
    }

    fn consume(change: impl FnOnce(&mut Consume)) -> Result<Consume> {
        let mut request =
            Consume { queue: "mail".into(), lock_ms: 5000, concurrency: 10, credits: 10 };
        change(&mut request);
        read_consume(&write_consume(&request))
    }

    #[test]
    fn requests_of_consumers_are_bounded() {
        assert!(consume(|_| ()).is_ok());
        assert!(consume(|request| request.queue = String::new()).is_ok());
        assert!(consume(|request| request.queue = "q".repeat(QUEUE_NAME_BYTES_MAX)).is_ok());
        assert!(consume(|request| request.queue = "q".repeat(QUEUE_NAME_BYTES_MAX + 1)).is_err());
        for (lock_ms, good) in [(99, false), (100, true), (86_400_000, true), (86_400_001, false)] {
            assert_eq!(consume(|request| request.lock_ms = lock_ms).is_ok(), good, "{lock_ms}");
        }
        assert!(consume(|request| request.concurrency = 0).is_err());
        assert!(consume(|request| request.concurrency = CONCURRENCY_MAX).is_ok());
        assert!(consume(|request| request.concurrency = CONCURRENCY_MAX + 1).is_err());
        assert!(consume(|request| request.credits = 0).is_ok());
        assert!(consume(|request| request.credits = 11).is_err());
        let poll = |lock_ms, wait_ms| {
            let request = Poll { queue: "mail".into(), lock_ms, number: 1, wait_ms };
            read_poll(&write_poll(&request)).map(|request| request.wait_ms)
        };
        assert_eq!(poll(100, 5), Ok(5));
        assert_eq!(poll(100, u32::MAX), Ok(RECEIVE_POLL_MS_MAX));
        assert!(poll(99, 5).is_err());
    }

    #[test]
    fn the_stream_sends_its_number_and_then_messages() {
        let delivery = |len| {
            let value = vec![7; len];
            Delivery { id: 1, lock: 2, attempts: 3, attempts_left: 0, enqueued_ms: 4, value }
        };
        let dispatched = vec![delivery(3), delivery(0)];
        let mut frames = Frames::up_to(CONSUME_FRAME_BYTES_MAX);
        frames.push(&write_opened(9).unwrap());
        frames.push(&write_dispatched(dispatched.iter()).unwrap());
        let first = frames.next_message().unwrap().unwrap();
        assert_eq!(read_message(&first, true), Ok(ConsumeMessage::Opened(9)));
        let second = frames.next_message().unwrap().unwrap();
        assert_eq!(read_message(&second, false), Ok(ConsumeMessage::Dispatched(dispatched)));
        assert!(read_message(&second, true).is_err());
        let largest = delivery(openkv_core::model::Limits::wide().message_bytes_max);
        assert!(write_dispatched([largest].iter()).is_ok());
        assert!(write_dispatched([delivery(CONSUME_FRAME_BYTES_MAX)].iter()).is_err());
    }
}
