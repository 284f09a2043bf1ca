//! `goondan check` and `goondan schema`.

use std::fs;
use std::io::Read;
use std::process::Output;

use goondan_covers::covers;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{self, MODEL, checkout, stdout};

fn goondan(arguments: &[&str]) -> Output {
    // Without the keys in the environment of the tests.
    support::goondan().env_clear().args(arguments).current_dir(checkout()).output().unwrap()
}

#[test]
fn a_valid_bundle_has_no_errors() {
    let output = goondan(&["check", "examples/quickstart"]);
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    assert!(stdout(&output).ends_with("no faults: Agents 1, Extensions 2, Models 1\n"), "{}", stdout(&output));
}

#[cfg(feature = "models")]
#[test]
fn examples_with_real_models_are_sound_without_their_keys() {
    for example in ["anthropic", "bedrock", "gemini", "ollama", "openai", "openai-compatible", "openrouter"] {
        let output = goondan(&["check", &format!("examples/{example}")]);
        assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
        assert!(stdout(&output).ends_with("no faults: Agents 1, Extensions 1, Models 1\n"), "{}", stdout(&output));
    }
}

#[test]
#[covers("RULE-02")]
fn all_errors_are_printed_with_their_positions() {
    let bundle = TempDir::new().unwrap();
    fs::write(
        bundle.path().join("goondan.yaml"),
        r#"apiVersion: goondan.ai/v1
kind: Agent
metadata: { name: main }
spec: { modle: Model/main, policy: { maxStepsPerTurn: none } }
---
apiVersion: goondan.ai/v1
kind: Extension
metadata: { name: window }
spec: { entry: "linked:message-window", config: { maxMessages: 0 } }
---
apiVersion: goondan.ai/v2
kind: Model
metadata: { name: main }
spec: { provider: scripted, script: ./script.yaml }
---
apiVersion: goondan.ai/v1
kind: Swarm
metadata: { name: swarm }
spec: { agents: [ { ref: Agent/mian } ], entryAgent: Agent/main }
"#,
    )
    .unwrap();
    fs::write(bundle.path().join("script.yaml"), "- say: hi\n").unwrap();
    let path = bundle.path().to_str().unwrap();
    let output = goondan(&["check", path]);
    assert_eq!(output.status.code(), Some(2));
    let text = stdout(&output);
    for part in ["goondan.yaml:4:", "`modle`", "maxStepsPerTurn", "goondan.yaml:9:", "E_EXT_CONFIG", "goondan.ai/v2"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let output = goondan(&["check", path, "--json"]);
    assert_eq!(output.status.code(), Some(2));
    let object: Value = serde_json::from_str(stdout(&output)).unwrap();
    let faults = object["faults"].as_array().unwrap();
    assert!(faults.len() >= 4 && faults.iter().all(|fault| fault["code"].is_string() && fault["file"].is_string()));
}

#[test]
#[covers("SCHEMA-01")]
fn the_schema_knows_the_configs_of_linked_extensions() {
    let output = goondan(&["schema"]);
    let schema: Value = serde_json::from_str(stdout(&output)).unwrap();
    assert!(schema["$schema"].is_string());
    assert!(stdout(&output).contains("maxMessages"), "the config of message-window is part of it");
}

/// Runs the command on a terminal. Returns its output and its exit code.
fn on_a_terminal(arguments: &[&str], no_color: Option<&str>) -> (String, Option<i32>) {
    let (mut terminal, pts) = pty_process::blocking::open().unwrap();
    terminal.resize(pty_process::Size::new(24, 80)).unwrap();
    let command = pty_process::blocking::Command::new(env!("CARGO_BIN_EXE_goondan")).args(arguments);
    let command = command.env_remove("NO_COLOR").envs(no_color.map(|value| ("NO_COLOR", value)));
    let mut child = command.spawn(pts).unwrap();
    let mut output = Vec::new();
    // On some systems, reading fails when the other side is closed.
    _ = terminal.read_to_end(&mut output);
    (String::from_utf8(output).unwrap().replace("\r\n", "\n"), child.wait().unwrap().code())
}

#[test]
fn a_terminal_shows_excerpts() {
    let bundle = TempDir::new().unwrap();
    let file = bundle.path().join("goondan.yaml");
    let text = "apiVersion: goondan.ai/v1\nkind: Agent\nmetadata: { name: größe }\nspec:\n  modle: x\n";
    fs::write(&file, text).unwrap();
    let path = file.to_str().unwrap();
    let (page, code) = on_a_terminal(&["check", path], Some("1"));
    assert_eq!(code, Some(2), "{page}");
    assert!(!page.contains('\x1b'), "{page}");
    for part in [
        &format!("{path}:3:19]\n"),
        " 3 │ metadata: { name: größe }\n   ·                   ─────\n",
        &format!("{path}:5:3]\n"),
        " 5 │   modle: x\n   ·   ─────\n",
        "E_CONFIG_INVALID_NAME\n",
        "E_CONFIG_SCHEMA_INVALID\n",
        "help: write `model`\n",
        "2 faults\n",
    ] {
        assert!(page.contains(part), "{part}\nis not in\n{page}");
    }
    let (colored, _) = on_a_terminal(&["check", path], None);
    assert!(colored.contains("\x1b[31mE_CONFIG_INVALID_NAME\x1b[0m"), "{colored}");
    // Escape sequences in a file do not reach the terminal.
    fs::write(&file, text.replace("modle: x", "modle: \x1b[41m")).unwrap();
    assert!(!on_a_terminal(&["check", path], Some("1")).0.contains('\x1b'));
    fs::write(&file, text).unwrap();
    let (missing, code) = on_a_terminal(&["check", bundle.path().join("nowhere").to_str().unwrap()], Some("1"));
    assert!(
        code == Some(2) && missing.contains("no such file or directory") && missing.contains("nowhere"),
        "{missing}"
    );
    // Without a terminal, each error is one line.
    assert!(stdout(&goondan(&["check", path])).starts_with(&format!("{path}:3:19: error[E_CONFIG_INVALID_NAME]: ")));
}

/// An agent that may not delete lets another one do it.
#[test]
#[covers("GUARD-01")]
fn the_way_around_a_guard_is_a_fault_and_the_graph_shows_who_reaches_whom() {
    let directory = TempDir::new().unwrap();
    let write = |covers: &str| {
        let mut text = MODEL.to_owned();
        for (name, entry) in [("approval", "approval"), ("agents", "agents"), ("bash", "bash")] {
            text += &format!(
                "apiVersion: goondan.ai/v1\nkind: Extension\nmetadata: {{ name: {name} }}\n\
                 spec: {{ entry: \"linked:{entry}\" }}\n---\n"
            );
        }
        for (name, uses) in [
            ("boss", format!("{{ ref: Extension/approval{covers} }}, {{ ref: Extension/agents }}")),
            ("worker", "{ ref: Extension/bash }".to_owned()),
        ] {
            text += &format!(
                "apiVersion: goondan.ai/v1\nkind: Agent\nmetadata: {{ name: {name} }}\n\
                 spec: {{ model: Model/main, extensions: [ {uses} ] }}\n---\n"
            );
        }
        text += "apiVersion: goondan.ai/v1\nkind: Swarm\nmetadata: { name: firm }\n\
                 spec: { agents: [ { ref: Agent/boss }, { ref: Agent/worker } ], entryAgent: Agent/boss }\n";
        fs::write(directory.path().join("goondan.yaml"), text).unwrap();
        fs::write(directory.path().join("script.yaml"), "- { say: hi }\n").unwrap();
    };
    let bundle = directory.path().to_str().unwrap();
    let check = |arguments: &[&str]| goondan(&[&["check", bundle], arguments].concat());
    write("");
    let warned = check(&[]);
    assert!(warned.status.success(), "{warned:?}");
    let words = "the guard `approval` of `boss` does not guard what others do for it";
    assert!(stdout(&warned).contains(words) && stdout(&warned).contains("boss -> worker"), "{warned:?}");
    write(", covers: reachable");
    let refused = check(&[]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(
        stdout(&refused).contains("error[E_GUARD_GAP]: the guard `approval` does not cover `worker`"),
        "{refused:?}"
    );
    write("");
    let json: Value = serde_json::from_str(stdout(&check(&["--json"]))).unwrap();
    let guards = json!([{ "extension": "approval", "covers": "agent" }]);
    assert_eq!(
        json["graph"]["agents"],
        json!([
            { "agent": "boss", "asks": ["worker"], "guards": guards },
            { "agent": "worker", "asks": [], "guards": [] },
        ])
    );
}
