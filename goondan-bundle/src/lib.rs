//! Bundles: agents described in YAML, read into typed values that are checked as a whole before anything runs.
//!
//! # Layout
//! In the order in which data passes: `scan`: from a path to files · `source`: from a file to text · `yaml`: from text
//! to trees whose every node knows its place · `plain`: from text to data of the caller · `shape`: which fields there
//! are · `schema`: the same for editors · `field` and `table`: reading a node and saying what is wrong with it ·
//! `document`: what each document declares · `reference`: who means whom · `value`: what comes from elsewhere · `known`:
//! the extensions of the program · `libraries`: who reads and loads those of libraries · `configs`: whether settings fit
//! them · `order`: whether they can wrap an agent together · `resource`: the typed kinds · `bundle`: all of it together ·
//! `build`: the agents · `plugins`: libraries as this project knows them. `fault`, `faults` and
//! `hint` are what is said of a bundle; `nearest` and `legacy` help to word it.

mod diagnostic;
pub use diagnostic::{Diagnostic, Diagnostics, Place, Severity};

mod nearest;
pub use nearest::nearest;

mod scan;

mod source;

mod yaml;

mod plain;
pub use plain::read_yaml;

mod field;

mod table;

mod document;

mod shape;

mod schema;
pub use schema::{schema, schema_with};

mod reference;

mod value;
pub use value::{SourcedValue, ValueSource};

mod known;
pub use known::KnownExtension;

mod configs;

mod order;

mod libraries;
pub use libraries::{Declared, Libraries};

mod resource;
pub use resource::{
    AgentResource, Entry, ExtensionRef, ExtensionResource, LibraryEntry, ModelResource, Policy, Provider, SwarmResource,
};

mod bundle;
pub use bundle::{Bundle, Reader};

mod build;
pub use build::Agents;

#[cfg(feature = "plugins")]
mod plugins;
#[cfg(feature = "plugins")]
pub use plugins::Plugins;
