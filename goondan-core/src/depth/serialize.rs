//! Serialization that stops at the limit of nesting, so that it does not recurse further.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io::Write;
use std::mem::forget;

use serde::ser::{
    Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};
use serde_json::Value;

use super::{MAX_DEPTH, TooDeep, escaped};
use crate::error::Error;
use crate::size;

/// Why a value of a Rust type has no JSON.
#[derive(Debug)]
pub(crate) enum Unwritable {
    TooDeep(TooDeep),
    Json(serde_json::Error),
}

/// Values with more levels are not dropped when they are refused: their `Drop` recurses as their `Serialize` does.
/// Leaking some memory is better than a stack that overflows.
const DROPPED: usize = 256;

/// Converts `value` to JSON like [`serde_json::to_value`], but refuses a value that is too deep.
pub(crate) fn to_value<T: Serialize>(value: T) -> Result<Value, Unwritable> {
    let json = to_value_within(&value, MAX_DEPTH);
    if let Err(Unwritable::TooDeep(_)) = json {
        abandon(value);
    }
    json
}

/// Drops a value that was refused because it is too deep.
#[cold]
pub(crate) fn abandon<T: Serialize>(value: T) {
    if let Err(Unwritable::TooDeep(_)) = to_value_within(&value, DROPPED) {
        forget(value);
    }
}

/// Converts `value` to JSON, but refuses more than `levels` levels.
pub(crate) fn to_value_within<T: Serialize + ?Sized>(value: &T, levels: usize) -> Result<Value, Unwritable> {
    let refusal = Refusal::default();
    write(value, serde_json::value::Serializer, levels, &refusal)
}

/// Converts `value` to JSON like [`to_value`]. Returns `None` if it has more than `bytes`, as [`size`] counts them.
pub(crate) fn to_value_of_size<T: Serialize + ?Sized>(value: &T, bytes: usize) -> Result<Option<Value>, Unwritable> {
    let refusal = Refusal { left: Cell::new(Some(bytes)), ..Refusal::default() };
    match write(value, serde_json::value::Serializer, MAX_DEPTH, &refusal) {
        Err(Unwritable::Json(_)) if refusal.left.get().is_none() => Ok(None),
        written => written.map(Some),
    }
}

/// Writes `value` as JSON that is indented, but refuses a value that is too deep.
pub(crate) fn write_pretty<T: Serialize + ?Sized>(value: &T, to: impl Write) -> Result<(), Unwritable> {
    write(value, &mut serde_json::Serializer::pretty(to), MAX_DEPTH, &Refusal::default())
}

fn write<T: Serialize + ?Sized, S: Serializer<Error = serde_json::Error>>(
    value: &T,
    inner: S,
    levels: usize,
    refusal: &Refusal,
) -> Result<S::Ok, Unwritable> {
    value.serialize(Limited { inner, levels, refusal }).map_err(|error| match refusal.too_deep() {
        Some(too_deep) => Unwritable::TooDeep(too_deep),
        None => Unwritable::Json(error),
    })
}

impl fmt::Display for Unwritable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooDeep(error) => write!(f, "it {error}"),
            Self::Json(error) => error.fmt(f),
        }
    }
}

impl Unwritable {
    /// Returns the error for the output of a tool, and drops the output.
    #[cold]
    pub(crate) fn of_output<T: Serialize>(self, output: T) -> Error {
        match self {
            Self::TooDeep(error) => {
                abandon(output);
                error.refuse("the output of the tool")
            }
            Self::Json(error) => Error::msg(format!("the output of the tool cannot be written as JSON: {error}")),
        }
    }
}

/// Why a value is refused.
struct Refusal {
    /// The place at which it is too deep; its innermost segment comes first.
    place: RefCell<Option<Vec<String>>>,
    /// The number of bytes that are left, or `None` if it is too large.
    left: Cell<Option<usize>>,
}

impl Default for Refusal {
    fn default() -> Self {
        Self { place: RefCell::default(), left: Cell::new(Some(usize::MAX)) }
    }
}

impl Refusal {
    /// Counts a value with a text of so many bytes.
    fn count<E: serde::ser::Error>(&self, text: usize) -> Result<(), E> {
        self.left.set(self.left.get().and_then(|left| left.checked_sub(text + size::VALUE)));
        if self.left.get().is_some() { Ok(()) } else { Err(E::custom("too large")) }
    }

