//! A bundle between reading and running.

use goondan_bundle::Bundle;
use goondan_runtime::Store;

use crate::error::OpenError;
use crate::host::Host;
use crate::source::Source;

/// A bundle that was read and has no mistakes, before its agents are built. [`Source::read`] returns it.
#[derive(Debug)]
pub struct Opening {
    source: Source,
    bundle: Bundle,
}

impl Source {
    /// Reads and checks the bundle.
    ///
    /// # Errors
    /// All mistakes of the bundle at once, and the values that are missing in the environment.
    pub fn read(self) -> Result<Opening, OpenError> {
        let bundle = self.read_bundle()?;
        Ok(Opening { source: self, bundle })
    }
}

impl Opening {
    /// Returns the bundle, for example to choose a store by its [`workspace_name`](Bundle::workspace_name).
    pub fn bundle(&self) -> &Bundle {
        &self.bundle
    }

    /// Builds the agents of the bundle over `store`. No conversation is opened.
    ///
    /// # Errors
    /// As [`Bundle::build_with`].
    pub async fn open(self, store: impl Store) -> Result<Host, OpenError> {
        let agents = match self.source.loader() {
            Some(libraries) => self.bundle.build_with(store, libraries).await?,
            None => self.bundle.build(store).await?,
        };
        Ok(Host::new(self.source, self.bundle, agents))
    }
}
