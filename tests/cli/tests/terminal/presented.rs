//! What a person sees of tool calls: what they do, what came of them, and what they returned; also in what is stored.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::screen::Screen;
use crate::support::{Fixture, PROGRAM};

/// A conversation whose model runs commands: each input is one.
fn fixture() -> Fixture {
    let fixture = Fixture::new();
    let bundle = fs::read_to_string(fixture.manifest()).unwrap();
    fs::write(fixture.manifest(), bundle.replace("linked:gate", "linked:bash")).unwrap();
    let script = "\
- { when: ^count, call: { tool: bash__exec, args: { command: 'seq 5; exit 2' } } }
- { when: ^quiet, call: { tool: bash__exec, args: { command: 'true' } } }
- { when: ^hostile, call: { tool: bash__exec, args: { command: \"printf '\\\\033[2Jgone'\" } } }
- { say: fine, repeat: true }
";
    fs::write(fixture.bundle().join("script.yaml"), script).unwrap();
    fixture
}

#[test]
fn a_call_is_told_with_its_command_its_end_and_the_first_lines_that_it_wrote() {
    let fixture = fixture();
    let screen = Screen::start(&fixture, &[], &[]);
    screen.shows(">");
    screen.send("/last\r");
    screen.contains("no tool was called yet");
    screen.send("count\r");
    screen.shows("✗ bash__exec  seq 5; exit 2 · exit 2 · 5 lines · N s\n  1\n  2\n  3\n  … /last shows all 5\nfine\n>");
    screen.send("/last\r");
    screen.shows("> /last\n1\n2\n3\n4\n5\n>");
    screen.send("quiet\r");
    screen.shows("> quiet\n✓ bash__exec  true · N s\nfine\n>");
    screen.send("hostile\r");
    screen.shows("> hostile\n✓ bash__exec  printf '\\033[2Jgone' · N s\n  ␛[2Jgone\nfine\n>");
    screen.send("/quit\r");
    assert_eq!(screen.end().0.code(), Some(0));

    let state = fixture.state();
    let show = |options: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.args(["instance", "show", "main:default", "--state-root"]).arg(&state).args(options);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let shown = show(&[]);
    assert!(shown.contains("← bash__exec  seq 5; exit 2 · exit 2\n"), "{shown}");
    let mut lines = show(&["--json"]).lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>();
    lines.retain(|line| line["data"]["role"] == "tool" || line["role"] == "tool");
    assert!(
        lines[0].to_string().contains(r#""presentation":{"line":"seq 5; exit 2","outcome":{"failed":true"#),
        "{lines:?}"
    );
}

#[test]
fn a_stream_of_json_has_what_a_call_does_and_what_came_of_it() {
    let fixture = fixture();
    let output = fixture.command(&["--json", "--stream", "--input", "count"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let events: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].take())
        .filter(|event| event["toolName"] == "bash__exec")
        .collect();
    let [called, completed] = events.as_slice() else { panic!("{text}") };
    assert_eq!(called["presentation"], serde_json::json!({ "line": "seq 5; exit 2" }));
    let outcome = serde_json::json!({ "failed": true, "words": "exit 2" });
    assert_eq!((&completed["status"], &completed["presentation"]["outcome"]), (&"ok".into(), &outcome));
}
