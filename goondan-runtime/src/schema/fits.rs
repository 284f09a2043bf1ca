//! Judges values by schemas without compiling them.
//!
//! A program starts with values that fit, and to compile a schema takes as long as the rest of a short run. So a schema
//! is compiled only for values that do not fit, or where this is not known here.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{BUNDLE_PATH, is_below_bundle};

/// The most levels of references and values that are followed.
const DEPTH: u32 = 64;

/// Returns whether `value` certainly fits `schema`. `formats` is whether the format of paths below a bundle is checked.
pub(super) fn fits(schema: &Value, value: &Value, formats: bool) -> bool {
    Judge { root: schema, formats }.value(schema, value, DEPTH) == Some(true)
}

/// Returns whether a schema certainly compiles: it has only keywords that are known here, each with a value as it
/// should be.
pub(super) fn is_plain(schema: &Value) -> bool {
    is_plain_below(schema, schema, DEPTH)
}

fn is_plain_below(root: &Value, schema: &Value, depth: u32) -> bool {
    let (Some(depth), Value::Object(keywords)) = (depth.checked_sub(1), schema) else { return schema.is_boolean() };
    let plain = |schema: &Value| is_plain_below(root, schema, depth);
    let texts = |list: &Value| list.as_array().is_some_and(|list| list.iter().all(Value::is_string));
    keywords.iter().all(|(keyword, rule)| match keyword.as_str() {
        "title" | "description" | "$comment" | "format" => rule.is_string(),
        "default" | "x-goondan" | "const" => true,
        "examples" | "enum" => rule.is_array(),
        "$schema" => std::ptr::eq(root, schema) && rule == "https://json-schema.org/draft/2020-12/schema",
        "$ref" => rule.as_str().and_then(|place| root.pointer(place.strip_prefix('#')?)).is_some(),
        "type" => match rule {
            Value::Array(names) => {
                let known: BTreeSet<_> = names.iter().filter_map(Value::as_str).filter(|name| is_type(name)).collect();
                !names.is_empty() && known.len() == names.len()
            }
            name => name.as_str().is_some_and(is_type),
        },
        "minimum" | "maximum" => rule.is_number(),
        "minLength" | "maxLength" | "minItems" | "maxItems" => rule.is_u64(),
        "required" => texts(rule),
        "anyOf" | "allOf" | "oneOf" => rule.as_array().is_some_and(|forms| forms.iter().all(plain)),
        "properties" | "$defs" => rule.as_object().is_some_and(|schemas| schemas.values().all(plain)),
        "items" | "additionalProperties" | "unevaluatedProperties" => plain(rule),
        _ => false,
    })
}

/// A schema that values are judged by. `None` is for an unknown one.
struct Judge<'a> {
    root: &'a Value,
    formats: bool,
}

