//! The shared state of an extension: one JSON value for each extension and workspace.
// D-42

use std::fmt;
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::ExtensionApi;
use super::stored::Stored;
use crate::error::Result;

/// A value of an extension that the conversations of all agents of a workspace share, also in several processes at
/// once. Returned by [`InitContext::shared_state`](crate::InitContext::shared_state); the extension keeps it. Clones
/// are the same value.
///
/// In a `FileStore` it is the file `extensions/<name>.json` of the workspace, which a change replaces atomically: after
/// a crash it is the old value or the new one. It survives restarts. Unlike the [state](crate::ExtensionApi::state), it
/// belongs to no conversation: a change is stored at once and stays if the turn fails, and the value is not part of
/// the export of a conversation.
///
/// Both functions block the thread, as the store does: reading reads a file; a change waits for the changes of others,
/// and then writes and syncs, which takes milliseconds. Neither belongs into a loop over pieces of an answer.
///
/// ```
/// use std::collections::BTreeMap;
///
/// use goondan::extension::SharedState;
/// use goondan::prelude::*;
///
/// /// The input of the tool.
/// #[derive(Deserialize, JsonSchema)]
/// struct Count {
///     kind: String,
/// }
///
/// /// Counts the calls of its tool over all conversations.
/// struct Calls {
///     calls: SharedState<BTreeMap<String, u64>>,
/// }
///
/// #[goondan::extension(name = "calls")]
/// impl Calls {
///     #[init]
///     fn new(ctx: InitContext) -> Result<Self> {
///         Ok(Self { calls: ctx.shared_state()? })
///     }
///
///     /// Counts a call of one kind.
///     #[tool(effect = once)]
///     async fn count(&self, input: Count) -> Result<u64> {
///         self.calls.update(|calls| {
///             let count = calls.entry(input.kind).or_default();
///             *count += 1;
///             *count
///         })
///     }
/// }
/// ```
pub struct SharedState<T> {
    api: ExtensionApi,
    /// The type is only written and read.
    value: PhantomData<fn() -> T>,
}

impl<T: Default + Serialize + DeserializeOwned> SharedState<T> {
    pub(super) fn new(api: ExtensionApi) -> Self {
        Self { api, value: PhantomData }
    }

    /// Returns the value, its default if it was never set. It waits for no change: while one is being made, it returns
    /// the old value.
    ///
    /// # Errors
    /// `E_EXT_STATE` when the file is not JSON or when its value cannot be read as `T`, and `E_STORE_IO` when the file
    /// cannot be read. It is never reset: a person decides.
    pub fn read(&self) -> Result<T> {
        let value = self.api.host().shared_state()?;
        value.map_or_else(|| Ok(T::default()), |value| self.stored().read(value))
    }

    /// Changes the value and returns the output of `change`: no other conversation, in whatever process, can change it
    /// in between. A value that was never set is passed as its default. One that `change` leaves as it was is not
    /// written. Inside of `change`, [`read`](Self::read) returns the old value, and another change is an error.
    ///
    /// # Errors
    /// As for [`SharedState::read`]; `E_EXT_STATE` when the new value cannot be written as JSON, which has neither NaN
    /// nor infinity, when it is nested too deeply, or inside of a change; `E_STORE_IO` when the file cannot be written.
    /// The old value is kept, unless the error says that only the sync failed.
    pub fn update<R>(&self, change: impl FnOnce(&mut T) -> R) -> Result<R> {
        self.stored().update(change, |change| self.api.host().update_shared_state(change))
    }

    fn stored(&self) -> Stored<'_> {
        Stored::Shared(self.api.host().extension())
    }
}

impl<T> Clone for SharedState<T> {
    fn clone(&self) -> Self {
        Self { api: self.api.clone(), value: PhantomData }
    }
}

impl<T> fmt::Debug for SharedState<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedState({})", self.api.host().extension())
    }
}
