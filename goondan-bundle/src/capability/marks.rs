//! Finds the settings of a config that its schema marks.

use std::collections::HashSet;

use serde_json::Value;

/// The keyword of schemas that marks a setting. Its value is a kind, or an object of a kind and the text that is shown
/// instead of the setting.
const MARK: &str = "x-goondan";

/// A setting that is marked.
#[derive(Debug, PartialEq)]
pub(super) struct Marked<'a> {
    pub(super) kind: &'a str,
    /// The text that the mark has for the setting.
    pub(super) text: Option<&'a str>,
    /// The name of the setting; empty for the config as a whole.
    pub(super) name: &'a str,
    pub(super) value: &'a Value,
}

/// Returns the settings of `config` that `schema` marks. Settings that are left out have the defaults of the schema. Of
/// several forms that a setting can have, the marks of all are found.
pub(super) fn marked<'a>(schema: &'a Value, config: &'a Value) -> Vec<Marked<'a>> {
    let mut search = Search { root: schema, seen: HashSet::new(), found: Vec::new() };
    search.visit(schema, config, "");
    search.found
}

struct Search<'a> {
    root: &'a Value,
    /// The addresses of schemas and values: references can form a cycle.
    seen: HashSet<(*const Value, *const Value)>,
    found: Vec<Marked<'a>>,
}

impl<'a> Search<'a> {
    fn visit(&mut self, schema: &'a Value, value: &'a Value, name: &'a str) {
        let Value::Object(keywords) = schema else { return };
        if !self.seen.insert((schema, value)) {
            return;
        }
        let declared = keywords.get("properties").and_then(Value::as_object);
        for (keyword, inner) in keywords {
            match (keyword.as_str(), inner, value) {
                (MARK, Value::String(kind), _) => self.found.push(Marked { kind, text: None, name, value }),
                (MARK, Value::Object(texts), _) => {
                    let texts = texts.iter().map(|(kind, text)| Marked { kind, text: text.as_str(), name, value });
                    self.found.extend(texts);
                }
                ("$ref", Value::String(reference), _) => {
                    if let Some(target) = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer)) {
                        self.visit(target, value, name);
                    }
                }
                ("allOf" | "anyOf" | "oneOf", Value::Array(forms), _) => {
                    forms.iter().for_each(|form| self.visit(form, value, name));
                }
                ("then" | "else", form, _) => self.visit(form, value, name),
                ("properties", Value::Object(members), Value::Object(config)) => {
                    for (member, inner) in members {
                        if let Some(value) = config.get(member).or_else(|| inner.get("default")) {
                            self.visit(inner, value, member);
                        }
                    }
                }
                ("additionalProperties" | "unevaluatedProperties", inner, Value::Object(config)) => {
                    let others = config
                        .iter()
                        .filter(|(member, _)| !declared.is_some_and(|declared| declared.contains_key(member.as_str())));
                    others.for_each(|(member, value)| self.visit(inner, value, member));
                }
                ("patternProperties", Value::Object(patterns), Value::Object(config)) => {
                    for (member, value) in config {
                        patterns.values().for_each(|inner| self.visit(inner, value, member));
                    }
                }
                ("items", inner, Value::Array(items)) => items.iter().for_each(|item| self.visit(inner, item, name)),
                ("prefixItems", Value::Array(inner), Value::Array(items)) => {
                    inner.iter().zip(items).for_each(|(inner, item)| self.visit(inner, item, name));
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(schema: Value, config: Value) -> Vec<String> {
        let text = |marked: Marked<'_>| {
            format!("{} {} {}", marked.kind, marked.name, marked.text.map_or(marked.value.to_string(), str::to_owned))
        };
        let mut found: Vec<_> = marked(&schema, &config).into_iter().map(text).collect();
        found.sort();
        found
    }

    #[test]
    fn marks_are_found_wherever_a_schema_has_them() {
        let schema = json!({
            "x-goondan": { "shell": "any" },
            "properties": {
                "command": { "x-goondan": "command" },
                "servers": { "additionalProperties": { "$ref": "#/$defs/Server" } },
                "either": { "anyOf": [{ "$ref": "#/$defs/Server" }, { "type": "null" }] },
                "list": { "items": { "x-goondan": "root" } },
                "pair": { "prefixItems": [{}, { "x-goondan": "host" }] },
                "tree": { "$ref": "#/$defs/Tree" },
                "run": { "x-goondan": "shell", "default": true },
            },
            "patternProperties": { "^x": { "x-goondan": "variable" } },
            "$defs": {
                "Server": { "oneOf": [{ "properties": { "url": { "x-goondan": "host" } } }, {}] },
                "Tree": { "allOf": [{ "$ref": "#/$defs/Tree" }], "additionalProperties": { "$ref": "#/$defs/Tree" },
                    "properties": { "program": { "x-goondan": "command" } } },
            },
        });
        let config = json!({
            "command": ["a", "b"],
            "servers": { "one": { "url": "u1" }, "other": { "url": "u2" } },
            "either": { "url": "u3" },
            "list": ["r"],
            "pair": [1, "u4"],
            "tree": { "left": { "right": { "program": "p" } } },
            "xyz": "v",
        });
        let expected = [
            r#"command command ["a","b"]"#,
            r#"command program "p""#,
            r#"host pair "u4""#,
            r#"host url "u1""#,
            r#"host url "u2""#,
            r#"host url "u3""#,
            r#"root list "r""#,
            "shell  any",
            "shell run true",
            r#"variable command ["a","b"]"#,
        ];
        let all = found(schema, config);
        assert_eq!(all.iter().filter(|text| !text.starts_with("variable")).collect::<Vec<_>>(), expected[..9]);
        assert!(all.contains(&r#"variable xyz "v""#.to_owned()), "{all:?}");
    }

    #[test]
    fn settings_without_marks_are_not_found() {
        let schema = json!({ "properties": { "a": {}, "b": { "x-goondan": "root" } }, "additionalProperties": false });
        assert_eq!(found(schema, json!({ "a": 1 })), [""; 0]);
        assert_eq!(found(json!(true), json!({ "a": 1 })), [""; 0]);
    }
}
