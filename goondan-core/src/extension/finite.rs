//! Finds numbers that JSON does not have: `serde_json` writes NaN and infinity as null, and so loses them.

use std::fmt::Display;

use serde::ser::{self, Error as _, Serialize, Serializer};
use serde_json::Error;

/// Visits everything that `value` serializes.
///
/// # Errors
/// When a number in it is NaN or infinite, and the error of its `Serialize` implementation.
pub(super) fn check_finite<T: Serialize + ?Sized>(value: &T) -> Result<(), Error> {
    value.serialize(Finite)
}

/// A serializer that writes nothing and refuses numbers that are not finite.
#[derive(Clone, Copy)]
struct Finite;

impl Finite {
    fn check(self, number: impl Into<f64>) -> Result<(), Error> {
        let number = number.into();
        if number.is_finite() { Ok(()) } else { Err(Error::custom(format!("JSON has no number {number}"))) }
    }
}

/// Accepts values of these types.
macro_rules! accept {
    ($($method:ident($($value:ty),*);)*) => {
        $(fn $method(self, $(_: $value),*) -> Result<(), Error> {
            Ok(())
        })*
    };
}

/// Accepts the beginnings of composite values, whose members follow.
macro_rules! enter {
    ($($method:ident($($value:ty),*);)*) => {
        $(fn $method(self, $(_: $value),*) -> Result<Self, Error> {
            Ok(self)
        })*
    };
}

impl Serializer for Finite {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    fn serialize_f32(self, number: f32) -> Result<(), Error> {
        self.check(number)
    }

    fn serialize_f64(self, number: f64) -> Result<(), Error> {
        self.check(number)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn collect_str<T: Display + ?Sized>(self, _: &T) -> Result<(), Error> {
        Ok(())
    }

    accept! {
        serialize_bool(bool);
        serialize_i8(i8);
        serialize_i16(i16);
        serialize_i32(i32);
        serialize_i64(i64);
        serialize_i128(i128);
        serialize_u8(u8);
        serialize_u16(u16);
        serialize_u32(u32);
        serialize_u64(u64);
        serialize_u128(u128);
        serialize_char(char);
        serialize_str(&str);
        serialize_bytes(&[u8]);
        serialize_none();
        serialize_unit();
        serialize_unit_struct(&'static str);
        serialize_unit_variant(&'static str, u32, &'static str);
    }

    enter! {
        serialize_seq(Option<usize>);
        serialize_tuple(usize);
        serialize_tuple_struct(&'static str, usize);
        serialize_tuple_variant(&'static str, u32, &'static str, usize);
        serialize_map(Option<usize>);
        serialize_struct(&'static str, usize);
        serialize_struct_variant(&'static str, u32, &'static str, usize);
    }
}

/// Visits the members of composite values of one kind; `$before` are the arguments before the member.
macro_rules! members {
    ($($kind:ident: $($method:ident($($before:ty)?)),+;)*) => {
        $(impl ser::$kind for Finite {
            type Ok = ();
            type Error = Error;

            $(fn $method<T: Serialize + ?Sized>(&mut self, $(_: $before,)? value: &T) -> Result<(), Error> {
                value.serialize(*self)
            })+

            fn end(self) -> Result<(), Error> {
                Ok(())
            }
        })*
    };
}

members! {
    SerializeSeq: serialize_element();
    SerializeTuple: serialize_element();
    SerializeTupleStruct: serialize_field();
    SerializeTupleVariant: serialize_field();
    SerializeMap: serialize_key(), serialize_value();
    SerializeStruct: serialize_field(&'static str);
    SerializeStructVariant: serialize_field(&'static str);
}
