//! What a write of a stranger is held to beyond its limits: that what it would leave is what others
//! can read. JavaScript of this process encodes keys and values itself, and need not be asked.

use crate::codec::{cbor, key};
use crate::model::{
    AtomicWrite, DEAD_RETENTION_MS_MAX, Encoding, Error, Key, Limits, Message, Mutation, Patch,
    Result, Target,
};

/// The write, if everything in it is well formed.
///
/// # Errors
/// `Invalid`, saying what is not.
pub fn vet(write: AtomicWrite, limits: &Limits, now_ms: i64) -> Result<AtomicWrite> {
    let (checks, mutations, messages) = write.parts();
    checks.iter().try_for_each(|check| well_formed(&check.key))?;
    mutations.iter().try_for_each(mutation)?;
    messages.iter().try_for_each(|found| message(found, limits, now_ms))?;
    for Patch { target, offset, .. } in write.patches() {
        // In a value the room stands in text already, or the value would not be what it is.
        let place = match target {
            Target::Key(at) => mutations.get(*at).map(|mutation| mutation.key().as_bytes()),
            Target::Value(at) => {
                let value = mutations.get(*at).and_then(Mutation::value);
                text_in_value(value.unwrap_or_default(), *offset)?;
                continue;
            }
            Target::Message(at) => {
                let value = messages.get(*at).map(|message| message.value.as_slice());
                text_in_value(value.unwrap_or_default(), *offset)?;
                continue;
            }
        };
        if !key::is_text_at(place.unwrap_or_default(), *offset) {
            return Err(Error::invalid("A UUID of a key must be in text"));
        }
    }
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
    match mutation {
        Mutation::Set { value: found, .. } => match found.encoding {
            Encoding::Cbor => value(&found.bytes),
            Encoding::V8 => Err(Error::invalid("A value must not be in V8's format")),
            Encoding::Le64 | Encoding::Bytes => Ok(()),
        },
        Mutation::Append { items, .. } => value(items),
        // Calculated with, and what comes out is written anew.
        _ => Ok(()),
    }
}

fn message(message: &Message, limits: &Limits, now_ms: i64) -> Result<()> {
    message.keys_if_undelivered.iter().try_for_each(well_formed)?;
    let max = limits.delay_ms_max;
    if message.due_ms > now_ms.saturating_add(i64::try_from(max).unwrap_or(i64::MAX)) {
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
    value(&message.value)
}

/// Whether a value stays one when the 36 characters at `offset` become others. Two that differ in
/// every digit show it: where a digit were anything but a character, one of them would be refused.
fn text_in_value(bytes: &[u8], offset: usize) -> Result<()> {
    for digit in [b'0', b'8', b'f'] {
        let mut changed = bytes.to_vec();
        let room = changed.get_mut(offset..).unwrap_or_default();
        for place in room.iter_mut().take(crate::codec::uuid::TEXT_BYTES) {
            if *place != b'-' {
                *place = digit;
            }
        }
        value(&changed)?;
    }
    Ok(())
}
