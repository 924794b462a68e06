//! What KeyVal's sums and appends make of entries: a missing entry, or one of another type, counts as none, and integers
//! stay exact beyond those that a number holds.

use num_bigint::BigInt;

use super::bigint::{SAFE_INTEGER_MAX, digits_of, whole};
use crate::api::entries::Entry;
use openkv_core::codec::cbor::{self, encode_bigint, encode_number, number_of};
use openkv_core::interchange::{bigint, plain_json};
use openkv_core::model::{
    Arith, Bounds, Calculation, Check, EncodedValue, Encoding, Error, Key, Limits, Mutation,
    Numeric, Operand, Result, Time, Versionstamp,
};

/// A change that a client asks for.
#[derive(Clone, Debug)]
pub(super) enum Change {
    /// `suffixed`: the versionstamp of the commit is the last part of the key.
    Set {
        key: Key,
        suffixed: bool,
        value: EncodedValue,
        expiry: Option<Time>,
    },
    Delete {
        key: Key,
    },
    Sum {
        op: Arith,
        key: Key,
        operand: BigInt,
    },
    Append {
        key: Key,
        items: Vec<u8>,
        front: bool,
    },
}

/// Changes that are computed from entries, and the checks under which they are right.
pub(super) struct Computed {
    pub(super) checks: Vec<Check>,
    pub(super) mutations: Vec<Mutation>,
    /// The values so far, by key; `None` without an entry.
    values: Vec<(Key, Option<EncodedValue>)>,
}

impl Computed {
    /// The change, if the store computes it, as it does for entries of the right type and results that numbers hold.
    pub(super) fn by_the_store(change: &Change) -> Option<Mutation> {
        let value_bytes_max = Limits::wide().value_bytes_max;
        Some(match change.clone() {
            Change::Set { key, suffixed, value, expiry } => {
                Mutation::Set { key, suffixed, value, expiry }
            }
            Change::Delete { key } => Mutation::Delete { key },
            Change::Append { key, items, front } => {
                Mutation::Append { key, items, front, value_bytes_max, expiry: None }
            }
            Change::Sum { op, key, operand } => {
                let operand = i64::try_from(&operand).ok()?;
                let is_safe = operand.unsigned_abs() <= SAFE_INTEGER_MAX.unsigned_abs();
                let operand = is_safe.then_some(Operand::Number(operand as f64))?;
                let end = |n: i64| Some(Numeric::Number(n as f64));
                let (min, max) = (end(-SAFE_INTEGER_MAX), end(SAFE_INTEGER_MAX));
                let bounds = Some(Box::new(Bounds { min, max, clamp: false }));
                let calculation = Calculation { op, operand, bounds, value_bytes_max };
                Mutation::Calculate { key, calculation, expiry: None }
            }
        })
    }

    /// `entries`: those of the keys of all sums and appends.
    pub(super) fn new(entries: impl Iterator<Item = (Key, Option<Entry>)>) -> Self {
        let (mut checks, mut values) = (Vec::new(), Vec::new());
        for (key, entry) in entries {
            let expected: Option<Versionstamp> = entry.as_ref().map(|entry| entry.stamp);
            checks.push(Check { key: key.clone(), expected });
            let value =
                entry.map(|entry| EncodedValue { encoding: entry.encoding, bytes: entry.value });
            values.push((key, value));
        }
        Self { checks, mutations: Vec::new(), values }
    }

    fn value(&mut self, key: &Key) -> Option<&mut Option<EncodedValue>> {
        self.values.iter_mut().find(|(known, _)| known == key).map(|(_, value)| value)
    }

    /// Appends a change.
    pub(super) fn push(&mut self, change: &Change) -> Result<()> {
        let mutation = match change {
            Change::Set { key, suffixed, value, expiry } => {
                if let Some(known) = self.value(key).filter(|_| !suffixed) {
                    *known = Some(value.clone());
                }
                let (key, value) = (key.clone(), value.clone());
                Mutation::Set { key, suffixed: *suffixed, value, expiry: *expiry }
            }
            Change::Delete { key } => {
                if let Some(known) = self.value(key) {
                    *known = None;
                }
                Mutation::Delete { key: key.clone() }
            }
            Change::Sum { op, key, operand } => {
                let known = self.value(key);
                let value = combined(*op, known.as_deref().and_then(Option::as_ref), operand)?;
                if let Some(known) = known {
                    *known = Some(value.clone());
                }
                Mutation::Set { key: key.clone(), suffixed: false, value, expiry: None }
            }
            Change::Append { key, items, .. } => {
                let known = self.value(key);
                let is_stored = known.as_deref().and_then(Option::as_ref).is_some_and(|value| {
                    value.encoding == Encoding::Cbor && is_array(&value.bytes)
                });
                let value = EncodedValue { encoding: Encoding::Cbor, bytes: items.clone() };
                if let Some(known) = known.filter(|_| !is_stored) {
                    *known = Some(value.clone());
                }
                match Self::by_the_store(change).filter(|_| is_stored) {
                    Some(append) => append,
                    None => {
                        Mutation::Set { key: key.clone(), suffixed: false, value, expiry: None }
                    }
                }
            }
        };
        self.mutations.push(mutation);
        Ok(())
    }
}

