//! Frames of indexes and searches.

use super::reader::{Reader, push_sized};
use openkv_core::codec::Malformed;
use openkv_core::model::{
    Highlight, Hit, IndexChoice, IndexInfo, IndexRequest, IndexSpec, Search, Tokenizer,
};

/// Flags of a search.
const AFTER: u8 = 1;
const HIGHLIGHT: u8 = 2;
const WHERE: u8 = 4;

/// The caller has named no tokenizer.
const NO_TOKENIZER: u8 = 255;

/// Parses a request for an index, without checking its bounds.
pub fn parse_index(bytes: &[u8]) -> Result<IndexRequest, Malformed> {
    Reader::whole(bytes, |reader| {
        let replace = match reader.u8()? {
            0 => false,
            1 => true,
            _ => return Err(reader.refused("neither 0 nor 1")),
        };
        let (name, prefix) = (reader.string()?, reader.key()?);
        let number = reader.u8()?;
        let is_default = number == NO_TOKENIZER;
        let tokenizer = if is_default { Some(Tokenizer::Auto) } else { Tokenizer::from_id(number) };
        let tokenizer = tokenizer.ok_or_else(|| reader.refused("an unknown tokenizer"))?;
        let prefix_lengths = usize::from(reader.u8()?);
        let prefix_lengths = reader.take(prefix_lengths)?.to_vec();
        let count = reader.u16()?;
        let fields = reader.items(count, 4, Reader::string)?;
        let spec = IndexSpec { name, prefix, fields, tokenizer, prefix_lengths };
        Ok(IndexRequest { spec, is_default, replace })
    })
}

/// Parses the choice of an index: by its prefix (0) or its name (1).
pub fn parse_choice(bytes: &[u8]) -> Result<IndexChoice, Malformed> {
    Reader::whole(bytes, |reader| match reader.u8()? {
        0 => reader.key().map(IndexChoice::Prefix),
        1 => reader.string().map(IndexChoice::Name),
        _ => Err(reader.refused("an unknown way to name an index")),
    })
}

/// A search, with the options that the engine does not handle.
#[derive(Debug, PartialEq)]
pub struct SearchFrame {
    /// The part for the engine.
    pub search: Search,
    /// Maximum number of results.
    pub limit: usize,
    /// Number of results to skip.
    pub offset: usize,
    /// The filter, in CBOR.
    pub filter: Option<Vec<u8>>,
}

/// Parses a search.
pub fn parse_search(bytes: &[u8]) -> Result<SearchFrame, Malformed> {
    Reader::whole(bytes, |reader| {
        let flags = reader.u8()?;
        let (limit, offset) = (reader.u32()? as usize, reader.u32()? as usize);
        let after = reader.optional(flags & AFTER != 0, |reader| {
            Ok((f64::from_le_bytes(reader.array()?), reader.i64()?))
        })?;
        let (prefix, query) = (reader.key()?, reader.string()?);
        let highlight = reader.optional(flags & HIGHLIGHT != 0, |reader| {
            let terms = reader.u8()?;
            let (before, after) = (reader.string()?, reader.string()?);
            Ok(Highlight { before, after, ellipsis: reader.string()?, terms })
        })?;
        let filter = reader.optional(flags & WHERE != 0, Reader::sized)?.map(<[u8]>::to_vec);
        let search = Search { prefix, query, after, highlight };
        Ok(SearchFrame { search, limit, offset, filter })
    })
}

/// Appends indexes, after their number.
pub fn push_indexes(out: &mut Vec<u8>, indexes: &[IndexInfo]) {
    out.extend_from_slice(&(indexes.len() as u32).to_le_bytes());
    for IndexInfo { spec, building, scanned, documents } in indexes {
        push_sized(out, spec.name.as_bytes());
        push_sized(out, spec.prefix.as_bytes());
        push_sized(out, spec.tokenizer.name().as_bytes());
        push_sized(out, &spec.prefix_lengths);
        out.extend_from_slice(&(spec.fields.len() as u32).to_le_bytes());
        for field in &spec.fields {
            push_sized(out, field.as_bytes());
        }
        out.push(u8::from(*building));
        out.extend_from_slice(&(*scanned as f64).to_le_bytes());
        out.extend_from_slice(&(*documents as f64).to_le_bytes());
    }
}

/// The answer of a search under construction: its head, then the hits.
pub struct Hits {
    out: Vec<u8>,
    count: u32,
    last: (f64, i64),
}

/// Size of the head: u32 hits, u8 flags, f64 and i64 of the last hit.
const HEAD_BYTES: usize = 4 + 1 + 8 + 8;

