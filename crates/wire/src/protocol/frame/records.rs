//! The records of a write, each declared once: its number, its flags and its fields. Reading and writing it follow,
//! and the table from which `js/records/layout.ts` and the tables of `js/native/contract.md` are generated. The
//! mutations and their records.

use self::timed::RELATIVE;
use super::form::{Form, Hex, Layout, List8, List16, List32};
use super::reader::Reader;
use crate::protocol::numbers::{Group, Number, numbers};
use openkv_core::codec::{Malformed, cbor};
use openkv_core::model::{
    Arith, Bounds, Calculation, EncodedValue, Encoding, Key, LimitAlgorithm, Limiting, Mutation,
    Numeric, Operand, Time, WriteId,
};

numbers! {
    /// Records of a write.
    record: u8, "OP_" {
        /// The write ends.
        END = 0x00;
        /// A check of an entry.
        CHECK = 0x01;
        /// Sets an entry.
        SET = 0x02;
        /// Deletes an entry.
        DELETE = 0x03;
        /// Adds to a number.
        SUM = 0x04;
        /// Keeps the smaller number.
        MIN = 0x05;
        /// Keeps the larger number.
        MAX = 0x06;
        /// Enqueues a message of Deno's queue.
        ENQUEUE = 0x07;
        /// Calculates with bounds or an expiry.
        CALCULATE = 0x08;
        /// Adds items to an array.
        APPEND = 0x09;
        /// Sets the expiry of an entry.
        SET_EXPIRY = 0x0a;
        /// ByteSpan of the record before that get generated UUIDs.
        PATCHES = 0x0b;
        /// A check of a range.
        CHECK_RANGE = 0x0c;
        /// Enqueues a message of a named queue.
        ENQUEUE_NAMED = 0x0e;
        /// Return values: what the outcome has besides the versionstamp.
        RETURN = 0x0f;
        /// The id by which a server recognises a repetition, once in a write; only from a client over a URL.
        WRITE_ID = 0x10;
        /// Acknowledges a message, if its lock holds.
        ACKNOWLEDGE = 0x11;
        /// What the message of the record before does if its deduplication key is taken.
        DEDUPLICATE = 0x12;
        /// Takes from a limiter.
        LIMIT = 0x1b;
        /// Makes the message of the record before that of a schedule, which is set.
        SCHEDULE = 0x13;
        /// Removes a schedule.
        UNSCHEDULE = 0x14;
        /// Makes the check of the record before, of a range, one of the entries that value indexes find in it.
        CHECK_FOUND = 0x5a;
        /// Makes the check of the record before, of what value indexes find, one of a part of an order.
        CHECK_ORDER = 0x5b;
    }

    /// Flag of the first byte of a record.
    timed: u8, "" {
        /// Its time is in ms from the commit.
        RELATIVE = 0x80;
    }

    /// Flags of a SET.
    set: u8, "" {
        /// The expiry follows.
        EXPIRES = 1;
        /// The commit's versionstamp is appended to the key.
        SUFFIXED = 2;
    }

    /// Flags of a CALCULATE.
    calculate: u8, "CALCULATE_" {
        /// The lower bound follows.
        MIN = 1;
        /// The upper bound follows.
        MAX = 2;
        /// A result beyond a bound becomes the bound.
        CLAMP = 4;
        /// The expiry follows.
        EXPIRES = 8;
    }

    /// Flags of an APPEND.
    append: u8, "APPEND_" {
        /// The items are added at the start.
        FRONT = 1;
        /// The expiry follows.
        EXPIRES = 2;
    }

    /// Flags of a SET_EXPIRY.
    set_expiry: u8, "SET_EXPIRY_" {
        /// The expiry follows.
        EXPIRES = 1;
        /// The write fails its check if there is no entry.
        REQUIRED = 2;
        /// An entry that expires earlier stays as it is.
        SHORTENS = 4;
    }

    /// Flags of a LIMIT.
    limit: u8, "LIMIT_" {
        /// It only tells, and takes nothing.
        PEEK = 1;
    }

    /// Flags of a RETURN.
    returns: u8, "RETURN_" {
        /// The results of the calculations.
        VALUES = 1;
    }
}

