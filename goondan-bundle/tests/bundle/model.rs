//! Errors in models and extensions.

use crate::fixture::{AGENT, EXTENSION, MODEL, assert_error};
use goondan_covers::covers;

#[test]
fn unknown_provider() {
    let words = ["unknown provider `openai`", "this build knows `scripted`"];
    let model = MODEL.replace("scripted", "openai");
    assert_error(&[&model, AGENT], "E_CONFIG_SCHEMA_INVALID", "4:19", &words);
}

#[test]
fn script_that_does_not_exist() {
    let model = MODEL.replace("./script.yaml", "./missing.yaml");
    assert_error(&[&model, AGENT], "E_CONFIG_ENTRY_NOT_FOUND", "4:37", &["`spec.script`", "missing.yaml", "relative"]);
    let model = MODEL.replace(", script: ./script.yaml", "");
    assert_error(&[&model, AGENT], "E_CONFIG_SCHEMA_INVALID", "4:7", &["`spec.script` is missing"]);
}

#[test]
fn paths_stay_below_the_bundle() {
    for wrong in ["../script.yaml", "/etc/passwd", "a/../../b", "\"\"", "."] {
        let model = MODEL.replace("./script.yaml", wrong);
        assert_error(&[&model, AGENT], "E_CONFIG_SCHEMA_INVALID", "4:37", &["below the bundle's directory", "`..`"]);
    }
}

#[test]
#[covers("LOAD-03")]
fn extension_without_an_entry() {
    let extension = EXTENSION.replace("  entry: \"linked:message-window\"\n", "");
    assert_error(&[&extension], "E_CONFIG_SCHEMA_INVALID", "5:3", &["`spec.entry` is missing"]);
}

#[test]
fn entry_that_names_no_extension() {
    let extension = EXTENSION.replace("linked:message-window", "linked:Message Window");
    assert_error(&[&extension], "E_CONFIG_SCHEMA_INVALID", "5:10", &["name of an extension", "lower-case"]);
}
