//! The JSON Schema of bundle documents, for editors.

use goondan_runtime::{BundlePath, ProviderDescriptor, linked_providers};
use serde_json::{Map, Value, json};

use super::{DOCUMENT, FieldSchema, FieldType, MapSchema, REFERENCE, VALUE, model_spec};
use crate::kind::Kind;
use crate::libraries::LibraryEntry;

/// The grammar of the names of resources, which have at most 63 characters (F-REF).
const NAME: &str = "[a-z][a-z0-9]*(-[a-z0-9]+)*";

/// A relative path of a file that does not lead out of the bundle (F-REF).
const PATH: &str = r"^(?!/)(?!(.*/)?\.\.(/|$))(?!(\./?)*$).+$";

/// Returns the JSON Schema (draft 2020-12) of a document of a bundle. `extensions` are the extensions that are known by
/// name, each with the schema of its config: the config of an Extension with the entry `linked:<name>` must fit it. The
/// spec of a Model must fit the config of its provider, which is one of those that are linked into this program.
///
/// Editors complete and check documents with it. It covers each document by itself; the points on which several
/// documents must agree on is checked by [`Bundle::check`](crate::Bundle::check).
///
/// ```
/// let window = serde_json::json!({ "properties": { "maxMessages": { "type": "integer" } } });
/// let schema = goondan::bundle::schema(&[("message-window", window)]);
/// assert_eq!(schema["oneOf"][0]["$ref"], "#/$defs/Model");
/// ```
pub fn schema(extensions: &[(&str, Value)]) -> Value {
    schema_with(extensions, &[])
}

/// As [`schema`], with extensions in libraries: the config of an Extension with the name and the entry of a
/// [`LibraryEntry`] must fit the schema beside it.
pub fn schema_with(extensions: &[(&str, Value)], libraries: &[(&LibraryEntry, Value)]) -> Value {
    let mut definitions = Map::new();
    for kind in Kind::ALL {
        definitions.insert(kind.to_string(), document(kind));
    }
    for provider in linked_providers() {
        // `check` reports the fault of a provider that does not work.
        let Ok(mut config) = provider.config_schema() else { continue };
        let root = config.clone();
        allow_sources(&mut config, &root);
        let (name, mut spec) = (provider_definition(provider.name()), model_spec(provider.name(), config));
        add_patterns(&mut spec);
        definitions.insert(name.clone(), definition(&name, spec));
    }
    let mut conditions = Vec::new();
    for (name, config) in extensions {
        definitions.insert((*name).to_owned(), config_of(name, config));
        conditions.push(config_by_entry(None, &format!("linked:{name}"), name));
    }
    for (library, config) in libraries {
        // A linked extension can have the same name; the colon keeps the two definitions apart.
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
    let mut schema = map(&DOCUMENT, kind);
    schema.insert("description".to_owned(), kind.spec().about.into());
    schema.into()
}

fn map(schema: &MapSchema, kind: Kind) -> Map<String, Value> {
    let property = |field: &FieldSchema| {
        let mut property = of_type(&field.field_type, kind);
        property.insert("description".to_owned(), field.about.into());
        (field.name.to_owned(), property.into())
    };
    let required: Vec<_> = schema.fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    object(json!({
        "description": schema.about,
        "type": "object",
        "properties": schema.fields.iter().map(property).collect::<Map<_, _>>(),
        "required": required,
        "additionalProperties": false,
    }))
}

/// The schema of the values of a field, in a document of `kind`.
fn of_type(field_type: &FieldType, kind: Kind) -> Map<String, Value> {
    object(match field_type {
        FieldType::Text => json!({ "type": "string" }),
        FieldType::NonEmptyText => json!({ "type": "string", "pattern": r"\S" }),
        FieldType::Name => json!({ "type": "string", "pattern": format!("^{NAME}$"), "maxLength": 63 }),
        FieldType::Choice(words) => json!({ "enum": words }),
        FieldType::Choices(words) => json!({ "type": "array", "items": { "enum": words } }),
        FieldType::Address => {
            json!({ "type": "string", "pattern": r"^(\d{1,3}(\.\d{1,3}){3}|\[[0-9A-Fa-f:.]+\]):\d{1,5}$" })
        }
        FieldType::Kind => json!({ "const": kind.as_str() }),
        FieldType::Path => json!({ "type": "string", "pattern": PATH }),
        FieldType::Entry => {
            let linked = json!({ "pattern": format!("^linked:{NAME}$"), "maxLength": 63 + "linked:".len() });
            let library =
                json!({ "allOf": [{ "pattern": "/" }, { "pattern": PATH }, { "not": { "pattern": "^linked:" } }] });
            json!({ "type": "string", "anyOf": [linked, library] })
        }
        FieldType::Digest => json!({ "type": "string", "pattern": "^[0-9a-f]{64}$" }),
        FieldType::Flag => json!({ "type": "boolean" }),
        FieldType::Positive => json!({ "type": "integer", "minimum": 1, "maximum": u32::MAX }),
        FieldType::Count => json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX }),
        FieldType::Provider => {
            let mut names: Vec<_> = linked_providers().into_iter().map(ProviderDescriptor::name).collect();
            names.dedup();
            json!({ "enum": names })
        }
        FieldType::References(kind) => json!({ "type": "array", "items": reference(*kind) }),
        FieldType::Variable => json!({ "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" }),
        FieldType::Object => json!({ "type": "object" }),
        FieldType::Labels => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        FieldType::Reference(kind) => reference(*kind),
        FieldType::Map(schema) => map(schema, kind).into(),
        FieldType::Spec if kind == Kind::Model => model(),
        FieldType::Spec => map(kind.spec(), kind).into(),
        FieldType::List { of, at_least } => json!({ "type": "array", "items": map(of, kind), "minItems": at_least }),
    })
}

