//! The schemas of documents: their fields, with the values and the meaning of each.
//!
//! The reader, the JSON Schema for editors and the tables in `docs/bundles.md` all derive from these declarations.

mod document;
pub(crate) use document::{API_VERSION, DOCUMENT, METADATA, REFERENCE, VALUE, VALUE_FROM};

mod kinds;
pub(crate) use kinds::{
    AGENT, ANSWER, EXTENSION, LIMITS, MEMBER, MODEL, POLICY, PRINCIPAL, RIGHTS, SERVER, SWARM, SWARM_USE, UI, USE,
};

mod model;
pub(crate) use model::model_spec;

mod json;
pub use json::{schema, schema_with};

#[cfg(test)]
mod docs;

use crate::kind::Kind;

/// A mapping with known fields.
#[derive(Debug)]
pub(crate) struct MapSchema {
    /// A sentence for the description in the JSON Schema.
    pub(crate) about: &'static str,
    pub(crate) fields: &'static [FieldSchema],
}

/// A field of a mapping.
#[derive(Debug)]
pub(crate) struct FieldSchema {
    pub(crate) name: &'static str,
    pub(crate) required: bool,
    /// The field as it can be written, for the remedy of an error about a missing field.
    pub(crate) example: &'static str,
    /// A sentence for the description in the JSON Schema and for `docs/bundles.md`.
    pub(crate) about: &'static str,
    pub(crate) field_type: FieldType,
}

/// The values that a field takes.
#[derive(Debug)]
pub(crate) enum FieldType {
    Text,
    /// Text with at least one character that is not white space.
    NonEmptyText,
    /// The name of a resource.
    Name,
    /// One of a few words.
    Choice(&'static [&'static str]),
    /// A list of some words of a few.
    Choices(&'static [&'static str]),
    /// An IP address and a port.
    Address,
    /// The word for the kind of the document.
    Kind,
    /// A path below the directory of the bundle.
    Path,
    /// `linked:<name>`, or a path to a library.
    Entry,
    /// A SHA-256 digest.
    Digest,
    /// `true` or `false`.
    Flag,
    /// A whole number from 1 to `u32::MAX`.
    Positive,
    /// A whole number from 0 to `u32::MAX`.
    Count,
    /// The name of an environment variable.
    Variable,
    /// A mapping of anything.
    Object,
    /// A mapping of text.
    Labels,
    Reference(Kind),
    /// A list of references to resources of a kind.
    References(Kind),
    /// The name of a provider of models.
    Provider,
    Map(&'static MapSchema),
    /// The spec of the document's kind.
    Spec,
    List {
        of: &'static MapSchema,
        at_least: usize,
    },
}

impl MapSchema {
    /// The names of the fields.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.fields.iter().map(|field| field.name)
    }

    /// The field `name` as it can be written.
    pub(crate) fn example(&self, name: &str) -> &'static str {
        self.fields.iter().find(|field| field.name == name).map_or("…", |field| field.example)
    }
}

impl Kind {
    /// The schema of the spec.
    pub(crate) fn spec(self) -> &'static MapSchema {
        match self {
            Self::Model => &MODEL,
            Self::Extension => &EXTENSION,
            Self::Agent => &AGENT,
            Self::Swarm => &SWARM,
            Self::Server => &SERVER,
        }
    }
}
