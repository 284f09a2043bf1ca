//! Checks the settings of a model: first against the schema of its provider, then by the provider itself.

use std::path::PathBuf;

use goondan_core::{Error, ErrorCode, Result};
use goondan_runtime::schema::{Schema, Violation, description};
use goondan_runtime::{BundlePath, Finding, FindingPlace, ProviderContext, ProviderDescriptor};
use serde_json::Value;

use crate::diagnostic::{Diagnostic, Place};
use crate::read::{ConfigPlaces, SourcedValue};
use crate::schema::{MODEL, model_spec};

/// The text of settings whose values are not known. It is too short to be masked as a secret.
const UNKNOWN: &str = "$env";

/// The spec of a model, with the places of its settings.
#[derive(Clone, Copy)]
pub(super) struct Settings<'a> {
    pub(super) provider: &'static ProviderDescriptor,
    /// The whole spec. References to the environment are replaced by some text.
    pub(super) spec: &'a Value,
    /// The settings whose values are not known.
    pub(super) unknown: &'a [SourcedValue],
    pub(super) places: &'a ConfigPlaces,
    pub(super) at: &'a ProviderContext<'a>,
}

/// The outcome of a check.
#[derive(Default)]
pub(super) struct Checked {
    pub(super) errors: Vec<Diagnostic>,
    pub(super) hints: Vec<Diagnostic>,
    /// The files that the model reads.
    pub(super) files: Vec<PathBuf>,
    /// The files that it would read with other settings.
    pub(super) recordings: Vec<PathBuf>,
    /// The hosts that it connects to and no setting names.
    pub(super) hosts: Vec<String>,
    /// The variables of the environment that it reads and no setting names.
    pub(super) variables: Vec<String>,
}

impl Settings<'_> {
    /// Checks the settings as far as they are known.
    ///
    /// # Errors
    /// `E_MODEL_PROVIDER` when the provider does not work.
    pub(super) fn check(&self) -> Result<Checked> {
        let schema = model_spec(self.provider.name(), self.provider.config_schema()?);
        let mut violations =
            Schema::derived_with_formats(&schema).map_err(|error| self.broken(&error))?.violations(self.spec);
        violations.retain(|violation| !self.unknown.iter().any(|value| value.decides(violation)));
        if violations.is_empty() {
            return self.ask_provider();
        }
        let meant = |violation: &Violation| violation.missing.is_some() && is_misspelt(violation, &violations);
        let errors = violations.iter().filter(|violation| !meant(violation));
        let errors = errors.map(|violation| self.violation(violation, &schema)).collect();
        Ok(Checked { errors, ..Checked::default() })
    }

    fn broken(&self, error: &Error) -> Error {
        let message = format!("the provider `{}` does not work: {}", self.provider.name(), error.message());
        Error::new(ErrorCode::MODEL_PROVIDER, message).suggest("correct the provider")
    }

    fn ask_provider(&self) -> Result<Checked> {
        let mut config = config(self.spec);
        self.unknown.iter().for_each(|value| value.replace(&mut config, UNKNOWN));
        let found = match self.provider.check(config, self.at) {
            Ok(found) => found,
            // The type of a setting may refuse the text that stands in for the value.
            Err(error) if *error.code() == ErrorCode::CONFIG_SCHEMA && !self.unknown.is_empty() => {
                return Ok(Checked::default());
            }
            Err(error) if *error.code() == ErrorCode::CONFIG_SCHEMA => {
                let remedy = error.suggestion().unwrap_or_default().to_owned();
                let error = self.places.error(ErrorCode::CONFIG_SCHEMA, &[], error.message().into_owned(), remedy);
                return Ok(Checked { errors: vec![error], ..Checked::default() });
            }
            Err(error) => return Err(error),
        };
        let (files, recordings) = (found.files().to_vec(), found.recordings().to_vec());
        let (hosts, variables) = (found.hosts().to_vec(), found.variables().to_vec());
        let mut checked = Checked { files, recordings, hosts, variables, ..Checked::default() };
        for finding in found.iter() {
            self.add(finding, &mut checked);
        }
        Ok(checked)
    }

    fn add(&self, finding: &Finding, checked: &mut Checked) {
        let Finding { code, place, message, remedy, .. } = finding;
        let (message, remedy) = (message.clone(), remedy.clone());
        match place {
            FindingPlace::Setting(pointer) => {
                let keys = keys(pointer);
                if self.unknown.iter().any(|value| keys.starts_with(&value.keys)) {
                    return;
                }
                match code {
                    Some(code) => checked.errors.push(self.places.error(code.clone(), &keys, message, remedy)),
                    None => checked.hints.push(self.places.warning(&keys, message, remedy)),
                }
            }
            FindingPlace::File { path, at } => {
                let at = at.map(|(line, column)| Place { line, column });
                match code {
                    Some(code) => checked.errors.push(Diagnostic::error(code.clone(), path, at, message, remedy)),
                    None => checked.hints.push(Diagnostic::warning(path, at.unwrap_or(Place::START), message, remedy)),
                }
            }
            _ => {}
        }
    }

    /// The error for a violation of `schema`.
    fn violation(&self, violation: &Violation, schema: &Value) -> Diagnostic {
        let code = ErrorCode::CONFIG_SCHEMA;
        let keys = violation.keys();
        let provider = self.provider.name();
        if let Some(missing) = &violation.missing {
            let path = format!("{}.{missing}", name(&keys));
            let remedy = format!("add `{missing}: {}`", example(schema, &keys, missing));
            let error = self.places.error(code, &keys, format!("`{path}` is missing"), remedy);
            return error.with_path(&path);
        }
        if let (Some((last, around)), "additionalProperties") = (keys.split_last(), violation.keyword.as_str()) {
            let expected = violation.message.trim_start_matches("unknown member: ");
            let message =
                format!("unknown field `{last}` in `{}` of the provider `{provider}`: {expected}", name(around));
            let meant = violation.meant.as_ref();
            let remedy = meant.map_or_else(|| format!("remove `{last}`"), |meant| format!("write `{meant}`"));
            return self.places.error_at_key(code, &keys, message, remedy);
        }
        let setting = self.spec.pointer(&violation.path);
        let name = name(&keys);
        if violation.keyword == "format" && violation.message.contains(BundlePath::FORMAT) {
            let written = setting.map(Value::to_string).unwrap_or_default();
            let message = format!("`{name}` must be a path below the bundle's directory, but is {written}");
            return self.places.error(code, &keys, message, "write a relative path without `..`".to_owned());
        }
        let remedy = match setting {
            Some(Value::Number(_) | Value::Bool(_)) if violation.message.ends_with("\"string\"") => {
                "put it in quotes".to_owned()
            }
            _ => match description(schema, &keys) {
                Some(about) => format!("change it: {about}"),
                None => "change it; the documentation of the provider says what it takes".to_owned(),
            },
        };
        let message = format!("`{name}` does not fit the provider `{provider}`: {}", violation.message);
        self.places.error(code, &keys, message, remedy)
    }
}

