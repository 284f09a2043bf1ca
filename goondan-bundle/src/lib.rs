//! Bundles: agents described in YAML, read into typed values that are checked as a whole before anything runs.
//!
//! # Layout
//! In the order in which data passes: `source`: from a path to text · `yaml`: from text to trees whose every node
//! knows its place · `plain`: from text to data of the caller · `field`: reading a node and saying what is wrong with
//! it · `document`: what each document declares · `reference`: who means whom · `resource`: the typed kinds ·
//! `bundle`: all of it together · `build`: the agents. `fault`, `nearest` and `legacy` word the errors.

mod fault;
mod legacy;
mod nearest;

mod source;

mod yaml;

mod plain;
pub use plain::read_yaml;

mod field;

mod document;

mod reference;

mod resource;
pub use resource::{
    AgentResource, Entry, ExtensionRef, ExtensionResource, ModelResource, Policy, Provider, SwarmResource,
};

mod bundle;
pub use bundle::Bundle;

mod build;
pub use build::Agents;
