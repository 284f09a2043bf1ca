//! Agents that use agents, ended by signals: nothing runs on.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use goondan_covers::covers;
use goondan_libraries::runs;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{goondan, printed, stdout};

/// A bundle whose `boss` asks `clerk`, who asks `worker`, who runs `command`.
fn bundle(command: &str) -> TempDir {
    bundle_of("bash", &json!({}), "bash__exec", &json!({ "command": command }))
}

/// A bundle whose `boss` asks `clerk`, who asks `worker`, who calls a tool of an extension.
fn bundle_of(extension: &str, config: &Value, tool: &str, args: &Value) -> TempDir {
    let directory = TempDir::new().unwrap();
    let mut text = String::new();
    for (name, config) in [(extension, config), ("agents", &json!({}))] {
        let config = if config == &json!({}) { String::new() } else { format!(", config: {config}") };
        text += &format!(
            "apiVersion: goondan.ai/v1\nkind: Extension\nmetadata: {{ name: {name} }}\n\
             spec: {{ entry: \"linked:{name}\"{config} }}\n---\n"
        );
    }
    let call = |tool: &str, args: Value| json!({ "id": "c1", "name": tool, "args": args });
    let asks = |target: &str| call("agents__request", json!({ "target": target, "input": "work" }));
    let works = call(tool, args.clone());
    for (name, call) in [("boss", asks("clerk")), ("clerk", asks("worker")), ("worker", works)] {
        let usage = json!({ "promptTokens": 100, "completionTokens": 10, "totalTokens": 110 });
        let script = json!([
            { "raw": { "toolCalls": [call], "usage": usage }, "when": "^work", "repeat": true },
            { "raw": { "text": "done", "usage": usage }, "repeat": true },
        ]);
        fs::write(directory.path().join(format!("{name}.json")), script.to_string()).unwrap();
        let extension = if name == "worker" { extension } else { "agents" };
        text += &format!(
            "apiVersion: goondan.ai/v1\nkind: Model\nmetadata: {{ name: {name} }}\n\
             spec: {{ provider: scripted, script: ./{name}.json }}\n---\n\
             apiVersion: goondan.ai/v1\nkind: Agent\nmetadata: {{ name: {name} }}\n\
             spec: {{ model: Model/{name}, extensions: [ {{ ref: Extension/{extension} }} ] }}\n---\n"
        );
    }
    text += "apiVersion: goondan.ai/v1\nkind: Swarm\nmetadata: { name: firm }\n\
             spec: { agents: [ { ref: Agent/boss }, { ref: Agent/clerk }, { ref: Agent/worker } ], entryAgent: Agent/boss }\n";
    fs::write(directory.path().join("goondan.yaml"), text).unwrap();
    directory
}

fn run(bundle: &Path, input: &str) -> std::process::Command {
    let mut command = goondan();
    command.args(["run", "--trust", "--grace", "0", "--input", input, "--instance", "one"]).arg(bundle);
    command.arg("--state-root").arg(bundle.join(".state"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Returns the processes with this argument.
fn running(argument: &str) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let has = |process: &u32| {
        let words = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|word| word == argument.as_bytes())
    };
    processes.filter(has).collect()
}

/// Returns what `goondan instance show --json` tells of the first turn of a conversation.
fn cost(bundle: &Path, agent: &str) -> Value {
    let mut command = goondan();
    command.args(["instance", "show", "--json", &format!("{agent}:one"), "--state-root"]).arg(bundle.join(".state"));
    let lines = printed(&mut command);
    let mut lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.find_map(|mut line| line.get_mut("turn").filter(|turn| turn.is_object()).map(Value::take)).unwrap()
}

/// Returns the signal that ends the run with this number.
fn signal(run_number: u32) -> Signal {
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGKILL][run_number as usize % 3]
}

