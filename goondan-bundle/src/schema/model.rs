//! The schema of a model's spec: the options of its provider, and the members that bundles read themselves.

use std::collections::BTreeSet;

use goondan_runtime::BundlePath;
use serde_json::{Map, Value, json};

use super::{FieldType, MODEL};

/// The schema of the spec of a model of the provider `name`, whose config has the schema `config`.
pub(crate) fn model_spec(name: &str, config: Value) -> Value {
    let mut members = Map::new();
    for field in MODEL.fields {
        let mut member = match field.field_type {
            FieldType::Provider => json!({ "const": name }),
            _ => json!({ "type": "string", "format": BundlePath::FORMAT }),
        };
        member["description"] = field.about.into();
        members.insert(field.name.to_owned(), member);
    }
    let (mut spec, mut elsewhere, mut done) = (config, BTreeSet::new(), BTreeSet::new());
    add_members(&mut spec, &members, &mut elsewhere);
    while let Some(pointer) = elsewhere.pop_first() {
        if done.insert(pointer.clone())
            && let Some(form) = spec.pointer_mut(&pointer)
        {
            add_members(form, &members, &mut elsewhere);
        }
    }
    spec
}

/// Adds `members` to a schema of objects and to its forms. Collects the pointers to forms that are elsewhere.
fn add_members(schema: &mut Value, members: &Map<String, Value>, elsewhere: &mut BTreeSet<String>) {
    let Value::Object(keywords) = schema else { return };
    if let Some(Value::String(target)) = keywords.get("$ref") {
        elsewhere.extend(target.strip_prefix('#').map(str::to_owned));
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let forms = keywords.get_mut(keyword).and_then(Value::as_array_mut);
        forms.into_iter().flatten().for_each(|form| add_members(form, members, elsewhere));
    }
    if let Value::Object(own) = keywords.entry("properties").or_insert_with(|| Map::new().into()) {
        own.extend(members.clone());
    }
}
