//! Validation of a write that comes over the network. Beyond the limits, every key and value in it
//! must be well formed, so that other clients can read what it leaves. JavaScript of this process
//! encodes keys and values itself; its writes are not validated.
//!
//! Invariant: every value that a mutation stores as it is is validated (`Mutation::stored_value`, whose match names
//! every variant).

use std::collections::{BTreeMap, BTreeSet};

use openkv_core::codec::uuid::TEXT_BYTES;
use openkv_core::codec::{cbor, key, message_context};
use openkv_core::model::{
    AtomicWrite, DEAD_RETENTION_MS_MAX, Encoding, Error, Key, Limits, Message, Mutation, Patch,
    Result, ScheduleChange, Target,
};

/// The write, if everything in it is well formed.
///
/// # Errors
/// `Invalid`, saying what is not.
pub fn validate_untrusted(write: AtomicWrite, limits: &Limits, now_ms: i64) -> Result<AtomicWrite> {
    let (checks, mutations, messages) = write.parts();
    checks.iter().try_for_each(|check| well_formed(&check.key))?;
    mutations.iter().try_for_each(mutation)?;
    messages.iter().try_for_each(|found| message(found, limits, now_ms))?;
    patches(&write)?;
    Ok(write)
}

fn well_formed(key: &Key) -> Result<()> {
    key::validate(key.as_bytes()).map_err(|error| Error::invalid(error.what()))
}

fn value(bytes: &[u8]) -> Result<()> {
    let read = cbor::decode(bytes);
    read.map(drop).map_err(|error| Error::invalid(format!("A value cannot be read: {error}")))
}

fn mutation(mutation: &Mutation) -> Result<()> {
    well_formed(mutation.key())?;
    match mutation.stored_value() {
        Some((Encoding::Cbor, bytes)) => value(bytes),
        Some((Encoding::V8, _)) => Err(Error::invalid("A value must not be in V8's format")),
        Some((Encoding::Le64 | Encoding::Bytes, _)) | None => Ok(()),
    }
}

fn message(message: &Message, limits: &Limits, now_ms: i64) -> Result<()> {
    // The removal of a schedule has no value.
    if let Some(ScheduleChange::Remove(_)) = message.schedule.as_deref() {
        return Ok(());
    }
    message.keys_if_undelivered.iter().try_for_each(well_formed)?;
    let max = limits.delay_ms_max;
    if message.due.at_ms(now_ms) > now_ms.saturating_add(i64::try_from(max).unwrap_or(i64::MAX)) {
        return Err(Error::invalid(format!(
            "delay too large: a message is due in at most {max} ms"
        )));
    }
    let retention = message.dead_retention_ms.unwrap_or(0);
    if u64::try_from(retention).is_ok_and(|ms| ms > DEAD_RETENTION_MS_MAX) {
        return Err(Error::invalid(format!(
            "deadRetention too large (max {DEAD_RETENTION_MS_MAX} ms): {retention} ms given"
        )));
    }
    value(message_context::value_of(&message.value))
}

/// Whether all places of UUIDs are in text. Each key and value is walked once, however many it has.
fn patches(write: &AtomicWrite) -> Result<()> {
    let (_, mutations, messages) = write.parts();
    let mut places: BTreeMap<Target, BTreeSet<usize>> = BTreeMap::new();
    for Patch { target, offset, .. } in write.patches() {
        places.entry(*target).or_default().insert(*offset);
    }
    for (target, offsets) in places {
        let are_good = match target {
            Target::Key(at) => {
                let key = mutations.get(at).map(Mutation::key);
                key.is_some_and(|key| offsets.iter().all(|o| key::is_text_at(key.as_bytes(), *o)))
            }
            Target::Value(at) => match mutations.get(at).and_then(Mutation::stored_value) {
                Some((Encoding::Cbor, bytes)) => are_in_text(bytes, &offsets),
                Some((Encoding::V8 | Encoding::Le64 | Encoding::Bytes, _)) | None => false,
            },
            Target::Message(at) => {
                messages.get(at).is_some_and(|message| are_in_message(&message.value, &offsets))
            }
        };
        if !are_good {
            return Err(Error::invalid("A UUID of a key or value must be in text"));
        }
    }
    Ok(())
}

/// As [`are_in_text`], with offsets that count the context in front of the value.
fn are_in_message(message: &[u8], offsets: &BTreeSet<usize>) -> bool {
    let value = message_context::value_of(message);
    let context_len = message.len() - value.len();
    let offsets = offsets.iter().map(|offset| offset.checked_sub(context_len));
    offsets.collect::<Option<_>>().is_some_and(|offsets| are_in_text(value, &offsets))
}

/// Whether at each offset 36 characters of a string of a value begin. Names of the format have none
/// that a UUID could stand in, so the value stays one.
fn are_in_text(value: &[u8], offsets: &BTreeSet<usize>) -> bool {
    let mut offsets = offsets.iter().copied().peekable();
    let walked = cbor::texts(value, &mut |text| {
        let holds = |at: &usize| text.contains(at) && text.end - at >= TEXT_BYTES;
        while offsets.next_if(holds).is_some() {}
    });
    walked.is_ok() && offsets.peek().is_none()
}
