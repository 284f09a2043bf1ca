//! Errors in the head of a document, and the order of errors.

use crate::fixture::{AGENT, EXTENSION, MODEL, assert_agent_error, assert_error};
use goondan_covers::covers;

#[test]
fn unsupported_api_version() {
    let version = AGENT.replace("goondan.ai/v1", "goondan.ai/v2");
    assert_error(&[&version, MODEL], "E_CONFIG_UNSUPPORTED_API_VERSION", "1:13", &["goondan.ai/v2", "goondan.ai/v1"]);
    let missing = AGENT.replace("apiVersion: goondan.ai/v1\n", "");
    assert_error(&[&missing, MODEL], "E_CONFIG_UNSUPPORTED_API_VERSION", "1:1", &["`apiVersion` is missing"]);
}

#[test]
#[covers("LOAD-07")]
fn extensions_have_no_field_for_a_runtime() {
    let extension = EXTENSION.replace("  entry:", "  runtime: node\n  entry:");
    let words = ["unknown field `runtime` in `spec`", "expected `entry`, `sha256` or `config`", "remove `runtime`"];
    assert_error(&[&extension], "E_CONFIG_SCHEMA_INVALID", "5:3", &words);
}

#[test]
fn unknown_kind() {
    let words = ["unknown kind `Agnet`", "did you mean `Agent`?", "`Model`"];
    assert_error(&[MODEL, &AGENT.replace("Agent", "Agnet")], "E_CONFIG_UNKNOWN_KIND", "7:7", &words);
}

#[test]
fn unknown_kind_is_not_followed_by_a_missing_reference() {
    assert_error(&[AGENT, &MODEL.replace("Model", "Modle")], "E_CONFIG_UNKNOWN_KIND", "8:7", &["`Model`"]);
}

#[test]
fn unknown_field_of_a_document() {
    let misspelt = AGENT.replace("metadata", "metdata");
    let words = ["unknown field `metdata`", "did you mean `metadata`?"];
    assert_error(&[&misspelt, MODEL], "E_CONFIG_SCHEMA_INVALID", "3:1", &words);
    let missing = AGENT.replace("metadata: { name: main }\n", "");
    assert_error(&[&missing, MODEL], "E_CONFIG_SCHEMA_INVALID", "1:1", &["`metadata` is missing"]);
    let more = AGENT.replace("spec:", "specs: {}\nspec:");
    assert_error(&[&more, MODEL], "E_CONFIG_SCHEMA_INVALID", "4:1", &["unknown field `specs`", "did you mean `spec`?"]);
}

#[test]
fn illegal_name() {
    let words = ["`metadata.name`", "`My_Agent`", "lower-case"];
    assert_error(&[&AGENT.replace("name: main", "name: My_Agent"), MODEL], "E_CONFIG_INVALID_NAME", "3:19", &words);
    let number = AGENT.replace("name: main", "name: 5");
    assert_error(&[&number, MODEL], "E_CONFIG_SCHEMA_INVALID", "3:19", &["text", "the number `5`", "quotes"]);
    let missing = AGENT.replace("{ name: main }", "{}");
    assert_error(&[&missing, MODEL], "E_CONFIG_SCHEMA_INVALID", "3:11", &["`metadata.name` is missing"]);
}

#[test]
fn duplicate_name() {
    let words = ["another Agent `main`"];
    assert_error(&[MODEL, AGENT, AGENT], "E_CONFIG_DUPLICATE_NAME", "14:19", &words);
}

#[test]
fn first_error_in_the_file_is_reported_first() {
    let later = MODEL.replace("scripted", "openai");
    assert_agent_error("  model: Model/mian\n  sytem: x\n", "E_CONFIG_REF_NOT_FOUND", "5:10", &["mian"]);
    assert_error(&[&AGENT.replace("Model/main", "Model/mian"), &later], "E_CONFIG_REF_NOT_FOUND", "5:10", &["mian"]);
}
