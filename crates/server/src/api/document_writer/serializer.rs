//! The serializer of documents: from serde's calls to the items of a [`DocumentWriter`].
//!
//! It knows the types that it splices in by their names. A document has no other bytes.

use std::fmt::{self, Display, Formatter};

use serde::ser::{Error as _, Impossible, SerializeMap, SerializeSeq, SerializeStruct};
use serde::{Serialize, Serializer};

use super::{DocumentWriter, EXPIRY, KEY, MAP, Out, STORED, Spliced, head};
use openkv_core::model::{Encoding, Error};

/// Why a document is not written.
#[derive(Debug)]
pub(crate) enum Fault {
    /// A stored value cannot be read.
    Unreadable(Error),
    Failed(Error),
}

impl Display for Fault {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        let (Self::Unreadable(error) | Self::Failed(error)) = self;
        error.fmt(to)
    }
}

impl std::error::Error for Fault {}

impl serde::ser::Error for Fault {
    fn custom<T: Display>(text: T) -> Self {
        Self::Failed(Error::internal(text.to_string()))
    }
}

fn unknown<T>(what: &str) -> Result<T, Fault> {
    Err(Fault::custom(format!("a document has no {what}")))
}

/// The items of an array under construction.
pub(crate) struct Items<'w>(&'w mut DocumentWriter);

impl SerializeSeq for Items<'_> {
    type Ok = ();
    type Error = Fault;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), Fault> {
        item.serialize(&mut *self.0)
    }

    fn end(self) -> Result<(), Fault> {
        if let Out::Plain(text) | Out::Typed(text) = &mut self.0.out {
            text.push(']');
        }
        Ok(())
    }
}

/// The members of an object under construction.
pub(crate) struct Members<'w> {
    pub(super) written: &'w mut DocumentWriter,
    /// Those of the object around it.
    pub(super) outer: u64,
    /// Where its first member begins.
    pub(super) start: usize,
}

impl Members<'_> {
    fn close(self) {
        let Self { written, outer, start } = self;
        match &mut written.out {
            Out::Plain(text) | Out::Typed(text) => text.push('}'),
            // The number of members is known only now. Objects are short.
            Out::Cbor(bytes) => drop(bytes.splice(start..start, head(MAP, written.members))),
        }
        written.members = outer;
    }
}

impl SerializeStruct for Members<'_> {
    type Ok = ();
    type Error = Fault;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Fault> {
        self.written.member(name, value)
    }

    fn end(self) -> Result<(), Fault> {
        self.close();
        Ok(())
    }
}

impl SerializeMap for Members<'_> {
    type Ok = ();
    type Error = Fault;

    fn serialize_entry<K: Serialize + ?Sized, V: Serialize + ?Sized>(
        &mut self,
        name: &K,
        value: &V,
    ) -> Result<(), Fault> {
        self.written.member(name, value)
    }

    fn serialize_key<T: Serialize + ?Sized>(&mut self, _name: &T) -> Result<(), Fault> {
        unknown("name without its value")
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, _value: &T) -> Result<(), Fault> {
        unknown("value without its name")
    }

    fn end(self) -> Result<(), Fault> {
        self.close();
        Ok(())
    }
}

macro_rules! numbers {
    ($($method:ident $type:ty),*) => {
        $(fn $method(self, item: $type) -> Result<(), Fault> {
            self.number(item.into());
            Ok(())
        })*
    };
}

macro_rules! unknown {
    ($($method:ident($($argument:ty),*) -> $done:ty, $what:literal;)*) => {
        $(fn $method(self, $(_: $argument),*) -> Result<$done, Fault> {
            unknown($what)
        })*
    };
}

impl<'w> Serializer for &'w mut DocumentWriter {
    type Ok = ();
    type Error = Fault;
    type SerializeSeq = Items<'w>;
    type SerializeMap = Members<'w>;
    type SerializeStruct = Members<'w>;
    type SerializeTuple = Impossible<(), Fault>;
    type SerializeTupleStruct = Impossible<(), Fault>;
    type SerializeTupleVariant = Impossible<(), Fault>;
    type SerializeStructVariant = Impossible<(), Fault>;

    numbers!(serialize_i8 i8, serialize_i16 i16, serialize_i32 i32, serialize_u8 u8,
        serialize_u16 u16, serialize_u32 u32, serialize_f32 f32, serialize_f64 f64);

    unknown! {
        // It may be beyond the integers of JSON.
        serialize_u64(u64) -> (), "u64";
        serialize_char(char) -> (), "character";
        serialize_unit_struct(&'static str) -> (), "struct without members";
        serialize_tuple(usize) -> Self::SerializeTuple, "tuple";
        serialize_tuple_struct(&'static str, usize) -> Self::SerializeTupleStruct, "tuple";
        serialize_tuple_variant(&'static str, u32, &'static str, usize)
            -> Self::SerializeTupleVariant, "variant with data";
        serialize_struct_variant(&'static str, u32, &'static str, usize)
            -> Self::SerializeStructVariant, "variant with data";
    }

    fn serialize_bool(self, item: bool) -> Result<(), Fault> {
        self.boolean(item);
        Ok(())
    }

    /// Only of an `ExpiryMs`: other numbers may be beyond the integers of JSON.
    fn serialize_i64(self, item: i64) -> Result<(), Fault> {
        let Some(Spliced::Expiry) = self.next.take() else { return unknown("i64") };
        self.expiry(item);
        Ok(())
    }

    fn serialize_str(self, item: &str) -> Result<(), Fault> {
        self.text(item);
        Ok(())
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<(), Fault> {
        match self.next.take() {
            Some(Spliced::Key) => self.key(bytes).map_err(Fault::Failed),
            Some(Spliced::Value(encoding)) => {
                self.value(encoding, bytes).map_err(Fault::Unreadable)
            }
            Some(Spliced::Expiry) | None => unknown("bytes"),
        }
    }

    fn serialize_none(self) -> Result<(), Fault> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, item: &T) -> Result<(), Fault> {
        item.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Fault> {
        self.null();
        Ok(())
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
    ) -> Result<(), Fault> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        item: &T,
    ) -> Result<(), Fault> {
        self.next = match name {
            KEY => Some(Spliced::Key),
            EXPIRY => Some(Spliced::Expiry),
            _ => None,
        };
        item.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        _variant: &'static str,
        item: &T,
    ) -> Result<(), Fault> {
        let encoding = Encoding::from_id(index.into()).filter(|_| name == STORED);
        self.next = encoding.map(Spliced::Value);
        if self.next.is_some() { item.serialize(self) } else { unknown("variant with data") }
    }

    fn serialize_seq(self, items: Option<usize>) -> Result<Items<'w>, Fault> {
        let Some(items) = items else { return unknown("array of unknown length") };
        self.array(items);
        Ok(Items(self))
    }

    fn serialize_map(self, _members: Option<usize>) -> Result<Members<'w>, Fault> {
        Ok(self.object())
    }

    fn serialize_struct(self, _name: &'static str, _members: usize) -> Result<Members<'w>, Fault> {
        Ok(self.object())
    }
}
