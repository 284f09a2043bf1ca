//! Owns what every document declares before its spec: the version of the format, the kind and the name.

use std::fmt;

use goondan_core::{AgentName, ErrorCode};

use crate::diagnostic::Sink;
use crate::field::{Field, meant};
use crate::nearest::{nearest, one_of};
use crate::shape::{API_VERSION, DOCUMENT, METADATA};
use crate::yaml::Node;

/// The kinds of resources that this version reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Model,
    Extension,
    Agent,
    Swarm,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Model, Self::Extension, Self::Agent, Self::Swarm];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Model => "Model",
            Self::Extension => "Extension",
            Self::Agent => "Agent",
            Self::Swarm => "Swarm",
        }
    }

    /// The kind that `field` names; reports any other word with `code`.
    pub(crate) fn read(field: &Field<'_>, text: &str, code: ErrorCode) -> Option<Self> {
        let found = Self::ALL.into_iter().find(|kind| kind.as_str() == text);
        if found.is_none() {
            let names = || Self::ALL.into_iter().map(Self::as_str);
            let guess = nearest(text, names());
            field.refuse(
                code,
                format!("unknown kind `{text}`: expected {}{}", one_of(names()), meant(guess)),
                guess.map_or_else(|| format!("write {}", one_of(names())), |guess| format!("write `{guess}`")),
            );
        }
        found
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A document that declares a resource; what its spec says is read later, when every name is known.
pub(crate) struct Document<'a> {
    pub(crate) kind: Kind,
    /// As written: a name that breaks the grammar is reported, but references to it are not reported too.
    pub(crate) name: Option<Field<'a>>,
    pub(crate) spec: Option<Field<'a>>,
}

impl<'a> Document<'a> {
    /// `None` for a document without a `kind`, which is none of ours (F-REF), and for one of an unknown kind.
    pub(crate) fn read(node: &'a Node, sink: &'a Sink) -> Option<Self> {
        node.get("kind")?;
        let root = Field::document(node, sink).table(&DOCUMENT)?;
        match root.get("apiVersion") {
            Some(version) => check_api_version(&version),
            None if root.misspells("apiVersion") => {}
            None => root.field.refuse(
                ErrorCode::CONFIG_API_VERSION,
                "`apiVersion` is missing",
                format!("add `apiVersion: {API_VERSION}`"),
            ),
        }
        let kind = root.get("kind")?;
        let kind = Kind::read(&kind, kind.text()?, ErrorCode::CONFIG_KIND)?;
        let metadata = root.need("metadata").and_then(|metadata| metadata.table(&METADATA));
        let name = metadata.and_then(|metadata| {
            // LOAD-05: labels are for readers of the bundle; goondan itself does nothing with them.
            if let Some(labels) = metadata.get("labels") {
                labels.fields().into_iter().flatten().for_each(|label| _ = label.text());
            }
            metadata.need("name")
        });
        if let Some(name) = &name {
            check_name(name);
        }
        Some(Self { kind, name, spec: root.need("spec") })
    }

    /// The name, if it is text.
    pub(crate) fn name(&self) -> Option<&'a str> {
        match self.name.as_ref()?.value() {
            crate::yaml::Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

fn check_api_version(field: &Field<'_>) {
    match field.text() {
        None | Some(API_VERSION) => {}
        Some(other) => field.refuse(
            ErrorCode::CONFIG_API_VERSION,
            format!("unsupported version `{other}`: `apiVersion` must be `{API_VERSION}`"),
            format!("write `apiVersion: {API_VERSION}`"),
        ),
    }
}

/// Names of all kinds have the grammar of agent names (F-REF).
fn check_name(field: &Field<'_>) {
    if let Some(Err(error)) = field.text().map(AgentName::new) {
        let remedy = error.suggestion().unwrap_or("use lower-case letters").to_owned();
        field.refuse(
            ErrorCode::CONFIG_NAME,
            format!("{} must be a legal name, but is {}", field.name(), field.value()),
            remedy,
        );
    }
}