/// The config in a spec: without the members that bundles read themselves.
pub(super) fn config(spec: &Value) -> Value {
    let mut config = spec.as_object().cloned().unwrap_or_default();
    config.retain(|key, _| MODEL.names().all(|name| name != key));
    config.into()
}

/// Whether an unknown member is probably the missing one.
fn is_misspelt(missing: &Violation, violations: &[Violation]) -> bool {
    let around = missing.keys();
    violations.iter().any(|unknown| {
        unknown.meant.is_some() && unknown.meant == missing.missing && {
            unknown.keys().split_last().is_some_and(|(_, keys)| *keys == around)
        }
    })
}

/// The keys and the indexes of a JSON pointer.
fn keys(pointer: &str) -> Vec<String> {
    pointer.split('/').skip(1).map(|key| key.replace("~1", "/").replace("~0", "~")).collect()
}

/// The field, such as `spec.timeouts.idleMs`.
fn name(keys: &[String]) -> String {
    let mut name = "spec".to_owned();
    for key in keys {
        match key.parse::<usize>() {
            Ok(index) => name.push_str(&format!("[{index}]")),
            Err(_) => name.push_str(&format!(".{key}")),
        }
    }
    name
}

/// The schema of a setting, if it is written in place.
fn part<'a>(schema: &'a Value, keys: &[String]) -> Option<&'a Value> {
    keys.iter().try_fold(schema, |schema, key| schema.get("properties")?.get(key))
}

/// Returns a way to write a missing setting: its example, or its type.
fn example(schema: &Value, keys: &[String], missing: &str) -> String {
    let setting = part(schema, keys).and_then(|around| around.get("properties")?.get(missing));
    let example = setting.and_then(|setting| setting.get("examples")?.get(0));
    let takes = setting.and_then(|setting| setting.get("type")?.as_str());
    example.map_or_else(|| format!("<{}>", takes.unwrap_or("value")), Value::to_string)
}
