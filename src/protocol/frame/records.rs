//! The records of a write, each declared once: reading and writing it here, and the table from which
//! `js/records/layout.ts` and the tables of `js/native/contract.md` are generated.

use super::form::{Form, Hex, Layout, List8, List16, List32};
use super::reader::Reader;
use crate::codec::Malformed;
use crate::model::{EncodedValue, Key, Time, WriteId};
use crate::protocol::numbers::timed::RELATIVE;
use crate::protocol::numbers::{self, record};

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
        $flags = $reader.flags(numbers::$group::ALL)?;
        $flags
    }};
    (read $reader:ident $flags:ident $form:ty, $group:ident $flag:ident) => {
        $reader.optional($flags & numbers::$group::$flag != 0, <$form as Form>::read)?
    };

    (flag $value:expr) => { 0 };
    (flag $value:expr, $group:ident) => { $value };
    (flag $value:expr, $group:ident $flag:ident) => {
        if $value.is_some() { numbers::$group::$flag } else { 0 }
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
    Tell = TELL { flags: u8 = tell }
    Id = WRITE_ID { id: [u8; WriteId::BYTES] }
}
