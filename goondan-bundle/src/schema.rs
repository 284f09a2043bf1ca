//! Owns the JSON Schema of bundle documents, for editors.

use serde_json::{Map, Value, json};

use crate::LibraryEntry;
use crate::document::Kind;
use crate::shape::{DOCUMENT, FieldShape, REFERENCE, Shape, Takes, VALUE};

/// The grammar of the names of resources, of at most 63 characters (F-REF).
const NAME: &str = "[a-z][a-z0-9]*(-[a-z0-9]+)*";

/// A relative path that leads to a file, and not out of the bundle (F-REF).
const PATH: &str = r"^(?!/)(?!(.*/)?\.\.(/|$))(?!(\./?)*$).+$";

/// The JSON Schema (draft 2020-12) of a document of a bundle. `extensions` are the extensions that are known by name,
/// each with the schema of its config: the config of an Extension whose entry is `linked:<name>` must fit it.
///
/// It tells editors what can be written; what several documents must agree on is for [`crate::Bundle::check`] to say.
///
/// ```
/// let window = serde_json::json!({ "properties": { "maxMessages": { "type": "integer" } } });
/// let schema = goondan_bundle::schema(&[("message-window", window)]);
/// assert_eq!(schema["oneOf"][0]["$ref"], "#/$defs/Model");
/// ```
pub fn schema(extensions: &[(&str, Value)]) -> Value {
    schema_with(extensions, &[])
}

/// As [`schema`], with extensions in libraries: the config of an Extension that is called so, and has that entry, must fit
/// the schema.
pub fn schema_with(extensions: &[(&str, Value)], libraries: &[(&LibraryEntry, Value)]) -> Value {
    let mut definitions = Map::new();
    for kind in Kind::ALL {
        definitions.insert(kind.to_string(), document(kind));
    }
    let mut conditions = Vec::new();
    for (name, config) in extensions {
        definitions.insert((*name).to_owned(), config_of(name, config));
        conditions.push(config_by_entry(None, &format!("linked:{name}"), name));
    }
    for (library, config) in libraries {
        // An extension of the program may have the same name, but no colon in it.
        let definition = format!("library:{}", library.name);
        conditions.push(config_by_entry(Some(library.name.as_str()), &library.written, &definition));
        let config = config_of(&definition, config);
        definitions.insert(definition, config);
    }
    if let Some(Value::Object(extension)) = definitions.get_mut(Kind::Extension.as_str())
        && !conditions.is_empty()
    {
        extension.insert("allOf".to_owned(), conditions.into());
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "goondan bundle",
        "description": DOCUMENT.about,
        "oneOf": Kind::ALL.map(|kind| json!({ "$ref": format!("#/$defs/{kind}") })),
        "$defs": definitions,
    })
}

fn document(kind: Kind) -> Value {
    let mut schema = table(&DOCUMENT, kind);
    schema.insert("description".to_owned(), kind.shape().about.into());
    schema.into()
}

fn table(shape: &Shape, kind: Kind) -> Map<String, Value> {
    let property = |field: &FieldShape| {
        let mut schema = takes(&field.takes, kind);
        schema.insert("description".to_owned(), field.about.into());
        (field.name.to_owned(), schema.into())
    };
    let required: Vec<_> = shape.fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    object(json!({
        "description": shape.about,
        "type": "object",
        "properties": shape.fields.iter().map(property).collect::<Map<_, _>>(),
        "required": required,
        "additionalProperties": false,
    }))
}

fn takes(takes: &Takes, kind: Kind) -> Map<String, Value> {
    object(match takes {
        Takes::Text => json!({ "type": "string" }),
        Takes::FilledText => json!({ "type": "string", "pattern": r"\S" }),
        Takes::Name => json!({ "type": "string", "pattern": format!("^{NAME}$"), "maxLength": 63 }),
        Takes::Word(words) => json!({ "enum": words }),
        Takes::Kind => json!({ "const": kind.as_str() }),
        Takes::Path => json!({ "type": "string", "pattern": PATH }),
        Takes::Entry => {
            let linked = json!({ "pattern": format!("^linked:{NAME}$"), "maxLength": 63 + "linked:".len() });
            let library =
                json!({ "allOf": [{ "pattern": "/" }, { "pattern": PATH }, { "not": { "pattern": "^linked:" } }] });
            json!({ "type": "string", "anyOf": [linked, library] })
        }
        Takes::Digest => json!({ "type": "string", "pattern": "^[0-9a-f]{64}$" }),
        Takes::Positive => json!({ "type": "integer", "minimum": 1, "maximum": u32::MAX }),
        Takes::Variable => json!({ "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" }),
        Takes::Object => json!({ "type": "object" }),
        Takes::Labels => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        Takes::Reference(kind) => reference(*kind),
        Takes::Table(shape) => table(shape, kind).into(),
        Takes::Spec => table(kind.shape(), kind).into(),
        Takes::List { of, at_least } => json!({ "type": "array", "items": table(of, kind), "minItems": at_least }),
    })
}

