//! Frames between a server and the follower of its replication log.

use super::reader::{Reader, push_sized};
use super::value_index::{push_value_spec, value_spec};
use openkv_core::codec::Malformed;
use openkv_core::model::{
    CopiedEntry, CopiedIndexes, EncodedValue, Followed, IndexSpec, Key, Origin, Segment, Tokenizer,
    ValueIndexSpec,
};

/// Flag of an entry with an expiry.
const EXPIRES: u8 = 1;

fn push_origin(out: &mut Vec<u8>, origin: Origin) {
    out.extend_from_slice(&origin.database);
    out.extend_from_slice(&origin.incarnation.to_le_bytes());
}

fn origin(reader: &mut Reader<'_>) -> Result<Origin, Malformed> {
    Ok(Origin { database: reader.array()?, incarnation: reader.u64()? })
}

/// Appends a place in a log: 16 bytes and u64 origin, u64 version, i64 time, u32 prefixes, each sized.
pub fn push_followed(out: &mut Vec<u8>, followed: &Followed) {
    let Followed { origin, version, at_ms, prefixes } = followed;
    push_origin(out, *origin);
    out.extend_from_slice(&version.to_le_bytes());
    out.extend_from_slice(&at_ms.to_le_bytes());
    push_keys(out, prefixes);
}

/// Appends u32 count and sized keys.
fn push_keys(out: &mut Vec<u8>, keys: &[Key]) {
    out.extend_from_slice(&(keys.len() as u32).to_le_bytes());
    for key in keys {
        push_sized(out, key.as_bytes());
    }
}

fn followed(reader: &mut Reader<'_>) -> Result<Followed, Malformed> {
    Ok(Followed {
        origin: origin(reader)?,
        version: reader.u64()?,
        at_ms: reader.i64()?,
        prefixes: reader.counted(4, Reader::key)?,
    })
}

/// Parses a place in a log.
pub fn parse_followed(bytes: &[u8]) -> Result<Followed, Malformed> {
    Reader::whole(bytes, followed)
}

/// The request of a follower.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Follow {
    /// What it has; `None`: nothing.
    pub from: Option<Followed>,
    /// The beginnings of the keys that it wants; empty: all.
    pub prefixes: Vec<Key>,
    /// How often it wants to hear the position, in ms.
    pub beat_ms: u32,
    /// Whether it wants the definitions of value indexes too.
    pub wants_values: bool,
}

/// Flags of a request.
const HAS_PLACE: u8 = 1;
const WANTS_VALUES: u8 = 2;

/// Appends a request: u32 ms, u32 prefixes, each sized, u8 flags (1 = a place, 2 = value indexes too), [the place].
pub fn push_follow(out: &mut Vec<u8>, follow: &Follow) {
    out.extend_from_slice(&follow.beat_ms.to_le_bytes());
    push_keys(out, &follow.prefixes);
    let place = if follow.from.is_some() { HAS_PLACE } else { 0 };
    out.push(place | if follow.wants_values { WANTS_VALUES } else { 0 });
    if let Some(from) = &follow.from {
        push_followed(out, from);
    }
}

/// Parses a request.
pub fn parse_follow(bytes: &[u8]) -> Result<Follow, Malformed> {
    Reader::whole(bytes, |reader| {
        let beat_ms = reader.u32()?;
        let prefixes = reader.counted(4, Reader::key)?;
        let flags = reader.flags(HAS_PLACE | WANTS_VALUES)?;
        let from = reader.optional(flags & HAS_PLACE != 0, followed)?;
        Ok(Follow { from, prefixes, beat_ms, wants_values: flags & WANTS_VALUES != 0 })
    })
}

/// Appends an entry: u8 flags (1 = expires), u64 version, sized key, u8 encoding, sized value, [i64 expiry].
pub fn push_entry(
    out: &mut Vec<u8>,
    (key, version): (&[u8], u64),
    (encoding, value): (u8, &[u8]),
    expire_at_ms: Option<i64>,
) {
    out.push(if expire_at_ms.is_some() { EXPIRES } else { 0 });
    out.extend_from_slice(&version.to_le_bytes());
    push_sized(out, key);
    out.push(encoding);
    push_sized(out, value);
    if let Some(end) = expire_at_ms {
        out.extend_from_slice(&end.to_le_bytes());
    }
}

/// Parses entries up to the end.
pub fn parse_entries(bytes: &[u8]) -> Result<Vec<CopiedEntry>, Malformed> {
    let mut reader = Reader::new(bytes);
    let mut entries = Vec::new();
    while !reader.rest().is_empty() {
        let flags = reader.flags(EXPIRES)?;
        let (version, key) = (reader.u64()?, reader.key()?);
        let encoding = reader.encoding()?;
        let value = EncodedValue { encoding, bytes: reader.sized()?.to_vec() };
        let expire_at_ms = reader.optional(flags == EXPIRES, Reader::i64)?;
        entries.push(CopiedEntry { key, version, value, expire_at_ms });
    }
    Ok(entries)
}

/// Appends u32 count and segments: u64 first, u64 last, i64 time, sized changes.
pub fn push_segments(out: &mut Vec<u8>, segments: &[Segment]) {
    out.extend_from_slice(&(segments.len() as u32).to_le_bytes());
    for Segment { first, last, at_ms, changes } in segments {
        out.extend_from_slice(&first.to_le_bytes());
        out.extend_from_slice(&last.to_le_bytes());
        out.extend_from_slice(&at_ms.to_le_bytes());
        push_sized(out, changes);
    }
}

