//! Errors in agents.

use goondan_bundle::Bundle;
use goondan_core::OnError;
use goondan_covers::covers;

use crate::fixture::{AGENT, EXTENSION, MODEL, assert_agent_error, assert_error, bundle_of};

#[test]
fn unknown_field_of_a_spec() {
    let spec = "  model: Model/main\n  policy:\n    maxStepPerTurn: 3\n";
    let words =
        ["unknown field `maxStepPerTurn`", "`spec.policy`", "`toolTimeoutMs`", "did you mean `maxStepsPerTurn`?"];
    assert_agent_error(spec, "E_CONFIG_SCHEMA_INVALID", "7:5", &words);
}

#[test]
fn limits_are_positive_whole_numbers() {
    for wrong in ["0", "-1", "2.5", "many", "1_000", "007", "true", "", "4294967296", "[1]"] {
        let spec = format!("  model: Model/main\n  policy:\n    maxStepsPerTurn: {wrong}\n    toolTimeoutMs: 5\n");
        let words = ["`spec.policy.maxStepsPerTurn` must be a whole number from 1"];
        let place = if wrong.is_empty() { "7:20" } else { "7:22" };
        assert_agent_error(&spec, "E_CONFIG_SCHEMA_INVALID", place, &words);
    }
    let spec = "  model: Model/main\n  policy: { toolTimeoutMs: 0 }\n";
    assert_agent_error(spec, "E_CONFIG_SCHEMA_INVALID", "6:28", &["`spec.policy.toolTimeoutMs`", "`0`"]);
}

#[test]
#[covers("VALUE-01")]
fn the_schema_of_an_answer_is_a_schema() {
    let with = |answer: &str| format!("  model: Model/main\n  answer:\n    {answer}\n");
    let words = ["`spec.answer.schema` is missing"];
    assert_agent_error(&with("atMost: 1"), "E_CONFIG_SCHEMA_INVALID", "7:5", &words);
    assert_agent_error(&with("schema: { type: objekt }"), "E_SCHEMA_INVALID", "7:13", &["objekt"]);
    let words = ["`spec.answer.schema` must be a mapping"];
    assert_agent_error(&with("schema: object"), "E_CONFIG_SCHEMA_INVALID", "7:13", &words);
    let words = ["`spec.answer.atMost` must be a whole number from 0"];
    assert_agent_error(&with("{ schema: {}, atMost: -1 }"), "E_CONFIG_SCHEMA_INVALID", "7:27", &words);
    let directory = bundle_of(&[MODEL, &format!("{AGENT}  answer: {{ schema: {{ type: object }} }}\n")]);
    let bundle = Bundle::load(directory.path()).unwrap();
    let answer = bundle.agents().next().unwrap().answer.clone().unwrap();
    assert_eq!((answer.schema["type"].as_str(), answer.at_most), (Some("object"), 2));
}

#[test]
fn reference_of_a_wrong_form() {
    for wrong in ["main", "Model/", "/main", "Model/a/b", "5", "[a]"] {
        let words = ["`spec.model` must be a reference of the form `Kind/name`"];
        assert_agent_error(&format!("  model: {wrong}\n"), "E_CONFIG_INVALID_REF", "5:10", &words);
    }
    assert_agent_error("  model: modle/main\n", "E_CONFIG_INVALID_REF", "5:10", &["did you mean `Model`?"]);
    let words = ["`spec.model` must mean a Model", "an Extension"];
    assert_agent_error("  model: Extension/message-window\n", "E_CONFIG_INVALID_REF", "5:10", &words);
}

#[test]
fn reference_to_nothing() {
    let words = ["no Model `mian`", "it has `main`", "write `Model/main`"];
    assert_agent_error("  model: Model/mian\n", "E_CONFIG_REF_NOT_FOUND", "5:10", &words);
    let spec = "  model: Model/main\n  extensions:\n    - ref: { kind: Extension, name: window }\n";
    assert_agent_error(spec, "E_CONFIG_REF_NOT_FOUND", "7:12", &["no Extension `window`", "`message-window`"]);
    assert_error(&[AGENT], "E_CONFIG_REF_NOT_FOUND", "5:10", &["no Model at all", "kind: Model"]);
}

#[test]
fn extensions_are_mappings_with_a_reference_each_once() {
    let spec = "  model: Model/main\n  extensions: [ Extension/message-window ]\n";
    assert_agent_error(
        spec,
        "E_CONFIG_INVALID_REF",
        "6:17",
        &["`spec.extensions[0]`", "{ ref: \"Extension/message-window\" }"],
    );
    let spec = "  model: Model/main\n  extensions:\n    - ref: Extension/message-window\n    - ref: Extension/message-window\n";
    assert_agent_error(spec, "E_CONFIG_SCHEMA_INVALID", "8:7", &["`message-window` is listed twice"]);
    let spec = "  model: Model/main\n  extensions:\n    - config: {}\n";
    assert_agent_error(spec, "E_CONFIG_SCHEMA_INVALID", "7:7", &["`spec.extensions[0].ref` is missing"]);
    let spec = "  model: Model/main\n  extensions: { ref: Extension/message-window }\n";
    assert_agent_error(spec, "E_CONFIG_SCHEMA_INVALID", "6:15", &["`spec.extensions` must be a list", "a mapping"]);
}

#[test]
fn extensions_that_are_no_list_are_one_error() {
    let directory = bundle_of(&[MODEL, &format!("{AGENT}  extensions: {{}}\n")]);
    assert_eq!(Bundle::check(directory.path()).unwrap_err().len(), 1);
}

#[test]
fn config_is_a_mapping() {
    let spec = "  model: Model/main\n  extensions: [ { ref: Extension/message-window, config: 5 } ]\n";
    assert_agent_error(spec, "E_CONFIG_SCHEMA_INVALID", "6:58", &["`spec.extensions[0].config` must be a mapping"]);
}

#[test]
fn on_error_is_abort_or_skip() {
    let spec = "  model: Model/main\n  extensions:\n    - ref: Extension/message-window\n      onError: ";
    let uses = spec.strip_prefix("  model: Model/main\n").unwrap();
    for (written, read) in [("", OnError::Abort), ("abort", OnError::Abort), ("skip", OnError::Skip)] {
        let line = if written.is_empty() { uses.replace("      onError: ", "") } else { format!("{uses}{written}\n") };
        let directory = bundle_of(&[MODEL, EXTENSION, &format!("{AGENT}{line}")]);
        let bundle = Bundle::load(directory.path()).unwrap();
        let [used] = &bundle.agents().next().unwrap().extensions[..] else { panic!("{bundle:?}") };
        assert_eq!(used.on_error, read);
    }
    assert_agent_error(&format!("{spec}abrot\n"), "E_CONFIG_SCHEMA_INVALID", "8:16", &["did you mean `abort`?"]);
}
