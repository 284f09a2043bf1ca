//! `goondan plugin list`, and the log of the extensions that it lists.

use std::fs;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{self, MODEL, stderr, stdout};

fn goondan(arguments: &[&str]) -> Command {
    let mut command = support::goondan();
    command.args(arguments);
    command
}

#[test]
fn the_list_has_every_provider_of_models_of_the_command() {
    let output = goondan(&["plugin", "list", "--json"]).output().unwrap();
    let list: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let providers: Vec<_> = list.iter().take_while(|listed| listed["kind"] == "modelProvider").collect();
    let anthropic = json!({
        "kind": "modelProvider",
        "name": "anthropic",
        "version": env!("CARGO_PKG_VERSION"),
        "package": "goondan-models",
        "description": "Claude models of Anthropic.",
    });
    assert_eq!(*providers[0], anthropic);
    let names: Vec<_> = providers.iter().map(|provider| provider["name"].as_str().unwrap()).collect();
    assert!(names.is_sorted() && ["gemini", "ollama", "openai", "scripted"].iter().all(|name| names.contains(name)));
    let page = goondan(&["plugin", "list"]).output().unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let first =
        format!("anthropic {version} (crate goondan-models): Claude models of Anthropic.\n  provides    models\n\n");
    assert!(stdout(&page).starts_with(&first), "{}", stdout(&page));
}

#[test]
fn the_list_has_every_extension_of_the_command_with_what_it_declares() {
    let output = goondan(&["plugin", "list", "--json"]).output().unwrap();
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""));
    let list: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let find = |name: &str| list.iter().find(|extension| extension["name"] == name).unwrap().clone();
    assert_eq!(
        find("message-window"),
        json!({
            "name": "message-window",
            "version": env!("CARGO_PKG_VERSION"),
            "package": "goondan-message-window",
            "description": "Keeps the newest messages of a conversation.",
            "middlewares": [{ "kind": "turn", "function": "trim", "priority": 0, "before": [], "after": [] }],
            "tools": [],
            "subscriptions": [],
            "requires": [],
        })
    );
    assert_eq!(find("logging")["middlewares"].as_array().unwrap().len(), 3);
    assert_eq!(find("validate")["middlewares"][0]["kind"], "toolCall");
    let extensions = list.iter().filter(|listed| listed.get("kind").is_none());
    let names: Vec<_> = extensions.map(|extension| extension["name"].as_str().unwrap()).collect();
    assert!(names.is_sorted(), "{names:?}");
}

#[test]
fn without_json_each_extension_is_a_paragraph() {
    let output = goondan(&["plugin", "list"]).output().unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let expected = format!(
        "message-window {version}: Keeps the newest messages of a conversation.\n  middleware  turn          0  trim\n"
    );
    let paragraphs: Vec<_> = stdout(&output).split("\n\n").collect();
    assert!(paragraphs.contains(&expected.trim_end()), "{paragraphs:?}");
}

/// Runs one turn with the extension `logging`.
fn run(log: Option<&str>) -> Output {
    let dir = TempDir::new().unwrap();
    let bundle = r#"apiVersion: goondan.ai/v1
kind: Extension
metadata: { name: logging }
spec: { entry: "linked:logging", config: { level: debug } }
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: { name: main }
spec: { model: Model/main, extensions: [ { ref: Extension/logging } ] }
"#;
    fs::write(dir.path().join("goondan.yaml"), format!("{MODEL}{bundle}")).unwrap();
    let script = "- { call: { tool: no__tool }, when: hello }\n- { say: fine }\n";
    fs::write(dir.path().join("script.yaml"), script).unwrap();
    let mut command = goondan(&["run", "--input", "hello", "--state-root"]);
    command.arg(dir.path().join("state")).current_dir(dir.path()).envs(log.map(|log| ("RUST_LOG", log)));
    command.output().unwrap()
}

#[test]
fn what_extensions_log_goes_to_standard_error_without_colours() {
    let output = run(None);
    assert_eq!((output.status.code(), stdout(&output)), (Some(0), "fine\n"), "{}", stderr(&output));
    let lines: Vec<_> = stderr(&output).lines().collect();
    assert_eq!(lines.len(), 6, "{lines:?}");
    for part in ["INFO", "turn completed", "agent=main", "extension=logging", "finishReason=text_response"] {
        assert!(lines[5].contains(part), "{}", lines[5]);
    }
    assert!(!stderr(&output).contains('\x1b'), "{lines:?}");
}

#[test]
fn the_environment_selects_the_lines_of_the_log() {
    assert_eq!(stderr(&run(Some("off"))), "");
    let output = run(Some("goondan::extension=debug"));
    assert!(stderr(&output).contains("DEBUG") && stderr(&output).contains("no__tool"), "{output:?}");
    let output = run(Some("goondan=loud"));
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("RUST_LOG"), "{}", stderr(&output));
}
