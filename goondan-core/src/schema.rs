//! JSON Schema validation: a schema is compiled once and validates many values.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use crate::error::{Error, ErrorCode, Result};

/// A compiled JSON Schema.
pub struct Schema(jsonschema::Validator);

/// One way in which a value breaks its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The location in the value, as a JSON pointer; empty for the whole value.
    pub path: String,
    /// What is wrong at that location.
    pub message: String,
    /// The keyword of the schema that the value breaks, such as `type`.
    pub keyword: String,
}

impl Schema {
    /// Compiles a schema of any origin.
    ///
    /// # Errors
    /// `E_SCHEMA_INVALID` when it is not a JSON Schema.
    pub fn compile(schema: &Value) -> Result<Self> {
        jsonschema::validator_for(schema).map(Self).map_err(|error| invalid(&error))
    }

    /// Compiles a schema that was derived from a type and is therefore known to be valid: it is not checked against the
    /// meta-schema, because compiling the meta-schema takes longer than all the rest of a short run.
    ///
    /// # Errors
    /// `E_SCHEMA_INVALID` when it cannot be compiled nevertheless.
    pub fn derived(schema: &Value) -> Result<Self> {
        const URI: &str = "urn:goondan:derived";
        // Only the root is checked against the meta-schema of its draft, and the one of draft 4 is small. So the root
        // is a reference in draft 4, and the schema itself is in the registry.
        let root = json!({ "$ref": URI });
        let registry = jsonschema::Registry::new().add(URI, schema).and_then(|registry| registry.prepare());
        let registry = registry.map_err(|error| invalid(&error))?;
        let options = jsonschema::options().with_draft(jsonschema::Draft::Draft4).with_registry(&registry);
        options.build(&root).map(Self).map_err(|error| invalid(&error))
    }

    /// Returns all violations in `value`, in document order.
    pub fn violations(&self, value: &Value) -> Vec<Violation> {
        let violation = |error: jsonschema::ValidationError<'_>| Violation {
            path: error.instance_path().to_string(),
            message: error.to_string(),
            keyword: error.kind().keyword().to_owned(),
        };
        self.0.iter_errors(value).map(violation).collect()
    }
}

fn invalid(error: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorCode::SCHEMA_INVALID, format!("not a JSON Schema: {error}"))
        .suggest("see https://json-schema.org for what a schema may hold")
}

/// Compiled schemas by their JSON text. The instances of an agent share one cache: compiling costs far more than
/// validating.
#[derive(Default)]
pub(crate) struct SchemaCache(Mutex<HashMap<String, Arc<Schema>>>);

impl SchemaCache {
    /// Returns the compiled form of `schema`, which is compiled at most once.
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
        let path = if self.path.is_empty() { "/" } else { &self.path };
        write!(f, "{path}: {}", self.message)
    }
}

/// Returns the violations on one line.
pub(crate) fn summary(violations: &[Violation]) -> String {
    violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
