//! Owns how a result crosses to another binary: it stays where it was made, and its fields cross one by one, as JSON,
//! when they are asked for.

use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::OnceLock;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// The other side, where results lie: it knows each by a number of its own.
pub trait FarSide: Send + Sync {
    /// The JSON of the field `name`.
    ///
    /// # Errors
    /// When the other side has no such field.
    fn read(&self, result: usize, name: &'static str) -> Result<Vec<u8>>;
    /// Puts JSON in the place of the field `name`.
    ///
    /// # Errors
    /// When the other side cannot take it.
    fn write(&self, result: usize, name: &'static str, json: &[u8]) -> Result<()>;
    /// Nobody here wants the result any more.
    fn end(&self, result: usize);
}

/// A result that lies on the other side, whose end it tells.
pub struct RemoteResult {
    side: &'static dyn FarSide,
    number: usize,
}

impl RemoteResult {
    /// The result that `side` calls `number`. Its methods are called only with such numbers.
    pub fn new(side: &'static dyn FarSide, number: usize) -> Self {
        Self { side, number }
    }

    /// Goes back to the other side, which therefore need not be told of its end.
    pub(crate) fn give_back(self) -> Returned {
        Returned::Remote(ManuallyDrop::new(self).number)
    }
}

impl Drop for RemoteResult {
    fn drop(&mut self) {
        self.side.end(self.number);
    }
}

impl fmt::Debug for RemoteResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RemoteResult")
    }
}

/// What a middleware gave: a result of the other side, to which changes were written, or one that was made here.
#[derive(Debug)]
pub enum Returned {
    /// Of the other side, which knows it by this number.
    Remote(usize),
    /// Made here, to recover from a failure.
    Here(Map<String, Value>),
}

/// A result that can cross: [`TurnResult`](crate::TurnResult), [`StepResult`](crate::StepResult),
/// [`ToolCallResult`](crate::ToolCallResult).
pub trait Crossing: Sized + Send + 'static {
    /// What the result is made of.
    type Data: Send + Sync + 'static;

    /// A result that stands for one of the other side.
    fn remote(origin: RemoteResult) -> Self;
    /// What goes back to the other side.
    ///
    /// # Errors
    /// When a change cannot be written there.
    fn give_back(self) -> Result<Returned>;
    /// All fields by name.
    fn fields(&self) -> Map<String, Value>;
    /// A result with the fields that [`Crossing::fields`] gave.
    ///
    /// # Errors
    /// When one is missing, or is of another shape.
    fn from_fields(fields: Map<String, Value>) -> Result<Self>;
    /// What the result is made of, for a linkage to keep while the other side has it.
    fn into_data(self) -> Box<Self::Data>;
    /// The result that is made of `data`.
    fn from_data(data: Box<Self::Data>) -> Self;
    /// The JSON of one field.
    ///
    /// # Errors
    /// When there is no such field.
    fn read(data: &Self::Data, name: &str) -> Result<Vec<u8>>;
    /// Puts JSON in the place of one field.
    ///
    /// # Errors
    /// When there is no such field, or when the JSON is of another shape.
    fn write(data: &mut Self::Data, name: &str, json: &[u8]) -> Result<()>;
}

/// What a result is made of: here, or on the other side. As small as it can be, because every layer hands it on.
#[derive(Debug)]
pub(crate) enum Crossed<D> {
    Here(Box<D>),
    Far(Aside<Far<D>>),
}

/// A result of the other side, and what is known here of its fields: made when the first of them is asked for.
#[derive(Debug)]
pub(crate) struct Far<D> {
    pub(crate) origin: RemoteResult,
    pub(crate) data: OnceLock<Box<D>>,
}

/// Where a far result lies. A program has hardly one, and those that its layers hand on should not be larger for it.
#[cfg(feature = "runtime")]
type Aside<T> = Box<T>;
/// Where a far result lies. In a library nearly all are far, and a box for each would be a fourth allocation in a layer.
#[cfg(not(feature = "runtime"))]
type Aside<T> = T;

