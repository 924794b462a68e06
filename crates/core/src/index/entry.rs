//! The entries of an index: the codes of the values under its paths, then the key.

use sha2::{Digest as _, Sha256};

use super::code::{ABSENT, BEFORE_KEY, Code, LOOSE, NULL, OTHER, length};
use super::defect::{IndexDefect, Planted};
use crate::codec::cbor::Item;
use crate::codec::{Malformed, key};
use crate::filter::{Path, Subject, any_element};
use crate::model::{
    Encoding, Error, FILTER_PATH_STEPS_MAX, Kind, OrderPath, Result, VALUE_INDEX_ELEMENTS_MAX,
    VALUE_INDEX_PART_BYTES_MAX, ValueIndexInfo, ValueIndexSpec, ValueIndexState, Violation,
};

/// An index with its paths parsed.
#[derive(Clone, Debug)]
pub struct ValueIndex {
    /// Its number, definition and state.
    pub info: ValueIndexInfo,
    pub(super) parts: Vec<Part>,
    pub(super) planted: Planted,
}

/// A path of an index or of an order.
#[derive(Clone, Debug)]
pub struct Part {
    pub(super) path: Path,
    pub(super) descending: bool,
}

impl Part {
    pub(super) fn parse(what: &str, given: &OrderPath) -> Result<Self> {
        let path = Path::parse(given.path.as_bytes()).ok_or_else(|| {
            Error::invalid(format!(
                "{what}: a path of too many steps (max {FILTER_PATH_STEPS_MAX}): '{}'",
                given.path
            ))
        })?;
        Ok(Self { path, descending: given.descending })
    }

    /// What the bytes of a code are complemented by.
    pub(super) fn mask(&self) -> u8 {
        if self.descending { u8::MAX } else { 0 }
    }

    /// Brings a code into the order of the path.
    pub(super) fn direct(&self, code: &mut [u8]) {
        if self.descending {
            code.iter_mut().for_each(|byte| *byte = !*byte);
        }
    }

    pub(super) fn push(&self, out: &mut Vec<u8>, code: &[u8]) {
        let mask = self.mask();
        out.extend(code.iter().map(|byte| byte ^ mask));
    }
}

/// Why a value cannot have an entry in a unique index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// The value under a path is too long.
    TooLong,
    /// The value under a path cannot be compared.
    NotComparable,
}

impl Unfit {
    /// The error of a write that brings such a value, without the place of the value.
    pub fn error(self, spec: &ValueIndexSpec, key: &str) -> Error {
        let name = &spec.name;
        match self {
            Self::TooLong => Error::too_large(format!(
                "the unique index '{name}': a value of the entry {key} is too long to be unique (max \
                 {VALUE_INDEX_PART_BYTES_MAX} bytes): index a hash of it instead"
            )),
            Self::NotComparable => Error::invalid(format!(
                "the unique index '{name}': the entry {key} has something other than one string, number, \
                 bigint, boolean, Date or Uint8Array under a path of the index: leave the field out, or \
                 store one of these"
            )),
        }
    }
}

impl ValueIndex {
    /// Parses the paths of an index.
    ///
    /// # Errors
    /// `Invalid` for a path of too many steps.
    pub fn new(info: ValueIndexInfo) -> Result<Self> {
        let parse = |path| Part::parse("kv.createIndex: on", path);
        let parts = info.spec.on.iter().map(parse).collect::<Result<_>>()?;
        Ok(Self { info, parts, planted: Planted::default() })
    }

    /// The same with a defect, which only the feature `defects` can plant.
    #[must_use]
    pub fn with_defect(self, defect: Option<IndexDefect>) -> Self {
        Self { planted: Planted(defect), ..self }
    }

    /// Its definition.
    pub fn spec(&self) -> &ValueIndexSpec {
        &self.info.spec
    }

    /// The mark of the positions in its order: the same for the same prefix and paths, in whichever database.
    pub fn order_mark(&self) -> [u8; 8] {
        let ValueIndexSpec { prefix, on, .. } = self.spec();
        order_mark(prefix.as_bytes(), on)
    }

    /// Whether commits change it.
    pub fn is_kept(&self) -> bool {
        !matches!(self.info.state, ValueIndexState::Failed(_))
    }

    /// Whether commits change it with the entry of this key.
    pub fn is_kept_for(&self, key: &[u8]) -> bool {
        self.is_kept() && self.info.spec.covers(key)
    }

    /// Whether lists may read it.
    pub fn is_ready(&self) -> bool {
        self.info.state == ValueIndexState::Ready
    }

