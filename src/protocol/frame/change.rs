//! The mutations and their records.

use super::records::{self, Record};
use crate::codec::cbor;
use crate::model::{
    Arith, Bounds, Calculation, EncodedValue, Encoding, Mutation, Numeric, Operand, Time,
};
use crate::protocol::numbers::{append, calculate, set, set_expiry};

/// The mutation of a record. The error says why it is refused.
#[inline]
pub(super) fn mutation(record: Record, value_bytes_max: usize) -> Result<Mutation, &'static str> {
    let arith = |op, key, operand| Mutation::Arith { op, key, operand };
    Ok(match record {
        Record::Set(records::Set { flags, time, key, value }) => {
            Mutation::Set { key, suffixed: flags & set::SUFFIXED != 0, value, expiry: expiry(time) }
        }
        Record::Delete(records::Delete { key }) => Mutation::Delete { key },
        Record::Sum(records::Sum { key, value }) => arith(Arith::Sum, key, value),
        Record::Min(records::Min { key, value }) => arith(Arith::Min, key, value),
        Record::Max(records::Max { key, value }) => arith(Arith::Max, key, value),
        Record::Calculate(record) => calculated(record, value_bytes_max)?,
        Record::Append(records::Append { flags, time, key, value }) => Mutation::Append {
            key,
            items: value,
            front: flags & append::FRONT != 0,
            value_bytes_max,
            expiry: expiry(time),
        },
        Record::SetExpiry(records::SetExpiry { flags, time, key }) => Mutation::SetExpiry {
            key,
            expiry: expiry(time),
            required: flags & set_expiry::REQUIRED != 0,
        },
        Record::End(_)
        | Record::Check(_)
        | Record::CheckRange(_)
        | Record::Enqueue(_)
        | Record::EnqueueNamed(_)
        | Record::Patches(_)
        | Record::Tell(_)
        | Record::Id(_) => return Err("a record that is no mutation"),
    })
}

/// The record of a mutation.
pub(super) fn record(mutation: Mutation) -> Record {
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    match mutation {
        Mutation::Set { key, suffixed, value, expiry } => Record::Set(records::Set {
            flags: flag(suffixed, set::SUFFIXED),
            time: expiry,
            key,
            value,
        }),
        Mutation::Delete { key } => Record::Delete(records::Delete { key }),
        Mutation::Arith { op, key, operand: value } => match op {
            Arith::Sum => Record::Sum(records::Sum { key, value }),
            Arith::Min => Record::Min(records::Min { key, value }),
            Arith::Max => Record::Max(records::Max { key, value }),
        },
        Mutation::Calculate { key, calculation, expiry } => {
            let Calculation { op, operand, bounds, value_bytes_max: _ } = calculation;
            let bounds = bounds.map_or(Bounds { min: None, max: None, clamp: false }, |of| *of);
            Record::Calculate(records::Calculate {
                calculation: match op {
                    Arith::Sum => SUM,
                    Arith::Min => MIN,
                    Arith::Max => MAX,
                },
                flags: flag(bounds.clamp, calculate::CLAMP),
                time: expiry,
                key,
                value: match operand {
                    Operand::U64(number) => EncodedValue::le64(number),
                    Operand::Number(number) => encoded(&Numeric::Number(number)),
                    Operand::BigInt(number) => encoded(&Numeric::BigInt(number)),
                },
                min: bounds.min.as_ref().map(encoded),
                max: bounds.max.as_ref().map(encoded),
            })
        }
        Mutation::Append { key, items: value, front, expiry: time, value_bytes_max: _ } => {
            let flags = flag(front, append::FRONT);
            Record::Append(records::Append { flags, time, key, value })
        }
        Mutation::SetExpiry { key, expiry: time, required } => {
            let flags = flag(required, set_expiry::REQUIRED);
            Record::SetExpiry(records::SetExpiry { flags, time, key })
        }
    }
}

/// The operation of a CALCULATE.
const SUM: u8 = 0;
const MIN: u8 = 1;
const MAX: u8 = 2;

fn calculated(
    record: records::Calculate,
    value_bytes_max: usize,
) -> Result<Mutation, &'static str> {
    let records::Calculate { calculation, flags, time, key, value, min, max } = record;
    let op = match calculation {
        SUM => Arith::Sum,
        MIN => Arith::Min,
        MAX => Arith::Max,
        _ => return Err("an unknown calculation"),
    };
    let operand = match (value.as_le64(), numeric(&value)) {
        (Some(n), _) => Operand::U64(n),
        (None, Some(Numeric::Number(n))) => Operand::Number(n),
        (None, Some(Numeric::BigInt(n))) => Operand::BigInt(n),
        (None, None) => return Err("an operand that is no number"),
    };
    let bound = |given: Option<EncodedValue>| {
        let number = |value| numeric(&value).ok_or("a bound that is no number");
        given.map(number).transpose()
    };
    let (min, max, clamp) = (bound(min)?, bound(max)?, flags & calculate::CLAMP != 0);
    let bounds = (flags & !calculate::EXPIRES != 0).then(|| Box::new(Bounds { min, max, clamp }));
    let calculation = Calculation { op, operand, bounds, value_bytes_max };
    Ok(Mutation::Calculate { key, calculation, expiry: expiry(time) })
}

/// Decodes a finite number or a bigint.
fn numeric(value: &EncodedValue) -> Option<Numeric> {
    let number = (value.encoding == Encoding::Cbor).then(|| cbor::number_of(&value.bytes))??;
    (!matches!(number, Numeric::Number(n) if !n.is_finite())).then_some(number)
}

fn encoded(number: &Numeric) -> EncodedValue {
    let bytes = match number {
        Numeric::Number(number) => cbor::encode_number(*number),
        Numeric::BigInt(number) => cbor::encode_bigint(number),
    };
    EncodedValue { encoding: Encoding::Cbor, bytes }
}

/// An expiry before the epoch is one at the epoch.
fn expiry(time: Option<Time>) -> Option<Time> {
    time.map(|time| match time {
        Time::At(ms) => Time::At(ms.max(0)),
        after @ Time::After(_) => after,
    })
}
