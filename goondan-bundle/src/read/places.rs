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
    /// Whether there is a config. If not, the only place is that of the mapping that lacks it.
    pub(crate) written: bool,
    settings: Vec<SettingPlace>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct SettingPlace {
    /// The keys and indexes that lead to it in the config.
    keys: Vec<String>,
    place: Place,
    /// The field, such as `spec.config.apiKey`.
    path: String,
}

impl ConfigPlaces {
    /// Reads the places of the field `config` of `owner`.
    pub(crate) fn read(owner: &Cursor<'_>) -> Self {
        let config = owner.follow(["config"]);
        let mut settings = Vec::new();
        match &config {
            Some(config) => collect(config, &mut Vec::new(), &mut settings),
            None => settings.push(SettingPlace::new(owner, &[])),
        }
        Self { file: owner.sink().file().to_owned(), written: config.is_some(), settings }
    }

    /// Returns an error at the setting that `keys` lead to or, if it is missing, at the nearest mapping around it.
    pub(crate) fn error(&self, keys: &[String], message: String, remedy: String) -> Diagnostic {
        let around = (0..=keys.len())
            .rev()
            .find_map(|length| self.settings.iter().find(|setting| setting.keys == keys[..length]));
        let error = Diagnostic::error(ErrorCode::EXT_CONFIG, &self.file, around.map(|at| at.place), message, remedy);
        error.with_path(around.map_or("", |at| &at.path))
    }
}

impl SettingPlace {
    fn new(cursor: &Cursor<'_>, keys: &[String]) -> Self {
        Self { keys: keys.to_vec(), place: cursor.place(), path: cursor.path().to_owned() }
    }
}

fn collect(cursor: &Cursor<'_>, keys: &mut Vec<String>, found: &mut Vec<SettingPlace>) {
    found.push(SettingPlace::new(cursor, keys));
    let children: Vec<String> = match cursor.value() {
        Value::Mapping(entries) => entries.iter().map(|entry| entry.key.clone()).collect(),
        Value::Sequence(items) => (0..items.len()).map(|index| index.to_string()).collect(),
        _ => return,
    };
    for key in children {
        if let Some(child) = cursor.follow([key.as_str()]) {
            keys.push(key);
            collect(&child, keys, found);
            keys.pop();
        }
    }
}