/// Parses segments at the end of a message.
pub fn parse_segments(bytes: &[u8]) -> Result<Vec<Segment>, Malformed> {
    Reader::whole(bytes, |reader| {
        reader.counted(28, |reader| {
            let (first, last, at_ms) = (reader.u64()?, reader.u64()?, reader.i64()?);
            Ok(Segment { first, last, at_ms, changes: reader.sized()?.to_vec() })
        })
    })
}

/// Appends u32 count and definitions of indexes: sized name, prefix, tokenizer and prefix lengths, u32
/// count and sized fields.
pub fn push_specs(out: &mut Vec<u8>, specs: &[IndexSpec]) {
    out.extend_from_slice(&(specs.len() as u32).to_le_bytes());
    for IndexSpec { name, prefix, fields, tokenizer, prefix_lengths } in specs {
        push_sized(out, name.as_bytes());
        push_sized(out, prefix.as_bytes());
        push_sized(out, tokenizer.name().as_bytes());
        push_sized(out, prefix_lengths);
        out.extend_from_slice(&(fields.len() as u32).to_le_bytes());
        for field in fields {
            push_sized(out, field.as_bytes());
        }
    }
}

/// Parses definitions of indexes.
pub fn parse_specs(bytes: &[u8]) -> Result<Vec<IndexSpec>, Malformed> {
    Reader::whole(bytes, specs)
}

fn specs(reader: &mut Reader<'_>) -> Result<Vec<IndexSpec>, Malformed> {
    reader.counted(20, |reader| {
        let (name, prefix) = (reader.string()?, reader.key()?);
        let tokenizer = Tokenizer::from_name(reader.text()?)
            .ok_or_else(|| reader.refused("an unknown tokenizer"))?;
        let prefix_lengths = reader.sized()?.to_vec();
        let fields = reader.counted(4, Reader::string)?;
        Ok(IndexSpec { name, prefix, fields, tokenizer, prefix_lengths })
    })
}

/// Appends the definitions of both types of indexes: those of [`push_specs`], then u32 count and those of value
/// indexes: u8 flags, sized name, sized prefix, u32 count and paths.
pub fn push_copied_indexes(out: &mut Vec<u8>, texts: &[IndexSpec], values: &[ValueIndexSpec]) {
    push_specs(out, texts);
    out.extend_from_slice(&(values.len() as u32).to_le_bytes());
    for spec in values {
        push_value_spec(out, spec);
    }
}

/// Parses the definitions of both types of indexes.
pub fn parse_copied_indexes(bytes: &[u8]) -> Result<CopiedIndexes, Malformed> {
    Reader::whole(bytes, |reader| {
        let texts = specs(reader)?;
        let values = reader.counted(13, value_spec)?;
        Ok(CopiedIndexes { texts, values: Some(values) })
    })
}

#[cfg(test)]
mod tests {
    use super::super::{frame_of, no_part_is_parsed};
    use super::*;
    use openkv_core::model::Encoding;

    fn key(byte: u8) -> Key {
        Key::from_encoded(vec![byte])
    }

    fn place() -> Followed {
        let origin = Origin { database: *b"sixteen bytes...", incarnation: 7 };
        Followed { origin, version: 9, at_ms: -1, prefixes: vec![key(1), key(2)] }
    }

    #[test]
    fn requests_and_places_round_trip() {
        for (from, wants_values) in [(None, false), (Some(place()), false), (None, true)] {
            let follow = Follow { from, prefixes: vec![key(3)], beat_ms: 2000, wants_values };
            let bytes = frame_of(|out| push_follow(out, &follow));
            assert_eq!(parse_follow(&bytes), Ok(follow));
            no_part_is_parsed(&bytes, parse_follow);
        }
        let bytes = frame_of(|out| push_followed(out, &place()));
        assert_eq!(parse_followed(&bytes), Ok(place()));
        no_part_is_parsed(&bytes, parse_followed);
    }

    #[test]
    fn entries_round_trip_and_cut_ones_are_rejected() {
        let entry = |version, expire_at_ms| {
            let value = EncodedValue { encoding: Encoding::Bytes, bytes: vec![1, 2, 3] };
            CopiedEntry { key: key(version as u8), version, value, expire_at_ms }
        };
        let entries = vec![entry(1, None), entry(2, Some(i64::MAX)), entry(3, None)];
        let mut bytes = Vec::new();
        let mut ends = vec![0];
        for entry in &entries {
            let value = (entry.value.encoding.id(), entry.value.bytes.as_slice());
            push_entry(
                &mut bytes,
                (entry.key.as_bytes(), entry.version),
                value,
                entry.expire_at_ms,
            );
            ends.push(bytes.len());
        }
        assert_eq!(parse_entries(&bytes), Ok(entries));
        for end in 0..bytes.len() {
            assert_eq!(parse_entries(&bytes[..end]).is_ok(), ends.contains(&end), "{end}");
        }
    }

    #[test]
    fn segments_and_definitions_round_trip() {
        let segment = Segment { first: 3, last: 5, at_ms: 7, changes: vec![1, 9] };
        let segments = vec![segment.clone(), Segment { first: 6, last: 6, ..segment }];
        let bytes = frame_of(|out| push_segments(out, &segments));
        assert_eq!(parse_segments(&bytes), Ok(segments));
        no_part_is_parsed(&bytes, parse_segments);
        let spec = IndexSpec {
            name: "a".into(),
            prefix: key(1),
            fields: vec!["b.c".into(), "d".into()],
            tokenizer: Tokenizer::Porter,
            prefix_lengths: vec![2, 3],
        };
        let bytes = frame_of(|out| push_specs(out, std::slice::from_ref(&spec)));
        assert_eq!(parse_specs(&bytes), Ok(vec![spec]));
        no_part_is_parsed(&bytes, parse_specs);
        assert!(parse_segments(&[0xff; 4]).is_err(), "a count beyond the message");
    }
}
