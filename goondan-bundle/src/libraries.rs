//! Owns the port to libraries: who reads them, and who loads them, for a bundle that knows only their paths.

use goondan_core::{ExtensionDescriptor, Result};
use serde_json::Value;

use crate::resource::LibraryEntry;

/// Reads and loads the libraries that a bundle names. With the feature `plugins`, `Plugins` is one.
pub trait Libraries: Send + Sync {
    /// Checks whether the library can be loaded and holds the extension, and gives the schema of the extension's config;
    /// `None` if the library does not tell it.
    ///
    /// # Errors
    /// `E_EXT_LOAD` or `E_EXT_COMPAT`, with the remedy.
    fn config_schema(&self, library: &LibraryEntry) -> Result<Option<Value>>;

    /// Loads the library, and gives the extension.
    ///
    /// # Errors
    /// `E_EXT_LOAD` or `E_EXT_COMPAT`, with the remedy.
    fn load(&self, library: &LibraryEntry) -> Result<&'static ExtensionDescriptor>;
}
