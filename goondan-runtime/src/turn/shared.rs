//! The values that the middlewares of a turn or a tool call share with it: a map, and the first error of those that
//! they set.

use goondan_core::host::depth::Unchecked;
use goondan_core::{Error, Result};

/// It is made with the run, and ends with it.
pub(super) struct Shared {
    /// The map of CTX-09. A turn shares its own with its steps, a tool call has one of its own (D-15).
    pub(super) metadata: Unchecked,
    /// The first error of a message event or of [`RunHost::refuse`](goondan_core::host::RunHost::refuse). It fails the
    /// run before the next model or tool call (D-24).
    refused: Option<Error>,
}

impl Shared {
    pub(super) fn new(metadata: Unchecked) -> Self {
        Self { metadata, refused: None }
    }

    /// Keeps the error, unless there is one.
    pub(super) fn refuse(&mut self, error: Error) {
        self.refused.get_or_insert(error);
    }

    /// Returns whether something was refused that has not failed the run yet.
    pub(super) fn has_refused(&self) -> bool {
        self.refused.is_some()
    }

    /// Fails if something was refused.
    pub(super) fn check_refused(&mut self) -> Result<()> {
        self.refused.take().map_or(Ok(()), Err)
    }

    /// Checks the metadata, into which middlewares have put values.
    pub(super) fn check_metadata(&self) -> Result<()> {
        self.metadata.check("a value in the metadata")
    }
}