/// The layout of a record.
#[derive(Debug)]
pub struct RecordLayout {
    /// The name of its number.
    pub name: &'static str,
    /// Its first byte.
    pub number: u8,
    /// What follows.
    pub fields: &'static [Field],
}

impl RecordLayout {
    /// Whether its time may be one from the commit.
    pub fn is_timed(&self) -> bool {
        self.fields.iter().any(|field| field.layout == Layout::Time)
    }
}

/// A field of a record.
#[derive(Debug)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// How its bytes lie.
    pub layout: Layout,
    /// When it is there.
    pub presence: Presence,
}

/// When a field is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Always.
    Always,
    /// Always: it is the flags of this group.
    Flags(&'static str),
    /// If this flag of this group is set.
    If(&'static str, &'static str),
}

/// A field without flags (`form`), the flags of a group (`form, group`), or a field that is there if a flag is
/// set (`form, group FLAG`).
macro_rules! field {
    (type $form:ty) => { $form };
    (type $form:ty, $group:ident) => { $form };
    (type $form:ty, $group:ident $flag:ident) => { Option<$form> };

    (presence) => { Presence::Always };
    (presence $group:ident) => { Presence::Flags(stringify!($group)) };
    (presence $group:ident $flag:ident) => { Presence::If(stringify!($group), stringify!($flag)) };

    (read $reader:ident $flags:ident $form:ty) => { <$form as Form>::read($reader)? };
    (read $reader:ident $flags:ident $form:ty, $group:ident) => {{
        $flags = $reader.flags($group::ALL)?;
        $flags
    }};
    (read $reader:ident $flags:ident $form:ty, $group:ident $flag:ident) => {
        $reader.optional($flags & $group::$flag != 0, <$form as Form>::read)?
    };

    (flag $value:expr) => { 0 };
    (flag $value:expr, $group:ident) => { $value };
    (flag $value:expr, $group:ident $flag:ident) => {
        if $value.is_some() { $group::$flag } else { 0 }
    };

    (relative $value:expr) => { $value.is_relative() };
    (relative $value:expr, $group:ident) => { false };
    (relative $value:expr, $group:ident $flag:ident) => {
        $value.as_ref().is_some_and(Form::is_relative)
    };

    (push $out:ident $flags:ident $value:expr) => { $value.push($out) };
    (push $out:ident $flags:ident $value:expr, $group:ident) => { $out.push($flags) };
    (push $out:ident $flags:ident $value:expr, $group:ident $flag:ident) => {
        $value.iter().for_each(|value| value.push($out))
    };
}

macro_rules! records {
    ($(
        $name:ident = $number:ident {
            $($field:ident: $form:ty $(= $group:ident $(:: $flag:ident)?)?),* $(,)?
        }
    )+) => {
        /// A record of a write.
        #[derive(Clone, Debug, PartialEq)]
        pub(super) enum Record {
            $($name($name),)+
        }

        impl Record {
            /// Reads the next record.
            #[inline]
            pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
                let first = reader.u8()?;
                let relative = first & RELATIVE != 0;
                reader.relative = relative;
                let record = match first & !RELATIVE {
                    $(record::$number if $name::IS_TIMED || !relative => {
                        Self::$name($name::read(reader)?)
                    })+
                    _ => return Err(reader.refused("an unknown operation")),
                };
                if reader.relative {
                    return Err(reader.refused("a relative time that is missing"));
                }
                Ok(record)
            }

            /// Appends the record.
            pub(super) fn push(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$name(record) => record.push(out),)+
                }
            }
        }

        $(
            #[doc = concat!("[`record::", stringify!($number), "`]. Flags of fields that may be missing follow from these.")]
            #[derive(Clone, Debug, PartialEq)]
            pub(super) struct $name {
                $(pub(super) $field: field!(type $form $(, $group $($flag)?)?),)*
            }

            impl $name {
                const LAYOUT: RecordLayout = RecordLayout {
                    name: stringify!($number),
                    number: record::$number,
                    fields: &[$(Field {
                        name: stringify!($field),
                        layout: <$form as Form>::LAYOUT,
                        presence: field!(presence $($group $($flag)?)?),
                    }),*],
                };
                const IS_TIMED: bool = false $(|| matches!(<$form as Form>::LAYOUT, Layout::Time))*;

                #[inline]
                #[allow(
                    unused_mut, unused_variables, unused_assignments, clippy::unnecessary_wraps,
                    reason = "some records have no flags, or no fields"
                )]
                fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
                    let mut flags = 0;
                    $(let $field = field!(read reader flags $form $(, $group $($flag)?)?);)*
                    Ok(Self { $($field),* })
                }

                #[allow(unused_variables, reason = "some records have no flags")]
                fn push(&self, out: &mut Vec<u8>) {
                    let relative = false $(|| field!(relative self.$field $(, $group $($flag)?)?))*;
                    let flags: u8 = 0 $(| field!(flag self.$field $(, $group $($flag)?)?))*;
                    out.push(if relative { record::$number | RELATIVE } else { record::$number });
                    $(field!(push out flags self.$field $(, $group $($flag)?)?);)*
                }
            }
        )+

        /// The layouts of all records, in the order of their declaration.
        pub const RECORDS: &[RecordLayout] = &[$($name::LAYOUT),+];
    };
}

