//! Groups of messages, and how much of a queue and of its groups may run.
//!
//! The messages of a group are in a queue of their own, whose name has that of their queue and of their group. So
//! every engine, log and archive carries them as it carries messages. Two more queues of openkv's own say what
//! may be delivered: [`LIMITED_QUEUES`] has a message for each queue with a rule or with groups, and
//! [`turns_queue`] has one for each group of a queue.

use super::{
    CONCURRENCY_LIMIT_MAX, DURATION_MS_MAX, Error, LIMITER_LIMIT_MAX, LimitAlgorithm,
    MESSAGE_GROUP_BYTES_MAX, Result,
};

/// The queue of the rules of queues. The deduplication key of a message is the name of its queue.
pub const LIMITED_QUEUES: &str = "\u{1}limits";

/// The names between which those of all queues with groups and with turns are. There can be many of them, so an
/// engine does not list them; instead it lists the deduplication keys of [`LIMITED_QUEUES`].
pub const GROUP_QUEUES: (&str, &str) = ("\u{1}group", "\u{1}grouq");

/// First bytes of the name of a queue that has the messages of a group.
const GROUPS: &str = "\u{1}group:";

/// The queue with the messages of a group.
pub fn queue_of_group(queue: &str, group: &str) -> String {
    format!("{GROUPS}{}:{queue}\u{1}{group}", queue.len())
}

/// The queue of the turns of a queue's groups. The deduplication key of a message is the name of its group.
pub fn turns_queue(queue: &str) -> String {
    format!("\u{1}group turns:{queue}")
}

/// The queue and the group of a queue that has the messages of a group.
pub fn group_of_queue(name: &str) -> Option<(&str, &str)> {
    let (length, rest) = name.strip_prefix(GROUPS)?.split_once(':')?;
    let (queue, group) = rest.split_at_checked(length.parse().ok()?)?;
    Some((queue, group.strip_prefix('\u{1}')?))
}

/// The queue as callers name it.
pub fn queue_of_callers(name: &str) -> &str {
    group_of_queue(name).map_or(name, |(queue, _)| queue)
}

/// The names between which those of the queues of a queue's groups are.
pub fn groups_range(queue: &str) -> (String, String) {
    let prefix = format!("{GROUPS}{}:{queue}", queue.len());
    (format!("{prefix}\u{1}"), format!("{prefix}\u{2}"))
}

/// Checks the name of a group.
///
/// # Errors
/// `Invalid`, with its bounds and what was given.
pub fn check_group(group: &str) -> Result<()> {
    let bytes = group.len();
    if bytes == 0 || bytes > MESSAGE_GROUP_BYTES_MAX {
        return Err(Error::invalid(format!(
            "group must have 1 to {MESSAGE_GROUP_BYTES_MAX} bytes: {bytes} bytes given"
        )));
    }
    if group.chars().any(char::is_control) {
        return Err(Error::invalid(format!(
            "group must have no control characters: received {group:?}"
        )));
    }
    Ok(())
}

/// So many deliveries in a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// How it counts.
    pub algorithm: LimitAlgorithm,
    /// Deliveries in `per_ms`.
    pub limit: u32,
    /// In ms.
    pub per_ms: i64,
}

/// How much of a queue, or of a group, may run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunLimit {
    /// Messages that consumers have at the same time.
    pub concurrency: Option<u32>,
    /// Deliveries in a time, those of retries too.
    pub rate: Option<Rate>,
}

/// The limits of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueRule {
    /// Of all its messages together.
    pub queue: RunLimit,
    /// Of each of its groups.
    pub group: RunLimit,
}

impl QueueRule {
    /// Whether it limits nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Checks its numbers.
    ///
    /// # Errors
    /// `Invalid`, with the number, its bounds and what was given.
    pub fn check(&self) -> Result<()> {
        let refused = |name: &str, most: i64, given: i64| {
            Error::invalid(format!("setLimits: {name} must be from 1 to {most}: received {given}"))
        };
        for (of, RunLimit { concurrency, rate }) in [("", self.queue), ("group.", self.group)] {
            let most = CONCURRENCY_LIMIT_MAX;
            if let Some(given) = concurrency.filter(|given| !(1..=most).contains(given)) {
                return Err(refused(&format!("{of}concurrency"), most.into(), given.into()));
            }
            let Some(Rate { limit, per_ms, .. }) = rate else { continue };
            if !(1..=LIMITER_LIMIT_MAX).contains(&limit) {
                let most = LIMITER_LIMIT_MAX.into();
                return Err(refused(&format!("{of}rate.limit"), most, limit.into()));
            }
            if !(1..=DURATION_MS_MAX).contains(&per_ms) {
                return Err(refused(&format!("{of}rate.per, in ms,"), DURATION_MS_MAX, per_ms));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_groups_are_read_as_they_were_made_and_lie_in_the_range_of_their_queue() {
        for queue in ["mail", "m", "a:b", "12:x"] {
            let (from, to) = groups_range(queue);
            for group in ["ada", "\u{10ffff}", "1:2", "é"] {
                let name = queue_of_group(queue, group);
                assert_eq!(group_of_queue(&name), Some((queue, group)));
                assert_eq!(queue_of_callers(&name), queue);
                assert!(from < name && name < to, "{name:?}");
                for name in [&*name, &turns_queue(queue)] {
                    assert!(GROUP_QUEUES.0 < name && name < GROUP_QUEUES.1, "{name:?}");
                }
            }
            let other = queue_of_group(&format!("{queue}x"), "ada");
            assert!(!(from < other && other < to));
        }
        for name in ["mail", "\u{1}group:", "\u{1}group:9:x\u{1}g", "\u{1}group turns:mail"] {
            assert_eq!(group_of_queue(name), None, "{name:?}");
        }
    }

    #[test]
    fn rules_have_bounds() {
        let rule = |concurrency, limit, per_ms| QueueRule {
            group: RunLimit {
                concurrency,
                rate: Some(Rate { algorithm: LimitAlgorithm::Fixed, limit, per_ms }),
            },
            ..QueueRule::default()
        };
        assert!(rule(Some(1), 1, 1).check().is_ok());
        assert!(
            rule(Some(CONCURRENCY_LIMIT_MAX), LIMITER_LIMIT_MAX, DURATION_MS_MAX).check().is_ok()
        );
        for (bad, named) in [
            (rule(Some(0), 1, 1), "group.concurrency must be from 1"),
            (rule(Some(CONCURRENCY_LIMIT_MAX + 1), 1, 1), "group.concurrency"),
            (rule(None, 0, 1), "group.rate.limit must be from 1"),
            (rule(None, 1, 0), "group.rate.per"),
            (rule(None, 1, DURATION_MS_MAX + 1), "received"),
        ] {
            let error = bad.check().unwrap_err();
            assert!(error.message().contains(named), "{}", error.message());
        }
        assert!(
            check_group("ada").is_ok() && check_group(&"x".repeat(MESSAGE_GROUP_BYTES_MAX)).is_ok()
        );
        for bad in ["", "a\nb", "\u{1}", &"x".repeat(MESSAGE_GROUP_BYTES_MAX + 1)] {
            assert!(check_group(bad).is_err(), "{bad:?}");
        }
    }
}
