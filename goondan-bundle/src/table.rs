//! Owns reading a mapping with known fields: which are missing, and which nobody knows.

use goondan_core::ErrorCode;

use crate::field::{Field, meant};
use crate::nearest::{nearest, one_of};
use crate::shape::Shape;
use crate::yaml::Entry;

/// A mapping on its way to a typed value.
pub(crate) struct Table<'a> {
    pub(crate) field: Field<'a>,
    pub(crate) entries: &'a [Entry],
    pub(crate) shape: &'static Shape,
}

impl<'a> Table<'a> {
    pub(crate) fn get(&self, key: &str) -> Option<Field<'a>> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| self.field.child(entry))
    }

    /// The field `key`; reports if it is missing, unless it is misspelt, which is reported by itself.
    pub(crate) fn need(&self, key: &str) -> Option<Field<'a>> {
        let found = self.get(key);
        if found.is_none() && !self.misspells(key) {
            self.field.refuse_missing(key, self.shape.example(key));
        }
        found
    }

    /// Whether a field is there that was probably meant to be `key`.
    pub(crate) fn misspells(&self, key: &str) -> bool {
        self.unknown().any(|entry| self.guess(entry) == Some(key))
    }

    /// Reports every field that the shape does not have.
    pub(crate) fn only(&self) {
        for entry in self.unknown() {
            let (key, guess) = (entry.key.as_str(), self.guess(entry));
            let (name, expected) = (self.field.name(), one_of(self.shape.names()));
            let message = format!("unknown field `{key}` in {name}: expected {expected}{}", meant(guess));
            let remedy = guess.map_or_else(|| format!("remove `{key}`"), |guess| format!("write `{guess}`"));
            self.field.child(entry).refuse_at(entry.key_place, ErrorCode::CONFIG_SCHEMA, message, remedy);
        }
    }

    fn unknown(&self) -> impl Iterator<Item = &'a Entry> {
        self.entries.iter().filter(|entry| self.shape.names().all(|name| name != entry.key))
    }

    /// The field that the author of an unknown one may have meant.
    fn guess(&self, entry: &Entry) -> Option<&'static str> {
        nearest(&entry.key, self.shape.names())
    }
}