    #[cold]
    fn refuse<T, E: serde::ser::Error>(&self) -> Result<T, E> {
        self.place.borrow_mut().get_or_insert_default();
        Err(E::custom("nested too deeply"))
    }

    /// Adds a segment to the place, if a value inside of it was refused.
    #[cold]
    fn pass(&self, segment: impl FnOnce() -> String) {
        if let Some(segments) = &mut *self.place.borrow_mut() {
            segments.push(segment());
        }
    }

    fn too_deep(&self) -> Option<TooDeep> {
        let segments = self.place.take()?;
        Some(TooDeep { place: segments.iter().rev().map(|segment| format!("/{segment}")).collect() })
    }
}

/// A serializer, or a value to serialize, with the levels that are left.
struct Limited<'r, T> {
    inner: T,
    levels: usize,
    refusal: &'r Refusal,
}

impl<'r, T> Limited<'r, T> {
    /// Returns `inner` with the same levels left.
    fn same<U>(&self, inner: U) -> Limited<'r, U> {
        Limited { inner, levels: self.levels, refusal: self.refusal }
    }

    /// Enters `levels` levels.
    fn enter<C, E: serde::ser::Error>(
        self,
        levels: usize,
        open: impl FnOnce(T) -> Result<C, E>,
    ) -> Result<Compound<'r, C>, E> {
        self.refusal.count(0)?;
        match self.levels.checked_sub(levels) {
            Some(left) => {
                let inside = Limited { inner: open(self.inner)?, levels: left, refusal: self.refusal };
                Ok(Compound { inside, index: 0 })
            }
            None => self.refusal.refuse(),
        }
    }
}

impl<T: Serialize + ?Sized> Serialize for Limited<'_, &T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.inner.serialize(self.same(serializer))
    }
}

/// Passes scalars to the inner serializer.
macro_rules! scalars {
    ($($method:ident: $type:ty,)*) => {
        $(
            fn $method(self, value: $type) -> Result<S::Ok, S::Error> {
                self.refusal.count(0)?;
                self.inner.$method(value)
            }
        )*
    };
}

impl<'r, S: Serializer> Serializer for Limited<'r, S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Compound<'r, S::SerializeSeq>;
    type SerializeTuple = Compound<'r, S::SerializeTuple>;
    type SerializeTupleStruct = Compound<'r, S::SerializeTupleStruct>;
    type SerializeTupleVariant = Compound<'r, S::SerializeTupleVariant>;
    type SerializeMap = Compound<'r, S::SerializeMap>;
    type SerializeStruct = Compound<'r, S::SerializeStruct>;
    type SerializeStructVariant = Compound<'r, S::SerializeStructVariant>;

    scalars! {
        serialize_bool: bool,
        serialize_i8: i8,
        serialize_i16: i16,
        serialize_i32: i32,
        serialize_i64: i64,
        serialize_i128: i128,
        serialize_u8: u8,
        serialize_u16: u16,
        serialize_u32: u32,
        serialize_u64: u64,
        serialize_u128: u128,
        serialize_f32: f32,
        serialize_f64: f64,
        serialize_char: char,
        serialize_unit_struct: &'static str,
    }

    fn serialize_str(self, value: &str) -> Result<S::Ok, S::Error> {
        self.refusal.count(value.len())?;
        self.inner.serialize_str(value)
    }

    // They become a list of numbers.
    fn serialize_bytes(self, value: &[u8]) -> Result<S::Ok, S::Error> {
        self.refusal.count(value.len().saturating_mul(size::VALUE))?;
        self.inner.serialize_bytes(value)
    }

    fn serialize_unit(self) -> Result<S::Ok, S::Error> {
        self.inner.serialize_unit()
    }

    fn serialize_none(self) -> Result<S::Ok, S::Error> {
        self.inner.serialize_none()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        let value = self.same(value);
        self.inner.serialize_some(&value)
    }

    fn serialize_unit_variant(self, name: &'static str, index: u32, variant: &'static str) -> Result<S::Ok, S::Error> {
        self.inner.serialize_unit_variant(name, index, variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, name: &'static str, value: &T) -> Result<S::Ok, S::Error> {
        let value = self.same(value);
        self.inner.serialize_newtype_struct(name, &value)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        let refusal = self.refusal;
        let Some(levels) = self.levels.checked_sub(1) else { return refusal.refuse() };
        let written =
            self.inner.serialize_newtype_variant(name, index, variant, &Limited { inner: value, levels, refusal });
        written.inspect_err(|_| refusal.pass(|| escaped(variant)))
    }

    fn serialize_seq(self, len: Option<usize>) -> Result<Self::SerializeSeq, S::Error> {
        self.enter(1, |inner| inner.serialize_seq(len))
    }

    fn serialize_tuple(self, len: usize) -> Result<Self::SerializeTuple, S::Error> {
        self.enter(1, |inner| inner.serialize_tuple(len))
    }

    fn serialize_tuple_struct(self, name: &'static str, len: usize) -> Result<Self::SerializeTupleStruct, S::Error> {
        self.enter(1, |inner| inner.serialize_tuple_struct(name, len))
    }

    // A variant with several values is an object that holds a list, or another object.
    fn serialize_tuple_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeTupleVariant, S::Error> {
        self.enter(2, |inner| inner.serialize_tuple_variant(name, index, variant, len))
    }

    fn serialize_map(self, len: Option<usize>) -> Result<Self::SerializeMap, S::Error> {
        self.enter(1, |inner| inner.serialize_map(len))
    }

    fn serialize_struct(self, name: &'static str, len: usize) -> Result<Self::SerializeStruct, S::Error> {
        self.enter(1, |inner| inner.serialize_struct(name, len))
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeStructVariant, S::Error> {
        self.enter(2, |inner| inner.serialize_struct_variant(name, index, variant, len))
    }

    fn collect_str<T: fmt::Display + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.inner.collect_str(value)
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

/// A list or an object that is being serialized.
struct Compound<'r, C> {
    inside: Limited<'r, C>,
    /// The number of elements so far.
    index: usize,
}

/// Serializes elements, with the index in the place.
macro_rules! list {
    ($($trait:ident: $method:ident,)*) => {
        $(
            impl<C: $trait> $trait for Compound<'_, C> {
                type Ok = C::Ok;
                type Error = C::Error;

                fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), C::Error> {
                    let (value, index) = (self.inside.same(value), self.index);
                    self.index += 1;
                    let written = self.inside.inner.$method(&value);
                    written.inspect_err(|_| self.inside.refusal.pass(|| index.to_string()))
                }

                fn end(self) -> Result<C::Ok, C::Error> {
                    self.inside.inner.end()
                }
            }
        )*
    };
}

