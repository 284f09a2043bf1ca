//! The port to libraries: inspects and loads the files that a bundle names.

use std::path::PathBuf;

use goondan_core::{ExtensionDescriptor, ExtensionName, LayerInfo, Result, ToolDescriptor};
use serde_json::Value;

/// An extension in a library, as a bundle names it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LibraryEntry {
    /// The name of the extension in the bundle. In a file with several extensions, it selects one, unless `extension`
    /// does.
    pub name: ExtensionName,
    /// The name of the extension in the library, if the entry has one: `./plugins/weather#forecast`.
    pub extension: Option<ExtensionName>,
    /// The path as it is written in the bundle.
    pub written: String,
    /// The file, which exists: the path joined to the root of the bundle, with the prefix and the ending that libraries
    /// have on this platform.
    // LOAD-04
    pub file: PathBuf,
    /// `spec.sha256`: the digest that the file must have, in 64 lower-case hexadecimal digits.
    pub sha256: Option<String>,
    /// The place of the entry in the bundle, as `<file>:<line>:<column>`.
    pub at: String,
}

/// Inspects and loads the libraries that a bundle names. With the feature `plugins`, `Plugins` implements it.
pub trait Libraries: Send + Sync {
    /// Checks that the library can be loaded and holds the extension. Returns the declaration of the extension.
    ///
    /// # Errors
    /// `E_EXT_LOAD` or `E_EXT_COMPAT`, with the remedy.
    fn declared(&self, library: &LibraryEntry) -> Result<Declared>;

    /// Loads the library. Returns the descriptor of the extension.
    ///
    /// # Errors
    /// `E_EXT_LOAD` or `E_EXT_COMPAT`, with the remedy.
    fn load(&self, library: &LibraryEntry) -> Result<&'static ExtensionDescriptor>;
}

/// The declarations of an extension in a library, as far as a bundle is checked against them.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Declared {
    /// Whether it guards: then its failures are never skipped.
    pub guard: bool,
    /// The capabilities that it requires of the host.
    pub requires: Vec<String>,
    /// The JSON Schema of its config; `None` if the library does not contain it.
    pub config_schema: Option<Value>,
    /// The layers of its `#[middleware]` attributes, under the extension's name in the bundle.
    pub layers: Vec<LayerInfo>,
    /// The tools of its `#[tool]` attributes.
    pub tools: Vec<DeclaredTool>,
}

/// A tool that an extension declares.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct DeclaredTool {
    /// The full name.
    pub name: String,
    /// The description of the tool, for the model.
    pub description: String,
    /// The JSON Schema of its arguments; `None` if the library does not contain it.
    pub parameters: Option<Value>,
}

impl Declared {
    /// The declarations of an extension that does not guard and requires nothing, in a library without schemas.
    pub fn new(layers: Vec<LayerInfo>, tools: Vec<DeclaredTool>) -> Self {
        Self { layers, tools, ..Self::default() }
    }
}

impl DeclaredTool {
    /// A tool, with the schema of its arguments if it is known.
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: Option<Value>) -> Self {
        Self { name: name.into(), description: description.into(), parameters }
    }
}

impl From<&ToolDescriptor> for DeclaredTool {
    fn from(tool: &ToolDescriptor) -> Self {
        let parameters = Some((tool.parameters)());
        Self { name: tool.name.to_owned(), description: tool.description.to_owned(), parameters }
    }
}
