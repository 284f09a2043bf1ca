//! Bundles: agents described in YAML, read into typed values that are checked as a whole before anything runs.
//!
//! # Layout
//! Each module uses only those above it in this list.
//!
//! - `diagnostic`: mistakes in a bundle, with their places and remedies
//! - `scan`: from a path to files
//! - `source`: from a file to text
//! - `yaml`: from text to trees with places
//! - `plain`: from text to data of the caller
//! - `scripted`: the provider of models that play a script
//! - `known`, `libraries`: extensions of the program, and of libraries
//! - `kind`, `schema`: the kinds of resources and their fields, also as a JSON Schema for editors
//! - `read`: from trees to values, references and sources of values
//! - `resource`: the typed resources
//! - `check`: whether their extensions exist, fit and can be ordered; warnings
//! - `bundle`: all of it together
//! - `capability`: the abilities of its agents outside of their conversations
//! - `own_files`: the files that it is made of
//! - `build`: from a bundle to agents
//! - `plugins`: the libraries that `goondan-abi` loads
#![cfg_attr(docsrs, feature(doc_cfg))]

// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod diagnostic;
pub use diagnostic::{Diagnostic, Diagnostics, Place, Severity};

use goondan_runtime::nearest;
#[doc(hidden)]
pub use nearest::nearest;

mod scan;

mod source;

mod yaml;

mod plain;
#[doc(hidden)]
pub use plain::read_yaml;

mod scripted;

mod known;
pub use known::{ConfigSchema, KnownExtension};

mod libraries;
pub use libraries::{Declared, DeclaredTool, Libraries, LibraryEntry};

mod kind;

mod schema;
pub use schema::{schema, schema_with};

mod read;
pub use read::{SourcedValue, ValueSource};

mod resource;
pub use resource::{
    AgentResource, Entry, ExtensionRef, ExtensionResource, ModelResource, Policy, ServerPrincipal, ServerResource,
    SwarmResource,
};

mod coverage;
pub use coverage::{AgentCoverage, Coverage, Guard};

mod check;

mod bundle;
pub use bundle::{Bundle, Reader};

mod capability;
pub use capability::{Capabilities, Capability, CapabilityKind, CapabilityOwner};

mod own_files;

mod build;
pub use build::Agents;

#[cfg(feature = "plugins")]
mod plugins;
#[cfg(feature = "plugins")]
pub use plugins::Plugins;
