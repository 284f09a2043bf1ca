//! A cursor at one node of a document: reads its value and reports errors at its place.

use goondan_core::ErrorCode;

use crate::diagnostic::{Diagnostic, Place, Sink, location};
use crate::nearest::{did_you_mean, nearest, one_of};
use crate::yaml::{MapEntry, Node, Value};

/// A node of a document, with its path and the sink of its file.
///
/// The methods that return an `Option` report an error to the sink before they return `None`, except for
/// [`Cursor::follow`].
#[derive(Clone)]
pub(crate) struct Cursor<'a> {
    node: &'a Node,
    /// Such as `spec.extensions[0].ref`; empty for the document itself.
    path: String,
    sink: &'a Sink,
}

impl<'a> Cursor<'a> {
    /// The root of a document.
    pub(crate) fn document(node: &'a Node, sink: &'a Sink) -> Self {
        Self { node, path: String::new(), sink }
    }

    /// The path in quotes, for messages.
    pub(crate) fn name(&self) -> String {
        if self.path.is_empty() { "the document".to_owned() } else { format!("`{}`", self.path) }
    }

    /// The place of the value as `<file>:<line>:<column>`.
    pub(crate) fn location(&self) -> String {
        location(self.sink.file(), Some(self.node.place))
    }

    pub(crate) fn place(&self) -> Place {
        self.node.place
    }

    /// The sink for the diagnostics of the file.
    pub(crate) fn sink(&self) -> &'a Sink {
        self.sink
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn value(&self) -> &'a Value {
        &self.node.value
    }

    /// Reports an error at the value.
    pub(crate) fn error(&self, code: ErrorCode, message: impl Into<String>, remedy: impl Into<String>) {
        self.error_at(self.node.place, code, message, remedy);
    }

    /// As [`Cursor::error`], for an error that several checks can find.
    pub(crate) fn error_once(&self, code: ErrorCode, message: impl Into<String>, remedy: impl Into<String>) {
        self.sink.report_once(self.diagnostic(self.node.place, code, message, remedy));
    }

    pub(crate) fn error_at(
        &self,
        place: Place,
        code: ErrorCode,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.sink.report(self.diagnostic(place, code, message, remedy));
    }

    /// Reports, at the mapping, that it has no field `key`.
    pub(crate) fn missing(&self, key: &str, example: &str) {
        let path = self.path_of(key);
        let (message, remedy) = (format!("`{path}` is missing"), format!("add `{example}`"));
        let diagnostic = self.diagnostic(self.node.place, ErrorCode::CONFIG_SCHEMA, message, remedy);
        self.sink.report(diagnostic.with_path(&path));
    }

    /// Reports that the value has another type, or is out of range.
    pub(crate) fn expected(&self, what: &str) {
        let message = format!("{} must be {what}, but is {}", self.name(), self.value());
        let remedy = match self.value() {
            Value::Number(_) | Value::Bool(_) if what == "text" => "put it in quotes".to_owned(),
            Value::Null => format!("write {what}, or remove the field"),
            _ => format!("write {what}"),
        };
        self.error(ErrorCode::CONFIG_SCHEMA, message, remedy);
    }

    fn diagnostic(
        &self,
        place: Place,
        code: ErrorCode,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Diagnostic {
        Diagnostic::error(code, self.sink.file(), place, message, remedy).with_path(&self.path)
    }

    /// Follows keys of mappings and indexes of lists. Returns `None`, without an error, if there is no such value.
    pub(crate) fn follow<'k>(&self, keys: impl IntoIterator<Item = &'k str>) -> Option<Self> {
        keys.into_iter().try_fold(self.clone(), |cursor, key| match cursor.value() {
            Value::Mapping(entries) => entries.iter().find(|entry| entry.key == key).map(|entry| cursor.child(entry)),
            Value::Sequence(nodes) => {
                let node = nodes.get(key.parse::<usize>().ok()?)?;
                Some(Self { node, path: format!("{}[{key}]", cursor.path), sink: cursor.sink })
            }
            _ => None,
        })
    }

    pub(crate) fn text(&self) -> Option<&'a str> {
        match self.value() {
            Value::Text(text) => Some(text),
            _ => {
                self.expected("text");
                None
            }
        }
    }

    pub(crate) fn flag(&self) -> Option<bool> {
        match self.value() {
            Value::Bool(flag) => Some(*flag),
            _ => {
                self.expected("`true` or `false`");
                None
            }
        }
    }

    /// A whole number from `least` to `u32::MAX`.
    pub(crate) fn whole(&self, least: u32) -> Option<u32> {
        let number = match self.value() {
            Value::Number(number) => number.as_u64().and_then(|number| u32::try_from(number).ok()),
            _ => None,
        };
        let number = number.filter(|number| *number >= least);
        if number.is_none() {
            self.expected(&format!("a whole number from {least} to {}", u32::MAX));
        }
        number
    }

    /// One of a few words.
    pub(crate) fn choice(&self, words: &[&str]) -> Option<&'a str> {
        let text = self.text()?;
        if words.contains(&text) {
            return Some(text);
        }
        let guess = nearest(text, words.iter().copied());
        let all = one_of(words.iter().copied());
        self.error(
            ErrorCode::CONFIG_SCHEMA,
            format!("{} must be {all}, but is `{text}`{}", self.name(), did_you_mean(guess)),
            guess.map_or_else(|| format!("write {all}"), |guess| format!("write `{guess}`")),
        );
        None
    }

    pub(crate) fn items(&self) -> Option<Vec<Self>> {
        let Value::Sequence(nodes) = self.value() else {
            self.expected("a list");
            return None;
        };
        let item = |(index, node)| Self { node, path: format!("{}[{index}]", self.path), sink: self.sink };
        Some(nodes.iter().enumerate().map(item).collect())
    }

    pub(crate) fn entries(&self) -> Option<&'a [MapEntry]> {
        match self.value() {
            Value::Mapping(entries) => Some(entries),
            _ => {
                self.expected("a mapping");
                None
            }
        }
    }

    /// A mapping of anything, as JSON.
    pub(crate) fn object(&self) -> Option<serde_json::Map<String, serde_json::Value>> {
        self.entries()?;
        match self.node.to_json() {
            serde_json::Value::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The cursor at the value of an entry of this mapping.
    pub(crate) fn child(&self, entry: &'a MapEntry) -> Cursor<'a> {
        Cursor { node: &entry.node, path: self.path_of(&entry.key), sink: self.sink }
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}