#[test]
#[covers("WORK-01")]
fn no_process_of_an_agent_outlives_the_turn_that_waits_for_it() {
    for run_number in 0..runs(6) {
        // An argument that no other process has.
        let seconds = format!("{}.{}", 10_000 + run_number, std::process::id());
        let signs = TempDir::new().unwrap();
        let began = signs.path().join("began");
        let bundle = bundle(&format!("touch {}; sleep {seconds}", began.display()));
        let child = run(bundle.path(), "work").spawn().unwrap();
        let signal = signal(run_number);
        // In the middle of everything, and at some moment before.
        if run_number % 2 == 0 {
            let start = Instant::now();
            while running(&seconds).is_empty() {
                assert!(start.elapsed() < Duration::from_secs(60), "the command does not run");
                sleep(Duration::from_millis(5));
            }
        } else {
            sleep(Duration::from_micros(u64::from(run_number) * 7919 % 60_000));
        }
        kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        let start = Instant::now();
        while !running(&seconds).is_empty() {
            assert!(start.elapsed() < Duration::from_secs(1), "{run_number} {signal}: {output:?}");
            sleep(Duration::from_millis(5));
        }
        // The next turn begins its command too, if this one did not come to it.
        let had_begun = began.exists();
        let next = run(bundle.path(), "are you there?").output().unwrap();
        assert_eq!(stdout(&next), "done\n", "{run_number} {signal}: {next:?}");
        // A signal that is ignored from the start, as in the background of a shell, is lost before goondan listens.
        let is_lost = run_number % 2 == 1 && output.status.success();
        if had_begun && !is_lost && signal == Signal::SIGINT {
            // All that was billed is reported, where it was used and in the turn that waited for it.
            for (agent, own, whole) in [("boss", 100, 300), ("clerk", 100, 200), ("worker", 100, 100)] {
                let cost = cost(bundle.path(), agent);
                assert_eq!(cost["error"], "the turn was cancelled", "{cost}");
                let tokens = |usage: &Value| usage["promptTokens"].as_u64();
                assert_eq!(tokens(&cost["tokenUsage"]), Some(own), "{cost}");
                assert_eq!(tokens(&cost["wholeUsage"]).or(tokens(&cost["tokenUsage"])), Some(whole), "{cost}");
            }
        }
    }
}

/// An MCP server whose tool does not answer. It makes a file when it is called.
#[cfg(feature = "mcp")]
const SERVER: &str = r#"
while read -r message; do
  id=$(printf '%s' "$message" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $message in
  *'"method":"initialize"'*)
    result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"slow","version":"1"}}' ;;
  *'"method":"tools/list"'*) result='{"tools":[{"name":"wait","inputSchema":{"type":"object"}}]}' ;;
  *'"method":"tools/call"'*) touch "$1/called"; continue ;;
  *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

#[cfg(feature = "mcp")]
#[test]
#[covers("WORK-01")]
fn no_call_of_a_server_outlives_the_turn_that_waits_for_its_agent() {
    for run_number in 0..runs(3) {
        let signal = signal(run_number);
        let signs = TempDir::new().unwrap();
        let place = signs.path().to_str().unwrap();
        let transport = json!({ "type": "stdio", "command": ["sh", "server.sh", place] });
        let bundle = bundle_of("mcp", &json!({ "transport": transport }), "mcp__wait", &json!({}));
        fs::write(bundle.path().join("server.sh"), SERVER).unwrap();
        let child = run(bundle.path(), "work").spawn().unwrap();
        if run_number % 6 < 3 {
            let start = Instant::now();
            while !signs.path().join("called").exists() {
                assert!(start.elapsed() < Duration::from_secs(60), "the tool is not called");
                sleep(Duration::from_millis(5));
            }
        } else {
            sleep(Duration::from_micros(u64::from(run_number) * 7919 % 60_000));
        }
        kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        let start = Instant::now();
        while !running(place).is_empty() {
            assert!(start.elapsed() < Duration::from_secs(1), "{run_number} {signal}: {output:?}");
            sleep(Duration::from_millis(5));
        }
    }
}

