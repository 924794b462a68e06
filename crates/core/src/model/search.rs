//! Full-text indexes and searches.

use super::{Error, INDEX_FIELDS_MAX, INDEX_PREFIX_LENGTHS_MAX, Key, Result, Row};
use super::{INDEX_FIELD_BYTES_MAX, INDEX_NAME_BYTES_MAX, INDEX_PREFIX_CHARS_MAX};
use super::{SEARCH_ENTRIES_MAX, SEARCH_OFFSET_MAX, SNIPPET_MARK_BYTES_MAX, SNIPPET_TERMS_MAX};

crate::named! {
    /// The conversion of text to terms.
    pub enum Tokenizer {
        /// Runs of letters and digits of any script, case and diacritics folded.
        Unicode61 = "unicode61",
        /// As `Unicode61`, then reduced to English stems.
        Porter = "porter",
        /// Folded ASCII letters, and digits; every other character is part of a term unchanged.
        Ascii = "ascii",
        /// Any three characters in a row, case and diacritics folded.
        Trigram = "trigram",
        /// As `Unicode61`, with marks as parts of words; of scripts without spaces between words each letter.
        Auto = "auto",
    }
}

impl Tokenizer {
    /// The tokenizer with this number in a frame.
    pub fn from_id(id: u8) -> Option<Self> {
        Self::ALL.get(usize::from(id)).copied()
    }
}

/// The definition of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexSpec {
    /// The name; unique in its database.
    pub name: String,
    /// The index covers the keys that extend this one.
    pub prefix: Key,
    /// Paths into the values, steps separated by dots; at least one.
    pub fields: Vec<String>,
    /// The conversion of text to terms.
    pub tokenizer: Tokenizer,
    /// Lengths in characters of the prefixes of terms that are indexed too.
    pub prefix_lengths: Vec<u8>,
}

impl IndexSpec {
    /// Checks the bounds of a definition.
    ///
    /// # Errors
    /// `Invalid`, with the option, the limit and the given value.
    pub fn check(&self) -> Result<()> {
        let refuse = |what: String| Err(Error::invalid(format!("kv.createIndex: {what}")));
        let too_large = |what: String| Err(Error::too_large(format!("kv.createIndex: {what}")));
        if self.name.is_empty() || self.name.len() > INDEX_NAME_BYTES_MAX {
            let given = self.name.len();
            return refuse(format!(
                "name must have 1 to {INDEX_NAME_BYTES_MAX} bytes: {given} given; \
                 without a name it is made from the prefix: give a short one"
            ));
        }
        if self.fields.is_empty() || self.fields.len() > INDEX_FIELDS_MAX {
            let given = self.fields.len();
            return refuse(format!(
                "fields must name 1 to {INDEX_FIELDS_MAX} fields: {given} given"
            ));
        }
        for (at, field) in self.fields.iter().enumerate() {
            if field.len() > INDEX_FIELD_BYTES_MAX {
                let given = field.len();
                return too_large(format!(
                    "fields[{at}] is too long (max {INDEX_FIELD_BYTES_MAX} bytes): {given} given"
                ));
            }
            if field.split('.').any(str::is_empty) {
                return refuse(format!(
                    "fields[{at}] must be names separated by dots: received '{field}'"
                ));
            }
            if self.fields.iter().take(at).any(|other| other == field) {
                return refuse(format!("fields names '{field}' twice"));
            }
        }
        if self.prefix_lengths.len() > INDEX_PREFIX_LENGTHS_MAX {
            let given = self.prefix_lengths.len();
            return too_large(format!(
                "too many prefixLengths (max {INDEX_PREFIX_LENGTHS_MAX}): {given} given"
            ));
        }
        for (at, length) in self.prefix_lengths.iter().enumerate() {
            if *length == 0 || *length > INDEX_PREFIX_CHARS_MAX {
                return refuse(format!(
                    "prefixLengths must be 1 to {INDEX_PREFIX_CHARS_MAX}: received {length}"
                ));
            }
            if self.prefix_lengths.iter().take(at).any(|other| other == length) {
                return refuse(format!("prefixLengths has {length} twice"));
            }
        }
        Ok(())
    }

    /// Whether the index covers an encoded key: the key extends the prefix by at least one part. A
    /// part begins with a tag below 0xff; that byte behind a zero only continues a string.
    pub fn covers(&self, key: &[u8]) -> bool {
        let rest = key.strip_prefix(self.prefix.as_bytes());
        rest.is_some_and(|rest| rest.first().is_some_and(|byte| *byte != u8::MAX))
    }
}

