//! Typed access to the values of an extension that are stored as JSON: its state, and the value that its
//! conversations share.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::finite::check_finite;
use crate::depth::{self, Unwritable};
use crate::error::{Error, ErrorCode, Result};
use crate::name::ExtensionName;

/// A stored value of an extension, for the messages of errors.
#[derive(Clone, Copy)]
pub(super) enum Stored<'a> {
    State(&'a ExtensionName),
    Shared(&'a ExtensionName),
}

impl Stored<'_> {
    /// Returns the value as a `T`.
    ///
    /// # Errors
    /// `E_EXT_STATE` when it has another shape.
    pub(super) fn read<T: DeserializeOwned>(self, value: Value) -> Result<T> {
        serde_json::from_value(value).map_err(|error| {
            let error = self.error("is of another shape than the extension reads", error);
            match self {
                Self::State(_) => error,
                Self::Shared(extension) => error.suggest(format!(
                    "let the extension read the other shape too, or change `extensions/{extension}.json` of the workspace"
                )),
            }
        })
    }

    /// Returns `value` as JSON.
    ///
    /// # Errors
    /// `E_EXT_STATE` when JSON has no such value, or when it is nested too deeply.
    pub(super) fn write<T: Serialize + ?Sized>(self, value: &T) -> Result<Value> {
        let json = |error| self.error("cannot be written as JSON", error);
        let written = depth::to_value_within(value, depth::MAX_DEPTH).map_err(|error| match error {
            Unwritable::TooDeep(error) => error.refuse_state(self),
            Unwritable::Json(error) => json(error),
        })?;
        check_finite(value).map_err(json)?;
        Ok(written)
    }

    /// Passes a change of the JSON to `host`, and returns the output of `change`. A value that was never set is passed
    /// as its default.
    ///
    /// # Errors
    /// As for [`read`](Self::read) and [`write`](Self::write), and the error of `host`.
    pub(super) fn update<T: DeserializeOwned + Serialize + Default, R>(
        self,
        change: impl FnOnce(&mut T) -> R,
        host: impl FnOnce(&mut dyn FnMut(Option<Value>) -> Result<Value>) -> Result<()>,
    ) -> Result<R> {
        let (mut change, mut output) = (Some(change), None);
        host(&mut |value| {
            let mut value = value.map_or_else(|| Ok(T::default()), |value| self.read(value))?;
            output = change.take().map(|change| change(&mut value));
            self.write(&value).inspect_err(|_| depth::abandon(value))
        })?;
        output.ok_or_else(|| Error::msg(format!("the host did not call the change of {self}")))
    }

    fn error(self, why: &str, cause: serde_json::Error) -> Error {
        Error::new(ErrorCode::EXT_STATE, format!("{self} {why}")).caused_by(cause)
    }
}

impl fmt::Display for Stored<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::State(extension) => write!(f, "the state of `{extension}`"),
            Self::Shared(extension) => write!(f, "the shared state of `{extension}`"),
        }
    }
}
