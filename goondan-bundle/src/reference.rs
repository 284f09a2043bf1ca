//! Owns references: how they are written, and which resource they mean.

use std::sync::Arc;

use goondan_core::ErrorCode;

use crate::document::{Document, Kind};
use crate::field::{Field, meant};
use crate::nearest::{nearest, one_of};
use crate::shape::{REFERENCE, Shape};
use crate::table::Table;
use crate::yaml::Value;

/// What references can mean.
pub(crate) trait Resource {
    const KIND: Kind;

    fn name(&self) -> &str;
}

/// The names that a bundle declares, whether or not their resources can be read.
pub(crate) struct Names<'a> {
    documents: &'a [Document<'a>],
    /// Whether every document says its kind and name; if not, a name that is missing may be in one that does not.
    complete: bool,
}

impl<'a> Names<'a> {
    /// Reports the names that come twice in a kind (F-REF).
    pub(crate) fn of(documents: &'a [Document<'a>], complete: bool) -> Self {
        for (index, document) in documents.iter().enumerate() {
            let (kind, name) = (document.kind, document.name());
            if let (Some(field), Some(name)) = (&document.name, name)
                && let Some(earlier) =
                    documents[..index].iter().find(|earlier| earlier.kind == kind && earlier.name() == Some(name))
                && let Some(first) = &earlier.name
            {
                let message = format!("there is another {kind} `{name}` at {}", first.at());
                field.refuse(ErrorCode::CONFIG_DUPLICATE_NAME, message, "give one of them another name");
            }
        }
        Self { documents, complete }
    }

    /// The document that declares a resource.
    pub(crate) fn document(&self, kind: Kind, name: &str) -> Option<&'a Document<'a>> {
        self.documents.iter().find(|document| document.kind == kind && document.name() == Some(name))
    }

    fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &'a str> {
        self.documents.iter().filter(move |document| document.kind == kind).filter_map(Document::name)
    }

    /// The resource that `field` means, out of those that were `read`.
    pub(crate) fn resolve<T: Resource>(&self, field: &Field<'_>, read: &[Arc<T>]) -> Option<Arc<T>> {
        let (kind, name) = parse(field)?;
        if kind != T::KIND {
            let message = format!("{} must mean {}, but `{kind}/{name}` means {}", field.name(), a(T::KIND), a(kind));
            field.refuse(ErrorCode::CONFIG_INVALID_REF, message, format!("write `{}/<name>`", T::KIND));
            return None;
        }
        let found = read.iter().find(|resource| resource.name() == name).cloned();
        // A resource that is declared but could not be read was reported where it stands.
        if found.is_none() && self.complete && !self.of_kind(kind).any(|declared| declared == name) {
            let guess = nearest(name, self.of_kind(kind));
            let known = match self.of_kind(kind).next() {
                Some(_) => format!("it has {}", one_of(self.of_kind(kind))),
                None => format!("it has no {kind} at all"),
            };
            let message = format!("the bundle has no {kind} `{name}`; {known}{}", meant(guess));
            let remedy = guess.map_or_else(
                || format!("add a document with `kind: {kind}` and the name `{name}`"),
                |guess| format!("write `{kind}/{guess}`"),
            );
            field.refuse(ErrorCode::CONFIG_REF_NOT_FOUND, message, remedy);
        }
        found
    }
}

/// The items of a list of references: mappings with a `ref`.
pub(crate) fn items<'a>(list: &Field<'a>, shape: &'static Shape) -> Vec<Table<'a>> {
    let item = |field: Field<'a>| match field.value() {
        Value::Text(text) => {
            let message = format!("{} must be a mapping with `ref`, but is the text `{text}`", field.name());
            field.refuse(ErrorCode::CONFIG_INVALID_REF, message, format!("write `{{ ref: \"{text}\" }}`"));
            None
        }
        _ => field.table(shape),
    };
    list.items().unwrap_or_default().into_iter().filter_map(item).collect()
}

/// The kind and the name in `Kind/name`, or in a mapping of the two.
fn parse<'a>(field: &Field<'a>) -> Option<(Kind, &'a str)> {
    if let Value::Mapping(_) = field.value() {
        let table = field.table(&REFERENCE)?;
        let (kind, name) = (table.need("kind"), table.need("name"));
        let (kind, name) = (kind?, name?.text()?);
        return Some((Kind::read(&kind, kind.text()?, ErrorCode::CONFIG_INVALID_REF)?, name));
    }
    let parts = match field.value() {
        Value::Text(text) => text.split_once('/'),
        _ => None,
    };
    match parts {
        Some((kind, name)) if !kind.is_empty() && !name.is_empty() && !name.contains('/') => {
            Some((Kind::read(field, kind, ErrorCode::CONFIG_INVALID_REF)?, name))
        }
        _ => {
            field.refuse(
                ErrorCode::CONFIG_INVALID_REF,
                format!("{} must be a reference of the form `Kind/name`, but is {}", field.name(), field.value()),
                "write the kind, one slash and the name, such as `Model/main`",
            );
            None
        }
    }
}

/// The kind with its article.
fn a(kind: Kind) -> String {
    let article = if matches!(kind, Kind::Agent | Kind::Extension) { "an" } else { "a" };
    format!("{article} {kind}")
}