/// The spec of a model, as its provider defines it.
fn model() -> Value {
    let mut spec = map(Kind::Model.spec(), Kind::Model);
    // The schema of the provider says which other members there are.
    spec.remove("additionalProperties");
    let of_provider = |provider: &ProviderDescriptor| {
        let condition = json!({ "properties": { "provider": { "const": provider.name() } }, "required": ["provider"] });
        json!({ "if": condition, "then": { "$ref": format!("#/$defs/{}", provider_definition(provider.name())) } })
    };
    let working = linked_providers().into_iter().filter(|provider| provider.config_schema().is_ok());
    spec.insert("allOf".to_owned(), working.map(of_provider).collect());
    spec.into()
}

fn provider_definition(name: &str) -> String {
    format!("provider:{name}")
}

/// A reference to a resource of `kind`: `Kind/name`, or a mapping of the two.
fn reference(kind: Kind) -> Value {
    let mut written_out = map(&REFERENCE, kind);
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

/// The condition that the config of an Extension with this entry, and with this name if any, fits `definition`.
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

/// Turns the schema of a config into the definition `name` of a larger schema.
fn config_of(name: &str, schema: &Value) -> Value {
    let mut config = schema.clone();
    allow_sources(&mut config, schema);
    let mut config = definition(name, config);
    if let Value::Object(fields) = &mut config {
        // It does not hold for the Extension alone, because agents can add the missing settings.
        fields.remove("required");
    }
    config
}

/// Turns a schema into the definition `name` of a larger one.
fn definition(name: &str, mut schema: Value) -> Value {
    rebase(&mut schema, &format!("#/$defs/{name}"));
    if let Value::Object(fields) = &mut schema {
        // They belong to the root of a schema.
        fields.retain(|key, _| !matches!(key.as_str(), "$schema" | "$id"));
    }
    schema
}

/// Turns references to the root of `schema` into references to `root`.
fn rebase(schema: &mut Value, root: &str) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(|item| rebase(item, root)),
        Value::Object(fields) => {
            for (key, value) in fields {
                match (key.as_str(), value) {
                    // These hold data, in which a `$ref` is no reference.
                    ("const" | "enum" | "default" | "examples", _) => {}
                    ("$ref", Value::String(target)) if target.starts_with('#') => target.replace_range(..1, root),
                    // The keys of these are names chosen by the author, so none of them is a keyword.
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

/// Adds a pattern to the paths, whose format editors do not know.
fn add_patterns(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(add_patterns),
        Value::Object(fields) => {
            if fields.get("format").is_some_and(|format| format == BundlePath::FORMAT) {
                fields.insert("pattern".to_owned(), PATH.into());
            }
            fields.values_mut().for_each(add_patterns);
        }
        _ => {}
    }
}

/// The limit of references that are followed to find out whether a setting takes text; they could form a cycle.
const MAX_FOLLOWED: usize = 8;

/// Makes every setting below `schema` that takes text take a `valueFrom` as well. References in `schema` are resolved
/// against `root`.
fn allow_sources(schema: &mut Value, root: &Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(|item| allow_sources(item, root)),
        Value::Object(fields) => {
            for (key, value) in fields {
                match (key.as_str(), value) {
                    ("const" | "enum" | "default" | "examples", _) => {}
                    ("properties" | "patternProperties", Value::Object(settings)) => {
                        settings.values_mut().for_each(|setting| allow_source(setting, root));
                    }
                    ("items" | "additionalProperties", setting) => allow_source(setting, root),
                    ("prefixItems", Value::Array(settings)) => {
                        settings.iter_mut().for_each(|setting| allow_source(setting, root));
                    }
                    ("$defs" | "definitions" | "dependentSchemas", Value::Object(schemas)) => {
                        schemas.values_mut().for_each(|schema| allow_sources(schema, root));
                    }
                    (_, value) => allow_sources(value, root),
                }
            }
        }
        _ => {}
    }
}

fn allow_source(setting: &mut Value, root: &Value) {
    let accepts_text = accepts_text(setting, root, MAX_FOLLOWED);
    allow_sources(setting, root);
    if accepts_text {
        let written = setting.take();
        // Editors show the description of the outer schema only.
        let about = written.get("description").cloned();
        *setting = json!({ "anyOf": [written, map(&VALUE, Kind::Extension)] });
        about.into_iter().for_each(|about| setting["description"] = about);
    }
}

fn accepts_text(schema: &Value, root: &Value, follow: usize) -> bool {
    let of = |key| schema.get(key).and_then(Value::as_array).into_iter().flatten();
    let is_text = |value: Option<&Value>| value.is_some_and(|value| value == "string");
    let target = schema.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix('#'));
    is_text(schema.get("type"))
        || of("type").any(|one| is_text(Some(one)))
        || of("enum").chain(schema.get("const")).any(Value::is_string)
        || of("anyOf").chain(of("oneOf")).any(|one| follow > 0 && accepts_text(one, root, follow - 1))
        || target.and_then(|to| root.pointer(to)).is_some_and(|one| follow > 0 && accepts_text(one, root, follow - 1))
}
