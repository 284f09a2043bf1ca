//! The state of an extension: one JSON value for each extension and instance.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::ExtensionHost;
use super::stored::Stored;
use crate::error::Result;

/// The state of an extension in one conversation: one JSON value that survives restarts. Returned by
/// [`ExtensionApi::state`](crate::ExtensionApi::state).
///
/// The state belongs to the name of the extension and to the instance. Changes are stored when the turn ends, or soon
/// after if no turn runs.
///
/// ```
/// use goondan::prelude::*;
///
/// # struct Counter;
/// # #[goondan::extension(name = "counter")]
/// # impl Counter {
/// #     #[init]
/// #     fn new() -> Self {
/// #         Self
/// #     }
/// #
/// /// Counts the calls of this tool in this conversation.
/// #[tool(effect = once)]
/// async fn count(&self, api: &ExtensionApi) -> Result<u64> {
///     api.state().update(|count: &mut u64| {
///         *count += 1;
///         *count
///     })
/// }
/// # }
/// ```
// STATE-01, STATE-03, STATE-04, STATE-06
pub struct StateApi<'a> {
    host: &'a dyn ExtensionHost,
}

impl<'a> StateApi<'a> {
    pub(super) fn new(host: &'a dyn ExtensionHost) -> Self {
        Self { host }
    }

    /// Returns the state, or `None` if it was never set.
    ///
    /// # Errors
    /// `E_EXT_STATE` when the stored value cannot be read as `T`.
    // STATE-02
    pub fn get<T: DeserializeOwned>(&self) -> Result<Option<T>> {
        self.host.state().map(|value| self.stored().read(value)).transpose()
    }

    /// Replaces the state by `value`.
    ///
    /// # Errors
    /// `E_EXT_STATE` when `value` cannot be written as JSON, which has neither NaN nor infinity, when it is nested too
    /// deeply, or inside of a change; the old state is kept.
    // STATE-08
    pub fn set<T: Serialize + ?Sized>(&self, value: &T) -> Result<()> {
        let value = self.stored().write(value)?;
        self.host.update_state(&mut |_| Ok(value.clone()))
    }

    /// Changes the state atomically, and returns the output of `change`: no other handler of this extension can change
    /// the state in between. A state that was never set is passed as its default. Inside of `change`,
    /// [`get`](Self::get) returns the old state, and another change is an error; changes in other threads wait.
    ///
    /// # Errors
    /// `E_EXT_STATE` as for [`StateApi::get`] and [`StateApi::set`]; the old state is kept.
    // D-23
    pub fn update<T: DeserializeOwned + Serialize + Default, R>(&self, change: impl FnOnce(&mut T) -> R) -> Result<R> {
        self.stored().update(change, |change| self.host.update_state(change))
    }

    fn stored(&self) -> Stored<'_> {
        Stored::State(self.host.extension())
    }
}

impl fmt::Debug for StateApi<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StateApi({})", self.host.extension())
    }
}
