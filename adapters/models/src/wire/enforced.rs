//! JSON Schemas in the form that providers enforce: every object is closed, all of its members are required, and there
//! are no other keywords than those that each of them knows.
// VALUE-01

use serde_json::{Map, Value};

/// Returns the form of `schema` that providers enforce. A value that fits it fits `schema` too, but for keywords that
/// no provider enforces, such as `minimum`: the answer is checked against `schema`. `None` if there is no such form:
/// for example, if an object has members of any name, a member that may be left out and not be null, or itself as its
/// member.
pub(crate) fn enforceable(schema: &Map<String, Value>) -> Option<Map<String, Value>> {
    let is_object = schema.get("type").is_some_and(|kind| kind == "object") && !schema.contains_key("anyOf");
    let root = Root(schema);
    (is_object && root.refers_to_no_outer(schema, &mut Vec::new())).then(|| root.closed(schema)).flatten()
}

/// The whole schema, which references are looked up in.
struct Root<'a>(&'a Map<String, Value>);

impl Root<'_> {
    fn closed(&self, schema: &Map<String, Value>) -> Option<Map<String, Value>> {
        if let Some(of) = schema.get("$ref") {
            // Words beside a reference are refused.
            let is_own = of.as_str().is_some_and(|of| of.starts_with("#/$defs/"));
            return is_own.then(|| Map::from_iter([("$ref".to_owned(), of.clone())])).filter(|_| !self.is_root(schema));
        }
        let mut closed = Map::new();
        for (keyword, value) in schema {
            match keyword.as_str() {
                "type" | "title" | "description" | "enum" | "const" => {
                    closed.insert(keyword.clone(), value.clone());
                }
                "properties" | "$defs" => {
                    closed.insert(keyword.clone(), Value::Object(self.all_closed(value.as_object()?)?));
                }
                "items" => {
                    closed.insert(keyword.clone(), Value::Object(self.closed(value.as_object()?)?));
                }
                "anyOf" | "oneOf" => {
                    let schemas = value.as_array()?.iter().map(|schema| self.closed(schema.as_object()?));
                    let schemas: Option<Vec<_>> = schemas.map(|schema| schema.map(Value::Object)).collect();
                    closed.insert("anyOf".to_owned(), schemas?.into());
                }
                "additionalProperties" if *value != Value::Bool(false) => return None,
                "required" | "additionalProperties" => {}
                _ if IGNORED.contains(&keyword.as_str()) => {}
                _ => return None,
            }
        }
        let is_said = ["type", "enum", "const", "anyOf"].iter().any(|keyword| closed.contains_key(*keyword));
        if is_of(&closed, "object") {
            let members = schema.get("properties")?.as_object()?;
            let required = schema.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let is_required = |name: &String| required.iter().any(|known| known == name);
            if !members.iter().all(|(name, member)| is_required(name) || self.takes_null(member)) {
                return None;
            }
            closed.insert("required".to_owned(), members.keys().cloned().collect::<Vec<_>>().into());
            closed.insert("additionalProperties".to_owned(), false.into());
        }
        is_said.then_some(closed)
    }

    fn all_closed(&self, schemas: &Map<String, Value>) -> Option<Map<String, Value>> {
        let closed = |(name, schema): (&String, &Value)| Some((name.clone(), self.closed(schema.as_object()?)?.into()));
        schemas.iter().map(closed).collect()
    }

    fn is_root(&self, schema: &Map<String, Value>) -> bool {
        std::ptr::eq(self.0, schema)
    }

    /// Returns whether a value that fits the schema may be null.
    fn takes_null(&self, schema: &Value) -> bool {
        let Some(schema) = schema.as_object() else { return false };
        let some = ["anyOf", "oneOf"].iter().filter_map(|keyword| schema.get(*keyword)?.as_array());
        is_of(schema, "null") || some.flatten().any(|schema| self.takes_null(schema))
    }

    /// Returns whether no reference in `schema` refers to a definition in which it is itself. `within` are the names
    /// of those.
    fn refers_to_no_outer<'s>(&'s self, schema: &'s Map<String, Value>, within: &mut Vec<&'s str>) -> bool {
        let own = schema.get("$ref").and_then(Value::as_str).and_then(|of| of.strip_prefix("#/$defs/"));
        if let Some(name) = own {
            let defined = self.0.get("$defs").and_then(|defs| defs.get(name)).and_then(Value::as_object);
            let Some(defined) = defined.filter(|_| !within.contains(&name)) else { return false };
            within.push(name);
            let refers = self.refers_to_no_outer(defined, within);
            within.pop();
            return refers;
        }
        schema.iter().filter(|(keyword, _)| *keyword != "$defs").all(|(_, value)| self.none_refers(value, within))
    }

    fn none_refers<'s>(&'s self, value: &'s Value, within: &mut Vec<&'s str>) -> bool {
        match value {
            Value::Object(schema) => self.refers_to_no_outer(schema, within),
            Value::Array(items) => items.iter().all(|item| self.none_refers(item, within)),
            _ => true,
        }
    }
}

