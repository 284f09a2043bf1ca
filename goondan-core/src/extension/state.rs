//! Owns the state surface: one JSON value for each extension and instance (STATE-01).

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::ExtensionHost;
use crate::error::{Error, ErrorCode, Result};

/// The state of an extension in one conversation: one value that survives restarts. It is stored when the turn ends
/// (STATE-06), and belongs to the name of the extension (STATE-03) and to the instance (STATE-04).
pub struct StateApi<'a> {
    host: &'a dyn ExtensionHost,
}

impl<'a> StateApi<'a> {
    pub(super) fn new(host: &'a dyn ExtensionHost) -> Self {
        Self { host }
    }

    /// The state, or `None` when nothing has been stored (STATE-02).
    ///
    /// # Errors
    /// `E_EXT_STATE` when what is stored is of another shape.
    pub fn get<T: DeserializeOwned>(&self) -> Result<Option<T>> {
        self.host.state().map(|value| self.read(value)).transpose()
    }

    /// Puts `value` in the place of the state.
    ///
    /// # Errors
    /// `E_EXT_STATE` when `value` cannot be written as JSON; the old state is kept (STATE-08).
    pub fn set<T: Serialize + ?Sized>(&self, value: &T) -> Result<()> {
        let value = self.write(value)?;
        self.host.update_state(&mut |_| Ok(value.clone()))
    }

    /// Changes the state in one step, and gives what `change` gives: no other handler of this extension comes between
    /// reading and writing (D-23). Nothing stored reads as the default.
    ///
    /// # Errors
    /// `E_EXT_STATE` as for [`StateApi::get`] and [`StateApi::set`]; the old state is kept.
    pub fn update<T: DeserializeOwned + Serialize + Default, R>(&self, change: impl FnOnce(&mut T) -> R) -> Result<R> {
        let (mut change, mut output) = (Some(change), None);
        self.host.update_state(&mut |value| {
            let mut state = value.map_or_else(|| Ok(T::default()), |value| self.read(value))?;
            output = change.take().map(|change| change(&mut state));
            self.write(&state)
        })?;
        output.ok_or_else(|| Error::msg("the host did not ask for the change of the state"))
    }

    fn read<T: DeserializeOwned>(&self, value: Value) -> Result<T> {
        serde_json::from_value(value).map_err(|error| self.error("is of another shape than the extension reads", error))
    }

    fn write<T: Serialize + ?Sized>(&self, value: &T) -> Result<Value> {
        serde_json::to_value(value).map_err(|error| self.error("cannot be written as JSON", error))
    }

    fn error(&self, why: &str, cause: serde_json::Error) -> Error {
        let extension = self.host.extension();
        Error::new(ErrorCode::EXT_STATE, format!("the state of `{extension}` {why}")).caused_by(cause)
    }
}

impl fmt::Debug for StateApi<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StateApi({})", self.host.extension())
    }
}