records! {
    End = END {}
    Check = CHECK { stamp: Option<Hex>, key: Key }
    CheckRange = CHECK_RANGE { from: Key, to: Key, seen: List32<(Hex, Key)> }
    CheckFound = CHECK_FOUND { now: i64, filter: Vec<u8> }
    CheckOrder = CHECK_ORDER {
        paths: List8<(u8, String)>,
        after: Option<Vec<u8>>,
        until: Option<Vec<u8>>,
    }
    Set = SET { flags: u8 = set, time: Time = set::EXPIRES, key: Key, value: EncodedValue }
    Delete = DELETE { key: Key }
    Sum = SUM { key: Key, value: EncodedValue }
    Min = MIN { key: Key, value: EncodedValue }
    Max = MAX { key: Key, value: EncodedValue }
    Calculate = CALCULATE {
        calculation: u8,
        flags: u8 = calculate,
        time: Time = calculate::EXPIRES,
        key: Key,
        value: EncodedValue,
        min: EncodedValue = calculate::MIN,
        max: EncodedValue = calculate::MAX,
    }
    Append = APPEND { flags: u8 = append, time: Time = append::EXPIRES, key: Key, value: Vec<u8> }
    SetExpiry = SET_EXPIRY { flags: u8 = set_expiry, time: Time = set_expiry::EXPIRES, key: Key }
    Enqueue = ENQUEUE {
        time: Time,
        backoff: List8<(u32,)>,
        undelivered: List16<(Key,)>,
        value: Vec<u8>,
    }
    EnqueueNamed = ENQUEUE_NAMED {
        time: Time,
        backoff: List8<(u32,)>,
        undelivered: List16<(Key,)>,
        priority: u8,
        dead_retention: i64,
        queue: String,
        deduplication: Option<String>,
        value: Vec<u8>,
    }
    Patches = PATCHES { patches: List32<(u8, u32, u64)> }
    Return = RETURN { flags: u8 = returns }
    Id = WRITE_ID { id: [u8; WriteId::BYTES] }
    Acknowledge = ACKNOWLEDGE { message: i64, lock: [u8; 8] }
    Deduplicate = DEDUPLICATE { mode: u8 }
    Limit = LIMIT { flags: u8 = limit, algorithm: u8, limit: u32, cost: u32, per: i64, key: Key }
    Schedule = SCHEDULE {
        missed: u8,
        every: i64,
        offset: i64,
        cron: Option<String>,
        zone: String,
        name: String,
    }
    Unschedule = UNSCHEDULE { queue: String, name: String }
}

