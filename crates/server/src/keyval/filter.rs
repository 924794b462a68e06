//! `where` of KeyVal as a filter of openkv.
//!
//! KeyVal's conditions are those of SQL: about `null`, and about a value that is absent, most conditions neither hold nor
//! do not hold, and `$not` of such a condition does not hold either. So a negation is moved inwards, to the conditions
//! on one value.

use std::cell::Cell;

use serde_json::value::RawValue;

use super::bigint::typed;
use super::json::{Tree, number_text, quoted};
use crate::api::problem::Problem;
use openkv_core::filter::Filter;
use openkv_core::interchange::where_json;
use openkv_core::model::WHERE_JSON_BYTES_MAX;

/// A condition that never holds.
const NEVER: &str = r#"{"$or":[]}"#;
/// A condition that always holds.
const ALWAYS: &str = "{}";

/// The encoded filter of a `where` at this time; `None` without one.
///
/// # Errors
/// An operator that KeyVal does not have. KeyVal ignores it, and so deletes what was not meant.
pub(super) fn of_json(raw: Option<&RawValue>, now_ms: i64) -> Result<Option<Vec<u8>>, Problem> {
    let Some(raw) = raw else { return Ok(None) };
    let text = translated(raw, now_ms)?;
    Ok(Some(where_json::parse(&text)?))
}

fn translated(raw: &RawValue, now_ms: i64) -> Result<String, Problem> {
    let tree = Tree::of("where", raw)?;
    let left = Cell::new(WHERE_JSON_BYTES_MAX);
    Translator { now_ms, left }.conditions(&tree, "where", false)
}

struct Translator {
    now_ms: i64,
    /// Bytes that the conditions to come may have: each repeats the path of its field.
    left: Cell<usize>,
}

fn refused<T>(place: &str, what: &str) -> Result<T, Problem> {
    Err(Problem::bad_request(format!("{place}: {what}")))
}

