//! Owns values that a document does not hold itself: how it says where they come from, and how they are fetched.

use std::env;
use std::path::PathBuf;

use goondan_core::{ErrorCode, Secret};
use serde_json::Value as Json;

use crate::diagnostic::{Diagnostic, Place};
use crate::field::Field;
use crate::shape::{VALUE, VALUE_FROM};
use crate::yaml::Value;

/// Where a text comes from that is not written in the bundle (F-REF).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ValueSource {
    /// `env: <NAME>`: a variable of the environment.
    Env(String),
}

/// A setting whose value comes from elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourcedValue {
    /// The way to it in the config: the names of members, and the indexes in lists.
    pub keys: Vec<String>,
    /// Where its value comes from.
    pub source: ValueSource,
    /// The file that says so.
    pub file: PathBuf,
    /// The place there.
    pub place: Place,
    /// The field, such as `spec.config.apiKey`.
    pub path: String,
}

impl ValueSource {
    /// The value as it is now; the error says what is wrong with the source. A variable that is empty is as good as none.
    fn fetch(&self) -> Result<String, (String, String)> {
        let Self::Env(name) = self;
        let wrong = match env::var(name) {
            Ok(value) if !value.is_empty() => return Ok(value),
            Ok(_) => "is empty",
            Err(env::VarError::NotPresent) => "is not set",
            Err(env::VarError::NotUnicode(_)) => "is not UTF-8 text",
        };
        Err((format!("the variable `{name}`, which {wrong}"), format!("set `{name}` in the environment of the run")))
    }
}

impl SourcedValue {
    /// Puts the value into `config`, which is the one that this was read from. Gives what is wrong if there is none.
    pub(crate) fn put_into(&self, config: &mut Json) -> Option<Diagnostic> {
        let (wrong, suggestion) = match self.source.fetch() {
            Ok(value) => {
                self.replace(config, Secret::new(value).expose());
                return None;
            }
            Err(told) => told,
        };
        let message = format!("`{}` takes its value from {wrong}", self.path);
        let code = ErrorCode::CONFIG_VALUE_NOT_FOUND;
        Some(Diagnostic::error(code, &self.file, self.place, message, suggestion).with_path(&self.path))
    }

    /// Puts a text into `config` that stands for the value.
    pub(crate) fn stand_in(&self, config: &mut Json) {
        let ValueSource::Env(name) = &self.source;
        self.replace(config, &format!("${name}"));
    }

    fn replace(&self, config: &mut Json, text: &str) {
        let place = self.keys.iter().try_fold(config, |value, key| match value {
            Json::Object(members) => members.get_mut(key),
            Json::Array(items) => items.get_mut(key.parse::<usize>().ok()?),
            _ => None,
        });
        if let Some(place) = place {
            *place = text.into();
        }
    }

    /// What is wrong with the source, for those who do not need the value yet.
    pub(crate) fn warning(&self) -> Option<Diagnostic> {
        let (wrong, suggestion) = self.source.fetch().err()?;
        let message = format!("`{}` takes its value from {wrong}: a run needs it", self.path);
        Some(Diagnostic::warning(&self.file, self.place, message, suggestion).with_path(&self.path))
    }
}

/// The settings in `config` whose values come from elsewhere; reports those that do not say from where.
pub(crate) fn read_sources(config: &Field<'_>) -> Vec<SourcedValue> {
    let mut found = Vec::new();
    if config.follow(["valueFrom"]).is_some() {
        let message =
            format!("{} must be a mapping of settings, and cannot come from elsewhere as a whole", config.name());
        config.refuse(ErrorCode::CONFIG_SCHEMA, message, "write `valueFrom` below the setting that it is for");
        return found;
    }
    collect(config, &mut Vec::new(), &mut found);
    found
}

fn collect(field: &Field<'_>, keys: &mut Vec<String>, found: &mut Vec<SourcedValue>) {
    let children: Vec<String> = match field.value() {
        Value::Mapping(entries) if entries.iter().any(|entry| entry.key == "valueFrom") => {
            if let Some(source) = read(field) {
                let (file, path) = (field.sink().file().to_owned(), field.path().to_owned());
                found.push(SourcedValue { keys: keys.clone(), source, file, place: field.place(), path });
            }
            return;
        }
        Value::Mapping(entries) => entries.iter().map(|entry| entry.key.clone()).collect(),
        Value::Sequence(items) => (0..items.len()).map(|index| index.to_string()).collect(),
        _ => return,
    };
    for key in children {
        if let Some(child) = field.follow([key.as_str()]) {
            keys.push(key);
            collect(&child, keys, found);
            keys.pop();
        }
    }
}

fn read(field: &Field<'_>) -> Option<ValueSource> {
    let from = field.table(&VALUE)?.need("valueFrom")?;
    if let Some(secret) = from.follow(["secretRef"]) {
        let message =
            format!("{} names a secret, and this version has no store of secrets: expected `env`", secret.name());
        secret.refuse(ErrorCode::CONFIG_SCHEMA, message, "write `env: <NAME>`, and put the secret into that variable");
        return None;
    }
    let env = from.table(&VALUE_FROM)?.need("env")?;
    let name = env.text()?;
    let letter = |char: char| char.is_ascii_alphanumeric() || char == '_';
    if name.is_empty() || !name.chars().all(letter) || name.starts_with(|first: char| first.is_ascii_digit()) {
        let message = format!("{} must be the name of a variable, but is {}", env.name(), env.value());
        env.refuse(ErrorCode::CONFIG_SCHEMA, message, "write letters, digits and `_` alone, such as `API_KEY`");
        return None;
    }
    Some(ValueSource::Env(name.to_owned()))
}
