//! Reads the part of every document before its spec: the version of the format, the kind and the name.

use goondan_core::{AgentName, ErrorCode};

use super::cursor::Cursor;
use super::map::MapReader;
use crate::diagnostic::Sink;
use crate::kind::Kind;
use crate::nearest::{did_you_mean, nearest, one_of};
use crate::schema::{API_VERSION, DOCUMENT, METADATA};
use crate::yaml::{Node, Value};

/// A document that declares a resource. Its spec is read later, when the names of all documents are known.
pub(crate) struct Document<'a> {
    pub(crate) kind: Kind,
    /// As written. A name that breaks the grammar is reported here and kept, so that references to it are no errors.
    pub(crate) name: Option<Cursor<'a>>,
    pub(crate) spec: Option<Cursor<'a>>,
}

impl<'a> Document<'a> {
    /// `None` for a document without a `kind`, which is ignored (F-REF), and for one of an unknown kind.
    pub(crate) fn read(node: &'a Node, sink: &'a Sink) -> Option<Self> {
        node.get("kind")?;
        let root = MapReader::new(&Cursor::document(node, sink), &DOCUMENT)?;
        match root.get("apiVersion") {
            Some(version) => check_api_version(&version),
            None if root.misspells("apiVersion") => {}
            None => root.cursor().error(
                ErrorCode::CONFIG_API_VERSION,
                "`apiVersion` is missing",
                format!("add `apiVersion: {API_VERSION}`"),
            ),
        }
        let kind = root.get("kind")?;
        let kind = read_kind(&kind, kind.text()?, ErrorCode::CONFIG_KIND, |guess| match guess {
            Some(guess) => format!("write `{guess}`"),
            None => format!("write {}", one_of(Kind::names())),
        })?;
        let metadata = root.require("metadata").and_then(|metadata| MapReader::new(&metadata, &METADATA));
        let name = metadata.and_then(|metadata| {
            if let Some(labels) = metadata.get("labels") {
                check_labels(&labels);
            }
            metadata.require("name")
        });
        if let Some(name) = &name {
            check_name(name);
        }
        Some(Self { kind, name, spec: root.require("spec") })
    }

    /// The name, if it is text.
    pub(crate) fn name(&self) -> Option<&'a str> {
        match self.name.as_ref()?.value() {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// The kind that `text` names, which is the value of `cursor` or a part of it. Reports any other word with `code` and
/// the `remedy` for the kind that was probably meant.
pub(super) fn read_kind(
    cursor: &Cursor<'_>,
    text: &str,
    code: ErrorCode,
    remedy: impl FnOnce(Option<&str>) -> String,
) -> Option<Kind> {
    let found = Kind::ALL.into_iter().find(|kind| kind.as_str() == text);
    if found.is_none() {
        let guess = nearest(text, Kind::names());
        let message = format!("unknown kind `{text}`: expected {}{}", one_of(Kind::names()), did_you_mean(guess));
        cursor.error(code, message, remedy(guess));
    }
    found
}

fn check_api_version(cursor: &Cursor<'_>) {
    match cursor.text() {
        None | Some(API_VERSION) => {}
        Some(other) => cursor.error(
            ErrorCode::CONFIG_API_VERSION,
            format!("unsupported version `{other}`: `apiVersion` must be `{API_VERSION}`"),
            format!("write `apiVersion: {API_VERSION}`"),
        ),
    }
}

/// LOAD-05: labels are for readers of the bundle, so only their type is checked.
fn check_labels(cursor: &Cursor<'_>) {
    for entry in cursor.entries().unwrap_or_default() {
        _ = cursor.child(entry).text();
    }
}

/// Names of all kinds have the grammar of agent names (F-REF).
fn check_name(cursor: &Cursor<'_>) {
    if let Some(Err(error)) = cursor.text().map(AgentName::new) {
        let remedy = error.suggestion().unwrap_or("use lower-case letters").to_owned();
        cursor.error(
            ErrorCode::CONFIG_NAME,
            format!("{} must be a legal name, but is {}", cursor.name(), cursor.value()),
            remedy,
        );
    }
}