/// All of these conditions, or one of them for a negation.
fn joined(conditions: Vec<String>, negated: bool) -> String {
    match (conditions.as_slice(), negated) {
        ([], true) => NEVER.to_owned(),
        ([], false) => ALWAYS.to_owned(),
        ([one], _) => one.clone(),
        (many, false) => format!(r#"{{"$and":[{}]}}"#, many.join(",")),
        (many, true) => format!(r#"{{"$or":[{}]}}"#, many.join(",")),
    }
}

impl Translator {
    /// The conditions of an object, or their negation.
    fn conditions(&self, tree: &Tree, place: &str, negated: bool) -> Result<String, Problem> {
        let Tree::Object(members) = tree else {
            return refused(place, "a filter is an object");
        };
        let mut all = Vec::with_capacity(members.len());
        for (name, value) in members {
            let place = format!("{place}.{name}");
            match (name.as_str(), value) {
                // Without filters both say nothing.
                ("$and" | "$or", Tree::Array(filters)) if filters.is_empty() => {}
                ("$and" | "$or", Tree::Array(filters)) => {
                    let each = filters.iter().enumerate().map(|(at, filter)| {
                        self.conditions(filter, &format!("{place}[{at}]"), negated)
                    });
                    let each = each.collect::<Result<Vec<_>, _>>()?;
                    all.push(joined(each, negated == (name == "$and")));
                }
                ("$not", value) => all.push(self.conditions(value, &place, !negated)?),
                (name, value) => all.push(self.field(name, value, &place, negated)?),
            }
        }
        Ok(joined(all, negated))
    }

    fn field(
        &self,
        name: &str,
        value: &Tree,
        place: &str,
        negated: bool,
    ) -> Result<String, Problem> {
        let Some(path) = path_of(name) else {
            return refused(place, "unknown operator: it stands behind the name of a field");
        };
        match value {
            Tree::Object(_) if self.is_value(value) => {
                self.condition(&path, "$eq", value, place, negated)
            }
            Tree::Object(operators) if !operators.is_empty() => {
                let each = operators.iter().map(|(operator, operand)| {
                    let place = format!("{place}.{operator}");
                    self.condition(&path, operator, operand, &place, negated)
                });
                Ok(joined(each.collect::<Result<_, _>>()?, negated))
            }
            Tree::Object(_) | Tree::Array(_) => {
                refused(place, "takes a value, or an object of operators")
            }
            Tree::Scalar(_) => self.condition(&path, "$eq", value, place, negated),
        }
    }

    /// Whether an object stands for a value.
    fn is_value(&self, tree: &Tree) -> bool {
        tree.now_offset_ms().is_some() || typed(&tree.at_time(self.now_ms)).is_some()
    }

    /// An operand; `None` for `null`.
    fn operand(&self, tree: &Tree, place: &str) -> Result<Option<String>, Problem> {
        if let Some(offset) = tree.now_offset_ms() {
            return Ok(Some(number_text(self.now_ms as f64 + offset)));
        }
        match tree {
            Tree::Scalar(text) if text == "null" => Ok(None),
            Tree::Scalar(text) => Ok(Some(text.clone())),
            Tree::Object(_) | Tree::Array(_) => match typed(&tree.at_time(self.now_ms)) {
                Some(bigint) => Ok(Some(bigint)),
                None => refused(place, "takes a text, a number, a boolean or {\"$now\":true}"),
            },
        }
    }

    fn operands(&self, tree: &Tree, place: &str) -> Result<Vec<Option<String>>, Problem> {
        let Tree::Array(items) = tree else { return refused(place, "takes an array of values") };
        items.iter().map(|item| self.operand(item, place)).collect()
    }

    /// One condition on the value at a path, or its negation.
    fn condition(
        &self,
        path: &str,
        operator: &str,
        operand: &Tree,
        place: &str,
        negated: bool,
    ) -> Result<String, Problem> {
        let Some(left) = self.left.get().checked_sub(path.len()) else {
            return refused("where", "its conditions are too long: use fewer, or shorter names");
        };
        self.left.set(left);
        let holds =
            |operator: &str, operand: &str| format!(r#"{{{path}:{{"{operator}":{operand}}}}}"#);
        // Of a value that is there.
        let present = |operator: &str, operand: &str| {
            format!(r#"{{{path}:{{"{operator}":{operand},"$null":false}}}}"#)
        };
        // The counterpart of an operator holds where a value is there and the operator does not hold.
        let either = |operator: &str, counterpart: &str, is_counterpart: bool| {
            let operand = self.operand(operand, place)?;
            Ok::<_, Problem>(match operand {
                // A comparison with null never holds, nor does its negation.
                None => NEVER.to_owned(),
                Some(operand) if is_counterpart != negated => present(counterpart, &operand),
                Some(operand) => holds(operator, &operand),
            })
        };
        Ok(match operator {
            "$null" | "$empty" | "$notEmpty" => {
                let is_set = operand.scalar() == Some("true");
                match (operator, is_set != negated) {
                    ("$null", is_null) => holds("$null", if is_null { "true" } else { "false" }),
                    (name, wanted) => is_empty(path, wanted == (name == "$empty")),
                }
            }
            "$in" | "$nin" => {
                let operands = self.operands(operand, place)?;
                let has_null = operands.iter().any(Option::is_none);
                let known: Vec<_> = operands.into_iter().flatten().collect();
                let list = format!("[{}]", known.join(","));
                match ((operator == "$in") != negated, has_null) {
                    (true, _) => holds("$in", &list),
                    (false, true) => NEVER.to_owned(),
                    (false, false) if known.is_empty() => ALWAYS.to_owned(),
                    (false, false) => present("$nin", &list),
                }
            }
            "$eq" | "$ne" => either("$eq", "$ne", operator == "$ne")?,
            "$contains" | "$notContains" => {
                either("$contains", "$notContains", operator == "$notContains")?
            }
            "$containsi" | "$notContainsi" => {
                either("$containsi", "$notContainsi", operator == "$notContainsi")?
            }
            "$gt" | "$gte" | "$lt" | "$lte" | "$startsWith" | "$endsWith" | "$startsWithi"
            | "$endsWithi" | "$between" => {
                let operand = match operator {
                    "$between" => {
                        let bounds = self.operands(operand, place)?;
                        let bounds: Option<Vec<_>> = bounds.into_iter().collect();
                        bounds.map(|bounds| format!("[{}]", bounds.join(",")))
                    }
                    _ => self.operand(operand, place)?,
                };
                match operand {
                    None => NEVER.to_owned(),
                    Some(operand) if negated => {
                        let inner = format!(r#"{{"{operator}":{operand}}}"#);
                        present("$not", &inner)
                    }
                    Some(operand) => holds(operator, &operand),
                }
            }
            _ => return refused(place, "unknown operator"),
        })
    }
}

/// Whether the value is absent, `null`, an empty text or an empty array, but no empty object.
fn is_empty(path: &str, wanted: bool) -> String {
    let array = Filter::EMPTY_ARRAY;
    let empty = format!(
        r#"{{"$or":[{{{path}:{{"$null":true}}}},{{{path}:""}},{{{path}:{{"{array}":true}}}}]}}"#
    );
    if wanted { empty } else { format!(r#"{{"$not":{empty}}}"#) }
}

/// The path of a field as a string of JSON: `items[0].price` is `items.0.price`. `None` for the name of an operator.
fn path_of(name: &str) -> Option<String> {
    let name = match name.strip_prefix("$.") {
        Some(rest) => rest,
        None if name.starts_with('$') => return None,
        None => name,
    };
    let mut path = String::with_capacity(name.len());
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('[') {
        let index = after.split_once(']');
        match index.filter(|(index, _)| {
            !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit())
        }) {
            Some((index, behind)) => {
                push_escaped(&mut path, before);
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(index);
                rest = behind;
            }
            None => {
                push_escaped(&mut path, before);
                path.push('[');
                rest = after;
            }
        }
    }
    push_escaped(&mut path, rest);
    // A field whose name begins with a dollar, behind a dot.
    Some(quoted(&path))
}

/// Appends a part of a path, in which a backslash stands for itself.
fn push_escaped(path: &mut String, part: &str) {
    path.push_str(&part.replace('\\', "\\\\"));
}