/// The mutation of a record. The error says why it is refused.
#[inline]
pub(super) fn to_mutation(
    record: Record,
    value_bytes_max: usize,
) -> Result<Mutation, &'static str> {
    let arith = |op, key, operand| Mutation::Arith { op, key, operand };
    Ok(match record {
        Record::Set(Set { flags, time, key, value }) => {
            Mutation::Set { key, suffixed: flags & set::SUFFIXED != 0, value, expiry: expiry(time) }
        }
        Record::Delete(Delete { key }) => Mutation::Delete { key },
        Record::Sum(Sum { key, value }) => arith(Arith::Sum, key, value),
        Record::Min(Min { key, value }) => arith(Arith::Min, key, value),
        Record::Max(Max { key, value }) => arith(Arith::Max, key, value),
        Record::Calculate(record) => calculated(record, value_bytes_max)?,
        Record::Append(Append { flags, time, key, value }) => Mutation::Append {
            key,
            items: value,
            front: flags & append::FRONT != 0,
            value_bytes_max,
            expiry: expiry(time),
        },
        Record::SetExpiry(SetExpiry { flags, time, key }) => Mutation::SetExpiry {
            key,
            expiry: expiry(time),
            required: flags & set_expiry::REQUIRED != 0,
            shortens: flags & set_expiry::SHORTENS != 0,
        },
        Record::Limit(Limit { flags, algorithm, limit, cost, per, key }) => {
            let algorithm = LimitAlgorithm::ALL.get(usize::from(algorithm));
            let algorithm = *algorithm.ok_or("an unknown algorithm of a limiter")?;
            let peek = flags & limit::PEEK != 0;
            let limiting = Limiting::new(algorithm, limit, per, cost, peek)
                .map_err(|_| "a rule of a limiter that is out of bounds")?;
            Mutation::Limit { key, limiting }
        }
        Record::End(_)
        | Record::Check(_)
        | Record::CheckRange(_)
        | Record::CheckFound(_)
        | Record::CheckOrder(_)
        | Record::Enqueue(_)
        | Record::EnqueueNamed(_)
        | Record::Patches(_)
        | Record::Return(_)
        | Record::Id(_)
        | Record::Acknowledge(_)
        | Record::Deduplicate(_)
        | Record::Schedule(_)
        | Record::Unschedule(_) => return Err("a record that is no mutation"),
    })
}

/// The record of a mutation.
pub(super) fn to_record(mutation: Mutation) -> Record {
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    match mutation {
        Mutation::Set { key, suffixed, value, expiry } => {
            Record::Set(Set { flags: flag(suffixed, set::SUFFIXED), time: expiry, key, value })
        }
        Mutation::Delete { key } => Record::Delete(Delete { key }),
        Mutation::Arith { op, key, operand: value } => match op {
            Arith::Sum => Record::Sum(Sum { key, value }),
            Arith::Min => Record::Min(Min { key, value }),
            Arith::Max => Record::Max(Max { key, value }),
        },
        Mutation::Calculate { key, calculation, expiry } => {
            let Calculation { op, operand, bounds, value_bytes_max: _ } = calculation;
            let bounds = bounds.map_or(Bounds { min: None, max: None, clamp: false }, |of| *of);
            Record::Calculate(Calculate {
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
            Record::Append(Append { flags, time, key, value })
        }
        Mutation::SetExpiry { key, expiry: time, required, shortens } => {
            let flags = flag(required, set_expiry::REQUIRED) | flag(shortens, set_expiry::SHORTENS);
            Record::SetExpiry(SetExpiry { flags, time, key })
        }
        Mutation::Limit { key, limiting } => {
            let is_algorithm = |of: &LimitAlgorithm| *of == limiting.algorithm();
            let algorithm = LimitAlgorithm::ALL.iter().position(is_algorithm).unwrap_or_default();
            Record::Limit(Limit {
                flags: flag(limiting.is_peek(), limit::PEEK),
                algorithm: algorithm as u8,
                limit: limiting.limit(),
                cost: limiting.cost(),
                per: limiting.per_ms(),
                key,
            })
        }
    }
}

/// The operation of a CALCULATE.
const SUM: u8 = 0;
const MIN: u8 = 1;
const MAX: u8 = 2;

fn calculated(record: Calculate, value_bytes_max: usize) -> Result<Mutation, &'static str> {
    let Calculate { calculation, flags, time, key, value, min, max } = record;
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
