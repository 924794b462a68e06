//! The messages of a segment of the replication log (docs/format.md §6).
//!
//! Each has its commit, its number and, unless it is gone, everything but its lock.

use super::Malformed;
use super::fields::{Fields, put_bytes, put_number};
use crate::model::{KeptMessage, KeptState, Key, LoggedMessage, Reason};

const GONE: u8 = 0;
const WAITING: u8 = 1;
const DEAD: u8 = 2;

/// Which of the optional parts a message has.
const FIRST: u8 = 1;
const LAST: u8 = 2;
const DEDUPLICATED: u8 = 4;
const RETENTION: u8 = 8;
const PURGE: u8 = 16;

/// Appends messages of commits from `first` on, in the order of the commits.
pub(super) fn put(out: &mut Vec<u8>, first: u64, messages: &[LoggedMessage]) {
    let mut version = first;
    for message in messages {
        put_number(out, message.version - version);
        version = message.version;
        put_number(out, message.id.cast_unsigned());
        match &message.kept {
            None => out.push(GONE),
            Some(kept) => put_kept(out, kept),
        }
    }
}

fn put_kept(out: &mut Vec<u8>, kept: &KeptMessage) {
    let (state, purge_ms) = match &kept.state {
        KeptState::Waiting { .. } => (WAITING, None),
        KeptState::Dead { purge_ms, .. } => (DEAD, *purge_ms),
    };
    let times = [
        (FIRST, kept.first_ms),
        (LAST, kept.last_ms),
        (RETENTION, kept.dead_retention_ms),
        (PURGE, purge_ms),
    ];
    let has = times.iter().filter(|(_, time)| time.is_some()).map(|(bit, _)| *bit).sum::<u8>();
    let key = kept.deduplication_key.as_deref();
    out.extend_from_slice(&[state, has | if key.is_some() { DEDUPLICATED } else { 0 }]);
    out.push(kept.priority);
    put_bytes(out, kept.queue.as_bytes());
    put_number(out, kept.attempts.into());
    out.extend_from_slice(&kept.enqueued_ms.to_le_bytes());
    for (_, time) in times {
        out.extend(time.iter().flat_map(|time| time.to_le_bytes()));
    }
    if let Some(key) = key {
        put_bytes(out, key.as_bytes());
    }
    put_number(out, kept.backoff_ms.len() as u64);
    for wait_ms in &kept.backoff_ms {
        put_number(out, (*wait_ms).into());
    }
    put_number(out, kept.keys_if_undelivered.len() as u64);
    for key in &kept.keys_if_undelivered {
        put_bytes(out, key.as_bytes());
    }
    put_bytes(out, &kept.value);
    match &kept.state {
        KeptState::Waiting { due_ms } => out.extend_from_slice(&due_ms.to_le_bytes()),
        KeptState::Dead { died_ms, reason, .. } => {
            out.extend_from_slice(&died_ms.to_le_bytes());
            put_bytes(out, reason.name().as_bytes());
            put_bytes(out, reason.message().as_bytes());
        }
    }
}

/// Reads all messages that are left.
pub(super) fn read_all(first: u64, rest: &mut Fields<'_>) -> Result<Vec<LoggedMessage>, Malformed> {
    let (mut version, mut messages) = (first, Vec::new());
    while !rest.is_at_end() {
        let ahead = rest.number()?;
        version = match version.checked_add(ahead) {
            Some(version) => version,
            None => return rest.fault("a version that is too large"),
        };
        let id = rest.number()?.cast_signed();
        let kept = match rest.byte()? {
            GONE => None,
            state @ (WAITING | DEAD) => Some(kept_in(rest, state == DEAD)?),
            _ => return rest.fault("an unknown state of a message"),
        };
        messages.push(LoggedMessage { version, id, kept });
    }
    Ok(messages)
}

fn kept_in(rest: &mut Fields<'_>, is_dead: bool) -> Result<KeptMessage, Malformed> {
    let has = rest.byte()?;
    let priority = rest.byte()?;
    let queue = text(rest)?;
    let attempts = small(rest)?;
    let enqueued_ms = rest.time()?;
    let mut time = |bit: u8| (has & bit != 0).then(|| rest.time()).transpose();
    let first_ms = time(FIRST)?;
    let last_ms = time(LAST)?;
    let dead_retention_ms = time(RETENTION)?;
    let purge_ms = time(PURGE)?;
    let deduplication_key = (has & DEDUPLICATED != 0).then(|| text(rest)).transpose()?;
    let backoff_ms = list(rest, small)?;
    let keys_if_undelivered = list(rest, |rest| Ok(Key::from_encoded(rest.slice()?.to_vec())))?;
    let value = rest.slice()?.to_vec();
    let at_ms = rest.time()?;
    let state = match is_dead {
        false => KeptState::Waiting { due_ms: at_ms },
        true => {
            let (name, message) = (text(rest)?, text(rest)?);
            KeptState::Dead { died_ms: at_ms, reason: Reason::new(&name, &message), purge_ms }
        }
    };
    Ok(KeptMessage {
        queue,
        priority,
        attempts,
        enqueued_ms,
        first_ms,
        last_ms,
        deduplication_key,
        dead_retention_ms,
        backoff_ms,
        keys_if_undelivered,
        value,
        state,
    })
}

fn text(rest: &mut Fields<'_>) -> Result<String, Malformed> {
    match str::from_utf8(rest.slice()?) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => rest.fault("a text that is not UTF-8"),
    }
}

fn small(rest: &mut Fields<'_>) -> Result<u32, Malformed> {
    let number = rest.number()?;
    u32::try_from(number).or_else(|_| rest.fault("a number that is too large"))
}

/// A list behind its length. The length alone reserves no memory.
fn list<'a, T>(
    rest: &mut Fields<'a>,
    mut next: impl FnMut(&mut Fields<'a>) -> Result<T, Malformed>,
) -> Result<Vec<T>, Malformed> {
    let count = rest.length()?;
    let mut found = Vec::new();
    for _ in 0..count {
        found.push(next(rest)?);
    }
    Ok(found)
}
