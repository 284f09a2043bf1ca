//! Hints: what a bundle without a fault probably does not mean.

use goondan_bundle::Bundle;
use goondan_covers::covers;
use serde_json::json;

use crate::fixture::{AGENT, EXTENSION, MODEL, bundle_of};

const SWARM: &str = "apiVersion: goondan.ai/v1\nkind: Swarm\nmetadata: { name: team }\nspec: { agents: [ { ref: Agent/main } ], entryAgent: Agent/main }\n";

#[cfg(test)]
#[track_caller]
fn hints(documents: &[&str]) -> Vec<String> {
    let directory = bundle_of(documents);
    let bundle = Bundle::load(directory.path()).unwrap();
    let prefix = format!("{}:", directory.path().join("goondan.yaml").display());
    let told = bundle.warnings().iter().map(|hint| hint.to_string().strip_prefix(&prefix).unwrap().to_owned());
    let told: Vec<_> = told.collect();
    assert!(told.iter().all(|hint| hint.contains(": hint: ") && hint.contains("\n    help: ")), "{told:?}");
    told
}

fn agent_with_window() -> String {
    format!("{AGENT}  extensions: [ {{ ref: Extension/message-window }} ]\n")
}

#[test]
fn good_bundle_has_no_hints() {
    assert_eq!(hints(&[MODEL, EXTENSION, &agent_with_window(), SWARM]), [""; 0]);
    assert_eq!(hints(&[MODEL, AGENT]), [""; 0], "without a swarm an agent need not live long");
}

#[test]
fn unused_extensions_and_models() {
    let other = MODEL.replace("name: main", "name: other");
    let told = hints(&[MODEL, AGENT, EXTENSION, &other]);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("14:19: hint: no agent uses the extension `message-window`"), "{told:?}");
    assert!(told[1].starts_with("21:19: hint: no agent asks the model `other`"), "{told:?}");
}

#[test]
fn agents_that_no_swarm_reaches() {
    let other = agent_with_window().replace("name: main", "name: other");
    let told = hints(&[MODEL, EXTENSION, &agent_with_window(), &other, SWARM]);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("the swarm `team` does not list the agent `other`"), "{told:?}");
}

#[test]
#[covers("POLICY-04")]
fn long_lived_agent_without_a_message_policy() {
    let told = hints(&[MODEL, AGENT, SWARM]);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("8:19: hint: nothing keeps the conversations of the agent `main` short"), "{told:?}");
    assert!(told[0].contains("`message-window`"), "{told:?}");
}

#[test]
fn hints_are_told_as_json() {
    let directory = bundle_of(&[MODEL, AGENT, SWARM]);
    let bundle = Bundle::load(directory.path()).unwrap();
    let hint = &bundle.warnings()[0];
    let expected = json!({
        "message": hint.message,
        "path": "metadata.name",
        "file": directory.path().join("goondan.yaml"),
        "line": 8,
        "column": 19,
        "suggestion": hint.suggestion,
    });
    assert_eq!(serde_json::to_value(hint).unwrap(), expected);
}
