//! Extensions in libraries: inspecting files without running them, and loading them.
//!
//! ```no_run
//! use goondan::Agent;
//! use goondan::json;
//! use goondan::plugin::Library;
//!
//! let library = Library::inspect("plugins/libweather.so")?.load()?;
//! let agent = Agent::builder("assistant").described_extension("weather", library.extension(None)?, json!({}));
//! # Ok::<(), goondan::Error>(())
//! ```

pub use goondan_abi::{
    ExtensionRecord, ExtensionSchemas, Inspected, Library, Loaded, MiddlewareRecord, ToolRecord, ToolSchema,
};