impl Judge<'_> {
    fn value(&self, schema: &Value, value: &Value, depth: u32) -> Option<bool> {
        let depth = depth.checked_sub(1)?;
        let keywords = match schema {
            Value::Bool(any) => return Some(*any),
            Value::Object(keywords) => keywords,
            _ => return None,
        };
        all(keywords.iter().map(|(keyword, rule)| self.keyword(keywords, keyword, rule, value, depth)))
    }

    fn keyword(
        &self,
        keywords: &Map<String, Value>,
        keyword: &str,
        rule: &Value,
        value: &Value,
        depth: u32,
    ) -> Option<bool> {
        match keyword {
            "title" | "description" | "$comment" => rule.is_string().then_some(true),
            "default" | "x-goondan" => Some(true),
            "examples" => rule.is_array().then_some(true),
            "$schema" | "$defs" if std::ptr::eq(keywords, self.root.as_object()?) => Some(true),
            "$ref" => self.value(self.root.pointer(rule.as_str()?.strip_prefix('#')?)?, value, depth),
            "type" => match rule {
                Value::String(name) => has_type(value, name),
                Value::Array(names) => any(names.iter().map(|name| has_type(value, name.as_str()?))),
                _ => None,
            },
            "const" => equal(rule, value),
            "enum" => any(rule.as_array()?.iter().map(|one| equal(one, value))),
            "anyOf" => any(rule.as_array()?.iter().map(|form| self.value(form, value, depth))),
            "allOf" => all(rule.as_array()?.iter().map(|form| self.value(form, value, depth))),
            "oneOf" => {
                let fitting = rule.as_array()?.iter().map(|form| self.value(form, value, depth));
                let fitting: Option<Vec<bool>> = fitting.collect();
                Some(fitting?.into_iter().filter(|fits| *fits).count() == 1)
            }
            "format" => match value {
                Value::String(text) if self.formats && rule == BUNDLE_PATH => Some(is_below_bundle(text)),
                Value::String(_) => None,
                _ => rule.is_string().then_some(true),
            },
            "minimum" => whole(rule, value, |least, value| value >= least),
            "maximum" => whole(rule, value, |most, value| value <= most),
            "minLength" => length(rule, value.as_str().map(|text| text.chars().count()), |least, is| is >= least),
            "maxLength" => length(rule, value.as_str().map(|text| text.chars().count()), |most, is| is <= most),
            "minItems" => length(rule, value.as_array().map(Vec::len), |least, is| is >= least),
            "maxItems" => length(rule, value.as_array().map(Vec::len), |most, is| is <= most),
            "items" if !keywords.contains_key("prefixItems") => match value {
                Value::Array(items) => all(items.iter().map(|item| self.value(rule, item, depth))),
                _ => is_schema(rule),
            },
            _ => self.object_keyword(keywords, keyword, rule, value, depth),
        }
    }

    /// As [`keyword`](Self::keyword), for those about the members of an object.
    fn object_keyword(
        &self,
        keywords: &Map<String, Value>,
        keyword: &str,
        rule: &Value,
        value: &Value,
        depth: u32,
    ) -> Option<bool> {
        match keyword {
            "required" => {
                let names = rule.as_array()?.iter().map(Value::as_str).collect::<Option<Vec<_>>>()?;
                let members = value.as_object();
                Some(members.is_none_or(|members| names.iter().all(|name| members.contains_key(*name))))
            }
            "properties" => {
                let known = rule.as_object()?;
                let members = value.as_object().into_iter().flatten();
                let members = members.filter_map(|(name, value)| Some((known.get(name)?, value)));
                all(members.map(|(schema, value)| self.value(schema, value, depth)))
            }
            "additionalProperties" if !keywords.contains_key("patternProperties") => {
                let known = keywords.get("properties").map(Value::as_object);
                let is_known = |name: &str| known.flatten().is_some_and(|known| known.contains_key(name));
                let members = value.as_object().into_iter().flatten();
                let more = members.filter(|(name, _)| !is_known(name));
                all(more.map(|(_, value)| self.value(rule, value, depth)).chain([is_schema(rule)]))
            }
            "unevaluatedProperties" => {
                let known = keywords.get("properties").and_then(Value::as_object);
                let is_known = |name: &String| known.is_some_and(|known| known.contains_key(name));
                // Others may be known to forms of the schema.
                let plain = value.as_object().is_none_or(|members| members.keys().all(is_known));
                is_schema(rule).filter(|_| plain)
            }
            _ => None,
        }
    }
}

/// Returns whether all of them are true.
fn all(mut judged: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut unknown = false;
    let no = judged.any(|fits| {
        unknown |= fits.is_none();
        fits == Some(false)
    });
    // An unknown value may be no schema.
    if unknown { None } else { Some(!no) }
}

/// Returns whether one of them is true.
fn any(judged: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    judged.collect::<Option<Vec<_>>>().map(|judged| judged.contains(&true))
}

fn is_schema(rule: &Value) -> Option<bool> {
    (rule.is_object() || rule.is_boolean()).then_some(true)
}

fn is_type(name: &str) -> bool {
    has_type(&Value::Null, name).is_some()
}

fn has_type(value: &Value, name: &str) -> Option<bool> {
    Some(match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        // 1.0 is one too.
        "integer" if value.is_f64() => return None,
        "integer" => value.is_i64() || value.is_u64(),
        _ => return None,
    })
}

/// Returns whether two values are equal. Numbers and lists with numbers can be written in several ways.
fn equal(one: &Value, other: &Value) -> Option<bool> {
    match (one, other) {
        (Value::Array(_) | Value::Object(_), _) | (_, Value::Array(_) | Value::Object(_)) => None,
        (Value::Number(one), Value::Number(other)) if one.is_f64() || other.is_f64() => None,
        _ => Some(one == other),
    }
}

/// Compares whole numbers.
fn whole(rule: &Value, value: &Value, fits: impl Fn(i64, i64) -> bool) -> Option<bool> {
    if !value.is_number() {
        return rule.is_number().then_some(true);
    }
    Some(fits(rule.as_i64()?, value.as_i64()?))
}

/// Compares a length, if the value has one.
fn length(rule: &Value, length: Option<usize>, fits: impl Fn(u64, u64) -> bool) -> Option<bool> {
    let limit = rule.as_u64()?;
    Some(length.is_none_or(|length| fits(limit, length as u64)))
}