impl Default for Hits {
    fn default() -> Self {
        Self { out: vec![0; HEAD_BYTES], count: 0, last: (0.0, 0) }
    }
}

impl Hits {
    /// The number of hits so far.
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// The number of bytes so far.
    pub fn bytes(&self) -> usize {
        self.out.len()
    }

    /// Appends a hit without snippets.
    pub fn push(&mut self, Hit { row, score, number }: &Hit<'_>) {
        self.count += 1;
        self.last = (*score, *number);
        push_sized(&mut self.out, row.key);
        self.out.extend_from_slice(&row.stamp.hex());
        self.out.push(row.encoding.id());
        push_sized(&mut self.out, row.value);
        self.out.extend_from_slice(&score.to_le_bytes());
        self.out.extend_from_slice(&0_u16.to_le_bytes());
    }

    /// Appends the snippets of the last hit.
    pub fn snippets(&mut self, snippets: &[(usize, String)]) {
        self.out.truncate(self.out.len() - 2);
        self.out.extend_from_slice(&(snippets.len() as u16).to_le_bytes());
        for (field, text) in snippets {
            self.out.extend_from_slice(&(*field as u16).to_le_bytes());
            push_sized(&mut self.out, text.as_bytes());
        }
    }

    /// The answer. `more`: further hits exist; `complete`: the index is not being built; `fields`:
    /// the names to which snippets refer.
    #[must_use]
    pub fn finish(mut self, more: bool, complete: bool, fields: &[String]) -> Vec<u8> {
        let head = [
            self.count.to_le_bytes().as_slice(),
            &[u8::from(more) | u8::from(complete) << 1],
            &self.last.0.to_le_bytes(),
            &self.last.1.to_le_bytes(),
        ]
        .concat();
        if let Some(place) = self.out.get_mut(..HEAD_BYTES) {
            place.copy_from_slice(&head);
        }
        self.out.extend_from_slice(&(fields.len() as u32).to_le_bytes());
        for field in fields {
            push_sized(&mut self.out, field.as_bytes());
        }
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::super::no_part_is_parsed;
    use super::*;
    use openkv_core::model::Key;

    #[test]
    fn requests_are_parsed_and_truncated_ones_are_rejected() {
        let index = [
            &[1, 1, 0, 0, 0, b'n'][..],
            &[1, 0, 0, 0, 0x14],
            &[1, 2, 2, 3],
            &[1, 0, 1, 0, 0, 0, b'f'],
        ]
        .concat();
        let spec = IndexSpec {
            name: "n".into(),
            prefix: Key::from_encoded(vec![0x14]),
            fields: vec!["f".into()],
            tokenizer: Tokenizer::Porter,
            prefix_lengths: vec![2, 3],
        };
        let exact = IndexRequest::exact(spec.clone());
        assert_eq!(parse_index(&index), Ok(IndexRequest { replace: true, ..exact.clone() }));
        assert_eq!(parse_index(&[&[0], &index[1..]].concat()), Ok(exact));
        // Porter is 1; a caller that names no tokenizer sends 255.
        let at = index.len() - 11;
        let unnamed = [&index[..at], &[255], &index[at + 1..]].concat();
        let spec = IndexSpec { tokenizer: Tokenizer::Auto, ..spec };
        let expected = IndexRequest { spec, is_default: true, replace: true };
        assert_eq!(parse_index(&unnamed), Ok(expected));
        assert!(parse_index(&[&index[..at], &[5], &index[at + 1..]].concat()).is_err());
        assert!(parse_index(&[&[2], &index[1..]].concat()).is_err());
        no_part_is_parsed(&index, parse_index);
        assert_eq!(parse_choice(&[1, 1, 0, 0, 0, b'n']), Ok(IndexChoice::Name("n".into())));
        assert!(parse_choice(&[1, 1, 0, 0, 0, 0xff]).is_err());
        let search = [
            &[AFTER | WHERE, 5, 0, 0, 0, 6, 0, 0, 0][..],
            &1.5_f64.to_le_bytes(),
            &7_i64.to_le_bytes(),
            &[0, 0, 0, 0, 1, 0, 0, 0, b'q', 1, 0, 0, 0, 0xa0],
        ]
        .concat();
        let parsed = parse_search(&search).unwrap();
        assert_eq!((parsed.limit, parsed.offset, parsed.filter), (5, 6, Some(vec![0xa0])));
        assert_eq!(parsed.search.after, Some((1.5, 7)));
        no_part_is_parsed(&search, parse_search);
    }
}
