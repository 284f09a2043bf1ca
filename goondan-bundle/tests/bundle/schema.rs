//! The JSON Schema accepts the documents that the reader accepts, and refuses those whose structure the reader refuses.

use std::fs;

use goondan_bundle::{Bundle, Entry, read_yaml, schema, schema_with};
use goondan_covers::covers;
use serde_json::{Value, json};

use crate::fixture::{AGENT, EXTENSION, MODEL, directory_of};

const SWARM: &str = "\
apiVersion: goondan.ai/v1
kind: Swarm
metadata: { name: team }
spec:
  instanceKey: desk
  fsync: always
  agents: [ { ref: Agent/main } ]
  entryAgent: { kind: Agent, name: main }
  policy: { maxStepsPerTurn: 5, toolTimeoutMs: 100 }
";

#[cfg(test)]
fn yaml(document: &str) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("document.yaml");
    fs::write(&file, document).unwrap();
    read_yaml(file).unwrap()
}

#[cfg(test)]
#[track_caller]
fn fits(schema: &Value, document: &str) -> bool {
    jsonschema::draft202012::new(schema).unwrap().is_valid(&yaml(document))
}

#[test]
#[covers("SCHEMA-01")]
fn good_documents_fit() {
    let schema = schema(&[]);
    assert!(jsonschema::draft202012::meta::is_valid(&schema));
    let full = format!(
        "{AGENT}  system: x\n  extensions: [ {{ ref: Extension/a, config: {{}}, onError: abort }} ]\n  policy: {{}}\n"
    );
    for document in [MODEL, EXTENSION, AGENT, SWARM, &full] {
        assert!(fits(&schema, document), "{document}");
    }
    for example in ["quickstart", "notes", "dynamic"] {
        let file = format!("{}/../examples/{example}/goondan.yaml", env!("CARGO_MANIFEST_DIR"));
        for document in fs::read_to_string(file).unwrap().split("\n---\n") {
            assert!(fits(&schema, document), "{document}");
        }
    }
}

#[test]
#[covers("SCHEMA-01", "LOAD-03")]
fn documents_of_a_wrong_structure_do_not_fit() {
    let schema = schema(&[]);
    for (document, right, wrong) in [
        (AGENT, "goondan.ai/v1", "goondan.ai/v2"),
        (AGENT, "apiVersion: goondan.ai/v1\n", ""),
        (AGENT, "kind: Agent", "kind: Agnet"),
        (AGENT, "kind: Agent", "kind: Model"),
        (AGENT, "name: main", "name: My_Agent"),
        (AGENT, "name: main", "name: 5"),
        (AGENT, "{ name: main }", "{}"),
        (AGENT, "model:", "modle:"),
        (AGENT, "Model/main", "Agent/main"),
        (AGENT, "Model/main", "Model/a/b"),
        (AGENT, "Model/main", "{ kind: Model }"),
        (AGENT, "model: Model/main", "model: Model/main\n  policy: { maxStepsPerTurn: 0 }"),
        (AGENT, "model: Model/main", "model: Model/main\n  extensions: [ { ref: Extension/a, onError: stop } ]"),
        (AGENT, "model: Model/main", "model: Model/main\n  extensions: [ Extension/a ]"),
        (MODEL, "scripted", "magic"),
        (MODEL, ", script: ./script.yaml", ""),
        (MODEL, "./script.yaml", "../script.yaml"),
        (MODEL, "./script.yaml", "/etc/passwd"),
        (MODEL, "./script.yaml", "a/../../b"),
        (MODEL, "./script.yaml", "\"\""),
        (EXTENSION, "entry: \"linked:message-window\"", ""),
        (EXTENSION, "linked:message-window", "libwindow.so"),
        (EXTENSION, "linked:message-window", "../libwindow.so"),
        (EXTENSION, "linked:message-window", "/lib/libwindow.so"),
        (EXTENSION, "linked:message-window", "linked:a/b"),
        (EXTENSION, "  entry:", "  sha256: 0a\n  entry:"),
        (EXTENSION, "config: {", "config: 5 #"),
        (EXTENSION, "entry:", "runtime: node\n  entry:"),
        (EXTENSION, "team: core", "team: 5"),
        (SWARM, "[ { ref: Agent/main } ]", "[]"),
        (SWARM, "instanceKey: desk", "instanceKey: ' '"),
        (SWARM, "fsync: always", "fsync: sometimes"),
        (SWARM, "entryAgent", "entry"),
    ] {
        let right_one = fits(&schema, document);
        let document = document.replacen(right, wrong, 1);
        assert!(right_one && !fits(&schema, &document), "{document}");
    }
}

