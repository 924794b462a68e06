//! Errors for writes over a limit: the text of Deno KV, then the limit, the given value, the key,
//! and the option that raises the limit.

use super::{
    DEDUPLICATION_KEY_BYTES_MAX, Error, Key, Limits, Message, PRIORITY_MAX, QUEUE_NAME_BYTES_MAX,
    Result, is_own_queue,
};

/// A limit.
struct Limit {
    /// Deno's text.
    words: &'static str,
    /// The name of the option.
    name: &'static str,
    max: usize,
    /// The unit of the numbers: `" bytes"`, or empty.
    unit: &'static str,
}

impl Limit {
    fn hold(&self, given: usize, key: &dyn Fn() -> String) -> Result<()> {
        let Self { words, name, max, unit } = self;
        if given <= *max {
            return Ok(());
        }
        let key = key();
        let key = if key.is_empty() { key } else { format!(" for key {key}") };
        Err(Error::too_large(format!(
            "{words} (max {max}{unit}): {given}{unit} given{key}; \
             raise limits.{name} of openKv to allow it"
        )))
    }
}

fn no_key() -> String {
    String::new()
}

pub(super) fn checks(given: usize, limits: &Limits) -> Result<()> {
    let max = limits.checks_max;
    Limit { words: "Too many checks", name: "checksMax", max, unit: "" }.hold(given, &no_key)
}

pub(super) fn checked_rows(given: usize, limits: &Limits) -> Result<()> {
    let words = "Too many entries in checked ranges";
    let max = limits.checked_rows_max;
    Limit { words, name: "checkedRowsMax", max, unit: "" }.hold(given, &no_key)
}

pub(super) fn mutations(given: usize, limits: &Limits) -> Result<()> {
    let max = limits.mutations_max;
    Limit { words: "Too many mutations", name: "mutationsMax", max, unit: "" }.hold(given, &no_key)
}

pub(super) fn key(
    key: &Key,
    given: usize,
    limits: &Limits,
    tell: &dyn Fn(&Key) -> String,
) -> Result<()> {
    if key.is_empty() {
        return Err(Error::invalid("key cannot be empty"));
    }
    let max = limits.key_bytes_max;
    let limit =
        Limit { words: "Key too large for write", name: "keyBytesMax", max, unit: " bytes" };
    limit.hold(given, &|| tell(key))
}

/// Checks the size of a value; `key` formats its key for the message.
pub(crate) fn value(given: usize, max: usize, key: &dyn Fn() -> String) -> Result<()> {
    let limit = Limit { words: "Value too large", name: "valueBytesMax", max, unit: " bytes" };
    limit.hold(given, key)
}

pub(super) fn message(message: &Message, limits: &Limits) -> Result<()> {
    let words = "enqueue payload too large";
    let max = limits.message_bytes_max;
    let limit = Limit { words, name: "messageBytesMax", max, unit: " bytes" };
    limit.hold(message.value.len(), &no_key)?;
    let intervals = message.backoff_ms.len();
    if intervals > limits.backoff_intervals_max {
        let max = limits.backoff_intervals_max;
        return Err(Error::too_large(format!(
            "Invalid backoffSchedule, max {max} intervals allowed: {intervals} given; \
             raise limits.backoffIntervalsMax of openKv to allow it"
        )));
    }
    let too_long = |ms: &u32| *ms as usize > limits.backoff_interval_ms_max;
    if let Some(at) = message.backoff_ms.iter().position(too_long) {
        let max = limits.backoff_interval_ms_max;
        return Err(Error::invalid(format!(
            "Invalid backoffSchedule, interval at index {at} is invalid: at most {max} ms; \
             raise limits.backoffIntervalMsMax of openKv to allow it"
        )));
    }
    let max = limits.undelivered_keys_max;
    let words = "Too many keysIfUndelivered";
    let limit = Limit { words, name: "undeliveredKeysMax", max, unit: "" };
    limit.hold(message.keys_if_undelivered.len(), &no_key)?;
    named("queue: name too long", QUEUE_NAME_BYTES_MAX, " bytes", message.queue.len())?;
    if is_own_queue(&message.queue) {
        return Err(own_queue());
    }
    let key_len = message.deduplication_key.as_ref().map_or(0, String::len);
    named("deduplicationKey too long", DEDUPLICATION_KEY_BYTES_MAX, " bytes", key_len)?;
    if message.priority > PRIORITY_MAX {
        let given = message.priority;
        return Err(Error::invalid(format!(
            "priority too high (max {PRIORITY_MAX}): {given} given"
        )));
    }
    Ok(())
}

/// The error for the name of a queue that openkv keeps for itself.
pub fn own_queue() -> Error {
    Error::invalid("queue: a name must not begin with U+0001, as those of openkv's own queues do")
}

/// Checks a bound of named queues, which no option raises.
fn named(words: &str, max: usize, unit: &str, given: usize) -> Result<()> {
    if given <= max {
        return Ok(());
    }
    Err(Error::too_large(format!("{words} (max {max}{unit}): {given}{unit} given")))
}

pub(super) fn totals(bytes: usize, key_bytes: usize, limits: &Limits) -> Result<()> {
    let words = "Total mutation size too large";
    let max = limits.commit_bytes_max;
    Limit { words, name: "commitBytesMax", max, unit: " bytes" }.hold(bytes, &no_key)?;
    let words = "Total key size too large";
    let max = limits.commit_key_bytes_max;
    Limit { words, name: "commitKeyBytesMax", max, unit: " bytes" }.hold(key_bytes, &no_key)
}
