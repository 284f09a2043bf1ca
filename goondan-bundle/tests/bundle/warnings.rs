//! Warnings about bundles without errors.

use goondan_bundle::Bundle;
use goondan_covers::covers;
use serde_json::json;

use crate::fixture::{AGENT, EXTENSION, MODEL, bundle_of};

const SWARM: &str = "apiVersion: goondan.ai/v1\nkind: Swarm\nmetadata: { name: team }\nspec: { agents: [ { ref: Agent/main } ], entryAgent: Agent/main }\n";

#[cfg(test)]
#[track_caller]
fn warnings(documents: &[&str]) -> Vec<String> {
    let directory = bundle_of(documents);
    let bundle = Bundle::load(directory.path()).unwrap();
    let prefix = format!("{}:", directory.path().join("goondan.yaml").display());
    let warnings =
        bundle.warnings().iter().map(|warning| warning.to_string().strip_prefix(&prefix).unwrap().to_owned());
    let warnings: Vec<_> = warnings.collect();
    assert!(
        warnings.iter().all(|warning| warning.contains(": hint: ") && warning.contains("\n    help: ")),
        "{warnings:?}"
    );
    warnings
}

fn agent_with_window() -> String {
    format!("{AGENT}  extensions: [ {{ ref: Extension/message-window }} ]\n")
}

#[test]
fn good_bundle_has_no_warnings() {
    assert_eq!(warnings(&[MODEL, EXTENSION, &agent_with_window(), SWARM]), [""; 0]);
    assert_eq!(warnings(&[MODEL, AGENT]), [""; 0], "without a swarm conversations may be short");
}

#[test]
fn unused_extensions_and_models() {
    let other = MODEL.replace("name: main", "name: other");
    let warnings = warnings(&[MODEL, AGENT, EXTENSION, &other]);
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].starts_with("14:19: hint: no agent uses the extension `message-window`"), "{warnings:?}");
    assert!(warnings[1].starts_with("21:19: hint: no agent asks the model `other`"), "{warnings:?}");
}

#[test]
fn agents_that_the_swarm_does_not_list() {
    let other = agent_with_window().replace("name: main", "name: other");
    let warnings = warnings(&[MODEL, EXTENSION, &agent_with_window(), &other, SWARM]);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("the swarm `team` does not list the agent `other`"), "{warnings:?}");
}

#[test]
#[covers("POLICY-04")]
fn long_lived_agent_without_a_message_policy() {
    let warnings = warnings(&[MODEL, AGENT, SWARM]);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].starts_with("8:19: hint: nothing keeps the conversations of the agent `main` short"),
        "{warnings:?}"
    );
    assert!(warnings[0].contains("`message-window`"), "{warnings:?}");
}

#[test]
fn warnings_are_serialized_as_json() {
    let directory = bundle_of(&[MODEL, AGENT, SWARM]);
    let bundle = Bundle::load(directory.path()).unwrap();
    let warning = &bundle.warnings()[0];
    let expected = json!({
        "message": warning.message,
        "path": "metadata.name",
        "file": directory.path().join("goondan.yaml"),
        "line": 8,
        "column": 19,
        "suggestion": warning.suggestion,
    });
    assert_eq!(serde_json::to_value(warning).unwrap(), expected);
}
