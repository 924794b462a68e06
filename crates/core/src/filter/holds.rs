//! Evaluates the conditions of a filter on a value.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashMap;

use memchr::memmem;

use super::operand::Operand;
use super::path::{Path, Step};
use super::text::Text;
use super::{Condition, Test};
use crate::codec::Malformed;
use crate::codec::cbor::{GoesOn, Item, ItemRef, LazyReader};
use crate::model::{Encoding, FILTER_FOLD_KEPT_BYTES_MIN, FILTER_VISITS_MAX, array_index};

/// A value under test.
pub(crate) struct Subject<'a> {
    root: Root<'a>,
    /// Shared by all conditions, so that they share its bound.
    lazy: LazyReader<'a>,
    folds: Folds,
}

/// Case-folded strings of one value, by their address: each is folded once for all conditions.
#[derive(Default)]
struct Folds(HashMap<(*const u8, usize), Text>);

impl Folds {
    fn of(&mut self, wtf8: &[u8]) -> Cow<'_, [u8]> {
        if wtf8.len() < FILTER_FOLD_KEPT_BYTES_MIN {
            return Cow::Owned(Text::fold(wtf8).into_bytes());
        }
        let text = self.0.entry((wtf8.as_ptr(), wtf8.len())).or_insert_with(|| Text::fold(wtf8));
        Cow::Borrowed(text.as_bytes())
    }

    /// The folded string; `None` for any other item.
    fn of_item(&mut self, item: &Item<'_>) -> Option<Cow<'_, [u8]>> {
        match item {
            Item::Text(wtf8) => Some(self.of(wtf8)),
            _ => None,
        }
    }
}