#[test]
#[covers("WORK-02")]
fn the_whole_usage_of_a_turn_is_shown() {
    let bundle = bundle("true");
    let output = run(bundle.path(), "work").output().unwrap();
    assert_eq!(stdout(&output), "done\n", "{output:?}");
    let mut show = goondan();
    show.args(["instance", "show", "boss:one", "--state-root"]).arg(bundle.path().join(".state"));
    let shown = printed(&mut show);
    assert!(shown.contains("600 tokens in and 60 out, those of other agents included"), "{shown}");
}

/// A bundle whose `boss` gives two tasks to `worker` at once.
pub(crate) fn bundle_of_tasks() -> TempDir {
    let directory = TempDir::new().unwrap();
    let tasks = json!({ "tasks": [{ "agent": "worker", "task": "one" }, { "agent": "worker", "task": "two" }] });
    let boss = json!([{ "call": { "tool": "subagents__run", "args": tasks } }, { "say": "both are done" }]);
    let worker = json!([{ "say": "1", "when": "one" }, { "say": "2", "when": "two" }]);
    fs::write(directory.path().join("boss.json"), boss.to_string()).unwrap();
    fs::write(directory.path().join("worker.json"), worker.to_string()).unwrap();
    let mut text = "apiVersion: goondan.ai/v1\nkind: Extension\nmetadata: { name: subagents }\n\
                    spec: { entry: \"linked:subagents\", config: { agents: { worker: works } } }\n---\n"
        .to_owned();
    for (name, extensions) in [("boss", "{ ref: Extension/subagents }"), ("worker", "")] {
        text += &format!(
            "apiVersion: goondan.ai/v1\nkind: Model\nmetadata: {{ name: {name} }}\n\
             spec: {{ provider: scripted, script: ./{name}.json }}\n---\n\
             apiVersion: goondan.ai/v1\nkind: Agent\nmetadata: {{ name: {name} }}\n\
             spec: {{ model: Model/{name}, extensions: [ {extensions} ] }}\n---\n"
        );
    }
    text += "apiVersion: goondan.ai/v1\nkind: Swarm\nmetadata: { name: firm }\n\
             spec: { agents: [ { ref: Agent/boss }, { ref: Agent/worker } ], entryAgent: Agent/boss }\n";
    fs::write(directory.path().join("goondan.yaml"), text).unwrap();
    directory
}

#[test]
#[covers("D-40")]
fn a_stream_of_json_tells_the_turns_of_other_agents_apart() {
    let bundle = bundle_of_tasks();
    let schema = serde_json::from_str(include_str!("../../../docs/run-stream.schema.json")).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let lines_of = |options: &[&str]| {
        let mut command = run(bundle.path(), "work");
        let text = printed(command.args(["--json", "--stream"]).args(options));
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        lines.iter().for_each(|line| assert!(schema.is_valid(line), "{line}"));
        assert_eq!(lines.last().unwrap()["response"], "both are done");
        lines
    };
    assert!(lines_of(&[]).iter().all(|line| line["type"] != "child"));
    let lines = lines_of(&["--children"]);
    let turn = &lines.last().unwrap()["turnId"];
    let mut answers = Vec::new();
    for line in lines.iter().filter(|line| line["type"] == "child") {
        assert_eq!((&line["turnId"], &line["agentName"]), (turn, &json!("worker")));
        assert!(line["toolCallId"].is_string() && line["update"]["type"] != "message", "{line}");
        if line["update"]["type"] == "text" {
            let of = |line: &Value| (line["instanceKey"].clone(), line["update"]["turnId"].clone());
            let ended = |other: &&Value| {
                let event = &other["update"]["event"];
                event["type"] == "turn.completed" && other["instanceKey"] == line["instanceKey"]
            };
            let ended = lines.iter().find(ended).unwrap();
            assert_eq!(ended["update"]["event"]["turnId"], line["update"]["turnId"]);
            answers.push((line["update"]["text"].clone(), of(line)));
        }
    }
    answers.sort_by_key(|(text, _)| text.to_string());
    let [(one, first), (two, second)] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!((one, two), (&json!("1"), &json!("2")));
    assert!(first.0 != second.0 && first.1 != second.1, "{first:?} {second:?}");
}
