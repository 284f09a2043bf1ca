//! Values that a bundle takes from the environment: reads their sources, and fetches the values.

use std::env;
use std::path::PathBuf;

use goondan_core::{ErrorCode, Secret};
use goondan_runtime::schema::Violation;
use serde_json::Value as Json;

use super::cursor::Cursor;
use super::map::MapReader;
use crate::diagnostic::{Diagnostic, Diagnostics, Place};
use crate::schema::{VALUE, VALUE_FROM};
use crate::yaml::Value;

/// The source of a text that is not written in the bundle.
// F-REF
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ValueSource {
    /// `env: <NAME>`: an environment variable.
    Env(String),
}

/// A setting whose value is not written in the bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourcedValue {
    /// The keys and the indexes that lead to it in the config.
    pub keys: Vec<String>,
    /// The source of its value.
    pub source: ValueSource,
    /// Whether the value is masked in logs, errors and records.
    pub secret: bool,
    /// The file with the reference to the source.
    pub file: PathBuf,
    /// The place of the reference in the file.
    pub place: Place,
    /// The field, such as `spec.config.apiKey`.
    pub path: String,
}

impl ValueSource {
    /// Returns the name of the environment variable.
    pub(crate) fn variable(&self) -> &str {
        let Self::Env(name) = self;
        name
    }

    /// Returns the current value, or the problem with the source and its remedy. An empty variable counts as missing.
    fn fetch(&self) -> Result<String, (String, String)> {
        let Self::Env(name) = self;
        let problem = match env::var(name) {
            Ok(value) if !value.is_empty() => return Ok(value),
            Ok(_) => "is empty",
            Err(env::VarError::NotPresent) => "is not set",
            Err(env::VarError::NotUnicode(_)) => "is not UTF-8 text",
        };
        Err((format!("the variable `{name}`, which {problem}"), format!("set `{name}` in the environment of the run")))
    }
}

impl SourcedValue {
    /// Fetches the value and inserts it into the config that the setting was read from. Returns an error if there is no
    /// value.
    fn insert_into(&self, fetched: &mut FetchedConfig) -> Option<Diagnostic> {
        let (problem, suggestion) = match self.source.fetch() {
            Ok(value) => {
                self.replace(&mut fetched.config, &value);
                if self.secret {
                    fetched.secrets.push(Secret::new(value));
                }
                return None;
            }
            Err(problem) => problem,
        };
        let message = format!("`{}` takes its value from {problem}", self.path);
        let code = ErrorCode::CONFIG_VALUE_NOT_FOUND;
        Some(Diagnostic::error(code, &self.file, self.place, message, suggestion).with_path(&self.path))
    }

    /// Whether there is no value.
    pub(crate) fn is_missing(&self) -> bool {
        self.source.fetch().is_err()
    }

    /// The JSON pointer of the setting.
    pub(crate) fn pointer(&self) -> String {
        pointer(&self.keys)
    }

    /// Removes the setting from `config`. Returns whether it was a member of an object.
    pub(crate) fn remove(&self, config: &mut Json) -> bool {
        let Some((last, around)) = self.keys.split_last() else { return false };
        let Some(Json::Object(members)) = config.pointer_mut(&pointer(around)) else { return false };
        members.shift_remove(last).is_some()
    }

    /// Inserts a text into `config` that represents the value.
    pub(crate) fn insert_placeholder(&self, config: &mut Json) {
        let ValueSource::Env(name) = &self.source;
        self.replace(config, &format!("${name}"));
    }

    /// Whether another text here could remove the violation.
    pub(crate) fn decides(&self, violation: &Violation) -> bool {
        let pointer = pointer(&self.keys);
        match pointer.strip_prefix(violation.path.as_str()) {
            Some("") => !matches!(violation.keyword.as_str(), "type" | "additionalProperties"),
            Some(below) if below.starts_with('/') => {
                matches!(
                    violation.keyword.as_str(),
                    "anyOf" | "oneOf" | "not" | "enum" | "const" | "contains" | "uniqueItems"
                )
            }
            _ => false,
        }
    }