list! {
    SerializeSeq: serialize_element,
    SerializeTuple: serialize_element,
    SerializeTupleStruct: serialize_field,
    SerializeTupleVariant: serialize_field,
}

/// Serializes fields, with the name in the place.
macro_rules! fields {
    ($($trait:ident,)*) => {
        $(
            impl<C: $trait> $trait for Compound<'_, C> {
                type Ok = C::Ok;
                type Error = C::Error;

                fn serialize_field<T: Serialize + ?Sized>(
                    &mut self,
                    key: &'static str,
                    value: &T,
                ) -> Result<(), C::Error> {
                    let value = self.inside.same(value);
                    let written = self.inside.inner.serialize_field(key, &value);
                    written.inspect_err(|_| self.inside.refusal.pass(|| escaped(key)))
                }

                fn skip_field(&mut self, key: &'static str) -> Result<(), C::Error> {
                    self.inside.inner.skip_field(key)
                }

                fn end(self) -> Result<C::Ok, C::Error> {
                    self.inside.inner.end()
                }
            }
        )*
    };
}

fields! {
    SerializeStruct,
    SerializeStructVariant,
}

impl<C: SerializeMap> SerializeMap for Compound<'_, C> {
    type Ok = C::Ok;
    type Error = C::Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), C::Error> {
        self.inside.inner.serialize_key(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), C::Error> {
        let value = self.inside.same(value);
        self.inside.inner.serialize_value(&value)
    }

    fn serialize_entry<K: Serialize + ?Sized, T: Serialize + ?Sized>(
        &mut self,
        key: &K,
        value: &T,
    ) -> Result<(), C::Error> {
        let value = self.inside.same(value);
        let written = self.inside.inner.serialize_entry(key, &value);
        written.inspect_err(|_| self.inside.refusal.pass(|| name_of(key)))
    }

    fn end(self) -> Result<C::Ok, C::Error> {
        self.inside.inner.end()
    }
}

/// Returns a key as it is in a place.
fn name_of(key: &(impl Serialize + ?Sized)) -> String {
    match serde_json::to_value(key) {
        Ok(Value::String(name)) => escaped(&name),
        Ok(other) => other.to_string(),
        Err(_) => "?".to_owned(),
    }
}
