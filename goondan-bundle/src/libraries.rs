//! Owns the port to libraries: who reads them, and who loads them, for a bundle that knows only their paths.

use goondan_core::{ExtensionDescriptor, LayerInfo, Result};
use serde_json::Value;

use crate::resource::LibraryEntry;

/// Reads and loads the libraries that a bundle names. With the feature `plugins`, `Plugins` is one.
pub trait Libraries: Send + Sync {
    /// Checks whether the library can be loaded and holds the extension, and gives what it declares.
    ///
    /// # Errors
    /// `E_EXT_LOAD` or `E_EXT_COMPAT`, with the remedy.
    fn declared(&self, library: &LibraryEntry) -> Result<Declared>;

    /// Loads the library, and gives the extension.
    ///
    /// # Errors
    /// `E_EXT_LOAD` or `E_EXT_COMPAT`, with the remedy.
    fn load(&self, library: &LibraryEntry) -> Result<&'static ExtensionDescriptor>;
}

/// What an extension in a library declares, as far as a bundle is checked against it.
#[derive(Clone, Debug, Default)]
pub struct Declared {
    /// The JSON Schema of its config; `None` if the library does not tell it.
    pub config_schema: Option<Value>,
    /// The layers of its attributes, under the name that the bundle gives the extension.
    pub layers: Vec<LayerInfo>,
}