/// A reference to a resource of `kind`: `Kind/name`, or the two in a mapping.
fn reference(kind: Kind) -> Value {
    let mut written_out = table(&REFERENCE, kind);
    if let Some(kinds) = written_out.get_mut("properties").and_then(|fields| fields.get_mut("kind")) {
        *kinds = json!({ "const": kind.as_str() });
    }
    json!({ "anyOf": [{ "type": "string", "pattern": format!("^{kind}/[^/]+$") }, written_out] })
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

/// What the config of an extension must fit, if its entry is `entry`, and its name `name`.
fn config_by_entry(name: Option<&str>, entry: &str, definition: &str) -> Value {
    let has = |part: &str, schema: Value| json!({ "properties": { part: schema }, "required": [part] });
    let mut condition = has("spec", has("entry", json!({ "const": entry })));
    if let Some(name) = name {
        let named = has("metadata", has("name", json!({ "const": name })));
        condition = json!({ "allOf": [named, condition] });
    }
    let config = json!({ "properties": { "config": { "$ref": format!("#/$defs/{definition}") } } });
    json!({ "if": condition, "then": has("spec", config) })
}

/// The schema of a config as a definition of ours, so that it can be found from anywhere in ours.
fn config_of(name: &str, schema: &Value) -> Value {
    let mut config = schema.clone();
    take_values(&mut config, schema);
    rebase(&mut config, &format!("#/$defs/{name}"));
    if let Value::Object(fields) = &mut config {
        // It is part of a schema now, and agents may add what the extension does not set.
        fields.retain(|key, _| !matches!(key.as_str(), "$schema" | "$id" | "required"));
    }
    config
}

/// Turns references to the root of a schema into references to `root`.
fn rebase(schema: &mut Value, root: &str) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(|item| rebase(item, root)),
        Value::Object(fields) => {
            for (key, value) in fields {
                match (key.as_str(), value) {
                    // Data, in which nothing is a reference.
                    ("const" | "enum" | "default" | "examples", _) => {}
                    ("$ref", Value::String(target)) if target.starts_with('#') => target.replace_range(..1, root),
                    // Here a key is a name that somebody chose, and means nothing.
                    ("properties" | "patternProperties" | "dependentSchemas" | "$defs" | "definitions", value) => {
                        value.as_object_mut().into_iter().flatten().for_each(|(_, schema)| rebase(schema, root));
                    }
                    (_, value) => rebase(value, root),
                }
            }
        }
        _ => {}
    }
}

/// How deep references are followed to see what a setting takes.
const FOLLOWED: usize = 8;

/// Lets every setting below `schema` that takes text take a `valueFrom` as well. `root` is the schema that references
/// within mean.
fn take_values(schema: &mut Value, root: &Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(|item| take_values(item, root)),
        Value::Object(fields) => {
            for (key, value) in fields {
                match (key.as_str(), value) {
                    ("const" | "enum" | "default" | "examples", _) => {}
                    ("properties" | "patternProperties", Value::Object(settings)) => {
                        settings.values_mut().for_each(|setting| take_value(setting, root));
                    }
                    ("items" | "additionalProperties", setting) => take_value(setting, root),
                    ("prefixItems", Value::Array(settings)) => {
                        settings.iter_mut().for_each(|setting| take_value(setting, root));
                    }
                    ("$defs" | "definitions" | "dependentSchemas", Value::Object(schemas)) => {
                        schemas.values_mut().for_each(|schema| take_values(schema, root));
                    }
                    (_, value) => take_values(value, root),
                }
            }
        }
        _ => {}
    }
}

fn take_value(setting: &mut Value, root: &Value) {
    let takes = takes_text(setting, root, FOLLOWED);
    take_values(setting, root);
    if takes {
        let written = setting.take();
        // Editors show the description of what they are at.
        let about = written.get("description").cloned();
        *setting = json!({ "anyOf": [written, table(&VALUE, Kind::Extension)] });
        about.into_iter().for_each(|about| setting["description"] = about);
    }
}

fn takes_text(schema: &Value, root: &Value, follow: usize) -> bool {
    let of = |key| schema.get(key).and_then(Value::as_array).into_iter().flatten();
    let is_text = |value: Option<&Value>| value.is_some_and(|value| value == "string");
    let target = schema.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix('#'));
    is_text(schema.get("type"))
        || of("type").any(|one| is_text(Some(one)))
        || of("enum").chain(schema.get("const")).any(Value::is_string)
        || of("anyOf").chain(of("oneOf")).any(|one| follow > 0 && takes_text(one, root, follow - 1))
        || target.and_then(|to| root.pointer(to)).is_some_and(|one| follow > 0 && takes_text(one, root, follow - 1))
}
