//! The record of a write's id, which a client puts in front of the records that it repeats.

use super::reader::Reader;
use crate::codec::Malformed;
use crate::model::{Attempt, WriteId};

pub(super) const WRITE_ID: u8 = 0x10;

/// Size of the record.
pub const WRITE_ID_RECORD_BYTES: usize = 1 + WriteId::BYTES;

/// Appends the record.
pub fn push_write_id(out: &mut Vec<u8>, id: WriteId) {
    out.push(WRITE_ID);
    out.extend_from_slice(id.as_bytes());
}

/// Parses the record behind its first byte. `before`: what the write has already.
pub(super) fn parse_write_id(
    reader: &mut Reader<'_>,
    before: Option<Attempt>,
) -> Result<Attempt, Malformed> {
    let bytes = reader.take(WriteId::BYTES)?;
    match <[u8; WriteId::BYTES]>::try_from(bytes) {
        Ok(bytes) if before.is_none() => Ok(Attempt::first(WriteId::from_bytes(bytes))),
        Ok(_) | Err(_) => Err(reader.refused("a write with two ids")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{frame_of, no_part_is_parsed, parse_writes};
    use super::*;
    use crate::model::Limits;

    #[test]
    fn a_write_has_the_id_in_front_of_it() {
        let id = WriteId::new(5, [1, 2]);
        let frame = frame_of(|out| {
            push_write_id(out, id);
            out.extend_from_slice(&[3, 1, 0, 0, 0, 0x14, 0, 0]);
        });
        assert_eq!(frame.len(), WRITE_ID_RECORD_BYTES + 8);
        let parse = |bytes: &[u8]| parse_writes(bytes, 2, &Limits::default());
        let ids: Vec<_> = parse(&frame).unwrap().into_iter().map(|w| w.unwrap().id()).collect();
        assert_eq!(ids, [Some(id), None]);
        no_part_is_parsed(&frame, parse);
        let twice = frame_of(|out| (0..2).for_each(|_| push_write_id(out, id)));
        assert!(parse(&[twice, vec![0, 0]].concat()).is_err());
    }
}
