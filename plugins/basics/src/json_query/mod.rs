//! Tools that take JSON apart.
//!
//! This file has the tools, `path` the paths to values. What only repeats an argument is not in the answers.

mod path;

use goondan::json;
use goondan::prelude::*;
use goondan::{Map, Value};

use path::Path;

/// The input of `json-query__query` and `json-query__count`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Query {
    /// The JSON text.
    data: String,
    /// The path to a value, such as `users[0].name`. An index below zero counts from the end; a key with a dot or a
    /// bracket is in quotes: `files["a.txt"]`. Defaults to `.`, the whole.
    #[serde(default = "whole")]
    path: String,
}

/// The output of `json-query__query`.
#[derive(Debug, Serialize)]
struct Found {
    path: String,
    found: bool,
    value: Option<Value>,
}

/// The output of `json-query__count`.
#[derive(Debug, Serialize)]
struct Count {
    path: String,
    count: usize,
    r#type: &'static str,
}

/// The input of `json-query__pick`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Pick {
    /// The text of a JSON object.
    data: String,
    /// The keys to keep.
    keys: Vec<String>,
}

/// The output of `json-query__pick`.
#[derive(Debug, Serialize)]
struct Picked {
    result: Map<String, Value>,
    /// The keys that the object does not have.
    missing: Vec<String>,
}

/// The input of `json-query__flatten`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Flatten {
    /// The text of a JSON array.
    data: String,
    /// How many levels of arrays inside of it to dissolve. Defaults to 1.
    #[serde(default = "one")]
    depth: u32,
}

/// The output of `json-query__flatten`.
#[derive(Debug, Serialize)]
struct Flat {
    count: usize,
    result: Vec<Value>,
}

fn whole() -> String {
    ".".to_owned()
}

fn one() -> u32 {
    1
}

/// The most values of `data`: they take up to 20 MB.
const MOST_VALUES: usize = 200_000;

fn parse(data: &str) -> Result<Value> {
    let count = json::count_values(data);
    if count > MOST_VALUES {
        let message = format!("`data` has {count} values, and may have {MOST_VALUES}");
        return Err(Error::msg(message).suggest("pass a part of it"));
    }
    json::from_str(data).map_err(|error| Error::msg(format!("`data` is not JSON: {error}")))
}

/// Returns what kind of value it is, and how many elements, members or characters it has.
fn measure(value: &Value) -> (&'static str, usize) {
    match value {
        Value::Null => ("null", 0),
        Value::Bool(_) => ("boolean", 1),
        Value::Number(_) => ("number", 1),
        Value::String(text) => ("string", text.chars().count()),
        Value::Array(items) => ("array", items.len()),
        Value::Object(members) => ("object", members.len()),
    }
}

fn flatten_into(result: &mut Vec<Value>, items: Vec<Value>, depth: u32) {
    for item in items {
        match item {
            Value::Array(items) if depth > 0 => flatten_into(result, items, depth - 1),
            item => result.push(item),
        }
    }
}

/// Takes JSON apart.
#[goondan::extension(name = "json-query")]
pub mod tools {
    use super::*;

    /// Returns the value at a path in JSON.
    #[tool(effect = read, present = "{path}")]
    async fn query(input: Query) -> Result<Found> {
        let value = Path::parse(&input.path)?.of(parse(&input.data)?);
        Ok(Found { path: input.path, found: value.is_some(), value })
    }

    /// Counts what is at a path in JSON: the elements of an array, the members of an object, the characters of a text.
    #[tool(effect = read, present = "{path}")]
    async fn count(input: Query) -> Result<Count> {
        let value = Path::parse(&input.path)?.of(parse(&input.data)?);
        let value = value.ok_or_else(|| Error::msg(format!("there is nothing at `{}`", input.path)))?;
        let (r#type, count) = measure(&value);
        Ok(Count { path: input.path, count, r#type })
    }

    /// Returns a JSON object with some of its members.
    #[tool(effect = read, present = "{keys}")]
    async fn pick(input: Pick) -> Result<Picked> {
        let mut object = match parse(&input.data)? {
            Value::Object(object) => object,
            other => return Err(Error::msg(format!("`data` is no object; its type is {}", measure(&other).0))),
        };
        let (mut result, mut missing) = (Map::new(), Vec::new());
        for key in input.keys {
            match object.remove(&key) {
                Some(value) => drop(result.insert(key, value)),
                None if result.contains_key(&key) => {}
                None => missing.push(key),
            }
        }
        Ok(Picked { result, missing })
    }

    /// Dissolves arrays inside of a JSON array: `[1, [2, 3]]` becomes `[1, 2, 3]`.
    #[tool(effect = read)]
    async fn flatten(input: Flatten) -> Result<Flat> {
        let items = match parse(&input.data)? {
            Value::Array(items) => items,
            other => return Err(Error::msg(format!("`data` is no array; its type is {}", measure(&other).0))),
        };
        let mut result = Vec::new();
        flatten_into(&mut result, items, input.depth);
        Ok(Flat { count: result.len(), result })
    }
}