/// The default has all fields on the other side.
impl<D: Default> Crossed<D> {
    pub(crate) fn here(data: D) -> Self {
        Self::Here(Box::new(data))
    }

    pub(crate) fn far(origin: RemoteResult) -> Self {
        let far = Far { origin, data: OnceLock::new() };
        #[cfg(feature = "runtime")]
        let far = Box::new(far);
        Self::Far(far)
    }

    fn parts(&self) -> (&D, Option<&RemoteResult>) {
        match self {
            Self::Here(data) => (data, None),
            Self::Far(far) => (far.data.get_or_init(Box::default), Some(&far.origin)),
        }
    }

    #[expect(clippy::expect_used, reason = "`get_or_init` has just put it there")]
    fn parts_mut(&mut self) -> (&mut D, Option<&RemoteResult>) {
        match self {
            Self::Here(data) => (data, None),
            Self::Far(far) => {
                far.data.get_or_init(Box::default);
                (far.data.get_mut().expect("the data is there"), Some(&far.origin))
            }
        }
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn get(&self) -> &D {
        self.parts().0
    }

    pub(crate) fn get_mut(&mut self) -> &mut D {
        self.parts_mut().0
    }

    pub(crate) fn field<T: DeserializeOwned>(&self, field: impl FnOnce(&D) -> &Field<T>) -> &T {
        let (data, origin) = self.parts();
        field(data).get(origin)
    }

    pub(crate) fn field_mut<T: DeserializeOwned>(&mut self, field: impl FnOnce(&mut D) -> &mut Field<T>) -> &mut T {
        let (data, origin) = self.parts_mut();
        field(data).get_mut(origin)
    }

    pub(crate) fn into_box(self) -> Box<D> {
        match self {
            Self::Here(data) => data,
            Self::Far(far) => far.data.into_inner().unwrap_or_default(),
        }
    }
}

/// One field of a result: here, or on the other side until it is asked for.
pub(crate) struct Field<T> {
    name: &'static str,
    place: Place<T>,
}

enum Place<T> {
    /// The other side has it; what was read of it.
    There(OnceLock<T>),
    /// Made here, or changed.
    Here(T),
}

impl<T> From<T> for Field<T> {
    fn from(value: T) -> Self {
        Self { name: "", place: Place::Here(value) }
    }
}

impl<T: DeserializeOwned> Field<T> {
    /// The field `name` of the other side's result.
    pub(crate) fn unread(name: &'static str) -> Self {
        Self { name, place: Place::There(OnceLock::new()) }
    }

    /// The value of the other side.
    ///
    /// # Panics
    /// When the other side does not keep to the contract. There is no value to go on with, and the panic stops at the
    /// border of the extension.
    #[expect(clippy::panic, reason = "see above")]
    fn ask(&self, origin: Option<&RemoteResult>) -> T {
        let Some(remote) = origin else { panic!("a result without its field `{}`", self.name) };
        let read = remote.side.read(remote.number, self.name).and_then(|json| Ok(serde_json::from_slice(&json)?));
        read.unwrap_or_else(|error| panic!("the host gave no `{}`: {error}", self.name))
    }

    /// The value.
    ///
    /// # Panics
    /// As above.
    pub(crate) fn get(&self, origin: Option<&RemoteResult>) -> &T {
        match &self.place {
            Place::Here(value) => value,
            Place::There(read) => read.get_or_init(|| self.ask(origin)),
        }
    }

    /// The value, to change it.
    ///
    /// # Panics
    /// As above.
    #[expect(clippy::unreachable, reason = "the value has just been put there")]
    pub(crate) fn get_mut(&mut self, origin: Option<&RemoteResult>) -> &mut T {
        if let Place::There(read) = &mut self.place {
            let read = read.take();
            self.set(read.unwrap_or_else(|| self.ask(origin)));
        }
        match &mut self.place {
            Place::Here(value) => value,
            Place::There(_) => unreachable!("the value is here"),
        }
    }

