//! The places of the settings of a config, for mistakes that are found when the documents are no longer at hand.

use std::path::PathBuf;

use goondan_core::ErrorCode;

use super::cursor::Cursor;
use crate::diagnostic::{Diagnostic, Place};
use crate::yaml::Value;

/// The places of a config and of all settings in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfigPlaces {
    file: PathBuf,
    /// Whether there is a config. If not, the only place is the mapping that lacks it.
    pub(crate) written: bool,
    settings: Vec<SettingPlace>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct SettingPlace {
    /// The keys and indexes that lead to it in the config.
    keys: Vec<String>,
    place: Place,
    /// The place of the key before it, or of the value if it has none.
    key: Place,
    /// The field, such as `spec.config.apiKey`.
    path: String,
}

impl ConfigPlaces {
    /// Reads the places of the field `config` of `owner`.
    pub(crate) fn read(owner: &Cursor<'_>) -> Self {
        let config = owner.follow(["config"]);
        match config {
            Some(config) => Self::of(&config),
            None => Self {
                file: owner.sink().file().to_owned(),
                written: false,
                settings: vec![SettingPlace::new(owner, owner.place(), &[])],
            },
        }
    }

    /// Reads the places of `config` itself.
    pub(crate) fn of(config: &Cursor<'_>) -> Self {
        let mut settings = Vec::new();
        collect(config, config.place(), &mut Vec::new(), &mut settings);
        Self { file: config.sink().file().to_owned(), written: true, settings }
    }

    /// Returns an error at the setting that `keys` lead to or, if it is missing, at the nearest mapping around it.
    pub(crate) fn error(&self, code: ErrorCode, keys: &[String], message: String, remedy: String) -> Diagnostic {
        let around = self.around(keys);
        let error = Diagnostic::error(code, &self.file, around.map(|at| at.place), message, remedy);
        error.with_path(around.map_or("", |at| &at.path))
    }

    /// As [`ConfigPlaces::error`], at the key of a setting that should not be there.
    pub(crate) fn error_at_key(&self, code: ErrorCode, keys: &[String], message: String, remedy: String) -> Diagnostic {
        let around = self.around(keys);
        let error = Diagnostic::error(code, &self.file, around.map(|at| at.key), message, remedy);
        error.with_path(around.map_or("", |at| &at.path))
    }

    /// Returns a warning at the setting that `keys` lead to.
    pub(crate) fn warning(&self, keys: &[String], message: String, remedy: String) -> Diagnostic {
        let around = self.around(keys);
        let place = around.map_or(Place::START, |at| at.place);
        Diagnostic::warning(&self.file, place, message, remedy).with_path(around.map_or("", |at| &at.path))
    }

    fn around(&self, keys: &[String]) -> Option<&SettingPlace> {
        let written = |length| self.settings.iter().find(|setting| setting.keys == keys[..length]);
        (0..=keys.len()).rev().find_map(written)
    }
}

impl SettingPlace {
    fn new(cursor: &Cursor<'_>, key: Place, keys: &[String]) -> Self {
        Self { keys: keys.to_vec(), place: cursor.place(), key, path: cursor.path().to_owned() }
    }
}

fn collect(cursor: &Cursor<'_>, key: Place, keys: &mut Vec<String>, found: &mut Vec<SettingPlace>) {
    found.push(SettingPlace::new(cursor, key, keys));
    let children: Vec<(String, Option<Place>)> = match cursor.value() {
        Value::Mapping(entries) => entries.iter().map(|entry| (entry.key.clone(), Some(entry.key_place))).collect(),
        Value::Sequence(items) => (0..items.len()).map(|index| (index.to_string(), None)).collect(),
        _ => return,
    };
    for (key, place) in children {
        if let Some(child) = cursor.follow([key.as_str()]) {
            let place = place.unwrap_or(child.place());
            keys.push(key);
            collect(&child, place, keys, found);
            keys.pop();
        }
    }
}
