//! JSON Schema validation: a schema is compiled at most once and validates many values.

mod fits;
mod object;
pub use object::{check_config, check_input, config_value, description};

use std::collections::HashMap;
use std::path::{Component, Path};
use std::sync::{Arc, OnceLock};

use goondan_core::{Error, ErrorCode, Result};
use goondan_lock::Lock;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{ValidationError, Validator};
use serde_json::{Map, Value, json};

use crate::nearest::{did_you_mean, nearest, one_of};
use object::members;

/// The format of paths below the directory of a bundle.
pub(crate) const BUNDLE_PATH: &str = "bundle-path";

/// The most bytes of a schema's patterns together.
const PATTERNS: usize = 10 << 20;

/// A JSON Schema that values are checked against.
pub struct Schema {
    /// Set when it is needed, if the schema was derived.
    validator: OnceLock<Validator>,
    /// As it was written, for the names of members in messages.
    written: Value,
    /// Whether formats are checked, if it was derived.
    formats: bool,
}

/// One way in which a value breaks its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The location in the value, as a JSON pointer; empty for the whole value. That of an unknown member is the
    /// member itself.
    pub path: String,
    /// The fault at that location.
    pub message: String,
    /// The member that an unknown one was probably meant to be.
    pub meant: Option<String>,
    /// The member that the value at that location lacks.
    pub missing: Option<String>,
    /// The keyword of the schema that the value breaks, such as `type`.
    pub keyword: String,
}

impl Schema {
    /// Compiles a schema of any origin.
    ///
    /// # Errors
    /// `E_SCHEMA_INVALID` when it is not a JSON Schema.
    pub fn compile(schema: &Value) -> Result<Self> {
        // A short pattern can take megabytes, and a schema can have thousands of them.
        let room = PATTERNS / patterns(schema).max(1);
        let limits = jsonschema::PatternOptions::fancy_regex().size_limit(room).dfa_size_limit(room);
        let validator = jsonschema::options().with_pattern_options(limits).build(schema);
        let validator = OnceLock::from(validator.map_err(|error| invalid(&error))?);
        Ok(Self { validator, written: schema.clone(), formats: false })
    }

    /// Reads a schema that was derived from a type and is therefore known to be valid: it is not checked against the
    /// meta-schema, and it is compiled only if a value does not fit, because either takes longer than all the rest of a
    /// short run.
    ///
    /// # Errors
    /// `E_SCHEMA_INVALID` when it cannot be compiled nevertheless.
    pub fn derived(schema: &Value) -> Result<Self> {
        Self::trusted(schema, false)
    }

    /// As [`derived`](Self::derived), with checked formats, such as paths below a bundle.
    ///
    /// # Errors
    /// As [`derived`](Self::derived).
    pub fn derived_with_formats(schema: &Value) -> Result<Self> {
        Self::trusted(schema, true)
    }

    fn trusted(schema: &Value, formats: bool) -> Result<Self> {
        let validator = OnceLock::new();
        if !fits::is_plain(schema) {
            let compiled = compile_derived(schema, formats)?;
            validator.get_or_init(|| compiled);
        }
        Ok(Self { validator, written: schema.clone(), formats })
    }

    /// Returns all violations in `value`, in document order.
    pub fn violations(&self, value: &Value) -> Vec<Violation> {
        let validator = match self.validator.get() {
            Some(validator) => validator,
            None if fits::fits(&self.written, value, self.formats) => return Vec::new(),
            None => match compile_derived(&self.written, self.formats) {
                Ok(validator) => self.validator.get_or_init(|| validator),
                // A schema that could fail to compile is compiled when it is read. Nothing fits one that fails here.
                Err(error) => {
                    let (path, message, keyword) = (String::new(), error.message().into_owned(), "$schema".to_owned());
                    return vec![Violation { path, message, meant: None, missing: None, keyword }];
                }
            },
        };
        let errors: Vec<_> = validator.iter_errors(value).collect();
        // Where no form of an object fits, none of its members is known.
        let follows = |error: &ValidationError<'_>| {
            let formless = |other: &ValidationError<'_>| {
                other.instance_path() == error.instance_path() && forms(other.kind()).is_some()
            };
            matches!(error.kind(), ValidationErrorKind::UnevaluatedProperties { .. }) && errors.iter().any(formless)
        };
        errors.iter().filter(|error| !follows(error)).flat_map(|error| self.violations_of(error, value)).collect()
    }

    /// Returns one violation for each unknown member, those of the form that was meant, and one for any other error.
    fn violations_of(&self, error: &ValidationError<'_>, value: &Value) -> Vec<Violation> {
        let (path, keyword) = (error.instance_path().to_string(), error.kind().keyword().to_owned());
        let unknown: Vec<&str> = match error.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected }
            | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
                unexpected.iter().map(String::as_str).collect()
            }
            // Of an object that has no members at all.
            ValidationErrorKind::FalseSchema if error.schema_path().as_str().ends_with("/additionalProperties") => {
                let members = value.pointer(&path).and_then(Value::as_object);
                members.into_iter().flat_map(Map::keys).map(String::as_str).collect()
            }
            kind if let Some(errors) = forms(kind).and_then(|forms| meant_form(forms, error)) => {
                return errors.iter().flat_map(|error| self.violations_of(error, value)).collect();
            }
            ValidationErrorKind::Required { property } => {
                let missing = property.as_str().map(str::to_owned);
                return vec![Violation { path, message: error.to_string(), meant: None, missing, keyword }];
            }
            _ => return vec![Violation { path, message: error.to_string(), meant: None, missing: None, keyword }],
        };
        let known = members(&self.written, &keys(&path));
        let unknown = unknown.into_iter().map(|name| {
            let meant = nearest(name, known.iter().copied());
            let message = match known.is_empty() {
                true => "unknown member: there are none".to_owned(),
                false => {
                    format!("unknown member: expected {}{}", one_of(known.iter().copied()), did_you_mean(meant))
                }
            };
            let path = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
            let (keyword, meant) = ("additionalProperties".to_owned(), meant.map(str::to_owned));
            Violation { path, message, meant, missing: None, keyword }
        });
        unknown.collect()
    }
}

