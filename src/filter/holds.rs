//! Whether a value meets a condition.

use std::cmp::Ordering;

use memchr::memmem;

use super::operand::Operand;
use super::path::Step;
use super::text::Text;
use super::{Condition, Test};
use crate::codec::Malformed;
use crate::codec::cbor::{Item, Place, Shared};
use crate::model::FILTER_VISITS_MAX;

/// A value that is being looked at.
pub(super) struct Subject<'a> {
    root: Root<'a>,
    shared: Shared<'a>,
    /// Items that may still be come by on this path.
    visits: usize,
}

#[derive(Clone, Copy)]
enum Root<'a> {
    Cbor(&'a [u8]),
    Item(Item<'a>),
}

/// What a path leads to is shown to this; `true` is enough.
type Visit<'v, 'a> = &'v mut dyn FnMut(&Item<'a>, &mut Shared<'a>) -> Result<bool, Malformed>;

impl<'a> Subject<'a> {
    pub(super) fn of_cbor(bytes: &'a [u8]) -> Self {
        Self { root: Root::Cbor(bytes), shared: Shared::default(), visits: 0 }
    }

    pub(super) fn of_item(item: Item<'a>) -> Self {
        Self { root: Root::Item(item), shared: Shared::default(), visits: 0 }
    }

    /// Recursion is bounded by the filter's depth.
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
                self.visits = FILTER_VISITS_MAX;
                let mut found = false;
                let root = match self.root {
                    Root::Cbor(bytes) => Place::of(bytes).open(&mut self.shared)?,
                    Root::Item(item) => item,
                };
                let met = self.follow(root, path.steps(), &mut |item, shared| {
                    found = true;
                    test.holds(item, shared)
                })?;
                let met = met || (!found && matches!(test, Test::Null | Test::Empty));
                Ok(met != *negated)
            }
        }
    }

    /// Shows what the steps lead to from an item. Recursion is bounded by the number of steps.
    fn follow(
        &mut self,
        item: Item<'a>,
        steps: &[Step],
        visit: Visit<'_, 'a>,
    ) -> Result<bool, Malformed> {
        let Some((step, rest)) = steps.split_first() else { return visit(&item, &mut self.shared) };
        if let Some(found) = self.direct(item, step, rest, visit)? {
            return Ok(found);
        }
        // An array without that index: over its elements.
        match item {
            Item::Array(len, mut at) => {
                for _ in 0..len {
                    let element = self.open(at)?;
                    if self.direct(element, step, rest, visit)? == Some(true) {
                        return Ok(true);
                    }
                    at = at.next()?;
                }
            }
            Item::SparseArray(len, mut at) => {
                for _ in 0..len {
                    let (name, place) = at.name()?;
                    let element = self.open(place)?;
                    if name.iter().all(u8::is_ascii_digit)
                        && self.direct(element, step, rest, visit)? == Some(true)
                    {
                        return Ok(true);
                    }
                    at = place.next()?;
                }
            }
            _ => {}
        }
        Ok(false)
    }

    /// One step into what has such a name, key or index; `None` when there is no such.
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
                    let (name, place) = at.name()?;
                    if name == step.name {
                        let inner = self.open(place)?;
                        return self.follow(inner, rest, visit).map(Some);
                    }
                    at = place.next()?;
                }
                Ok(None)
            }
            Item::Map(len, mut at) => {
                let mut found = None;
                for _ in 0..len {
                    let place = at.next()?;
                    let named = match self.open(at)? {
                        Item::Text(name) => name == step.name,
                        Item::Number(n) => step.number == Some(n),
                        _ => false,
                    };
                    if named {
                        let inner = self.open(place)?;
                        if self.follow(inner, rest, visit)? {
                            return Ok(Some(true));
                        }
                        found = Some(false);
                    }
                    at = place.next()?;
                }
                Ok(found)
            }
            Item::Array(len, mut at) => {
                let Some(index) = step.index.filter(|index| *index < len) else { return Ok(None) };
                for _ in 0..index {
                    at = at.next()?;
                }
                let inner = self.open(at)?;
                self.follow(inner, rest, visit).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn open(&mut self, place: Place<'a>) -> Result<Item<'a>, Malformed> {
        match self.visits.checked_sub(1) {
            Some(left) => self.visits = left,
            None => return place.fail("value too intertwined for a filter"),
        }
        place.open(&mut self.shared)
    }
}

impl Test {
    fn holds<'a>(&self, item: &Item<'a>, shared: &mut Shared<'a>) -> Result<bool, Malformed> {
        let order = |operand: &Operand| operand.compare(item);
        Ok(match self {
            Self::Exists => true,
            Self::Null => matches!(item, Item::Null | Item::Undefined),
            Self::Empty => is_empty(item),
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
                None => any_element(item, shared, |element| operand.equals(element))?,
            },
            Self::EqualFolded(text) => folded(item).is_some_and(|folded| folded == *text),
            Self::StartsFolded(text) => {
                folded(item).is_some_and(|folded| folded.as_bytes().starts_with(text.as_bytes()))
            }
            Self::EndsFolded(text) => {
                folded(item).is_some_and(|folded| folded.as_bytes().ends_with(text.as_bytes()))
            }
            Self::ContainsFolded(text) => match folded(item) {
                Some(folded) => memmem::find(folded.as_bytes(), text.as_bytes()).is_some(),
                None => any_element(item, shared, |element| {
                    folded(element).is_some_and(|folded| folded == *text)
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

/// Two texts or two byte strings.
fn like<'o>(item: &Item<'o>, operand: &'o Operand) -> Option<(&'o [u8], &'o [u8])> {
    match (item, operand) {
        (Item::Text(a), Operand::Text(b)) | (Item::Bytes(a), Operand::Bytes(b)) => {
            Some((a, b.as_slice()))
        }
        _ => None,
    }
}

fn folded(item: &Item<'_>) -> Option<Text> {
    match item {
        Item::Text(wtf8) => Some(Text::fold(wtf8)),
        _ => None,
    }
}

/// Whether something holds for an element of an array or `Set`.
fn any_element<'a>(
    item: &Item<'a>,
    shared: &mut Shared<'a>,
    holds: impl Fn(&Item<'a>) -> bool,
) -> Result<bool, Malformed> {
    let (len, mut at, named) = match *item {
        Item::Array(len, at) | Item::Set(len, at) => (len, at, false),
        Item::SparseArray(len, at) => (len, at, true),
        _ => return Ok(false),
    };
    for _ in 0..len {
        let mut element = true;
        if named {
            let (name, place) = at.name()?;
            element = name.iter().all(u8::is_ascii_digit);
            at = place;
        }
        if element && holds(&at.open(shared)?) {
            return Ok(true);
        }
        at = at.next()?;
    }
    Ok(false)
}