#[derive(Clone, Copy)]
enum Root<'a> {
    Cbor(&'a [u8]),
    Item(Item<'a>),
}

/// Called with each item that a path leads to; `true` ends the walk.
pub(crate) type Visit<'v, 'a> =
    &'v mut dyn FnMut(&Item<'a>, &mut LazyReader<'a>) -> Result<bool, Malformed>;

impl<'a> Subject<'a> {
    /// A stored value; `room` is for the digits of a `KvU64`.
    ///
    /// # Errors
    /// A `KvU64` of another size, and a value in V8's format.
    pub(crate) fn of_value(
        encoding: Encoding,
        bytes: &'a [u8],
        room: &'a mut [u8; 8],
    ) -> Result<Self, Malformed> {
        Ok(Self::of(match encoding {
            Encoding::Cbor => Root::Cbor(bytes),
            Encoding::Bytes => Root::Item(Item::Bytes(bytes)),
            Encoding::Le64 => {
                let n = bytes.try_into().map(u64::from_le_bytes);
                let n = n.map_err(|_| Malformed::new("a KvU64 that is not 8 bytes", 0))?;
                *room = n.to_be_bytes();
                let zeros = (n.leading_zeros() / 8) as usize;
                let magnitude = room.get(zeros..).unwrap_or_default();
                Root::Item(Item::BigInt { negative: false, magnitude })
            }
            Encoding::V8 => return Err(Malformed::new("a value in V8's format", 0)),
        }))
    }

    fn of(root: Root<'a>) -> Self {
        Self { root, lazy: LazyReader::new(FILTER_VISITS_MAX), folds: Folds::default() }
    }

    /// Calls `goes_on` during the walk; see [`LazyReader::asking`].
    pub(super) fn asking(self, goes_on: GoesOn<'a>) -> Self {
        Self { lazy: self.lazy.asking(goes_on), ..self }
    }

    /// Whether `goes_on` ended the walk.
    pub(super) fn has_ended(&self) -> bool {
        self.lazy.has_ended()
    }

    /// Whether the value meets a condition. The recursion is bounded by the filter's depth.
    pub(super) fn meets(&mut self, condition: &Condition) -> Result<bool, Malformed> {
        match condition {
            Condition::All(all) => {
                for one in all {
                    if !self.meets(one)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Condition::Any(any) => {
                for one in any {
                    if self.meets(one)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Condition::Not(inner) => self.meets(inner).map(|met| !met),
            Condition::At { path, negated, test } => {
                let mut found = false;
                let root = self.root()?;
                let mut folds = std::mem::take(&mut self.folds);
                let met = self.follow(root, path.steps(), &mut |item, lazy| {
                    found = true;
                    test.holds(item, lazy, &mut folds)
                })?;
                self.folds = folds;
                let met = met || (!found && matches!(test, Test::Null | Test::Empty));
                Ok(met != *negated)
            }
        }
    }

    fn root(&mut self) -> Result<Item<'a>, Malformed> {
        match self.root {
            Root::Cbor(bytes) => ItemRef::of(bytes).open(&mut self.lazy),
            Root::Item(item) => Ok(item),
        }
    }

    /// Visits the items that a path leads to, until `visit` returns `true`.
    pub(crate) fn visit(&mut self, path: &Path, visit: Visit<'_, 'a>) -> Result<(), Malformed> {
        let root = self.root()?;
        self.follow(root, path.steps(), visit).map(drop)
    }

    /// Visits the items at the end of the steps. The recursion is bounded by the number of steps.
    fn follow(
        &mut self,
        item: Item<'a>,
        steps: &[Step],
        visit: Visit<'_, 'a>,
    ) -> Result<bool, Malformed> {
        let Some((step, rest)) = steps.split_first() else { return visit(&item, &mut self.lazy) };
        if let Some(found) = self.direct(item, step, rest, visit)? {
            return Ok(found);
        }
        // A step that is no array index applies to each element.
        match item {
            Item::Array(len, mut at) => {
                for _ in 0..len {
                    let element = at.open(&mut self.lazy)?;
                    if self.direct(element, step, rest, visit)? == Some(true) {
                        return Ok(true);
                    }
                    at = at.next(&mut self.lazy)?;
                }
            }
            Item::SparseArray(len, mut at) => {
                for _ in 0..len {
                    let (name, value) = at.name(&mut self.lazy)?;
                    let element = value.open(&mut self.lazy)?;
                    if array_index(name).is_some()
                        && self.direct(element, step, rest, visit)? == Some(true)
                    {
                        return Ok(true);
                    }
                    at = value.next(&mut self.lazy)?;
                }
            }
            _ => {}
        }
        Ok(false)
    }

    /// Takes one step to a property, `Map` key or array index; `None` if the item has none of that
    /// name.
    fn direct(
        &mut self,
        item: Item<'a>,
        step: &Step,
        rest: &[Step],
        visit: Visit<'_, 'a>,
    ) -> Result<Option<bool>, Malformed> {
        match item {
            Item::Object(len, mut at) | Item::SparseArray(len, mut at) => {
                for _ in 0..len {
                    let (name, value) = at.name(&mut self.lazy)?;
                    if name == step.name {
                        let inner = value.open(&mut self.lazy)?;
                        return self.follow(inner, rest, visit).map(Some);
                    }
                    at = value.next(&mut self.lazy)?;
                }
                Ok(None)
            }
            Item::Map(len, mut at) => {
                let mut found = None;
                for _ in 0..len {
                    let value = at.next(&mut self.lazy)?;
                    let named = match at.open(&mut self.lazy)? {
                        Item::Text(name) => name == step.name,
                        Item::Number(n) => step.names_number(n),
                        _ => false,
                    };
                    if named {
                        let inner = value.open(&mut self.lazy)?;
                        if self.follow(inner, rest, visit)? {
                            return Ok(Some(true));
                        }
                        found = Some(false);
                    }
                    at = value.next(&mut self.lazy)?;
                }
                Ok(found)
            }
            Item::Array(len, mut at) => {
                let Some(index) = step.index.filter(|index| *index < len) else { return Ok(None) };
                for _ in 0..index {
                    at = at.next(&mut self.lazy)?;
                }
                let inner = at.open(&mut self.lazy)?;
                self.follow(inner, rest, visit).map(Some)
            }
            Item::Numbers(packed) => match step.index.and_then(|index| packed.get(index)) {
                Some(n) => self.follow(Item::Number(n), rest, visit).map(Some),
                None => Ok(None),
            },
            _ => Ok(None),
        }
    }
}

impl Test {
    fn holds<'a>(
        &self,
        item: &Item<'a>,
        lazy: &mut LazyReader<'a>,
        folds: &mut Folds,
    ) -> Result<bool, Malformed> {
        let order = |operand: &Operand| operand.compare(item);
        Ok(match self {
            Self::Exists => true,
            Self::Null => matches!(item, Item::Null | Item::Undefined),
            Self::Empty => is_empty(item),
            Self::EmptyArray => matches!(item, Item::Array(0, _)),
            Self::In(operands) => operands.iter().any(|operand| operand.equals(item)),
            Self::Greater(operand) => order(operand) == Some(Ordering::Greater),
            Self::GreaterOrEqual(operand) => order(operand).is_some_and(Ordering::is_ge),
            Self::Less(operand) => order(operand) == Some(Ordering::Less),
            Self::LessOrEqual(operand) => order(operand).is_some_and(Ordering::is_le),
            Self::Between(low, high) => {
                order(low).is_some_and(Ordering::is_ge) && order(high).is_some_and(Ordering::is_le)
            }
            Self::Starts(operand) => like(item, operand).is_some_and(|(a, b)| a.starts_with(b)),
            Self::Ends(operand) => like(item, operand).is_some_and(|(a, b)| a.ends_with(b)),
            Self::Contains(operand) => match like(item, operand) {
                Some((whole, part)) => memmem::find(whole, part).is_some(),
                None => any_element(item, lazy, |element| operand.equals(element))?,
            },
            Self::EqualFolded(text) => {
                folds.of_item(item).is_some_and(|folded| *folded == *text.as_bytes())
            }
            Self::StartsFolded(text) => {
                folds.of_item(item).is_some_and(|folded| folded.starts_with(text.as_bytes()))
            }
            Self::EndsFolded(text) => {
                folds.of_item(item).is_some_and(|folded| folded.ends_with(text.as_bytes()))
            }
            Self::ContainsFolded(text) => match folds.of_item(item) {
                Some(folded) => memmem::find(&folded, text.as_bytes()).is_some(),
                None => any_element(item, lazy, |element| {
                    folds.of_item(element).is_some_and(|folded| *folded == *text.as_bytes())
                })?,
            },
        })
    }
}

fn is_empty(item: &Item<'_>) -> bool {
    match item {
        Item::Null | Item::Undefined => true,
        Item::Text(bytes) | Item::Bytes(bytes) => bytes.is_empty(),
        Item::Array(len, _) | Item::Set(len, _) | Item::Object(len, _) | Item::Map(len, _) => {
            *len == 0
        }
        _ => false,
    }
}

/// The bytes of both, if both are texts or both are byte strings.
fn like<'o>(item: &Item<'o>, operand: &'o Operand) -> Option<(&'o [u8], &'o [u8])> {
    match (item, operand) {
        (Item::Text(a), Operand::Text(b)) | (Item::Bytes(a), Operand::Bytes(b)) => {
            Some((a, b.as_slice()))
        }
        _ => None,
    }
}

/// Whether `holds` is true for an element of an array or `Set`.
pub(crate) fn any_element<'a>(
    item: &Item<'a>,
    lazy: &mut LazyReader<'a>,
    mut holds: impl FnMut(&Item<'a>) -> bool,
) -> Result<bool, Malformed> {
    let (len, mut at, named) = match *item {
        Item::Array(len, at) | Item::Set(len, at) => (len, at, false),
        Item::SparseArray(len, at) => (len, at, true),
        Item::Numbers(packed) => return Ok(packed.iter().any(|n| holds(&Item::Number(n)))),
        _ => return Ok(false),
    };
    for _ in 0..len {
        let mut element = true;
        if named {
            let (name, value) = at.name(lazy)?;
            element = array_index(name).is_some();
            at = value;
        }
        if element && holds(&at.open(lazy)?) {
            return Ok(true);
        }
        at = at.next(lazy)?;
    }
    Ok(false)
}
