//! Owns JSON Schema validation: a schema is compiled once and then asked often.

mod plain;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde_json::Value;

use self::plain::Plain;
use crate::error::{Error, ErrorCode, Result};

/// A compiled JSON Schema.
pub struct Schema(Compiled);

enum Compiled {
    Plain(Box<WithPlain>),
    Full(jsonschema::Validator),
}

/// A schema that is compiled in full when a value does not fit for certain: that has the words for what is wrong.
struct WithPlain {
    plain: Plain,
    schema: Value,
    full: OnceLock<Result<jsonschema::Validator, String>>,
}

/// One way in which a value breaks its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Where in the value, as a JSON pointer; empty for the whole value.
    pub path: String,
    /// What is wrong there.
    pub message: String,
    /// The keyword of the schema that the value breaks, such as `type`.
    pub keyword: String,
}

impl Schema {
    /// Compiles `schema`.
    ///
    /// # Errors
    /// `E_SCHEMA_INVALID` when it is not a JSON Schema.
    pub fn compile(schema: &Value) -> Result<Self> {
        if let Some(plain) = Plain::of(schema) {
            let schema = WithPlain { plain, schema: schema.clone(), full: OnceLock::new() };
            return Ok(Self(Compiled::Plain(Box::new(schema))));
        }
        full(schema).map(|full| Self(Compiled::Full(full))).map_err(|error| {
            Error::new(ErrorCode::SCHEMA_INVALID, format!("not a JSON Schema: {error}"))
                .suggest("see https://json-schema.org for what a schema may hold")
        })
    }

    /// All violations of `value`, in document order.
    pub fn violations(&self, value: &Value) -> Vec<Violation> {
        let full = match &self.0 {
            Compiled::Plain(schema) if schema.plain.accepts(value) => return Vec::new(),
            Compiled::Plain(schema) => schema.full.get_or_init(|| full(&schema.schema)).as_ref(),
            Compiled::Full(full) => Ok(full),
        };
        let violation = |error: jsonschema::ValidationError<'_>| Violation {
            path: error.instance_path().to_string(),
            message: error.to_string(),
            keyword: error.kind().keyword().to_owned(),
        };
        match full {
            Ok(full) => full.iter_errors(value).map(violation).collect(),
            // No value fits what is no schema.
            Err(error) => vec![Violation { path: String::new(), message: error.clone(), keyword: String::new() }],
        }
    }
}

fn full(schema: &Value) -> Result<jsonschema::Validator, String> {
    jsonschema::validator_for(schema).map_err(|error| error.to_string())
}

/// Schemas that were compiled already. The instances of an agent share one: compiling costs far more than validating.
#[derive(Default)]
pub(crate) struct SchemaCache(Mutex<HashMap<String, Arc<Schema>>>);

impl SchemaCache {
    /// The compiled form of `schema`.
    ///
    /// # Errors
    /// `E_SCHEMA_INVALID` when it is not a JSON Schema.
    pub(crate) fn compile(&self, schema: &Value) -> Result<Arc<Schema>> {
        let text = schema.to_string();
        let mut compiled = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = compiled.get(&text) {
            return Ok(Arc::clone(known));
        }
        let new = Arc::new(Schema::compile(schema)?);
        compiled.insert(text, Arc::clone(&new));
        Ok(new)
    }
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let place = if self.path.is_empty() { "/" } else { &self.path };
        write!(f, "{place}: {}", self.message)
    }
}

/// The violations on one line.
pub(crate) fn summary(violations: &[Violation]) -> String {
    violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
