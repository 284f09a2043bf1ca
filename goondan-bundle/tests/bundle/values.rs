//! Values that a bundle takes from the environment. The tests read variables that cargo sets for them.

use goondan_bundle::{Bundle, KnownExtension, ValueSource, schema};
use goondan_covers::covers;
use goondan_runtime::MemoryStore;
use serde_json::{Value, json};

use crate::fixture::{AGENT, EXTENSION, MODEL, bundle_of};

const ABSENT: &str = "GOONDAN_TEST_VARIABLE_THAT_IS_NEVER_SET";

fn agent(config: &str) -> String {
    format!("{AGENT}  extensions: [ {{ ref: Extension/message-window, config: {config} }} ]\n")
}

fn extension(config: &str) -> String {
    EXTENSION.replace("{ maxMessages: 40, nested: { a: 1, b: 2 } }", config)
}

/// The errors of an extension with `config`, if the schema of its config has these `properties`.
#[cfg(test)]
fn errors(config: &str, properties: &Value) -> Vec<String> {
    let config_schema = json!({ "type": "object", "properties": properties });
    let known = [KnownExtension::new("message-window", config_schema)];
    let directory = bundle_of(&[MODEL, &extension(config), &agent("{}")]);
    let Err(errors) = Bundle::check_with(directory.path(), &known) else { return Vec::new() };
    let text =
        |error: &goondan_bundle::Diagnostic| format!("{} {}: {}", error.place.unwrap(), error.path, error.message);
    errors.iter().map(text).collect()
}

#[test]
fn bundle_contains_the_reference_and_not_the_value() {
    let config =
        "{ a: { valueFrom: { env: CARGO_PKG_NAME } }, list: [ 1, { valueFrom: { env: CARGO_PKG_VERSION } } ] }";
    let bundle = Bundle::load(bundle_of(&[MODEL, &extension(config), &agent("{ a: b }")]).path()).unwrap();
    let window = bundle.extensions().next().unwrap();
    assert_eq!(window.config["a"], json!({ "valueFrom": { "env": "CARGO_PKG_NAME" } }));
    assert_eq!(window.sources.len(), 2);
    assert_eq!(window.sources[1].keys, ["list", "1"]);
    assert_eq!(window.sources[1].path, "spec.config.list[1]");
    assert_eq!(window.sources[1].source, ValueSource::Env("CARGO_PKG_VERSION".to_owned()));
    assert!(window.sources.iter().all(|source| source.secret));
    let used = &bundle.entry_agent().unwrap().extensions[0];
    assert_eq!(used.merged_sources().count(), 1, "the text of the agent replaces the other one");
    assert!(!format!("{bundle:?}").contains(env!("CARGO_PKG_NAME")));
}

#[test]
#[covers("RULE-02")]
fn references_without_a_valid_source_are_errors() {
    for (value, message) in [
        ("{ valueFrom: { env: A, file: b } }", "unknown field `file`"),
        ("{ valueFrom: { env: A }, value: b }", "unknown field `value`"),
        ("{ valueFrom: {} }", "`spec.config.key.valueFrom.env` is missing"),
        ("{ valueFrom: A }", "`spec.config.key.valueFrom` must be a mapping"),
        ("{ valueFrom: { env: 5 } }", "must be text"),
        ("{ valueFrom: { env: A, secret: no } }", "must be `true` or `false`"),
        ("{ valueFrom: { env: $KEY } }", "must be the name of a variable, but is the text `$KEY`"),
        ("{ valueFrom: { secretRef: { ref: Secret/a, key: b } } }", "this version has no store of secrets"),
    ] {
        let errors = errors(&format!("{{ key: {value} }}"), &json!({}));
        assert!(errors.len() == 1 && errors[0].contains(message), "{value}: {errors:?}");
    }
    let errors = errors("{ valueFrom: { env: A } }", &json!({}));
    assert!(errors.len() == 1 && errors[0].contains("cannot come from elsewhere as a whole"), "{errors:?}");
}

#[test]
#[covers("SCHEMA-01")]
fn schema_takes_a_reference_where_it_takes_text() {
    let config = "{ key: { valueFrom: { env: A } } }";
    for fits in [
        json!({ "type": "string" }),
        json!({ "type": ["string", "null"] }),
        json!({ "type": "string", "minLength": 20, "pattern": "^sk-" }),
        json!({ "enum": ["a", "b"] }),
        json!({ "anyOf": [{ "type": "string", "format": "uri" }, { "type": "null" }] }),
    ] {
        assert_eq!(errors(config, &json!({ "key": fits })), [""; 0], "{fits}");
    }
    assert_eq!(
        errors(config, &json!({ "key": { "type": "integer" } })),
        ["11:18 spec.config.key: the config of the extension `message-window` does not fit its schema: \
             `key`: \"$A\" is not of type \"integer\""]
    );
    let other = errors("{ key: { valueFrom: { env: A } }, other: 1 }", &json!({ "other": { "type": "string" } }));
    assert_eq!(other.len(), 1, "{other:?}");
}

