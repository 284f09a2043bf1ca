//! Owns how a result crosses to another binary: it stays where it was made, and its fields cross one by one, as JSON,
//! when they are asked for.

use std::fmt;
use std::sync::OnceLock;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// A result that lies on the other side.
pub trait RemoteResult: Send + Sync + fmt::Debug {
    /// The JSON of the field `name`.
    ///
    /// # Errors
    /// When the other side has no such field.
    fn read(&self, name: &'static str) -> Result<Vec<u8>>;
    /// Puts JSON in the place of the field `name`.
    ///
    /// # Errors
    /// When the other side cannot take it.
    fn write(&mut self, name: &'static str, json: &[u8]) -> Result<()>;
    /// What the linkage needs to give the result back.
    fn into_handle(self: Box<Self>) -> usize;
}

/// What a middleware gave: a result of the other side, to which changes were written, or one that was made here.
#[derive(Debug)]
pub enum Returned {
    /// Of the other side; the number is that of [`RemoteResult::into_handle`].
    Remote(usize),
    /// Made here, to recover from a failure.
    Here(Map<String, Value>),
}

/// A result that can cross: [`TurnResult`](crate::TurnResult), [`StepResult`](crate::StepResult),
/// [`ToolCallResult`](crate::ToolCallResult).
pub trait Crossing: Sized + Send + 'static {
    /// A result that stands for one of the other side.
    fn remote(origin: Box<dyn RemoteResult>) -> Self;
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
    /// The JSON of one field.
    ///
    /// # Errors
    /// When there is no such field.
    fn read(&self, name: &str) -> Result<Vec<u8>>;
    /// Puts JSON in the place of one field.
    ///
    /// # Errors
    /// When there is no such field, or when the JSON is of another shape.
    fn write(&mut self, name: &str, json: &[u8]) -> Result<()>;
}

/// Where a result lies.
#[derive(Debug)]
pub(crate) struct Origin(pub(crate) Option<Box<dyn RemoteResult>>);

impl Origin {
    /// In this binary.
    pub(crate) const HERE: Self = Self(None);
}

/// One field of a result: here, or on the other side until it is asked for.
pub(crate) struct Field<T> {
    name: &'static str,
    value: OnceLock<T>,
    changed: bool,
}

impl<T> From<T> for Field<T> {
    fn from(value: T) -> Self {
        Self { name: "", value: OnceLock::from(value), changed: false }
    }
}

impl<T: DeserializeOwned> Field<T> {
    /// The field `name` of the other side's result.
    pub(crate) fn unread(name: &'static str) -> Self {
        Self { name, value: OnceLock::new(), changed: false }
    }

    /// The value.
    ///
    /// # Panics
    /// When the other side does not keep to the contract. There is no value to go on with, and the panic stops at the
    /// border of the extension.
    #[expect(clippy::panic, reason = "see above")]
    pub(crate) fn get(&self, origin: &Origin) -> &T {
        self.value.get_or_init(|| {
            let Origin(Some(remote)) = origin else { panic!("a result without its field `{}`", self.name) };
            let read = remote.read(self.name).and_then(|json| Ok(serde_json::from_slice(&json)?));
            read.unwrap_or_else(|error| panic!("the host gave no `{}`: {error}", self.name))
        })
    }

    /// The value, to change it.
    ///
    /// # Panics
    /// Like [`Field::get`].
    #[expect(clippy::expect_used, reason = "`get` has just put it there")]
    pub(crate) fn get_mut(&mut self, origin: &Origin) -> &mut T {
        self.get(origin);
        self.changed = true;
        self.value.get_mut().expect("the value is there")
    }

    pub(crate) fn set(&mut self, value: T) {
        self.value = OnceLock::from(value);
        self.changed = true;
    }

    /// A field that came with the whole result.
    pub(crate) fn parse(value: Value) -> Result<Self> {
        Ok(Self::from(serde_json::from_value::<T>(value)?))
    }

    /// Reads a value from outside into the field.
    pub(crate) fn put(&mut self, json: &[u8]) -> Result<()> {
        self.value = OnceLock::from(serde_json::from_slice::<T>(json)?);
        Ok(())
    }
}

impl<T: Serialize + DeserializeOwned> Field<T> {
    /// Writes the value to the other side if it was changed.
    pub(crate) fn hand_over(&self, origin: &mut dyn RemoteResult) -> Result<()> {
        match self.value.get().filter(|_| self.changed) {
            Some(value) => origin.write(self.name, &serde_json::to_vec(value)?),
            None => Ok(()),
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Field<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value.get() {
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
        impl $crate::linkage::Crossing for $result {
            fn remote(origin: Box<dyn $crate::linkage::RemoteResult>) -> Self {
                let data = Box::new($data {
                    $($field: Field::unread($name),)*
                    $($(#[$attribute])* $here: Default::default(),)*
                    origin: Origin(Some(origin)),
                });
                Self { data }
            }

            fn give_back(self) -> crate::error::Result<$crate::linkage::Returned> {
                let fields = if self.data.origin.0.is_none() { Some(self.fields()) } else { None };
                let $data { $($field,)* origin, .. } = *self.data;
                match (origin.0, fields) {
                    (Some(mut origin), _) => {
                        $($field.hand_over(&mut *origin)?;)*
                        Ok($crate::linkage::Returned::Remote(origin.into_handle()))
                    }
                    (None, fields) => Ok($crate::linkage::Returned::Here(fields.unwrap_or_default())),
                }
            }

            fn fields(&self) -> serde_json::Map<String, serde_json::Value> {
                let mut fields = serde_json::Map::new();
                $(
                    let value = serde_json::to_value(self.data.$field.get(&self.data.origin));
                    // Each of the fields can be written as JSON: the journal and the reports do so.
                    fields.insert($name.to_owned(), value.unwrap_or_default());
                )*
                fields
            }

            fn from_fields(mut fields: serde_json::Map<String, serde_json::Value>) -> crate::error::Result<Self> {
                let data = Box::new($data {
                    $($field: {
                        let value = fields.remove($name).ok_or_else(|| {
                            crate::error::Error::msg(concat!("a result without its field `", $name, "`"))
                        })?;
                        Field::parse(value)?
                    },)*
                    $($(#[$attribute])* $here: Default::default(),)*
                    origin: Origin::HERE,
                });
                Ok(Self { data })
            }

            fn read(&self, name: &str) -> crate::error::Result<Vec<u8>> {
                match name {
                    $($name => Ok(serde_json::to_vec(self.data.$field.get(&self.data.origin))?),)*
                    _ => Err($crate::linkage::unknown(name)),
                }
            }

            fn write(&mut self, name: &str, json: &[u8]) -> crate::error::Result<()> {
                match name {
                    $($name => self.data.$field.put(json),)*
                    _ => Err($crate::linkage::unknown(name)),
                }
            }
        }
    };
}

pub(crate) use crossing;
