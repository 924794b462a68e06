//! The forms of the fields of records: reading, writing, and the layout from which JavaScript's code and the
//! tables of `js/native/contract.md` are generated.

use super::reader::{Reader, push_f64, push_sized};
use openkv_core::codec::Malformed;
use openkv_core::model::{EncodedValue, Key, Time, Versionstamp};

/// How the bytes of a field lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// A byte.
    U8,
    /// Two bytes.
    U16,
    /// Four bytes.
    U32,
    /// Eight bytes.
    U64,
    /// A double.
    F64,
    /// The time of the record: a double.
    Time,
    /// A versionstamp: hexadecimal digits.
    Stamp,
    /// So many bytes.
    Fixed(usize),
    /// A key after its length.
    Key,
    /// UTF-8 after its length.
    Text,
    /// Bytes after their length.
    Sized,
    /// The encoding, the length, the bytes.
    Value,
    /// A byte that says whether the field follows.
    Optional {
        /// The field.
        of: &'static Self,
    },
    /// A number of items.
    List {
        /// Their number.
        count: &'static Self,
        /// The fields of one.
        item: &'static [Self],
    },
}

impl Layout {
    /// The least number of bytes.
    pub const fn bytes_min(self) -> usize {
        match self {
            Self::U8 | Self::Optional { .. } => 1,
            Self::U16 => 2,
            Self::U32 | Self::Key | Self::Text | Self::Sized => 4,
            Self::Value => 5,
            Self::U64 | Self::F64 | Self::Time => 8,
            Self::Stamp => Versionstamp::HEX_BYTES,
            Self::Fixed(bytes) => bytes,
            Self::List { count, .. } => count.bytes_min(),
        }
    }
}

/// What a field of a record can be.
pub(super) trait Form: Sized {
    /// How its bytes lie.
    const LAYOUT: Layout;
    /// The least number of its bytes.
    const BYTES_MIN: usize = Self::LAYOUT.bytes_min();

    /// Reads it.
    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed>;
    /// Appends it.
    fn push(&self, out: &mut Vec<u8>);
    /// Whether it is a time from the commit, which the first byte of the record says.
    fn is_relative(&self) -> bool {
        false
    }
}

macro_rules! forms {
    ($($form:ty = $layout:ident, $read:expr, $push:expr;)+) => {
        $(impl Form for $form {
            const LAYOUT: Layout = Layout::$layout;

            #[inline]
            fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
                $read(reader)
            }

            fn push(&self, out: &mut Vec<u8>) {
                $push(out, self);
            }
        })+
    };
}

forms! {
    u8 = U8, Reader::u8, |out: &mut Vec<u8>, number: &u8| out.push(*number);
    u32 = U32, Reader::u32, |out: &mut Vec<u8>, n: &u32| out.extend_from_slice(&n.to_le_bytes());
    u64 = U64, Reader::u64, |out: &mut Vec<u8>, n: &u64| out.extend_from_slice(&n.to_le_bytes());
    i64 = F64, Reader::time_ms, |out: &mut Vec<u8>, number: &i64| push_f64(out, *number);
    Key = Key, Reader::key, |out: &mut Vec<u8>, key: &Key| push_sized(out, key.as_bytes());
    String = Text, Reader::string, |out: &mut Vec<u8>, text: &String| push_sized(out, text.as_bytes());
    Vec<u8> = Sized, sized, |out: &mut Vec<u8>, bytes: &Vec<u8>| push_sized(out, bytes);
    EncodedValue = Value, Reader::value, push_value;
    Hex = Stamp, hex, |out: &mut Vec<u8>, hex: &Hex| out.extend_from_slice(&hex.0);
}

fn sized(reader: &mut Reader<'_>) -> Result<Vec<u8>, Malformed> {
    reader.sized().map(<[u8]>::to_vec)
}

fn push_value(out: &mut Vec<u8>, value: &EncodedValue) {
    out.push(value.encoding.id());
    push_sized(out, &value.bytes);
}

/// A versionstamp that is not yet parsed: a bad one rejects the write, not the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hex(pub(super) [u8; Versionstamp::HEX_BYTES]);

fn hex(reader: &mut Reader<'_>) -> Result<Hex, Malformed> {
    reader.array().map(Hex)
}

impl Form for Time {
    const LAYOUT: Layout = Layout::Time;

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        reader.time_of_record()
    }

    fn push(&self, out: &mut Vec<u8>) {
        let (Self::At(ms) | Self::After(ms)) = self;
        push_f64(out, *ms);
    }

    fn is_relative(&self) -> bool {
        matches!(self, Self::After(_))
    }
}

impl<const N: usize> Form for [u8; N] {
    const LAYOUT: Layout = Layout::Fixed(N);

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        reader.array()
    }

    fn push(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }
}

impl<T: Form> Form for Option<T> {
    const LAYOUT: Layout = Layout::Optional { of: &T::LAYOUT };

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let is_there = reader.u8()? != 0;
        reader.optional(is_there, T::read)
    }

    fn push(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.is_some()));
        self.iter().for_each(|of| of.push(out));
    }
}

/// The fields of one item of a list.
pub(super) trait Item: Sized {
    /// Their layouts.
    const LAYOUTS: &'static [Layout];
    /// The least number of their bytes.
    const BYTES_MIN: usize;

    /// Reads them.
    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed>;
    /// Appends them.
    fn push(&self, out: &mut Vec<u8>);
}

macro_rules! items {
    ($(($($name:ident),+))+) => {
        $(impl<$($name: Form),+> Item for ($($name,)+) {
            const LAYOUTS: &'static [Layout] = &[$($name::LAYOUT),+];
            const BYTES_MIN: usize = 0 $(+ $name::BYTES_MIN)+;

            fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
                Ok(($($name::read(reader)?,)+))
            }

            #[expect(non_snake_case, reason = "a field is named as its type")]
            fn push(&self, out: &mut Vec<u8>) {
                let ($($name,)+) = self;
                $($name.push(out);)+
            }
        })+
    };
}

items! { (A) (A, B) (A, B, C) }

macro_rules! lists {
    ($($name:ident, $count:ident, $of:ty, $read:expr;)+) => {
        $(
            #[doc = concat!("Items after their number, a ", stringify!($of), ".")]
            #[derive(Clone, Debug, PartialEq)]
            pub(super) struct $name<T>(pub(super) Vec<T>);

            impl<T: Item> Form for $name<T> {
                const LAYOUT: Layout = Layout::List { count: &Layout::$count, item: T::LAYOUTS };

                fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
                    let count = $read(reader)?;
                    reader.items(count, T::BYTES_MIN, T::read).map(Self)
                }

                fn push(&self, out: &mut Vec<u8>) {
                    out.extend_from_slice(&(self.0.len() as $of).to_le_bytes());
                    self.0.iter().for_each(|item| item.push(out));
                }
            }
        )+
    };
}

lists! {
    List8, U8, u8, |reader: &mut Reader<'_>| reader.u8().map(usize::from);
    List16, U16, u16, Reader::u16;
    List32, U32, u32, |reader: &mut Reader<'_>| reader.u32().map(|count| count as usize);
}
