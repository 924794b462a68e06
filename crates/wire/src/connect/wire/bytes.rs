//! Counts the fields of protobuf messages before they are decoded.
//!
//! An empty message takes two bytes on the wire and a hundred in memory, so the counts are checked
//! against the limits before anything is allocated.

use prost::Message;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use openkv_core::model::{Error, Result};

/// Visits the fields of a message whose type is bytes.
pub(super) fn each_field<'a>(
    mut bytes: &'a [u8],
    visit: &mut dyn FnMut(u32, &'a [u8]) -> Result<()>,
) -> Result<()> {
    while !bytes.is_empty() {
        let (tag, wire_type) = decode_key(&mut bytes).map_err(malformed)?;
        if wire_type == WireType::LengthDelimited {
            let len = decode_varint(&mut bytes).map_err(malformed)?;
            let parts = usize::try_from(len).ok().and_then(|len| bytes.split_at_checked(len));
            let (field, rest) =
                parts.ok_or_else(|| Error::invalid("Protobuf is invalid: buffer underflow"))?;
            bytes = rest;
            visit(tag, field)?;
        } else {
            skip_field(wire_type, tag, &mut bytes, DecodeContext::default()).map_err(malformed)?;
        }
    }
    Ok(())
}

/// Fails with `refusal` if a message has more than `max` fields of this number.
pub(super) fn at_most(
    bytes: &[u8],
    field: u32,
    max: usize,
    refusal: impl Fn() -> String,
) -> Result<()> {
    let mut count = 0;
    each_field(bytes, &mut |tag, _| {
        count += usize::from(tag == field);
        if count <= max { Ok(()) } else { Err(Error::invalid(refusal())) }
    })
}

/// Decodes a message whose fields were counted.
pub(super) fn decode<M: Message + Default>(bytes: &[u8]) -> Result<M> {
    M::decode(bytes).map_err(malformed)
}

fn malformed(error: prost::DecodeError) -> Error {
    Error::invalid(format!("Protobuf is invalid: {error}"))
}
