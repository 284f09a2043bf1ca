//! Schemas of configs and inputs that no object can fit are refused when an agent is built.

use goondan_core::{Effect, ErrorCode, ExtensionDescriptor, Result, ToolDescriptor};
use goondan_runtime::schema::{check_config, check_input};
use goondan_runtime::{Agent, ScriptedModel};
use serde_json::{Value, json};

/// Builds an agent with an extension with these schemas.
fn build(config: Value, input: Value, written: Value) -> Result<Agent> {
    let tool = ToolDescriptor::new("odd__echo", Box::leak(Box::new(move || input.clone())))
        .description("Says it again.")
        .effect(Effect::Read);
    let descriptor = ExtensionDescriptor::new("odd", Box::leak(Box::new(move || config.clone())), &|_, _| {
        Box::pin(async { Ok(()) })
    })
    .package("odd", "0.1.0")
    .tools(Box::leak(Box::new([tool])));
    Agent::builder("main")
        .model(ScriptedModel::new([]))
        .described_extension("odd", Box::leak(Box::new(descriptor)), written)
        .build()
}

#[test]
fn a_config_or_an_input_that_is_no_object_is_refused_with_its_name() {
    let object = || json!({ "type": "object" });
    build(object(), object(), json!({})).unwrap();
    let error = build(object(), json!({ "type": "string" }), json!({})).unwrap_err();
    assert_eq!((error.code(), error.extension().unwrap().as_str()), (&ErrorCode::SCHEMA_INVALID, "odd"));
    assert!(error.message().contains("the input of the tool `odd__echo` is of the type `string`"), "{error:?}");
    assert!(error.suggestion().unwrap().contains("a struct"), "{error:?}");
    let error = build(json!({ "type": "integer" }), object(), json!(3)).unwrap_err();
    assert_eq!((error.code(), error.extension().unwrap().as_str()), (&ErrorCode::SCHEMA_INVALID, "odd"));
    assert!(error.message().contains("the config is of the type `integer`"), "{error:?}");
}

#[test]
fn an_extension_whose_config_is_the_unit_type_needs_none() {
    let unit = || json!({ "type": "null" });
    for written in [Value::Null, json!({})] {
        build(unit(), json!({ "type": "object" }), written).unwrap();
    }
    let error = build(unit(), json!({ "type": "object" }), json!({ "a": 1 })).unwrap_err();
    assert_eq!(error.code(), &ErrorCode::EXT_CONFIG);
}

#[test]
fn a_schema_takes_objects_if_one_of_its_forms_does() {
    let root = |schema: Value| {
        let mut schema = schema;
        schema["$defs"] = json!({ "o": { "type": "object" }, "s": { "type": "string" }, "c": { "$ref": "#/$defs/c" } });
        schema
    };
    for good in [
        json!({}),
        json!({ "type": ["null", "object"] }),
        json!({ "$ref": "#/$defs/o" }),
        json!({ "$ref": "#/$defs/c" }),
        json!({ "$ref": "https://example.com/elsewhere" }),
        json!({ "anyOf": [{ "type": "null" }, { "$ref": "#/$defs/o" }] }),
        json!({ "oneOf": [{ "$ref": "#/$defs/s" }, { "properties": {} }] }),
        json!({ "allOf": [{ "$ref": "#/$defs/o" }, { "required": ["a"] }] }),
        json!({ "enum": [1, {}] }),
    ] {
        check_input("a__b", &root(good.clone())).unwrap_or_else(|error| panic!("{good}: {error:?}"));
        check_config(&root(good)).unwrap();
    }
    check_input("a__b", &json!(true)).unwrap();
    for bad in [
        json!({ "type": ["null", "integer"] }),
        json!({ "$ref": "#/$defs/s" }),
        json!({ "anyOf": [{ "type": "null" }, { "$ref": "#/$defs/s" }] }),
        json!({ "allOf": [{ "$ref": "#/$defs/o" }, { "$ref": "#/$defs/s" }] }),
        json!({ "enum": ["a", "b"] }),
        json!({ "const": 1 }),
        json!({ "type": "array" }),
    ] {
        assert_eq!(check_input("a__b", &root(bad.clone())).unwrap_err().code(), &ErrorCode::SCHEMA_INVALID, "{bad}");
        assert_eq!(check_config(&root(bad.clone())).unwrap_err().code(), &ErrorCode::SCHEMA_INVALID, "{bad}");
    }
    assert!(check_input("a__b", &json!(false)).is_err() && check_input("a__b", &json!({ "type": "null" })).is_err());
}
