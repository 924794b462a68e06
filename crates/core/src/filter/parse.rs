//! Parses a caller's filter object into conditions.
//!
//! An error names its position: `where.$or[1].age.$gte`.

use std::fmt;

use super::operand::Operand;
use super::path::Path;
use super::text::Text;
use super::{Condition, Test};
use crate::codec::cbor::{Item, ItemRef, LazyReader};
use crate::model::{
    Error, FILTER_DEPTH_MAX, FILTER_NODES_MAX, FILTER_PATH_STEPS_MAX, JsString, Node, NodeId,
    Result, Value, ViewClass,
};

/// Every operator, for the error about an unknown one.
const OPERATORS: &str = "$eq $ne $gt $gte $lt $lte $between $in $nin $contains $notContains \
    $startsWith $endsWith $eqi $nei $containsi $notContainsi $startsWithi $endsWithi $null $empty \
    $notEmpty $exists $and $or $not";

/// For the door of KeyVal, whose `$empty` leaves out objects. It is no part of the language of filters.
pub(super) const EMPTY_ARRAY: &str = "$emptyArray";

/// Whether a name is that of an operator but for its dollar.
fn is_operator(name: &[u8]) -> bool {
    OPERATORS.split(' ').any(|known| known.as_bytes().strip_prefix(b"$") == Some(name))
}

pub(super) fn parse(value: &Value, now_ms: i64) -> Result<Condition> {
    let mut parser = Parser { value, now_ms, nodes: 0 };
    let top = Position::Top;
    let entries = parser.object(value.root_id(), &top, "a filter is an object")?;
    parser.conditions(entries, &Path::default(), true, &top)
}

/// The condition of `{ field: "text" }`, which most finds have, without a tree of the value. `None` for all other
/// filters, and for those that [`parse`] refuses.
pub(super) fn of_one_text(bytes: &[u8]) -> Option<Condition> {
    let mut lazy = LazyReader::new(0);
    let Item::Object(1, name) = ItemRef::of(bytes).open(&mut lazy).ok()? else { return None };
    let (name, operand) = name.name(&mut lazy).ok()?;
    let Item::Text(text) = operand.open(&mut lazy).ok()? else { return None };
    let is_last = operand.bytes(&mut lazy).ok()?.as_ptr_range().end == bytes.as_ptr_range().end;
    let is_utf8 = |text| std::str::from_utf8(text).is_ok();
    if !is_last || name.starts_with(b"$") || !is_utf8(name) || !is_utf8(text) {
        return None;
    }
    let test = Test::In(vec![Operand::Text(text.to_vec())]);
    Some(Condition::At { path: Path::parse(name)?, negated: false, test })
}

/// A position inside the filter, for errors.
enum Position<'p> {
    Top,
    Name(&'p Position<'p>, &'p JsString),
    Index(&'p Position<'p>, usize),
}

impl Position<'_> {
    fn depth(&self) -> usize {
        match self {
            Position::Top => 0,
            Position::Name(outer, _) | Position::Index(outer, _) => outer.depth() + 1,
        }
    }

    fn refuse<T>(&self, what: impl fmt::Display) -> Result<T> {
        Err(Error::invalid(format!("{self}: {what}")))
    }
}

impl fmt::Display for Position<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Position::Top => f.write_str("where"),
            Position::Index(outer, index) => write!(f, "{outer}[{index}]"),
            Position::Name(outer, name) => {
                let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_$".contains(&byte);
                match name.as_str().filter(|text| !text.is_empty() && text.bytes().all(plain)) {
                    Some(text) => write!(f, "{outer}.{text}"),
                    None => write!(f, "{outer}[{name:?}]"),
                }
            }
        }
    }
}

struct Parser<'v> {
    value: &'v Value,
    now_ms: i64,
    nodes: usize,
}

type Entries<'v> = &'v [(JsString, NodeId)];

