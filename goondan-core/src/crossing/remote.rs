//! A result that is stored in this binary, or in the host of this library.

use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::OnceLock;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::Lazy;
use crate::error::Result;

/// The binary that keeps results for this one. It names each by a number.
pub trait RemoteHost: Send + Sync {
    /// Returns the JSON of the field `name`.
    ///
    /// # Errors
    /// When the host has no such field.
    fn read(&self, result: usize, name: &'static str) -> Result<Vec<u8>>;
    /// Replaces the field `name` by the value that `json` holds.
    ///
    /// # Errors
    /// When the host refuses the value.
    fn write(&self, result: usize, name: &'static str, json: &[u8]) -> Result<()>;
    /// Releases the result: this binary does not use it any more.
    fn release(&self, result: usize);
}

/// A result that the host keeps. Dropping it releases it there.
pub struct RemoteResult {
    host: &'static dyn RemoteHost,
    number: usize,
}

impl RemoteResult {
    /// The result that `host` calls `number`. The methods of `host` are called with no other numbers.
    pub fn new(host: &'static dyn RemoteHost, number: usize) -> Self {
        Self { host, number }
    }

    pub(super) fn read(&self, name: &'static str) -> Result<Vec<u8>> {
        self.host.read(self.number, name)
    }

    pub(super) fn write(&self, name: &'static str, json: &[u8]) -> Result<()> {
        self.host.write(self.number, name, json)
    }

    /// Returns the result to the host, which is therefore not asked to release it.
    pub(crate) fn into_returned(self) -> Returned {
        Returned::Remote(ManuallyDrop::new(self).number)
    }
}

impl Drop for RemoteResult {
    fn drop(&mut self) {
        self.host.release(self.number);
    }
}

impl fmt::Debug for RemoteResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RemoteResult")
    }
}

/// What a middleware in a library returned.
#[derive(Debug)]
pub enum Returned {
    /// A result of the host, by its number. Changes were written to the host already.
    Remote(usize),
    /// The fields of a result that the library made, to recover from a failure.
    Local(Map<String, Value>),
}

/// A result that can cross to another binary: [`TurnResult`](crate::TurnResult), [`StepResult`](crate::StepResult),
/// [`ToolCallResult`](crate::ToolCallResult).
pub trait Crossing: Sized + Send + 'static {
    /// The fields of the result.
    type Data: Send + Sync + 'static;

    /// Returns a result whose fields are read from the host.
    fn remote(origin: RemoteResult) -> Self;
    /// Writes changed fields to the host, and returns what is returned to it.
    ///
    /// # Errors
    /// When the host refuses a changed field.
    fn into_returned(self) -> Result<Returned>;
    /// Returns all fields by name.
    ///
    /// # Errors
    /// `E_VALUE_DEPTH` when one holds a value that is nested too deeply.
    fn fields(&self) -> Result<Map<String, Value>>;
    /// Returns the result with the fields that [`Crossing::fields`] returned.
    ///
    /// # Errors
    /// When a field is missing or has another shape.
    fn from_fields(fields: Map<String, Value>) -> Result<Self>;
    /// Returns the fields, for a linkage to keep while the library has the result.
    fn into_data(self) -> Box<Self::Data>;
    /// Returns the result that consists of `data`.
    fn from_data(data: Box<Self::Data>) -> Self;
    /// Returns the result twice. The first one that is changed is copied before, so that the other one stays as it is.
    fn share(self) -> (Self, Self);
    /// Returns the JSON of one field.
    ///
    /// # Errors
    /// When there is no such field.
    fn read(data: &Self::Data, name: &str) -> Result<Vec<u8>>;
    /// Replaces one field by the value that `json` holds.
    ///
    /// # Errors
    /// When there is no such field, or the value has another shape.
    fn write(data: &mut Self::Data, name: &str, json: &[u8]) -> Result<()>;
}

/// The fields of a result, in this binary or in the host. As small as possible, because every layer moves it.
#[derive(Debug)]
pub(crate) enum MaybeRemote<D> {
    Local(Box<D>),
    Remote(InlineOrBox<Remote<D>>),
    /// In this binary, by two results: see [`Crossing::share`].
    Shared(Arc<D>),
}

/// A result of the host, and the fields that were read or changed so far. They are allocated on first use.
#[derive(Debug)]
pub(crate) struct Remote<D> {
    pub(crate) origin: RemoteResult,
    pub(crate) data: OnceLock<Box<D>>,
}

/// Boxed in a program, where remote results are rare and must not make local ones larger.
#[cfg(feature = "program")]
type InlineOrBox<T> = Box<T>;
/// Inline in a library, where nearly all results are remote and a box would be one more allocation for each layer.
#[cfg(not(feature = "program"))]
type InlineOrBox<T> = T;

/// The default of `D` has all fields unread.
impl<D: Default + Clone> MaybeRemote<D> {
    pub(crate) fn local(data: D) -> Self {
        Self::Local(Box::new(data))
    }

    pub(crate) fn remote(origin: RemoteResult) -> Self {
        Self::Remote(InlineOrBox::from(Remote { origin, data: OnceLock::new() }))
    }

    fn parts(&self) -> (&D, Option<&RemoteResult>) {
        match self {
            Self::Local(data) => (data, None),
            Self::Remote(remote) => (remote.data.get_or_init(Box::default), Some(&remote.origin)),
            Self::Shared(data) => (data, None),
        }
    }

    #[expect(clippy::expect_used, reason = "`get_or_init` has just set it")]
    fn parts_mut(&mut self) -> (&mut D, Option<&RemoteResult>) {
        match self {
            Self::Local(data) => (data, None),
            Self::Remote(remote) => {
                remote.data.get_or_init(Box::default);
                (remote.data.get_mut().expect("the data is set"), Some(&remote.origin))
            }
            Self::Shared(data) => (Arc::make_mut(data), None),
        }
    }

    pub(crate) fn get(&self) -> &D {
        self.parts().0
    }

    pub(crate) fn get_mut(&mut self) -> &mut D {
        self.parts_mut().0
    }

    pub(crate) fn field<T: DeserializeOwned>(&self, field: impl FnOnce(&D) -> &Lazy<T>) -> &T {
        let (data, origin) = self.parts();
        field(data).get(origin)
    }

    pub(crate) fn field_mut<T: DeserializeOwned>(&mut self, field: impl FnOnce(&mut D) -> &mut Lazy<T>) -> &mut T {
        let (data, origin) = self.parts_mut();
        field(data).get_mut(origin)
    }

    pub(crate) fn into_box(self) -> Box<D> {
        match self {
            Self::Local(data) => data,
            Self::Remote(remote) => remote.data.into_inner().unwrap_or_default(),
            Self::Shared(data) => Box::new(Arc::unwrap_or_clone(data)),
        }
    }

    pub(crate) fn share(self) -> (Self, Self) {
        let data = match self {
            Self::Shared(data) => data,
            other => Arc::from(other.into_box()),
        };
        (Self::Shared(Arc::clone(&data)), Self::Shared(data))
    }

    /// Returns a copy of a result that a shared step has.
    #[expect(clippy::unreachable, reason = "steps are shared in the host alone, where no result is remote")]
    pub(crate) fn copied(&self) -> Self {
        match self {
            Self::Local(data) => Self::Local(data.clone()),
            Self::Remote(_) => unreachable!("a shared step has no remote results"),
            Self::Shared(data) => Self::Shared(Arc::clone(data)),
        }
    }
}