fn compile_derived(schema: &Value, formats: bool) -> Result<Validator> {
    const URI: &str = "urn:goondan:derived";
    // Only the root is checked against the meta-schema of its draft, and the one of draft 4 is small. So the root is a
    // reference in draft 4, and the schema itself is in the registry.
    let root = json!({ "$ref": URI });
    let registry = jsonschema::Registry::new().add(URI, schema).and_then(|registry| registry.prepare());
    let registry = registry.map_err(|error| invalid(&error))?;
    let mut options = jsonschema::options().with_draft(jsonschema::Draft::Draft4).with_registry(&registry);
    if formats {
        options = options.with_format(BUNDLE_PATH, is_below_bundle).should_validate_formats(true);
    }
    options.build(&root).map_err(|error| invalid(&error))
}

/// Returns how many patterns a schema has, or more.
fn patterns(schema: &Value) -> usize {
    match schema {
        Value::Object(keywords) => {
            let count = |(keyword, value): (&String, &Value)| match (keyword.as_str(), value) {
                ("pattern", Value::String(_)) => 1,
                ("patternProperties", Value::Object(properties)) => properties.len() + patterns(value),
                _ => patterns(value),
            };
            keywords.iter().map(count).sum()
        }
        Value::Array(values) => values.iter().map(patterns).sum(),
        _ => 0,
    }
}

/// Returns the errors of all forms, if none fits.
fn forms(kind: &ValidationErrorKind) -> Option<&[Vec<ValidationError<'static>>]> {
    match kind {
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => Some(context),
        _ => None,
    }
}

/// Returns the errors of the only form that takes a value of this type at all, such as the one form of an optional
/// object.
fn meant_form<'a>(
    forms: &'a [Vec<ValidationError<'static>>],
    error: &ValidationError<'_>,
) -> Option<&'a [ValidationError<'static>]> {
    let of_type = |error: &ValidationError<'_>| matches!(error.kind(), ValidationErrorKind::Type { .. });
    let other_type =
        |form: &&Vec<_>| form.iter().any(|one| of_type(one) && one.instance_path() == error.instance_path());
    let mut possible = forms.iter().filter(|form| !other_type(form));
    match (possible.next(), possible.next()) {
        (Some(form), None) => Some(form),
        _ => None,
    }
}

/// Whether `text` is a relative path that names something and has no `..`.
pub(crate) fn is_below_bundle(text: &str) -> bool {
    let mut names = false;
    let mut inside = Path::new(text).components().map(|component| {
        names |= matches!(component, Component::Normal(_));
        matches!(component, Component::Normal(_) | Component::CurDir)
    });
    inside.all(|inside| inside) && names
}

/// Returns the keys and indexes of a JSON pointer.
fn keys(pointer: &str) -> Vec<String> {
    pointer.split('/').skip(1).map(|key| key.replace("~1", "/").replace("~0", "~")).collect()
}

impl Violation {
    /// Returns the keys and indexes that lead to the location in the value.
    pub fn keys(&self) -> Vec<String> {
        keys(&self.path)
    }
}

fn invalid(error: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorCode::SCHEMA_INVALID, format!("not a JSON Schema: {error}"))
        .suggest("see https://json-schema.org for what a schema may hold")
}

/// Compiled schemas that are in use, by their JSON text. The instances of an agent share one cache: compiling costs far
/// more than validating.
#[derive(Default)]
pub(crate) struct SchemaCache(Lock<HashMap<String, Arc<Schema>>>);

impl SchemaCache {
    /// Returns the compiled form of `schema`, which is compiled at most once.
    ///
    /// # Errors
    /// `E_SCHEMA_INVALID` when it is not a JSON Schema.
    pub(crate) fn compile(&self, schema: &Value) -> Result<Arc<Schema>> {
        let text = schema.to_string();
        let mut compiled = self.0.lock();
        if let Some(known) = compiled.get(&text) {
            return Ok(Arc::clone(known));
        }
        // A tool may get another schema again and again.
        compiled.retain(|_, schema| Arc::strong_count(schema) > 1);
        let new = Arc::new(Schema::compile(schema)?);
        compiled.insert(text, Arc::clone(&new));
        Ok(new)
    }
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = if self.path.is_empty() { "/" } else { &self.path };
        write!(f, "{path}: {}", self.message)
    }
}

/// Returns the violations on one line.
pub(crate) fn summary(violations: &[Violation]) -> String {
    violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Checks that objects can fit the schemas of the config and of the tools that attributes declare.
///
/// # Errors
/// `E_SCHEMA_INVALID` for the first schema that no object can fit.
pub fn check_descriptor(of: &goondan_core::ExtensionDescriptor) -> Result<()> {
    check_config(&(of.config_schema)())?;
    of.tools.iter().try_for_each(|tool| check_input(tool.name, &(tool.parameters)()))
}
