//! The effect of an extension's failure on the run that it happens in.

use serde::{Deserialize, Serialize};

/// The effect on a turn, a step or a tool call when a layer of an extension fails: with an error, by a panic, or by
/// taking too long.
///
/// A failure that happens further in, and that the layer passes on, is not a failure of the layer. Neither is an error
/// of [`Error::retry_after`](crate::Error::retry_after) in a step or a tool call, which asks the runtime to run it
/// again.
// FAIL-01
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum OnError {
    /// The turn or the step fails; a tool call ends with an error, which the model reads.
    #[default]
    Abort,
    /// The run goes on as if the extension had no such layer. Changes of the context from before the failure stay.
    Skip,
}

impl OnError {
    /// Returns whether this is the default.
    pub(super) fn is_abort(&self) -> bool {
        *self == Self::Abort
    }
}