#[test]
#[covers("SCHEMA-01")]
fn config_of_a_known_extension_fits_the_schema_of_that_extension() {
    let window = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "maxMessages": { "$ref": "#/$defs/Count", "default": { "$ref": "#" } },
            "default": { "$ref": "#/$defs/Count" },
        },
        "required": ["maxMessages"],
        "$defs": { "Count": { "type": "integer", "minimum": 1 } },
    });
    let schema = schema(&[("message-window", window), ("other", json!({ "maxProperties": 0 }))]);
    assert!(jsonschema::draft202012::meta::is_valid(&schema));
    let with = |config: &str| EXTENSION.replace("{ maxMessages: 40, nested: { a: 1, b: 2 } }", config);
    for (config, right) in [
        ("{ maxMessages: 40 }", true),
        // Agents can add settings that the extension does not have.
        ("{}", true),
        ("{ maxMessages: 0 }", false),
        ("{ maxMessages: many }", false),
        ("{ default: 0 }", false),
    ] {
        assert_eq!(fits(&schema, &with(config)), right, "{config}");
    }
    assert!(fits(&schema, &with("{ a: 1 }").replace("linked:message-window", "linked:unknown")));
    assert!(!fits(&schema, &with("{ a: 1 }").replace("linked:message-window", "linked:other")));
    assert!(fits(&schema, MODEL) && fits(&schema, AGENT) && fits(&schema, SWARM));
}

#[test]
fn every_field_is_described() {
    fn check(schema: &Value) {
        let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        for (name, property) in properties {
            let about = property.get("description").and_then(Value::as_str);
            assert!(about.is_some_and(|about| about.ends_with('.')), "{name}: {property}");
            check(property);
        }
        schema.get("items").into_iter().for_each(check);
    }
    let schema = schema(&[]);
    let definitions = schema["$defs"].as_object().unwrap();
    assert!(
        ["Model", "Extension", "Agent", "Swarm", "provider:scripted"]
            .iter()
            .all(|name| definitions.contains_key(*name))
    );
    definitions.values().for_each(check);
}

#[test]
#[covers("SCHEMA-01")]
fn config_of_an_extension_in_a_library_fits_its_schema_under_its_name_and_entry() {
    let window =
        EXTENSION.replace("linked:message-window", "./window.so").replace("maxMessages: 40", "maxMessages: MANY");
    let right = window.replace("MANY", "40");
    let directory = directory_of(&[("goondan.yaml", &right), ("window.so", "")]);
    let bundle = Bundle::load(directory.path()).unwrap();
    let Entry::Library(library) = &bundle.extensions().next().unwrap().entry else { panic!("{bundle:?}") };
    let config = json!({ "properties": { "maxMessages": { "$ref": "#/$defs/Count" } }, "$defs": { "Count": { "type": "integer" } } });
    // A linked extension has the same name.
    let schema = schema_with(&[("message-window", json!({ "maxProperties": 0 }))], &[(library, config)]);
    assert!(jsonschema::draft202012::meta::is_valid(&schema));
    let wrong = window.replace("MANY", "many");
    assert!(fits(&schema, &right) && !fits(&schema, &wrong));
    assert!(fits(&schema, &wrong.replace("name: message-window", "name: another-one")));
    assert!(fits(&schema, &wrong.replace("./window.so", "./other.so")));
    assert!(!fits(&schema, &right.replace("./window.so", "linked:message-window")));
}