/// A request for an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexRequest {
    /// Its definition.
    pub spec: IndexSpec,
    /// The caller has named no tokenizer: an index of [`Tokenizer::Unicode61`], the default of earlier versions, has
    /// the same definition.
    pub is_default: bool,
    /// Another index of the prefix is removed.
    pub replace: bool,
}

impl IndexRequest {
    /// For an index of exactly this definition, beside all others.
    #[must_use]
    pub const fn exact(spec: IndexSpec) -> Self {
        Self { spec, is_default: false, replace: false }
    }
}

/// The state of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexInfo {
    /// Its definition.
    pub spec: IndexSpec,
    /// Whether entries older than the index are still being added.
    pub building: bool,
    /// The number of such entries that were processed.
    pub scanned: u64,
    /// Documents: entries with text in any field. Counted only on request.
    pub documents: u64,
}

/// The choice of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexChoice {
    /// The index of exactly this prefix.
    Prefix(Key),
    /// The index of this name.
    Name(String),
}

impl IndexChoice {
    /// Whether it chooses this index.
    pub fn is(&self, spec: &IndexSpec) -> bool {
        match self {
            Self::Prefix(prefix) => spec.prefix == *prefix,
            Self::Name(name) => spec.name == *name,
        }
    }
}

/// The marks around matches in snippets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Highlight {
    /// The text before a match.
    pub before: String,
    /// The text after a match.
    pub after: String,
    /// The replacement for omitted text.
    pub ellipsis: String,
    /// Maximum number of terms in a snippet.
    pub terms: u8,
}

/// A search.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// Only entries whose keys extend this one.
    pub prefix: Key,
    /// The query, as the caller wrote it.
    pub query: String,
    /// The score and number of the hit to continue after.
    pub after: Option<(f64, i64)>,
    /// The marks of snippets; `None` for no snippets.
    pub highlight: Option<Highlight>,
}

impl Search {
    /// Checks the bounds of a search and of its page.
    ///
    /// # Errors
    /// `Invalid`, with the option, the limit and the given value.
    pub fn check(&self, limit: usize, offset: usize) -> Result<()> {
        let refuse = |what: String| Err(Error::invalid(format!("kv.search: {what}")));
        if limit == 0 || limit > SEARCH_ENTRIES_MAX {
            return refuse(format!("limit must be 1 to {SEARCH_ENTRIES_MAX}: received {limit}"));
        }
        if offset > SEARCH_OFFSET_MAX {
            return refuse(format!(
                "offset is too large (max {SEARCH_OFFSET_MAX}): received {offset}; use cursor"
            ));
        }
        let Some(Highlight { before, after, ellipsis, terms }) = &self.highlight else {
            return Ok(());
        };
        let given = usize::from(*terms);
        if given == 0 || given > SNIPPET_TERMS_MAX {
            return refuse(format!(
                "highlight.terms must be 1 to {SNIPPET_TERMS_MAX}: received {given}"
            ));
        }
        for (name, mark) in [("before", before), ("after", after), ("ellipsis", ellipsis)] {
            let given = mark.len();
            if given > SNIPPET_MARK_BYTES_MAX {
                return Err(Error::too_large(format!(
                    "kv.search: highlight.{name} is too long (max {SNIPPET_MARK_BYTES_MAX} bytes): \
                     {given} bytes given"
                )));
            }
        }
        Ok(())
    }
}

/// One result of a search, borrowed during a visit.
#[derive(Clone, Copy, Debug)]
pub struct Hit<'a> {
    /// The entry.
    pub row: Row<'a>,
    /// Its BM25 score; larger is better.
    pub score: f64,
    /// Its number in the index, which orders equal scores.
    pub number: i64,
}

/// The decision of a visitor of hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HitChoice {
    /// Skips this hit.
    Pass,
    /// Takes this hit, with its snippets if the search has any.
    Take,
    /// Ends the search without this hit.
    Stop,
}

/// Receives the hits of a search.
pub trait HitVisitor {
    /// A hit, best first.
    fn hit(&mut self, hit: &Hit<'_>) -> HitChoice;

    /// The snippets of the accepted hit: the number of a field, and its text with marks. Contains
    /// only fields with a match.
    fn snippets(&mut self, snippets: Vec<(usize, String)>);
}
