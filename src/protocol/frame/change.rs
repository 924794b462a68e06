//! The records of mutations that Deno KV does not have: calculations, appends, expiries; and of
//! placeholders.

use super::reader::Reader;
use crate::codec::{Malformed, cbor, uuid};
use crate::model::{
    Arith, Bounds, Calculation, EncodedValue, Encoding, Mutation, Numeric, Operand, Patch, Target,
    WriteParts,
};
use crate::protocol::numbers::{append, calculate, set_expiry};

pub(super) fn calculate(
    reader: &mut Reader<'_>,
    relative: bool,
    value_bytes_max: usize,
) -> Result<Mutation, Malformed> {
    let op = match reader.u8()? {
        0 => Arith::Sum,
        1 => Arith::Min,
        2 => Arith::Max,
        _ => return Err(reader.refused("an unknown calculation")),
    };
    let flags =
        reader.flags(calculate::MIN | calculate::MAX | calculate::CLAMP | calculate::EXPIRES)?;
    let expiry = reader.expiry(flags & calculate::EXPIRES != 0, relative)?;
    let key = reader.key()?;
    let operand = reader.value()?;
    let operand = match (operand.as_le64(), numeric(&operand)) {
        (Some(n), _) => Operand::U64(n),
        (None, Some(Numeric::Number(n))) => Operand::Number(n),
        (None, Some(Numeric::BigInt(n))) => Operand::BigInt(n),
        (None, None) => return Err(reader.refused("an operand that is no number")),
    };
    let mut bound = |flag| {
        reader.optional(flags & flag != 0, |reader| {
            numeric(&reader.value()?).ok_or_else(|| reader.refused("a bound that is no number"))
        })
    };
    let (min, max) = (bound(calculate::MIN)?, bound(calculate::MAX)?);
    let bounds = (flags & !calculate::EXPIRES != 0)
        .then(|| Box::new(Bounds { min, max, clamp: flags & calculate::CLAMP != 0 }));
    let calculation = Calculation { op, operand, bounds, value_bytes_max };
    Ok(Mutation::Calculate { key, calculation, expiry })
}

/// Decodes a finite number or a bigint.
fn numeric(value: &EncodedValue) -> Option<Numeric> {
    let number = (value.encoding == Encoding::Cbor).then(|| cbor::number_of(&value.bytes))??;
    (!matches!(number, Numeric::Number(n) if !n.is_finite())).then_some(number)
}

pub(super) fn append(
    reader: &mut Reader<'_>,
    relative: bool,
    value_bytes_max: usize,
) -> Result<Mutation, Malformed> {
    let flags = reader.flags(append::FRONT | append::EXPIRES)?;
    let expiry = reader.expiry(flags & append::EXPIRES != 0, relative)?;
    let (key, items) = (reader.key()?, reader.sized()?.to_vec());
    Ok(Mutation::Append { key, items, front: flags & append::FRONT != 0, value_bytes_max, expiry })
}

pub(super) fn set_expiry(reader: &mut Reader<'_>, relative: bool) -> Result<Mutation, Malformed> {
    let flags = reader.flags(set_expiry::EXPIRES | set_expiry::REQUIRED)?;
    let expiry = reader.expiry(flags & set_expiry::EXPIRES != 0, relative)?;
    Ok(Mutation::SetExpiry {
        key: reader.key()?,
        expiry,
        required: flags & set_expiry::REQUIRED != 0,
    })
}

/// Parses the placeholders of the preceding record: a count, then for each whether it is in the key
/// (0), the value (1) or the message (2), its offset, and its number. Each counts against the
/// records `left`.
pub(super) fn patches(
    reader: &mut Reader<'_>,
    left: &mut usize,
    parts: &mut WriteParts,
) -> Result<(), Malformed> {
    for _ in 0..reader.u32()? {
        *left = left.checked_sub(1).ok_or_else(|| reader.refused("too many records"))?;
        let place = reader.u8()?;
        let offset = reader.u32()? as usize;
        let placeholder = reader.u64()?;
        let (mutation, message) = (parts.mutations.len(), parts.messages.len());
        let (target, bytes) = match place {
            0 => (
                Target::Key(mutation.wrapping_sub(1)),
                parts.mutations.last().map(|mutation| mutation.key().as_bytes()),
            ),
            1 => (
                Target::Value(mutation.wrapping_sub(1)),
                parts.mutations.last_mut().and_then(Mutation::value_mut).map(|v| v.as_slice()),
            ),
            2 => (
                Target::Message(message.wrapping_sub(1)),
                parts.messages.last().map(|message| message.value.as_slice()),
            ),
            _ => return Err(reader.refused("an unknown place of a placeholder")),
        };
        let room = bytes
            .and_then(|bytes| bytes.get(offset..))
            .and_then(|rest| rest.get(..uuid::TEXT_BYTES));
        if room != Some(&uuid::NIL_TEXT[..]) {
            return Err(reader.refused("a placeholder without its room"));
        }
        parts.patches.push(Patch { target, offset, placeholder });
    }
    Ok(())
}
