//! References: reads them, and resolves them to resources.

use std::sync::Arc;

use goondan_core::ErrorCode;

use super::cursor::Cursor;
use super::document::{Document, read_kind};
use super::map::MapReader;
use crate::kind::Kind;
use crate::nearest::{did_you_mean, nearest, one_of};
use crate::schema::{MapSchema, REFERENCE};
use crate::yaml::Value;

/// A resource that references can refer to.
pub(crate) trait Resource {
    const KIND: Kind;

    fn name(&self) -> &str;
}

/// The names that a bundle declares, whether or not their resources can be read.
pub(crate) struct Names<'a> {
    documents: &'a [Document<'a>],
    /// The names in documents whose kind is unknown: each may be the one that seems to be missing.
    unread: Vec<&'a str>,
    /// Whether the names of all documents are known. If not, one without may declare a name that seems to be missing.
    complete: bool,
}

impl<'a> Names<'a> {
    /// Reports names that are declared twice in one kind (F-REF).
    pub(crate) fn new(documents: &'a [Document<'a>], unread: Vec<&'a str>, complete: bool) -> Self {
        for (index, document) in documents.iter().enumerate() {
            let (kind, name) = (document.kind, document.name());
            if let (Some(cursor), Some(name)) = (&document.name, name)
                && let Some(earlier) =
                    documents[..index].iter().find(|earlier| earlier.kind == kind && earlier.name() == Some(name))
                && let Some(first) = &earlier.name
            {
                let message = format!("there is another {kind} `{name}` at {}", first.location());
                cursor.error(ErrorCode::CONFIG_DUPLICATE_NAME, message, "give one of them another name");
            }
        }
        Self { documents, unread, complete }
    }

    /// The document that declares a resource.
    pub(crate) fn document(&self, kind: Kind, name: &str) -> Option<&'a Document<'a>> {
        self.documents.iter().find(|document| document.kind == kind && document.name() == Some(name))
    }

    fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &'a str> {
        self.documents.iter().filter(move |document| document.kind == kind).filter_map(Document::name)
    }

    /// Returns the one of `resources` that the reference refers to.
    pub(crate) fn resolve<T: Resource>(&self, reference: &Cursor<'_>, resources: &[Arc<T>]) -> Option<Arc<T>> {
        let (kind, name) = self.parse(reference, T::KIND)?;
        if kind != T::KIND {
            let (expected, actual) = (T::KIND.with_article(), kind.with_article());
            let message = format!("{} must mean {expected}, but `{kind}/{name}` means {actual}", reference.name());
            let remedy = format!("write `{}`", self.probable(T::KIND, name));
            reference.error(ErrorCode::CONFIG_INVALID_REF, message, remedy);
            return None;
        }
        let found = resources.iter().find(|resource| resource.name() == name).cloned();
        // For a resource that is declared but could not be read, its own document has an error.
        let unknown = self.of_kind(kind).chain(self.unread.iter().copied()).all(|declared| declared != name);
        if found.is_none() && self.complete && unknown {
            let guess = nearest(name, self.of_kind(kind));
            let known = match self.of_kind(kind).next() {
                Some(_) => format!("it has {}", one_of(self.of_kind(kind))),
                None => format!("it has no {kind} at all"),
            };
            let message = format!("the bundle has no {kind} `{name}`; {known}{}", did_you_mean(guess));
            let remedy = guess.map_or_else(
                || format!("add a document with `kind: {kind}` and the name `{name}`"),
                |guess| format!("write `{kind}/{guess}`"),
            );
            reference.error(ErrorCode::CONFIG_REF_NOT_FOUND, message, remedy);
        }
        found
    }

    /// The reference to a resource of `kind` that the author of `text` probably meant.
    fn probable(&self, kind: Kind, text: &str) -> String {
        match nearest(text, self.of_kind(kind)).or_else(|| self.of_kind(kind).next()) {
            Some(name) => format!("{kind}/{name}"),
            None => format!("{kind}/<name>"),
        }
    }

    /// A list of references to resources of the kind of `T`, whose items are mappings with a `ref`, as `schema` says.
    pub(crate) fn list<'d, T: Resource>(&self, list: &Cursor<'d>, schema: &'static MapSchema) -> Vec<MapReader<'d>> {
        let item = |item: Cursor<'d>| match item.value() {
            Value::Text(text) => {
                let message = format!("{} must be a mapping with `ref`, but is the text `{text}`", item.name());
                let reference = if text.contains('/') { text.clone() } else { self.probable(T::KIND, text) };
                item.error(ErrorCode::CONFIG_INVALID_REF, message, format!("write `{{ ref: \"{reference}\" }}`"));
                None
            }
            _ => MapReader::new(&item, schema),
        };
        list.items().unwrap_or_default().into_iter().filter_map(item).collect()
    }

    /// The kind and the name in `Kind/name`, or in a mapping of the two. `expected` is the kind that the author should
    /// have written.
    fn parse<'d>(&self, reference: &Cursor<'d>, expected: Kind) -> Option<(Kind, &'d str)> {
        let code = ErrorCode::CONFIG_INVALID_REF;
        if let Value::Mapping(_) = reference.value() {
            let map = MapReader::new(reference, &REFERENCE)?;
            let (kind, name) = (map.require("kind"), map.require("name"));
            let (kind, name) = (kind?, name?.text()?);
            let remedy = |guess: Option<&str>| format!("write `{}`", guess.unwrap_or(expected.as_str()));
            return Some((read_kind(&kind, kind.text()?, code, remedy)?, name));
        }
        let parts = match reference.value() {
            Value::Text(text) => text.split_once('/'),
            _ => None,
        };
        match parts {
            Some((kind, name)) if !kind.is_empty() && !name.is_empty() && !name.contains('/') => {
                let remedy = |guess: Option<&str>| format!("write `{}/{name}`", guess.unwrap_or(expected.as_str()));
                Some((read_kind(reference, kind, code, remedy)?, name))
            }
            _ => {
                let (name, value) = (reference.name(), reference.value());
                let text = if let Value::Text(text) = value { text.trim_matches('/') } else { "" };
                let message = format!("{name} must be a reference of the form `Kind/name`, but is {value}");
                reference.error(code, message, format!("write `{}`", self.probable(expected, text)));
                None
            }
        }
    }
}
