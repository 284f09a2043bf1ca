//! Reads a mapping with known fields: reports missing and unknown ones.

use goondan_core::ErrorCode;

use super::cursor::Cursor;
use crate::nearest::{did_you_mean, nearest, one_of};
use crate::schema::MapSchema;
use crate::yaml::MapEntry;

/// A mapping whose fields are read by name.
pub(crate) struct MapReader<'a> {
    cursor: Cursor<'a>,
    entries: &'a [MapEntry],
    schema: &'static MapSchema,
}

impl<'a> MapReader<'a> {
    /// A mapping with the fields of `schema`. Reports all other fields.
    pub(crate) fn new(cursor: &Cursor<'a>, schema: &'static MapSchema) -> Option<Self> {
        let map = Self::lenient(cursor, schema)?;
        map.deny_unknown();
        Some(map)
    }

    /// As [`MapReader::new`], without a report on other fields: [`MapReader::deny_unknown`] makes up for it.
    pub(crate) fn lenient(cursor: &Cursor<'a>, schema: &'static MapSchema) -> Option<Self> {
        Some(Self { cursor: cursor.clone(), entries: cursor.entries()?, schema })
    }

    /// The cursor at the mapping itself.
    pub(crate) fn cursor(&self) -> &Cursor<'a> {
        &self.cursor
    }

    pub(crate) fn get(&self, key: &str) -> Option<Cursor<'a>> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| self.cursor.child(entry))
    }

    /// The field `key`. Reports that it is missing, unless it is misspelt: an unknown field is an error already.
    pub(crate) fn require(&self, key: &str) -> Option<Cursor<'a>> {
        let found = self.get(key);
        if found.is_none() && !self.misspells(key) {
            self.cursor.missing(key, self.schema.example(key));
        }
        found
    }

    /// Whether one of the fields is probably meant to be `key`.
    pub(crate) fn misspells(&self, key: &str) -> bool {
        self.unknown().any(|entry| self.guess(entry) == Some(key))
    }

    /// Reports every field that is not in the schema.
    pub(crate) fn deny_unknown(&self) {
        self.deny(|_| true);
    }

    /// Reports every field that is probably meant to be `key`.
    pub(crate) fn deny_misspelt(&self, key: &str) {
        self.deny(|entry| self.guess(entry) == Some(key));
    }

    fn deny(&self, denied: impl Fn(&MapEntry) -> bool) {
        for entry in self.unknown().filter(|entry| denied(entry)) {
            let (key, guess) = (entry.key.as_str(), self.guess(entry));
            let (name, expected) = (self.cursor.name(), one_of(self.schema.names()));
            let message = format!("unknown field `{key}` in {name}: expected {expected}{}", did_you_mean(guess));
            let remedy = guess.map_or_else(|| format!("remove `{key}`"), |guess| format!("write `{guess}`"));
            self.cursor.child(entry).error_at(entry.key_place, ErrorCode::CONFIG_SCHEMA, message, remedy);
        }
    }

    fn unknown(&self) -> impl Iterator<Item = &'a MapEntry> {
        self.entries.iter().filter(|entry| self.schema.names().all(|name| name != entry.key))
    }

    /// The field of the schema that the author of an unknown one may have meant.
    fn guess(&self, entry: &MapEntry) -> Option<&'static str> {
        nearest(&entry.key, self.schema.names())
    }
}