/// Whether the bytes are those of an array of CBOR.
fn is_array(bytes: &[u8]) -> bool {
    cbor::plain_items(&cbor::unpacked(bytes)).is_some()
}

/// A stored number.
enum Stored {
    Number(f64),
    BigInt(BigInt),
    U64(u64),
}

fn stored_of(value: &EncodedValue) -> Option<Stored> {
    if let Some(n) = value.as_le64() {
        return Some(Stored::U64(n));
    }
    if value.encoding != Encoding::Cbor {
        return None;
    }
    match number_of(&value.bytes) {
        Some(Numeric::Number(n)) => Some(Stored::Number(n)),
        Some(Numeric::BigInt(n)) => Some(Stored::BigInt(n)),
        // What a client has stored for a bigint.
        None => {
            let mut text = String::new();
            plain_json::push(&mut text, value.encoding, &value.bytes).ok()?;
            bigint(&digits_of(&text)?).ok().map(Stored::BigInt)
        }
    }
}

fn of_integers(op: Arith, stored: &BigInt, operand: &BigInt) -> BigInt {
    match op {
        Arith::Sum => stored + operand,
        Arith::Min => stored.min(operand).clone(),
        Arith::Max => stored.max(operand).clone(),
    }
}

/// The number of an integer, or a bigint if no number holds it.
fn encoded(n: &BigInt) -> EncodedValue {
    let safe = i64::try_from(n).ok();
    let safe = safe.filter(|n| n.unsigned_abs() <= SAFE_INTEGER_MAX.unsigned_abs());
    let bytes = safe.map_or_else(|| encode_bigint(n), |n| encode_number(n as f64));
    EncodedValue { encoding: Encoding::Cbor, bytes }
}

fn combined(op: Arith, stored: Option<&EncodedValue>, operand: &BigInt) -> Result<EncodedValue> {
    let cbor = |bytes| EncodedValue { encoding: Encoding::Cbor, bytes };
    Ok(match stored.and_then(stored_of) {
        None => encoded(operand),
        Some(Stored::BigInt(n)) => encoded(&of_integers(op, &n, operand)),
        Some(Stored::U64(n)) => {
            let result = of_integers(op, &n.into(), operand);
            let n = u64::try_from(&result).map_err(|_| {
                Error::invalid(format!("Failed to perform '{}': the result is no KvU64", op.name()))
            })?;
            EncodedValue::le64(n)
        }
        Some(Stored::Number(n)) => match whole(n) {
            Some(n) => encoded(&of_integers(op, &n, operand)),
            None => {
                let operand = operand.to_string().parse::<f64>().unwrap_or(f64::NAN);
                let result = match op {
                    Arith::Sum => n + operand,
                    Arith::Min => n.min(operand),
                    Arith::Max => n.max(operand),
                };
                if !result.is_finite() {
                    return Err(Error::invalid("the result is beyond the range of a number"));
                }
                cbor(encode_number(result))
            }
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(value: &EncodedValue) -> String {
        let mut text = String::new();
        plain_json::push(&mut text, value.encoding, &value.bytes).unwrap();
        text
    }

    #[test]
    fn sums_are_exact_and_other_types_count_as_missing() {
        let two_53 = 9_007_199_254_740_992_i64;
        for (op, stored, operand, expected) in [
            (Arith::Sum, None, 5, "5"),
            (Arith::Max, None, -5, "-5"),
            (Arith::Sum, Some("1.5"), 2, "3.5"),
            (Arith::Sum, Some("9007199254740991"), 2, "\"9007199254740993\""),
            (Arith::Sum, Some("9007199254740992"), 1, "\"9007199254740993\""),
            (Arith::Sum, Some("\"text\""), 7, "7"),
            (Arith::Min, Some("[1]"), 7, "7"),
            (Arith::Sum, Some(r#"{"__type":"bigint","value":"10"}"#), 5, "15"),
            (Arith::Max, Some("1e300"), 5, "1e+300"),
            (Arith::Sum, Some("-1"), two_53, "9007199254740991"),
        ] {
            let stored = stored.map(|text| plain_json::parse(text).unwrap());
            let result = combined(op, stored.as_ref(), &operand.into()).unwrap();
            assert_eq!(json(&result), expected, "{op:?} {operand}");
        }
        let large = combined(Arith::Sum, Some(&EncodedValue::le64(1)), &2.into()).unwrap();
        assert_eq!(large, EncodedValue::le64(3));
        assert!(combined(Arith::Sum, Some(&EncodedValue::le64(1)), &(-2).into()).is_err());
    }
}
