//! The log on standard error: its filters and its formats.

use std::fs;
use std::process::Output;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{MODEL, checkout, goondan, stderr, stdout};

/// The documents after the model.
const BUNDLE: &str = r#"apiVersion: goondan.ai/v1
kind: Extension
metadata: { name: logging }
spec: { entry: "linked:logging", config: { level: info } }
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: { name: main }
spec: { model: Model/main, extensions: [ { ref: Extension/logging } ] }
"#;

/// Runs one turn with the extension `logging`.
fn run(arguments: &[&str], log: Option<&str>) -> Output {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("goondan.yaml"), format!("{MODEL}{BUNDLE}")).unwrap();
    fs::write(dir.path().join("script.yaml"), "- say: Hello!\n").unwrap();
    let mut command = goondan();
    command.current_dir(dir.path()).arg("run").args(arguments).args(["--input", "hello", "--state-root", "state"]);
    command.envs(log.map(|log| ("RUST_LOG", log))).output().unwrap()
}

fn log(output: &Output) -> &str {
    assert!(output.status.success(), "{output:?}");
    assert_eq!(output.stdout, b"Hello!\n", "the answer, and nothing else");
    stderr(output)
}

#[test]
fn the_option_overrides_the_variable_and_the_variable_the_default() {
    assert!(log(&run(&[], None)).contains("turn completed"));
    assert_eq!(log(&run(&[], Some("warn"))), "");
    assert!(log(&run(&[], Some(""))).contains("turn completed"), "an empty variable counts as unset");
    assert!(log(&run(&["--log-level", "info"], Some("warn"))).contains("turn completed"));
    assert_eq!(log(&run(&["--log-level", "off"], Some("trace"))), "");
    assert_eq!(log(&run(&["--log-level", "error"], Some("no filter=at=all"))), "", "the variable is ignored");
    assert_eq!(run(&["--log-level", "loud"], None).status.code(), Some(2));
}

#[test]
fn json_is_one_object_per_line() {
    let output = run(&["--log-format", "json"], None);
    let lines: Vec<Value> = log(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let completed = lines.iter().find(|line| line["message"] == "turn completed").unwrap();
    let members: Vec<_> = completed.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(members, ["timestamp", "level", "target", "message", "fields", "spans"]);
    assert_eq!((completed["level"].as_str(), completed["target"].as_str()), (Some("INFO"), Some("goondan::extension")));
    assert!(completed["timestamp"].as_str().unwrap().ends_with('Z'), "{completed}");
    assert_eq!(completed["fields"]["extension"], "logging");
    assert!(completed["spans"].is_array());
    // The spans of turns and steps have the level `info`, which the default filter excludes.
    let output = run(&["--log-format", "json", "--log-level", "info"], None);
    let in_turn = |line: &str| serde_json::from_str::<Value>(line).unwrap()["spans"][0]["name"] == "turn";
    assert!(log(&output).lines().any(in_turn), "{output:?}");
}

/// A server that asks what no client answers, 200 times, and then says what it offers.
#[test]
fn a_server_decides_neither_whether_nor_how_many_lines_are_written() {
    let dir = TempDir::new().unwrap();
    let example = checkout().join("examples/mcp");
    for name in ["goondan.yaml", "script.yaml"] {
        fs::copy(example.join(name), dir.path().join(name)).unwrap();
    }
    let list = "  *'\"method\":\"tools/list\"'*)\n";
    let ask = r#"printf '{"jsonrpc":"2.0","id":"q%s","method":"sampling/createMessage","params":{}}\n' $(seq 200)"#;
    let server = fs::read_to_string(example.join("server.sh")).unwrap();
    let server = server.replace(list, &format!("  *'\"error\":'*) ;;\n{list}    {ask}\n"));
    assert!(server.contains(ask));
    fs::write(dir.path().join("server.sh"), server).unwrap();
    let lines = |arguments: &[&str], log: Option<&str>| {
        let mut command = goondan();
        command.args(["plugin", "list", "--start", "--trust"]).arg(dir.path()).args(arguments);
        let output = command.envs(log.map(|log| ("RUST_LOG", log))).output().unwrap();
        assert!(stdout(&output).contains("clock__now"), "{output:?}");
        stderr(&output).lines().filter(|line| line.contains(" rmcp::")).count()
    };
    assert_eq!(lines(&[], None), 0);
    assert_eq!(lines(&["--log-level", "info"], None), 0);
    let written = [lines(&["--log-level", "debug"], None), lines(&[], Some("warn,rmcp=debug"))];
    println!("{written:?}");
    assert!(written.iter().all(|lines| (1..200).contains(lines)), "{written:?}");
}
