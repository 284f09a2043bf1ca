//! Reads the statements of a schema about objects, without compiling it: whether it takes them, and which members
//! they can have.

use std::collections::BTreeSet;

use goondan_core::{Error, ErrorCode, Result};
use serde_json::{Map, Value};

/// The most subschemas that one question looks at. References can form a cycle, and a schema may be foreign.
const MAX_VISITED: usize = 1_000;

/// Checks that the schema of the arguments of `tool` takes an object, because arguments are one.
///
/// # Errors
/// `E_SCHEMA_INVALID` if no call of the tool could fit the schema.
pub fn check_input(tool: &str, schema: &Value) -> Result<()> {
    if SchemaTree::new(schema).takes_object(schema) {
        return Ok(());
    }
    let message = format!("the input of the tool `{tool}` is {}, and arguments are an object", described(schema));
    Err(Error::new(ErrorCode::SCHEMA_INVALID, message)
        .suggest("take a struct with a field for each argument, or declare a schema of the type `object`"))
}

/// Checks that the schema of a config takes an object, because configs are one. A schema that takes nothing but `null`
/// belongs to an extension without a config.
///
/// # Errors
/// `E_SCHEMA_INVALID` if no config could fit the schema.
pub fn check_config(schema: &Value) -> Result<()> {
    if takes_only_null(schema) || SchemaTree::new(schema).takes_object(schema) {
        return Ok(());
    }
    let message = format!("the config is {}, and configs are an object", described(schema));
    Err(Error::new(ErrorCode::SCHEMA_INVALID, message)
        .suggest("take a struct with a field for each setting, or declare a schema of the type `object`"))
}

/// Returns the value of a config that is written as `config`, for an extension with this schema. A missing config is an
/// empty object, so that extensions need none if all members have defaults; an empty one is `null` for the unit type.
pub fn config_value(schema: &Value, config: Value) -> Value {
    let empty = config.is_null() || config.as_object().is_some_and(Map::is_empty);
    match empty {
        true if takes_only_null(schema) => Value::Null,
        true => Value::Object(Map::new()),
        false => config,
    }
}

fn takes_only_null(schema: &Value) -> bool {
    schema.get("type").is_some_and(|name| name == "null")
}

/// The type that a schema names, for messages.
fn described(schema: &Value) -> String {
    match schema.get("type") {
        Some(Value::String(name)) => format!("of the type `{name}`"),
        Some(types) => format!("of the types {types}"),
        None => "no object in any of its forms".to_owned(),
    }
}

/// A schema whose subschemas are visited. References are resolved in it.
struct SchemaTree<'a> {
    root: &'a Value,
    visits_left: usize,
}

impl<'a> SchemaTree<'a> {
    fn new(root: &'a Value) -> Self {
        Self { root, visits_left: MAX_VISITED }
    }

    /// Counts a visit of a subschema. Returns `false` when there were too many.
    fn visit(&mut self) -> bool {
        self.visits_left = self.visits_left.saturating_sub(1);
        self.visits_left > 0
    }

    /// Returns the schema that a `$ref` refers to, if it is a part of this schema.
    fn resolve(&self, reference: &Value) -> Option<&'a Value> {
        self.root.pointer(reference.as_str()?.strip_prefix('#')?)
    }

    /// Returns whether some object could fit `schema`. A keyword that is not understood refuses nothing.
    fn takes_object(&mut self, schema: &'a Value) -> bool {
        match schema {
            Value::Bool(anything) => *anything,
            Value::Object(keywords) if self.visit() => {
                keywords.iter().all(|(keyword, value)| match (keyword.as_str(), value) {
                    ("type", Value::String(name)) => name == "object",
                    ("type", Value::Array(names)) => names.iter().any(|name| name == "object"),
                    ("const", value) => value.is_object(),
                    ("enum", Value::Array(values)) => values.iter().any(Value::is_object),
                    ("$ref", target) => self.resolve(target).is_none_or(|target| self.takes_object(target)),
                    ("allOf", Value::Array(all)) => all.iter().all(|one| self.takes_object(one)),
                    ("anyOf" | "oneOf", Value::Array(any)) => any.iter().any(|one| self.takes_object(one)),
                    _ => true,
                })
            }
            _ => true,
        }
    }

    /// Returns the statement of `schema` about the value at `path` in a value.
    fn description(&mut self, schema: &'a Value, path: &[String]) -> Option<&'a str> {
        let keywords = schema.as_object().filter(|_| self.visit())?;
        let own = keywords.get("description").filter(|_| path.is_empty());
        own.and_then(Value::as_str).or_else(|| {
            keywords.iter().find_map(|(keyword, value)| match (keyword.as_str(), value, path) {
                ("$ref", target, _) => self.description(self.resolve(target)?, path),
                ("allOf" | "anyOf" | "oneOf", Value::Array(all), _) if !path.is_empty() => {
                    all.iter().find_map(|one| self.description(one, path))
                }
                ("properties", Value::Object(members), [first, rest @ ..]) => {
                    self.description(members.get(first)?, rest)
                }
                ("items" | "additionalProperties", inner, [_, rest @ ..]) => self.description(inner, rest),
                _ => None,
            })
        })
    }

    /// Collects the members that `schema` names for the object at `path` in a value.
    fn collect_members(&mut self, schema: &'a Value, path: &[String], names: &mut BTreeSet<&'a str>) {
        let Value::Object(keywords) = schema else { return };
        if !self.visit() {
            return;
        }
        for (keyword, value) in keywords {
            match (keyword.as_str(), value, path) {
                ("$ref", target, _) => {
                    if let Some(target) = self.resolve(target) {
                        self.collect_members(target, path, names);
                    }
                }
                ("allOf" | "anyOf" | "oneOf", Value::Array(all), _) => {
                    all.iter().for_each(|one| self.collect_members(one, path, names));
                }
                ("properties", Value::Object(members), []) => names.extend(members.keys().map(String::as_str)),
                ("properties", Value::Object(members), [first, rest @ ..]) => {
                    if let Some(member) = members.get(first) {
                        self.collect_members(member, rest, names);
                    }
                }
                ("items" | "additionalProperties", inner, [_, rest @ ..]) => self.collect_members(inner, rest, names),
                _ => {}
            }
        }
    }
}

/// Returns the statement of `schema` about the value at `path`, the keys and indexes that lead to it.
pub fn description<'a>(schema: &'a Value, path: &[String]) -> Option<&'a str> {
    SchemaTree::new(schema).description(schema, path)
}

/// Returns the members that `schema` names for the object at `path` in a value: the keys and indexes that lead to it.
pub(super) fn members<'a>(schema: &'a Value, path: &[String]) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::new();
    SchemaTree::new(schema).collect_members(schema, path, &mut names);
    names
}