    /// Replaces the reference in `config` by a text.
    pub(crate) fn replace(&self, config: &mut Json, text: &str) {
        let setting = self.keys.iter().try_fold(config, |value, key| match value {
            Json::Object(members) => members.get_mut(key),
            Json::Array(items) => items.get_mut(key.parse::<usize>().ok()?),
            _ => None,
        });
        if let Some(setting) = setting {
            *setting = text.into();
        }
    }

    /// Returns a warning if there is no value, for commands that do not need it yet.
    pub(crate) fn warning(&self) -> Option<Diagnostic> {
        let (problem, suggestion) = self.source.fetch().err()?;
        let message = format!("`{}` takes its value from {problem}: a run needs it", self.path);
        Some(Diagnostic::warning(&self.file, self.place, message, suggestion).with_path(&self.path))
    }
}

/// A config with its values from the environment.
pub(crate) struct FetchedConfig {
    pub(crate) config: Json,
    /// The secret values, which are masked in logs, errors and records as long as these exist.
    pub(crate) secrets: Vec<Secret>,
}

impl FetchedConfig {
    /// Inserts the values of `sources` into `config`, or returns an error for each missing value.
    pub(crate) fn fetch<'a>(
        config: Json,
        sources: impl Iterator<Item = &'a SourcedValue>,
    ) -> Result<Self, Diagnostics> {
        let mut fetched = Self { config, secrets: Vec::new() };
        let errors = sources.filter_map(|source| source.insert_into(&mut fetched)).collect();
        Diagnostics::new(errors).map_or(Ok(fetched), Err)
    }
}

/// The JSON pointer of these keys.
fn pointer(keys: &[String]) -> String {
    keys.iter().map(|key| format!("/{}", key.replace('~', "~0").replace('/', "~1"))).collect()
}

/// Returns the settings in `config` with a `valueFrom`. Reports those without a valid source.
pub(crate) fn read_sources(config: &Cursor<'_>) -> Vec<SourcedValue> {
    let mut found = Vec::new();
    if config.follow(["valueFrom"]).is_some() {
        let message =
            format!("{} must be a mapping of settings, and cannot come from elsewhere as a whole", config.name());
        config.error(ErrorCode::CONFIG_SCHEMA, message, "write `valueFrom` below the setting that it is for");
        return found;
    }
    collect(config, &mut Vec::new(), &mut found);
    found
}

fn collect(cursor: &Cursor<'_>, keys: &mut Vec<String>, found: &mut Vec<SourcedValue>) {
    let children: Vec<String> = match cursor.value() {
        Value::Mapping(entries) if entries.iter().any(|entry| entry.key == "valueFrom") => {
            if let Some((source, secret)) = read(cursor) {
                let (file, path) = (cursor.sink().file().to_owned(), cursor.path().to_owned());
                found.push(SourcedValue { keys: keys.clone(), source, secret, file, place: cursor.place(), path });
            }
            return;
        }
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

/// Returns the source, and whether its value is secret.
fn read(cursor: &Cursor<'_>) -> Option<(ValueSource, bool)> {
    let from = MapReader::new(cursor, &VALUE)?.require("valueFrom")?;
    if let Some(secret) = from.follow(["secretRef"]) {
        let message =
            format!("{} names a secret, and this version has no store of secrets: expected `env`", secret.name());
        secret.error(ErrorCode::CONFIG_SCHEMA, message, "write `env: <NAME>`, and put the secret into that variable");
        return None;
    }
    let fields = MapReader::new(&from, &VALUE_FROM)?;
    let env = fields.require("env")?;
    let secret = fields.get("secret").map_or(Some(true), |secret| secret.flag())?;
    let name = env.text()?;
    let letter = |char: char| char.is_ascii_alphanumeric() || char == '_';
    if name.is_empty() || !name.chars().all(letter) || name.starts_with(|first: char| first.is_ascii_digit()) {
        let message = format!("{} must be the name of a variable, but is {}", env.name(), env.value());
        env.error(ErrorCode::CONFIG_SCHEMA, message, "write letters, digits and `_` alone, such as `API_KEY`");
        return None;
    }
    Some((ValueSource::Env(name.to_owned()), secret))
}