    /// The entries of an entry of the database, in order, each once. Its key must be covered.
    pub fn entries(&self, key: &[u8], encoding: Encoding, value: &[u8]) -> Vec<Vec<u8>> {
        let (codes, rest) = self.codes(encoding, value);
        let entry = |code: Code| {
            let mut entry = self.beginning(code, &rest);
            entry.extend_from_slice(key);
            entry
        };
        let mut entries: Vec<_> = codes.into_iter().map(entry).collect();
        entries.sort_unstable();
        entries
    }

    /// The values that must be unique, each as the beginning of its entry up to the key. None if
    /// anything under a path is absent or null.
    ///
    /// # Errors
    /// Why a value cannot be unique.
    pub fn unique_values(&self, encoding: Encoding, value: &[u8]) -> Result<Vec<Vec<u8>>, Unfit> {
        let (codes, rest) = self.codes(encoding, value);
        let mut values = Vec::with_capacity(codes.len());
        for code in codes {
            let all = || std::iter::once(&code).chain(&rest);
            if all().any(|code| matches!(code.tag(), ABSENT | NULL | LOOSE)) {
                continue;
            }
            if all().any(|code| code.tag() == OTHER) {
                return Err(Unfit::NotComparable);
            }
            if all().any(|code| code.is_cut) {
                return Err(Unfit::TooLong);
            }
            values.push(self.beginning(code, &rest));
        }
        Ok(values)
    }

    /// The beginning of an entry that no other entry may have, up to its key; `None` if anything under a path
    /// is absent or null, or has no order.
    pub fn unique_value_of<'e>(&self, entry: &'e [u8]) -> Option<&'e [u8]> {
        let mut at = 0;
        for part in &self.parts {
            let rest = entry.get(at..)?;
            if matches!(rest.first()? ^ part.mask(), ABSENT | NULL | LOOSE | OTHER) {
                return None;
            }
            at += length(rest, part.mask())?;
        }
        entry.get(..=at)
    }

    /// The beginning of an entry, up to its key.
    fn beginning(&self, first: Code, rest: &[Code]) -> Vec<u8> {
        let (mut bytes, mut parts) = (first.bytes, self.parts.iter());
        if let Some(part) = parts.next() {
            part.direct(&mut bytes);
        }
        for (part, code) in parts.zip(rest) {
            part.push(&mut bytes, &code.bytes);
        }
        bytes.push(BEFORE_KEY);
        bytes
    }

    /// The key of an entry of this index.
    pub fn key_of<'e>(&self, entry: &'e [u8]) -> Option<&'e [u8]> {
        let mut rest = entry;
        for part in &self.parts {
            rest = rest.get(length(rest, part.mask())?..)?;
        }
        let (before, key) = rest.split_first()?;
        (*before == BEFORE_KEY).then_some(key)
    }

    /// The codes under the first path, each once, and the one under each other path.
    fn codes(&self, encoding: Encoding, value: &[u8]) -> (Vec<Code>, Vec<Code>) {
        self.read_codes(encoding, value).unwrap_or_else(|_| {
            let rest = self.parts.len().saturating_sub(1);
            (vec![Code::of(OTHER)], vec![Code::of(OTHER); rest])
        })
    }

    fn read_codes(
        &self,
        encoding: Encoding,
        value: &[u8],
    ) -> Result<(Vec<Code>, Vec<Code>), Malformed> {
        let mut room = [0; 8];
        let mut subject = Subject::of_value(encoding, value, &mut room)?;
        let mut parts = self.parts.iter();
        let Some(first) = parts.next() else { return Ok((Vec::new(), Vec::new())) };
        let mut codes = match self.spec().multi {
            true => elements(&mut subject, &first.path)?,
            false => vec![single(&mut subject, &first.path)?],
        };
        if self.spec().sparse {
            codes.retain(|code| code.tag() != ABSENT);
        }
        let rest = parts.map(|part| single(&mut subject, &part.path));
        Ok((codes, rest.collect::<Result<_, _>>()?))
    }
}

/// The mark of the positions in an order of the keys with this prefix.
pub(super) fn order_mark(prefix: &[u8], order: &[OrderPath]) -> [u8; 8] {
    let mut hash = Sha256::new();
    hash.update((prefix.len() as u64).to_le_bytes());
    hash.update(prefix);
    for OrderPath { path, descending } in order {
        hash.update((path.len() as u64).to_le_bytes());
        hash.update(path.as_bytes());
        hash.update([u8::from(*descending)]);
    }
    let [a, b, c, d, e, f, g, h, ..] = <[u8; 32]>::from(hash.finalize());
    [a, b, c, d, e, f, g, h]
}

