//! The value of a message that keeps a schedule (docs/format.md §2): the schedule, and then the value of the
//! messages that it makes. Their other properties are those of the message itself.

use super::Malformed;
use super::fields::{Fields, put_bytes, put_number};
use crate::model::{Deduplication, Message, Missed, Schedule, Timing};

/// The first byte.
const FORMAT: u8 = 1;
const CRON: u8 = 0;
const EVERY: u8 = 1;

/// A schedule as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptSchedule {
    /// The schedule.
    pub schedule: Schedule,
    /// The queue that gets its messages.
    pub queue: String,
    /// The deduplication key of its messages.
    pub deduplication_key: Option<String>,
    /// What they do if that key is taken.
    pub deduplication: Deduplication,
    /// The value of its messages.
    pub value: Vec<u8>,
}

/// The value of the message that keeps a schedule. `message`: what each message of the schedule is.
#[must_use]
pub fn encode(schedule: &Schedule, message: &Message) -> Vec<u8> {
    let mut out = vec![FORMAT];
    put_bytes(&mut out, message.queue.as_bytes());
    put_bytes(&mut out, schedule.name().as_bytes());
    match schedule.timing() {
        Timing::Cron { pattern, zone } => {
            out.push(CRON);
            put_bytes(&mut out, pattern.as_bytes());
            put_bytes(&mut out, zone.as_bytes());
        }
        Timing::Every { every_ms, offset_ms } => {
            out.push(EVERY);
            put_number(&mut out, every_ms.cast_unsigned());
            put_number(&mut out, offset_ms.cast_unsigned());
        }
    }
    out.push(schedule.missed() as u8);
    // A key is never empty.
    put_bytes(&mut out, message.deduplication_key.as_deref().unwrap_or_default().as_bytes());
    out.push(message.deduplication as u8);
    out.extend_from_slice(&message.value);
    out
}

/// Reads what [`encode`] has written.
///
/// # Errors
/// Other bytes, as a later version may write them.
pub fn decode(bytes: &[u8]) -> Result<KeptSchedule, Malformed> {
    let mut fields = Fields::of(bytes);
    if fields.byte()? != FORMAT {
        return fields.fault("an unknown format of a schedule");
    }
    let (queue, name) = (fields.text()?, fields.text()?);
    let timing = match fields.byte()? {
        CRON => Timing::Cron { pattern: fields.text()?, zone: fields.text()? },
        EVERY => Timing::Every {
            every_ms: fields.number()?.cast_signed(),
            offset_ms: fields.number()?.cast_signed(),
        },
        _ => return fields.fault("an unknown timing of a schedule"),
    };
    let Some(missed) = Missed::ALL.get(usize::from(fields.byte()?)) else {
        return fields.fault("an unknown rule for missed times");
    };
    let Ok(schedule) = Schedule::new(name, timing, *missed) else {
        return fields.fault("a schedule that this version does not know");
    };
    let deduplication_key = Some(fields.text()?).filter(|key| !key.is_empty());
    let Some(deduplication) = Deduplication::ALL.get(usize::from(fields.byte()?)) else {
        return fields.fault("an unknown deduplication");
    };
    let (deduplication, value) = (*deduplication, fields.all_left().to_vec());
    Ok(KeptSchedule { schedule, queue, deduplication_key, deduplication, value })
}

/// Whether the schedule is one of this queue, without reading all of it.
#[must_use]
pub fn is_of(bytes: &[u8], queue: &str) -> bool {
    let mut fields = Fields::of(bytes);
    fields.byte() == Ok(FORMAT) && fields.slice() == Ok(queue.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_read_as_it_was_written() {
        let cron = Timing::Cron { pattern: "0 9 L * *".into(), zone: "Asia/Tokyo".into() };
        let every = Timing::Every { every_ms: 1500, offset_ms: 7 };
        let keyed = Message {
            queue: "mail".into(),
            deduplication_key: Some("one".into()),
            deduplication: Deduplication::Replace,
            value: b"\x01\x02".to_vec(),
            ..Message::default()
        };
        let plain = Message { queue: "q".into(), ..Message::default() };
        for (timing, message) in [(cron, keyed), (every, plain)] {
            let schedule = Schedule::new("täglich".into(), timing, Missed::All).unwrap();
            let bytes = encode(&schedule, &message);
            let kept = decode(&bytes).unwrap();
            let Message { queue, deduplication_key, deduplication, value, .. } = message;
            let head = bytes.len() - value.len();
            assert!(is_of(&bytes, &queue) && !is_of(&bytes, "other"));
            assert_eq!(
                kept,
                KeptSchedule { schedule, queue, deduplication_key, deduplication, value }
            );
            for end in 0..head {
                assert!(decode(&bytes[..end]).is_err(), "{end}");
            }
        }
        assert!(decode(&[2]).is_err());
    }
}
