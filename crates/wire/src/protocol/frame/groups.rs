//! Calls about the limits of queues and about groups, and their answers.

use super::reader::{Reader, push_f64, push_sized};
use openkv_core::codec::Malformed;
use openkv_core::model::{
    LimitAlgorithm, PeekCursor, QueueChange, QueueRule, QueueStats, Rate, RunLimit,
};

/// Parses the name of a queue and its limits: for the queue and then for each group u32 concurrency, u32 the limit of
/// the rate (0: none), f64 its time in ms, u8 its algorithm. They are not checked.
///
/// # Errors
/// A malformed frame.
pub fn parse_limits(bytes: &[u8]) -> Result<(String, QueueChange), Malformed> {
    Reader::whole(bytes, |reader| {
        let queue = reader.string()?;
        let rule = QueueRule { queue: limit(reader)?, group: limit(reader)? };
        Ok((queue, QueueChange::Limit(rule)))
    })
}

fn limit(reader: &mut Reader<'_>) -> Result<RunLimit, Malformed> {
    let (concurrency, limit) = (reader.u32()?, reader.u32()?);
    let (per_ms, algorithm) = (reader.time_ms()?, reader.u8()?);
    let Some(algorithm) = LimitAlgorithm::ALL.get(usize::from(algorithm)) else {
        return Err(reader.refused("an unknown algorithm of a rate"));
    };
    Ok(RunLimit {
        concurrency: Some(concurrency).filter(|most| *most > 0),
        rate: (limit > 0).then_some(Rate { algorithm: *algorithm, limit, per_ms }),
    })
}

/// Parses a request for a page of groups: the queue, the number of groups, and the cursor (empty: from the start).
///
/// # Errors
/// A malformed frame.
pub fn parse_groups(bytes: &[u8]) -> Result<(String, usize, Option<PeekCursor>), Malformed> {
    super::schedule::parse_schedules(bytes)
}

/// Appends limits, as [`parse_limits`] has them.
pub fn push_limits(out: &mut Vec<u8>, rule: &QueueRule) {
    for RunLimit { concurrency, rate } in [rule.queue, rule.group] {
        out.extend_from_slice(&concurrency.unwrap_or(0).to_le_bytes());
        out.extend_from_slice(&rate.map_or(0, |rate| rate.limit).to_le_bytes());
        push_f64(out, rate.map_or(0, |rate| rate.per_ms));
        out.push(rate.map_or(0, |rate| rate.algorithm as u8));
    }
}

/// Appends a group: its name, f64 pending, delayed and processing messages, and 1 if it is paused.
pub fn push_group(out: &mut Vec<u8>, name: &str, stats: &QueueStats) {
    let QueueStats { pending, delayed, processing, dead: _, paused } = *stats;
    push_sized(out, name.as_bytes());
    for count in [pending, delayed, processing, u64::from(paused)] {
        push_f64(out, count.cast_signed());
    }
}

#[cfg(test)]
mod tests {
    use super::super::no_part_is_parsed;
    use super::*;

    #[test]
    fn limits_are_parsed_as_they_were_written() {
        let rate = Rate { algorithm: LimitAlgorithm::Sliding, limit: 5, per_ms: 1000 };
        let rule = QueueRule {
            queue: RunLimit { concurrency: Some(3), rate: None },
            group: RunLimit { concurrency: None, rate: Some(rate) },
        };
        let mut frame = Vec::new();
        push_sized(&mut frame, b"mail");
        push_limits(&mut frame, &rule);
        assert_eq!(parse_limits(&frame).unwrap(), ("mail".to_owned(), QueueChange::Limit(rule)));
        no_part_is_parsed(&frame, parse_limits);
        *frame.last_mut().unwrap() = 9;
        assert!(parse_limits(&frame).is_err());
    }
}