/// The code of the value under a path; several values have no order.
pub(super) fn single(subject: &mut Subject<'_>, path: &Path) -> Result<Code, Malformed> {
    let mut found = None;
    subject.visit(path, &mut |item, _| {
        let several = found.is_some();
        found = Some(if several { Code::of(OTHER) } else { Code::of_item(item) });
        Ok(several)
    })?;
    Ok(found.unwrap_or_else(|| Code::of(ABSENT)))
}

/// The codes of the values under a path, and of the elements of arrays and sets there.
fn elements(subject: &mut Subject<'_>, path: &Path) -> Result<Vec<Code>, Malformed> {
    let mut codes = Vec::new();
    let mut too_many = false;
    subject.visit(path, &mut |item, lazy| {
        if let Item::Array(..) | Item::Set(..) | Item::SparseArray(..) | Item::Numbers(_) = item {
            any_element(item, lazy, |element| {
                codes.push(Code::of_item(element));
                codes.len() > VALUE_INDEX_ELEMENTS_MAX
            })?;
        } else {
            codes.push(Code::of_item(item));
            if let Item::Text(_) | Item::Bytes(_) = item {
                codes.push(Code::of(LOOSE));
            }
        }
        too_many = codes.len() > VALUE_INDEX_ELEMENTS_MAX;
        Ok(too_many)
    })?;
    if too_many {
        return Ok(vec![Code::of(OTHER)]);
    }
    codes.sort_unstable_by(|a, b| a.bytes.cmp(&b.bytes));
    codes.dedup();
    if codes.is_empty() {
        codes.push(Code::of(ABSENT));
    }
    Ok(codes)
}

/// A change of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryChange {
    /// The number of the index.
    pub index: i64,
    /// The entry.
    pub entry: Vec<u8>,
    /// Whether it is added; it is removed otherwise.
    pub added: bool,
}

/// An entry of an index that is removed, and one that is added instead; or one of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replacement<'e> {
    /// The entry that is removed.
    pub removed: Option<&'e [u8]>,
    /// The entry that is added.
    pub added: Option<&'e [u8]>,
}

impl<'e> Replacement<'e> {
    /// Each entry, and whether it is added.
    pub fn each(self) -> impl Iterator<Item = (&'e [u8], bool)> {
        let Self { removed, added } = self;
        removed.map(|entry| (entry, false)).into_iter().chain(added.map(|entry| (entry, true)))
    }
}

/// Gets the number of an index, and a change of its entries.
pub type ChangeEntry<'c> = &'c mut dyn FnMut(i64, Replacement<'_>) -> Result<()>;

/// The changes of the indexes by a change of an entry.
///
/// # Errors
/// Those of `change`.
pub fn changes(
    indexes: &[ValueIndex],
    key: &[u8],
    old: Option<(Encoding, &[u8])>,
    new: Option<(Encoding, &[u8])>,
    change: ChangeEntry<'_>,
) -> Result<()> {
    for index in indexes.iter().filter(|index| index.is_kept_for(key)) {
        let entries = |value: Option<(Encoding, &[u8])>| {
            value.map_or(Vec::new(), |(encoding, bytes)| index.entries(key, encoding, bytes))
        };
        let (old, new) = (entries(old), entries(new));
        let id = index.info.id;
        // Both are in order.
        let is_in = |all: &[Vec<u8>], entry: &Vec<u8>| all.binary_search(entry).is_ok();
        let keeps = index.planted.is(IndexDefect::KeptEntries);
        let mut removed =
            old.iter().filter(|entry| !keeps && !is_in(&new, entry)).map(Vec::as_slice);
        // An index that is being built may lack an old entry, so all new ones are added.
        let lacks = !index.is_ready();
        let mut added = new.iter().filter(|entry| lacks || !is_in(&old, entry)).map(Vec::as_slice);
        loop {
            let next = Replacement { removed: removed.next(), added: added.next() };
            if next == (Replacement { removed: None, added: None }) {
                break;
            }
            change(id, next)?;
        }
        if index.planted.is(IndexDefect::RemovedTwice) {
            for entry in &old {
                change(id, Replacement { removed: Some(entry), added: None })?;
            }
        }
    }
    Ok(())
}

/// The error of a write that breaks unique indexes, for callers that get an error instead of an outcome.
pub fn not_unique(violations: &[Violation]) -> Error {
    let each = violations.iter().map(|Violation { index, key, other }| {
        let (key, other) = (key::print(key.as_bytes()), key::print(other.as_bytes()));
        format!("the unique index '{index}' has the value of {key} for {other} already")
    });
    Error::new(Kind::NotUnique, each.collect::<Vec<_>>().join("; "))
}
