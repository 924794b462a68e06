//! The stream of a consumer: its number, then batches of messages. Settlements and renewals of
//! locks are sent by calls (`Command::LockUpdate`), on any connection.

use crate::protocol::extension::unreadable;
use crate::protocol::frame::{
    Consume, Poll, frame_of, parse_consume, parse_dispatched, parse_number, parse_poll,
    push_consume, push_dispatched, push_poll,
};
use openkv_core::codec::framing::framed;
use openkv_core::model::{
    CONCURRENCY_MAX, CONSUME_FRAME_BYTES_MAX, Delivery, Error, LOCK_DURATION_MS_MAX,
    LOCK_DURATION_MS_MIN, QUEUE_NAME_BYTES_MAX, RECEIVE_POLL_MS_MAX, Result, is_own_queue,
    own_queue,
};

/// A message of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConsumeMessage {
    /// The number of the stream, for granting credits; always the first message.
    Opened(u64),
    /// Messages that belong to the consumer until their locks expire.
    Dispatched(Vec<Delivery>),
}

/// Encodes a request for a stream.
pub fn write_consume(asked: &Consume) -> Vec<u8> {
    frame_of(|out| push_consume(out, asked))
}

/// Decodes a request for a stream.
///
/// # Errors
/// `Invalid` for a malformed request, and for one over a bound.
pub fn read_consume(bytes: &[u8]) -> Result<Consume> {
    let asked = parse_consume(bytes).map_err(unreadable)?;
    check(&asked.queue, asked.lock_ms)?;
    if !(1..=CONCURRENCY_MAX).contains(&asked.concurrency) || asked.credits > asked.concurrency {
        return Err(Error::invalid(format!(
            "The concurrency of a consumer is from 1 to {CONCURRENCY_MAX}, its credits are at \
             most as many: {} and {} given",
            asked.concurrency, asked.credits
        )));
    }
    Ok(asked)
}

/// Encodes a request for one message.
pub fn write_poll(asked: &Poll) -> Vec<u8> {
    frame_of(|out| push_poll(out, asked))
}

/// Decodes a request for one message; its wait is limited to the maximum.
///
/// # Errors
/// `Invalid` for a malformed request, and for one over a bound.
pub fn read_poll(bytes: &[u8]) -> Result<Poll> {
    let mut asked = parse_poll(bytes).map_err(unreadable)?;
    check(&asked.queue, asked.lock_ms)?;
    asked.wait_ms = asked.wait_ms.min(RECEIVE_POLL_MS_MAX);
    Ok(asked)
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
    use super::*;
    use openkv_core::codec::framing::Frames;

    fn consume(change: impl FnOnce(&mut Consume)) -> Result<Consume> {
        let mut asked =
            Consume { queue: "mail".into(), lock_ms: 5000, concurrency: 10, credits: 10 };
        change(&mut asked);
        read_consume(&write_consume(&asked))
    }

    #[test]
    fn requests_of_consumers_are_bounded() {
        assert!(consume(|_| ()).is_ok());
        assert!(consume(|asked| asked.queue = String::new()).is_ok());
        assert!(consume(|asked| asked.queue = "q".repeat(QUEUE_NAME_BYTES_MAX)).is_ok());
        assert!(consume(|asked| asked.queue = "q".repeat(QUEUE_NAME_BYTES_MAX + 1)).is_err());
        for (lock_ms, good) in [(99, false), (100, true), (86_400_000, true), (86_400_001, false)] {
            assert_eq!(consume(|asked| asked.lock_ms = lock_ms).is_ok(), good, "{lock_ms}");
        }
        assert!(consume(|asked| asked.concurrency = 0).is_err());
        assert!(consume(|asked| asked.concurrency = CONCURRENCY_MAX).is_ok());
        assert!(consume(|asked| asked.concurrency = CONCURRENCY_MAX + 1).is_err());
        assert!(consume(|asked| asked.credits = 0).is_ok());
        assert!(consume(|asked| asked.credits = 11).is_err());
        let poll = |lock_ms, wait_ms| {
            let asked = Poll { queue: "mail".into(), lock_ms, number: 1, wait_ms };
            read_poll(&write_poll(&asked)).map(|asked| asked.wait_ms)
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