impl<'v> Parser<'v> {
    /// The node with an id. Counts towards the bound of nodes.
    fn node(&mut self, id: NodeId, position: &Position<'_>) -> Result<&'v Node> {
        self.nodes += 1;
        if self.nodes > FILTER_NODES_MAX {
            return position.refuse(format_args!(
                "too many conditions and operands (max {FILTER_NODES_MAX} in one filter)"
            ));
        }
        if position.depth() > FILTER_DEPTH_MAX {
            return position
                .refuse(format_args!("nested too deeply (max {FILTER_DEPTH_MAX} levels)"));
        }
        self.value.node(id).map_or_else(|| position.refuse("nothing"), Ok)
    }

    fn object(&mut self, id: NodeId, position: &Position<'_>, what: &str) -> Result<Entries<'v>> {
        match self.node(id, position)? {
            Node::Object(entries) => Ok(entries),
            other => position.refuse(format_args!("{what}: received {}", name_of(other))),
        }
    }

    fn array(&mut self, id: NodeId, position: &Position<'_>, what: &str) -> Result<&'v [NodeId]> {
        match self.node(id, position)? {
            Node::Array(items) => Ok(items),
            other => position.refuse(format_args!("takes {what}: received {}", name_of(other))),
        }
    }

    /// The conditions of an object on the end of a path. `fields`: its names may be paths.
    fn conditions(
        &mut self,
        entries: Entries<'v>,
        path: &Path,
        fields: bool,
        outer: &Position<'_>,
    ) -> Result<Condition> {
        let mut all = Vec::with_capacity(entries.len());
        for (name, id) in entries {
            let position = Position::Name(outer, name);
            let bytes = name.as_wtf8();
            if bytes.starts_with(b"$") {
                all.push(self.operator(name, *id, path, fields, &position)?);
            } else if fields {
                let Some(path) = Path::parse(bytes) else {
                    return position.refuse(format_args!(
                        "a path of too many steps (max {FILTER_PATH_STEPS_MAX})"
                    ));
                };
                all.push(self.field(*id, path, &position)?);
            } else if is_operator(bytes) {
                let name = name.as_str().unwrap_or_default();
                return position.refuse(format_args!(
                    "an operator must be here, which begins with a dollar: write ${name}"
                ));
            } else {
                return position.refuse(
                    "an operator must be here: to look inside a field, write its path with dots, \
                     such as \"field.inner\"",
                );
            }
        }
        Ok(match all.len() {
            1 => all.pop().unwrap_or(Condition::All(Vec::new())),
            _ => Condition::All(all),
        })
    }

    /// The condition behind a path: an object of operators, or a value to equal.
    fn field(&mut self, id: NodeId, path: Path, position: &Position<'_>) -> Result<Condition> {
        if let Some(Node::Object(entries)) = self.value.node(id)
            && !self.is_now(entries)
        {
            self.node(id, position)?;
            if entries.is_empty() {
                return position.refuse(
                    "no operator: an object is compared by the operators in it, such as \
                     { $exists: true }",
                );
            }
            return self.conditions(entries, &path, false, position);
        }
        let operand = self.operand(id, position, true)?;
        Ok(Condition::At { path, negated: false, test: Test::In(vec![operand]) })
    }

    fn operator(
        &mut self,
        name: &JsString,
        id: NodeId,
        path: &Path,
        fields: bool,
        position: &Position<'_>,
    ) -> Result<Condition> {
        let text = name.as_str().unwrap_or_default();
        let mut negated = false;
        let test = match text {
            "$and" | "$or" => {
                let mut inner = Vec::new();
                for (index, id) in
                    self.array(id, position, "an array of filters")?.iter().enumerate()
                {
                    let position = Position::Index(position, index);
                    let entries = self.object(*id, &position, "a filter is an object")?;
                    inner.push(self.conditions(entries, path, fields, &position)?);
                }
                return Ok(match text {
                    "$and" => Condition::All(inner),
                    _ => Condition::Any(inner),
                });
            }
            "$not" => {
                let entries = self.object(id, position, "a filter is an object")?;
                let inner = self.conditions(entries, path, fields, position)?;
                return Ok(Condition::Not(Box::new(inner)));
            }
            "$exists" | "$null" | "$empty" | "$notEmpty" | EMPTY_ARRAY => {
                let Node::Bool(wanted) = self.node(id, position)? else {
                    return self.wrong(id, position, "true or false");
                };
                negated = *wanted == (text == "$notEmpty");
                match text {
                    "$exists" => Test::Exists,
                    "$null" => Test::Null,
                    EMPTY_ARRAY => Test::EmptyArray,
                    _ => Test::Empty,
                }
            }
            "$eq" | "$ne" => {
                negated = text == "$ne";
                Test::In(vec![self.operand(id, position, true)?])
            }
            "$in" | "$nin" => {
                negated = text == "$nin";
                let mut operands = Vec::new();
                for (index, id) in
                    self.array(id, position, "an array of values")?.iter().enumerate()
                {
                    operands.push(self.operand(*id, &Position::Index(position, index), true)?);
                }
                Test::In(operands)
            }
            "$gt" => Test::Greater(self.operand(id, position, false)?),
            "$gte" => Test::GreaterOrEqual(self.operand(id, position, false)?),
            "$lt" => Test::Less(self.operand(id, position, false)?),
            "$lte" => Test::LessOrEqual(self.operand(id, position, false)?),
            "$between" => match *self.array(id, position, "[lowest, highest]")? {
                [low, high] => Test::Between(
                    self.operand(low, &Position::Index(position, 0), false)?,
                    self.operand(high, &Position::Index(position, 1), false)?,
                ),
                ref other => {
                    let len = other.len();
                    return position.refuse(format_args!(
                        "takes [lowest, highest]: received an array of {len}"
                    ));
                }
            },
            "$contains" | "$notContains" => {
                negated = text == "$notContains";
                Test::Contains(self.operand(id, position, true)?)
            }
            "$startsWith" => Test::Starts(self.stretch(id, position)?),
            "$endsWith" => Test::Ends(self.stretch(id, position)?),
            "$eqi" | "$nei" => {
                negated = text == "$nei";
                Test::EqualFolded(self.text(id, position)?)
            }
            "$containsi" | "$notContainsi" => {
                negated = text == "$notContainsi";
                Test::ContainsFolded(self.text(id, position)?)
            }
            "$startsWithi" => Test::StartsFolded(self.text(id, position)?),
            "$endsWithi" => Test::EndsFolded(self.text(id, position)?),
            "$now" | "$offset" => {
                return position.refuse(format_args!(
                    "{text} is an operand: write {{ $lt: {{ $now: true }} }}"
                ));
            }
            _ => {
                return position.refuse(format_args!(
                    "unknown operator: known are {OPERATORS}; for a field whose name begins with \
                     a dollar write \"\\\\{text}\""
                ));
            }
        };
        Ok(Condition::At { path: path.clone(), negated, test })
    }

    fn wrong<T>(&self, id: NodeId, position: &Position<'_>, what: &str) -> Result<T> {
        let received = self.value.node(id).map_or("nothing", name_of);
        position.refuse(format_args!("takes {what}: received {received}"))
    }

    /// An operand of a comparison.
    fn operand(&mut self, id: NodeId, position: &Position<'_>, null: bool) -> Result<Operand> {
        Ok(match self.node(id, position)? {
            Node::Null if null => Operand::Null,
            Node::Bool(b) => Operand::Bool(*b),
            Node::Number(n) => Operand::Number(*n),
            Node::BigInt(n) => Operand::BigInt(n.clone()),
            Node::String(text) => Operand::Text(text.as_wtf8().to_vec()),
            Node::View(ViewClass::Uint8, bytes) => Operand::Bytes(bytes.to_vec()),
            Node::Window(window) if window.class == ViewClass::Uint8 => {
                Operand::Bytes(self.windowed(window.buffer, window.offset_bytes, window.length))
            }
            Node::Date(ms) => Operand::Date(*ms),
            Node::Object(entries) if self.is_now(entries) => self.now(entries, position)?,
            _ => {
                let what = match null {
                    true => {
                        "null, a boolean, number, bigint, string, Date, Uint8Array or \
                         { $now: true }"
                    }
                    false => {
                        "a number, bigint, string, Date, boolean, Uint8Array or { $now: true }"
                    }
                };
                return self.wrong(id, position, what);
            }
        })
    }

    fn windowed(&self, buffer: NodeId, offset: u64, length: Option<u64>) -> Vec<u8> {
        let Some(Node::Buffer(buffer)) = self.value.node(buffer) else { return Vec::new() };
        let shown = buffer.bytes.iter().skip(offset as usize);
        shown.take(length.map_or(usize::MAX, |length| length as usize)).copied().collect()
    }

    /// Text or bytes.
    fn stretch(&mut self, id: NodeId, position: &Position<'_>) -> Result<Operand> {
        match self.value.node(id) {
            Some(Node::String(_) | Node::View(ViewClass::Uint8, _) | Node::Window(_)) => {
                match self.operand(id, position, false)? {
                    operand @ (Operand::Text(_) | Operand::Bytes(_)) => Ok(operand),
                    _ => self.wrong(id, position, "a string or Uint8Array"),
                }
            }
            _ => self.wrong(id, position, "a string or Uint8Array"),
        }
    }

    fn text(&mut self, id: NodeId, position: &Position<'_>) -> Result<Text> {
        match self.node(id, position)? {
            Node::String(text) => Ok(Text::fold(text.as_wtf8())),
            _ => self.wrong(id, position, "a string"),
        }
    }

    fn is_now(&self, entries: Entries<'_>) -> bool {
        entries.iter().any(|(name, _)| name.as_str() == Some("$now"))
    }

    /// `{ $now: true }`, with `$offset` beside it or inside.
    fn now(&mut self, entries: Entries<'v>, outer: &Position<'_>) -> Result<Operand> {
        let mut offset = 0.0;
        for (name, id) in entries {
            let position = Position::Name(outer, name);
            match (name.as_str(), self.node(*id, &position)?) {
                (Some("$now"), Node::Bool(true)) => {}
                (Some("$now"), Node::Object(inner)) => {
                    for (name, id) in inner {
                        let position = Position::Name(&position, name);
                        offset = self.offset(name, *id, &position)?;
                    }
                }
                (Some("$now"), _) => return self.wrong(*id, &position, "true or { $offset: ms }"),
                _ => offset = self.offset(name, *id, &position)?,
            }
        }
        Ok(Operand::Now(self.now_ms as f64 + offset))
    }

    fn offset(&mut self, name: &JsString, id: NodeId, position: &Position<'_>) -> Result<f64> {
        if name.as_str() != Some("$offset") {
            return position.refuse("unknown: beside $now there is only $offset, in ms");
        }
        match self.node(id, position)? {
            Node::Number(ms) if ms.is_finite() => Ok(*ms),
            _ => self.wrong(id, position, "a finite number of ms"),
        }
    }
}

/// The type of the node, for errors.
fn name_of(node: &Node) -> &'static str {
    match node {
        Node::Undefined => "undefined",
        Node::Null => "null",
        Node::Bool(_) => "a boolean",
        Node::Number(_) => "a number",
        Node::BigInt(_) => "a bigint",
        Node::String(_) => "a string",
        Node::Object(_) => "an object",
        Node::Array(_) | Node::SparseArray { .. } => "an array",
        Node::Map(_) => "a Map",
        Node::Set(_) => "a Set",
        Node::Date(_) => "a Date",
        Node::View(class, _) => class.name(),
        Node::Window(window) => window.class.name(),
        _ => "an object of another class",
    }
}
