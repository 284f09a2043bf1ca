//! Owns reading one node of a document: its type, its place, its path, and what is said when it is wrong.

use goondan_core::ErrorCode;

use crate::fault::{Fault, Faults, Place};
use crate::legacy;
use crate::nearest::{nearest, one_of};
use crate::yaml::{Entry, Node, Value};

/// A node on its way to a typed value. Its readers report what is wrong and then give `None`.
#[derive(Clone)]
pub(crate) struct Field<'a> {
    node: &'a Node,
    /// Such as `spec.extensions[0].ref`; empty for the document itself.
    path: String,
    faults: &'a Faults,
}

impl<'a> Field<'a> {
    /// The root of a document.
    pub(crate) fn document(node: &'a Node, faults: &'a Faults) -> Self {
        Self { node, path: String::new(), faults }
    }

    /// The path with quotes around it.
    pub(crate) fn name(&self) -> String {
        if self.path.is_empty() { "the document".to_owned() } else { format!("`{}`", self.path) }
    }

    pub(crate) fn value(&self) -> &'a Value {
        &self.node.value
    }

    /// Reports a fault at the value.
    pub(crate) fn refuse(&self, code: ErrorCode, message: impl Into<String>, remedy: impl Into<String>) {
        self.refuse_at(self.node.place, code, message, remedy);
    }

    fn refuse_at(&self, place: Place, code: ErrorCode, message: impl Into<String>, remedy: impl Into<String>) {
        self.faults.report(Fault::new(code, place, message, remedy));
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
        let item = |(index, node)| Self { node, path: format!("{}[{index}]", self.path), faults: self.faults };
        Some(nodes.iter().enumerate().map(item).collect())
    }

    pub(crate) fn table(&self) -> Option<Table<'a>> {
        match self.value() {
            Value::Mapping(entries) => Some(Table { field: self.clone(), entries }),
            _ => {
                self.expected("a mapping");
                None
            }
        }
    }

    /// A mapping of anything, as JSON.
    pub(crate) fn object(&self) -> Option<serde_json::Map<String, serde_json::Value>> {
        self.table()?;
        match self.node.to_json() {
            serde_json::Value::Object(object) => Some(object),
            _ => None,
        }
    }
}

/// A mapping on its way to a typed value.
pub(crate) struct Table<'a> {
    pub(crate) field: Field<'a>,
    entries: &'a [Entry],
}

impl<'a> Table<'a> {
    pub(crate) fn get(&self, key: &str) -> Option<Field<'a>> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| self.child(entry))
    }

    /// The field `key`; reports if it is missing. `example` shows how to write it.
    pub(crate) fn need(&self, key: &str, example: &str) -> Option<Field<'a>> {
        let found = self.get(key);
        if found.is_none() {
            let message = format!("`{}` is missing", self.path_of(key));
            self.field.refuse(ErrorCode::CONFIG_SCHEMA, message, format!("add `{example}`"));
        }
        found
    }

    /// Reports every field whose name is none of `known`.
    pub(crate) fn only(&self, known: &[&str]) {
        for entry in self.entries.iter().filter(|entry| !known.contains(&entry.key.as_str())) {
            let key = entry.key.as_str();
            let guess = nearest(key, known.iter().copied());
            let place = self.field.name();
            let (message, remedy) = match legacy::new_form(&self.path_of(key)) {
                Some(new_form) => {
                    (format!("`{}` is a field of the old format", self.path_of(key)), new_form.to_owned())
                }
                None => (
                    format!(
                        "unknown field `{key}` in {place}: expected {}{}",
                        one_of(known.iter().copied()),
                        meant(guess)
                    ),
                    guess.map_or_else(|| format!("remove `{key}`"), |guess| format!("write `{guess}`")),
                ),
            };
            self.field.refuse_at(entry.key_place, ErrorCode::CONFIG_SCHEMA, message, remedy);
        }
    }

    /// Every field, in the order of the file.
    pub(crate) fn fields(&self) -> impl Iterator<Item = Field<'a>> {
        self.entries.iter().map(|entry| self.child(entry))
    }

    fn child(&self, entry: &'a Entry) -> Field<'a> {
        Field { node: &entry.node, path: self.path_of(&entry.key), faults: self.field.faults }
    }

    fn path_of(&self, key: &str) -> String {
        let path = &self.field.path;
        if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
    }
}

/// The guess at what was meant, as the end of a message.
pub(crate) fn meant(guess: Option<&str>) -> String {
    guess.map_or_else(String::new, |guess| format!("; did you mean `{guess}`?"))
}