#[test]
#[covers("SCHEMA-01")]
fn editors_take_a_reference_where_text_is_taken() {
    let config = json!({
        "type": "object",
        "properties": {
            "key": { "type": "string", "description": "The key.", "minLength": 8 },
            "mode": { "$ref": "#/$defs/Mode" },
            "count": { "type": "integer" },
            "deep": { "type": "object", "additionalProperties": { "type": ["string", "null"] } },
            "list": { "type": "array", "items": { "type": "string" } },
        },
        "additionalProperties": false,
        "$defs": { "Mode": { "oneOf": [{ "const": "a" }, { "const": "b" }] } },
    });
    let schema = schema(&[("message-window", config)]);
    assert!(jsonschema::draft202012::meta::is_valid(&schema));
    assert_eq!(schema["$defs"]["message-window"]["properties"]["key"]["description"], "The key.");
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let fits = |config: Value| {
        let spec = json!({ "entry": "linked:message-window", "config": config });
        validator.is_valid(
            &json!({ "apiVersion": "goondan.ai/v1", "kind": "Extension", "metadata": { "name": "a" }, "spec": spec }),
        )
    };
    let from = || json!({ "valueFrom": { "env": "NAME" } });
    for right in [
        json!({ "key": from(), "mode": from(), "deep": { "a": from() }, "list": ["a", from()] }),
        json!({ "key": "12345678", "mode": "a", "count": 1, "deep": { "a": null } }),
    ] {
        assert!(fits(right.clone()), "{right}");
    }
    for wrong in [
        json!({ "count": from() }),
        json!({ "key": "short" }),
        json!({ "mode": "c" }),
        json!({ "key": { "valueFrom": { "env": "$NAME" } } }),
        json!({ "key": { "valueFrom": { "env": "NAME", "x": 1 } } }),
    ] {
        assert!(!fits(wrong.clone()), "{wrong}");
    }
}

#[test]
fn variables_that_are_not_set_are_warnings_until_they_are_needed() {
    let config =
        format!("{{ a: {{ valueFrom: {{ env: {ABSENT} }} }}, b: {{ valueFrom: {{ env: CARGO_PKG_NAME }} }} }}");
    let other = agent("{}").replace("name: main", "name: other");
    let directory = bundle_of(&[MODEL, &extension(&config), &agent("{}"), &other]);
    let bundle = Bundle::load(directory.path()).unwrap();
    let file = directory.path().join("goondan.yaml");
    let what = format!("`spec.config.a` takes its value from the variable `{ABSENT}`, which is not set");
    let hint = format!("{}:11:16: hint: {what}: a run needs it\n    help: set `{ABSENT}` in", file.display());
    assert_eq!(bundle.warnings().len(), 1, "once, though two agents use it: {:?}", bundle.warnings());
    assert!(bundle.warnings()[0].to_string().starts_with(&hint), "{}", bundle.warnings()[0]);
    let errors = bundle.check_values().unwrap_err();
    assert_eq!(errors.len(), 1, "{errors}");
    let error = format!("{}:11:16: error[E_CONFIG_VALUE_NOT_FOUND]: {what}\n", file.display());
    assert!(errors.to_string().starts_with(&error), "{errors}");
    // The values of an unused extension are not needed.
    let unused = Bundle::load(bundle_of(&[MODEL, &extension(&config), AGENT]).path()).unwrap();
    assert!(unused.check_values().is_ok());
}

#[tokio::test]
async fn bundle_with_a_missing_value_is_not_built() {
    let config = format!("{{ a: {{ valueFrom: {{ env: {ABSENT} }} }} }}");
    let bundle = Bundle::load(bundle_of(&[MODEL, &extension("{}"), &agent(&config)]).path()).unwrap();
    let error = bundle.build(MemoryStore::new()).await.unwrap_err();
    assert_eq!(error.code(), "E_CONFIG_VALUE_NOT_FOUND", "{error:?}");
    assert!(error.message().contains(":18:63: `spec.extensions[0].config.a`"), "{error:?}");
}