    pub(crate) fn set(&mut self, value: T) {
        self.place = Place::Here(value);
    }

    /// A field that came with the whole result.
    pub(crate) fn parse(value: Value) -> Result<Self> {
        Ok(Self::from(serde_json::from_value::<T>(value)?))
    }

    /// Reads a value from outside into the field.
    pub(crate) fn put(&mut self, json: &[u8]) -> Result<()> {
        self.set(serde_json::from_slice::<T>(json)?);
        Ok(())
    }
}

impl<T: Serialize + DeserializeOwned> Field<T> {
    /// Writes the value to the other side if it was changed.
    pub(crate) fn hand_over(&self, origin: &RemoteResult) -> Result<()> {
        match &self.place {
            Place::Here(value) => origin.side.write(origin.number, self.name, &serde_json::to_vec(value)?),
            Place::There(_) => Ok(()),
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Field<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = match &self.place {
            Place::Here(value) => Some(value),
            Place::There(read) => read.get(),
        };
        match value {
            Some(value) => value.fmt(f),
            None => f.write_str("(not read yet)"),
        }
    }
}

/// No result has a field of that name.
pub(crate) fn unknown(name: &str) -> Error {
    Error::msg(format!("the result has no field `{name}`"))
}

/// Writes the implementation of [`Crossing`] for a result in a box: its fields and their names, and behind `here` what
/// never crosses.
macro_rules! crossing {
    ($result:ident($data:ident) { $($field:ident: $name:literal,)* } here { $($(#[$attribute:meta])* $here:ident),* }) => {
        impl Default for $data {
            fn default() -> Self {
                Self {
                    $($field: Field::unread($name),)*
                    $($(#[$attribute])* $here: Default::default(),)*
                }
            }
        }

        impl $crate::linkage::Crossing for $result {
            type Data = $data;

            fn remote(origin: $crate::linkage::RemoteResult) -> Self {
                Self { data: Crossed::far(origin) }
            }

            fn give_back(self) -> crate::error::Result<$crate::linkage::Returned> {
                let Crossed::Far(far) = self.data else {
                    return Ok($crate::linkage::Returned::Here(self.fields()));
                };
                if let Some(data) = far.data.get() {
                    $(data.$field.hand_over(&far.origin)?;)*
                }
                Ok(far.origin.give_back())
            }

            fn fields(&self) -> serde_json::Map<String, serde_json::Value> {
                let mut fields = serde_json::Map::new();
                $(
                    let value = serde_json::to_value(self.data.field(|data| &data.$field));
                    // Each of the fields can be written as JSON: the journal and the reports do so.
                    fields.insert($name.to_owned(), value.unwrap_or_default());
                )*
                fields
            }

            fn from_fields(mut fields: serde_json::Map<String, serde_json::Value>) -> crate::error::Result<Self> {
                let data = Crossed::here($data {
                    $($field: {
                        let value = fields.remove($name).ok_or_else(|| {
                            crate::error::Error::msg(concat!("a result without its field `", $name, "`"))
                        })?;
                        Field::parse(value)?
                    },)*
                    $($(#[$attribute])* $here: Default::default(),)*
                });
                Ok(Self { data })
            }

            fn into_data(self) -> Box<$data> {
                self.data.into_box()
            }

            fn from_data(data: Box<$data>) -> Self {
                Self { data: Crossed::Here(data) }
            }

            fn read(data: &$data, name: &str) -> crate::error::Result<Vec<u8>> {
                match name {
                    $($name => Ok(serde_json::to_vec(data.$field.get(None))?),)*
                    _ => Err($crate::linkage::unknown(name)),
                }
            }

            fn write(data: &mut $data, name: &str, json: &[u8]) -> crate::error::Result<()> {
                match name {
                    $($name => data.$field.put(json),)*
                    _ => Err($crate::linkage::unknown(name)),
                }
            }
        }
    };
}

pub(crate) use crossing;