/// The keywords that can be left out: they are notes, or narrow a value of a kind that is said.
const IGNORED: [&str; 17] = [
    "$schema",
    "$id",
    "$comment",
    "default",
    "examples",
    "deprecated",
    "format",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
];

fn is_of(schema: &Map<String, Value>, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(only)) => only == kind,
        Some(Value::Array(kinds)) => kinds.iter().any(|of| of == kind),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form(schema: Value) -> Option<Value> {
        enforceable(schema.as_object().unwrap()).map(Value::Object)
    }

    #[test]
    fn objects_are_closed_and_members_that_take_null_are_required() {
        let schema = json!({
            "title": "Weather", "type": "object", "required": ["city"],
            "properties": {
                "city": { "type": "string", "minLength": 1 },
                "degrees": { "type": ["number", "null"], "default": null },
                "wind": { "anyOf": [{ "$ref": "#/$defs/Wind" }, { "type": "null" }] },
                "sky": { "oneOf": [{ "const": "clear", "type": "string" }, { "const": "grey", "type": "string" }] },
            },
            "$defs": { "Wind": {
                "type": "object", "properties": { "from": { "type": "string" } }, "required": ["from"],
            } },
        });
        let mut lacking = schema.clone();
        assert_eq!(form(schema), None, "`sky` may be left out, and not be null");
        lacking["required"] = json!(["sky", "city"]);
        assert_eq!(
            form(lacking).unwrap(),
            json!({
                "title": "Weather", "type": "object", "required": ["city", "degrees", "wind", "sky"],
                "additionalProperties": false,
                "properties": {
                    "city": { "type": "string" },
                    "degrees": { "type": ["number", "null"] },
                    "sky": { "anyOf": [{ "const": "clear", "type": "string" }, { "const": "grey", "type": "string" }] },
                    "wind": { "anyOf": [{ "$ref": "#/$defs/Wind" }, { "type": "null" }] },
                },
                "$defs": { "Wind": {
                    "type": "object", "properties": { "from": { "type": "string" } }, "required": ["from"],
                    "additionalProperties": false,
                } },
            })
        );
    }

    #[test]
    fn what_no_provider_enforces_has_no_form() {
        let member = |schema: Value| json!({ "type": "object", "properties": { "a": schema }, "required": ["a"] });
        assert!(form(member(json!({ "type": "integer", "minimum": 1 }))).is_some());
        for schema in [
            json!({ "type": "string" }),
            json!({ "type": "object" }),
            json!({ "type": "object", "additionalProperties": { "type": "string" } }),
            member(json!(true)),
            member(json!({})),
            member(json!({ "type": "object", "patternProperties": {} })),
            member(json!({ "allOf": [{ "type": "string" }] })),
            member(json!({ "type": "array", "prefixItems": [] })),
            member(json!({ "$ref": "#" })),
            member(json!({ "$ref": "#/$defs/none" })),
            json!({
                "type": "object", "properties": { "a": { "$ref": "#/$defs/Node" } }, "required": ["a"],
                "$defs": { "Node": {
                    "type": "object", "properties": { "next": { "$ref": "#/$defs/Node" } }, "required": ["next"],
                } },
            }),
        ] {
            assert_eq!(form(schema.clone()), None, "{schema}");
        }
    }
}
