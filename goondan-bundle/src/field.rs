//! Owns reading one node of a document: its type, its place, its path, and what is said when it is wrong.

use goondan_core::ErrorCode;

use crate::diagnostic::{Diagnostic, Place, Sink, location};
use crate::nearest::{nearest, one_of};
use crate::shape::Shape;
use crate::table::Table;
use crate::yaml::{Entry, Node, Value};

/// A node on its way to a typed value. Its readers report what is wrong and then give `None`.
#[derive(Clone)]
pub(crate) struct Field<'a> {
    node: &'a Node,
    /// Such as `spec.extensions[0].ref`; empty for the document itself.
    path: String,
    sink: &'a Sink,
}

impl<'a> Field<'a> {
    /// The root of a document.
    pub(crate) fn document(node: &'a Node, sink: &'a Sink) -> Self {
        Self { node, path: String::new(), sink }
    }

    /// The path with quotes around it.
    pub(crate) fn name(&self) -> String {
        if self.path.is_empty() { "the document".to_owned() } else { format!("`{}`", self.path) }
    }

    /// Where the value stands, as text for a message.
    pub(crate) fn at(&self) -> String {
        location(self.sink.file(), Some(self.node.place))
    }

    pub(crate) fn place(&self) -> Place {
        self.node.place
    }

    /// Who collects the faults of the file.
    pub(crate) fn sink(&self) -> &'a Sink {
        self.sink
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn value(&self) -> &'a Value {
        &self.node.value
    }

    /// Reports a fault at the value.
    pub(crate) fn refuse(&self, code: ErrorCode, message: impl Into<String>, remedy: impl Into<String>) {
        self.refuse_at(self.node.place, code, message, remedy);
    }

    /// As [`Field::refuse`], for what several checks can find.
    pub(crate) fn refuse_once(&self, code: ErrorCode, message: impl Into<String>, remedy: impl Into<String>) {
        self.sink.report_once(self.error(self.node.place, code, message, remedy));
    }

    /// The value behind keys of mappings and indexes of lists, without a word if there is none.
    pub(crate) fn follow<'k>(&self, keys: impl IntoIterator<Item = &'k str>) -> Option<Self> {
        keys.into_iter().try_fold(self.clone(), |field, key| match field.value() {
            Value::Mapping(entries) => entries.iter().find(|entry| entry.key == key).map(|entry| field.child(entry)),
            Value::Sequence(nodes) => {
                let node = nodes.get(key.parse::<usize>().ok()?)?;
                Some(Self { node, path: format!("{}[{key}]", field.path), sink: field.sink })
            }
            _ => None,
        })
    }

    pub(crate) fn refuse_at(
        &self,
        place: Place,
        code: ErrorCode,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.sink.report(self.error(place, code, message, remedy));
    }

    fn error(
        &self,
        place: Place,
        code: ErrorCode,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Diagnostic {
        Diagnostic::error(code, self.sink.file(), place, message, remedy).with_path(&self.path)
    }

    /// Reports that a mapping has no field `key`, at the mapping.
    pub(crate) fn refuse_missing(&self, key: &str, example: &str) {
        let path = self.path_of(key);
        let (message, remedy) = (format!("`{path}` is missing"), format!("add `{example}`"));
        self.sink.report(self.error(self.node.place, ErrorCode::CONFIG_SCHEMA, message, remedy).with_path(&path));
    }

    /// Reports that the value is of another type, or outside of the range.
    pub(crate) fn expected(&self, what: &str) {
        let message = format!("{} must be {what}, but is {}", self.name(), self.value());
        let remedy = match self.value() {
            Value::Number(_) | Value::Bool(_) if what == "text" => "put it in quotes".to_owned(),
            Value::Null => format!("write {what}, or remove the field"),
            _ => format!("write {what}"),
        };
        self.refuse(ErrorCode::CONFIG_SCHEMA, message, remedy);
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

    /// A whole number from 1 to `max`.
    pub(crate) fn positive(&self, max: u64) -> Option<u64> {
        let number = match self.value() {
            Value::Number(number) => number.as_u64().filter(|number| (1..=max).contains(number)),
            _ => None,
        };
        if number.is_none() {
            self.expected(&format!("a whole number from 1 to {max}"));
        }
        number
    }

    /// One of a few words.
    pub(crate) fn word(&self, words: &[&str]) -> Option<&'a str> {
        let text = self.text()?;
        if words.contains(&text) {
            return Some(text);
        }
        let guess = nearest(text, words.iter().copied());
        self.refuse(
            ErrorCode::CONFIG_SCHEMA,
            format!("{} must be {}, but is `{text}`{}", self.name(), one_of(words.iter().copied()), meant(guess)),
            guess
                .map_or_else(|| format!("write {}", one_of(words.iter().copied())), |guess| format!("write `{guess}`")),
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

    /// A mapping with the fields of `shape`; reports all others.
    pub(crate) fn table(&self, shape: &'static Shape) -> Option<Table<'a>> {
        let table = self.open(shape)?;
        table.only();
        Some(table)
    }

    /// A mapping of which it is not known yet whether its fields are those of `shape`.
    pub(crate) fn open(&self, shape: &'static Shape) -> Option<Table<'a>> {
        Some(Table { field: self.clone(), entries: self.entries()?, shape })
    }

    fn entries(&self) -> Option<&'a [Entry]> {
        match self.value() {
            Value::Mapping(entries) => Some(entries),
            _ => {
                self.expected("a mapping");
                None
            }
        }
    }

    /// The fields of a mapping of anything, in the order of the file.
    pub(crate) fn fields(&self) -> Option<impl Iterator<Item = Field<'a>>> {
        Some(self.entries()?.iter().map(|entry| self.child(entry)))
    }

    pub(crate) fn child(&self, entry: &'a Entry) -> Field<'a> {
        Field { node: &entry.node, path: self.path_of(&entry.key), sink: self.sink }
    }

    pub(crate) fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// A mapping of anything, as JSON.
    pub(crate) fn object(&self) -> Option<serde_json::Map<String, serde_json::Value>> {
        self.entries()?;
        match self.node.to_json() {
            serde_json::Value::Object(object) => Some(object),
            _ => None,
        }
    }
}

/// The guess at what was meant, as the end of a message.
pub(crate) fn meant(guess: Option<&str>) -> String {
    guess.map_or_else(String::new, |guess| format!("; did you mean `{guess}`?"))
}
