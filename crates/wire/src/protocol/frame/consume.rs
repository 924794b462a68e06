//! Frames of remote consumers: their requests, their messages, and their updates of locks. Both
//! directions.

use super::queue::{push_received, received, renewal, settlement};
use super::reader::{Reader, push_f64, push_sized};
use crate::protocol::numbers::outcome;
use openkv_core::codec::Malformed;
use openkv_core::model::{Ask, Delivery, Outcome, Reason, Renewal, Settlement};

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
pub fn push_consume(out: &mut Vec<u8>, asked: &Consume) {
    push_f64(out, asked.lock_ms);
    out.extend_from_slice(&asked.concurrency.to_le_bytes());
    out.extend_from_slice(&asked.credits.to_le_bytes());
    push_sized(out, asked.queue.as_bytes());
}

/// Parses the frame of [`push_consume`].
pub fn parse_consume(bytes: &[u8]) -> Result<Consume, Malformed> {
    Reader::whole(bytes, |reader| {
        let (lock_ms, concurrency, credits) = (reader.time_ms()?, reader.u32()?, reader.u32()?);
        Ok(Consume { queue: reader.string()?, lock_ms, concurrency, credits })
    })
}

/// Appends u64 number, f64 lock, u32 wait, u32 length and the name of the queue.
pub fn push_poll(out: &mut Vec<u8>, asked: &Poll) {
    out.extend_from_slice(&asked.number.to_le_bytes());
    push_f64(out, asked.lock_ms);
    out.extend_from_slice(&asked.wait_ms.to_le_bytes());
    push_sized(out, asked.queue.as_bytes());
}

/// Parses the frame of [`push_poll`].
pub fn parse_poll(bytes: &[u8]) -> Result<Poll, Malformed> {
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
pub fn push_dispatched<'a>(
    out: &mut Vec<u8>,
    dispatched: impl ExactSizeIterator<Item = &'a Delivery>,
) {
    out.extend_from_slice(&(dispatched.len() as u32).to_le_bytes());
    for delivery in dispatched {
        push_received(out, delivery);
    }
}

/// Parses the frame of [`push_dispatched`].
pub fn parse_dispatched(bytes: &[u8]) -> Result<Vec<Delivery>, Malformed> {
    Reader::whole(bytes, |reader| reader.counted(DELIVERY_BYTES_MIN, received))
}

/// Parses one message after its lock.
pub fn parse_received(bytes: &[u8]) -> Result<Delivery, Malformed> {
    Reader::whole(bytes, received)
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
    let Settlement { id, lock, outcome: how, delay_ms, reason, queue: _ } = settlement;
    push_f64(out, *id);
    out.extend_from_slice(&lock.to_le_bytes());
    match how {
        Outcome::Done => out.push(outcome::DONE),
        // A consumer cancels nothing.
        Outcome::Returned | Outcome::Cancelled => out.push(outcome::RETURNED),
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

#[cfg(test)]
mod tests {
    use super::super::{frame_of, no_part_is_parsed};
    use super::*;

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
}
