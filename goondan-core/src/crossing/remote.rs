//! Results that the host keeps for this binary, and the contract of results that cross.

use std::fmt;
use std::mem::ManuallyDrop;

use serde_json::{Map, Value};

use crate::error::{Error, ErrorCode, Result};

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

/// The return value of a middleware in a library.
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
    /// Writes changed fields to the host, and returns its answer.
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

/// The error for a field that no result has.
pub(crate) fn unknown(name: &str) -> Error {
    Error::msg(format!("the result has no field `{name}`"))
}

/// The error for a field that cannot be written. All have a JSON form, except values that extensions nested too deeply.
#[cold]
pub(crate) fn unwritable(error: serde_json::Error) -> Error {
    Error::new(ErrorCode::VALUE_DEPTH, error.to_string())
}
