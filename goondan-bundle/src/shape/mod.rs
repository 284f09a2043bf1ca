//! Owns the shape of documents: which fields there are, what each one takes and what it means. The reader, the JSON
//! Schema and `docs/bundles.md` all take it from here.

mod document;
pub(crate) use document::{API_VERSION, DOCUMENT, METADATA, REFERENCE};

mod kinds;
pub(crate) use kinds::{AGENT, EXTENSION, MEMBER, MODEL, POLICY, SWARM, USE};

#[cfg(test)]
mod docs;

use crate::document::Kind;

/// A mapping with known fields.
#[derive(Debug)]
pub(crate) struct Shape {
    /// What it describes.
    pub(crate) about: &'static str,
    pub(crate) fields: &'static [FieldShape],
}

/// A field of a mapping.
#[derive(Debug)]
pub(crate) struct FieldShape {
    pub(crate) name: &'static str,
    pub(crate) required: bool,
    /// How it can be written, for the author who forgot it.
    pub(crate) example: &'static str,
    pub(crate) about: &'static str,
    pub(crate) takes: Takes,
}

/// What a field takes.
#[derive(Debug)]
pub(crate) enum Takes {
    Text,
    /// Text in which something is written.
    FilledText,
    /// The name of a resource.
    Name,
    /// One of a few words.
    Word(&'static [&'static str]),
    /// The word that is the kind of the document.
    Kind,
    /// A path below the directory of the bundle.
    Path,
    /// `linked:<name>`, or a path to a library.
    Entry,
    /// A SHA-256 digest.
    Digest,
    /// A whole number from 1 to `u32::MAX`.
    Positive,
    /// A mapping of anything.
    Object,
    /// A mapping of text.
    Labels,
    Reference(Kind),
    Table(&'static Shape),
    /// The spec of the document's kind.
    Spec,
    List {
        of: &'static Shape,
        at_least: usize,
    },
}

impl Shape {
    /// The names of the fields.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.fields.iter().map(|field| field.name)
    }

    /// How the field `name` can be written.
    pub(crate) fn example(&self, name: &str) -> &'static str {
        self.fields.iter().find(|field| field.name == name).map_or("…", |field| field.example)
    }
}

impl Kind {
    /// The shape of the spec.
    pub(crate) fn shape(self) -> &'static Shape {
        match self {
            Self::Model => &MODEL,
            Self::Extension => &EXTENSION,
            Self::Agent => &AGENT,
            Self::Swarm => &SWARM,
        }
    }
}
