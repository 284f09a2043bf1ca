//! Tools that answer with files: what the terminal and the other commands show of them.

use std::fs;
use std::process::Command;

use crate::screen::Screen;
use crate::support::{Fixture, PROGRAM};

/// A bundle whose agent draws, and fails to draw.
fn fixture() -> Fixture {
    let fixture = Fixture::new();
    let bundle = fs::read_to_string(fixture.manifest()).unwrap();
    fs::write(fixture.manifest(), bundle.replace("linked:gate", "linked:pencil")).unwrap();
    let script = "- { call: { tool: pencil__draw }, when: ^draw, repeat: true }\n\
                  - { call: { tool: pencil__smudge }, when: ^smudge, repeat: true }\n\
                  - { say: fine, repeat: true }\n";
    fs::write(fixture.bundle().join("script.yaml"), script).unwrap();
    fixture
}

fn output(fixture: &Fixture, arguments: &[&str]) -> String {
    let command = Command::new(PROGRAM).args(arguments).arg("--state-root").arg(fixture.state()).output().unwrap();
    assert!(command.status.success(), "{command:?}");
    String::from_utf8(command.stdout).unwrap()
}

#[test]
fn the_progress_of_a_tool_that_answers_with_a_file_shows_no_file() {
    let fixture = fixture();
    let screen = Screen::start(&fixture, &[], &[]);
    screen.shows(">");
    screen.send("draw\r");
    screen.shows("> draw\n✓ pencil__draw · N s\nfine\n>");
    screen.send("smudge\r");
    screen.shows("> smudge\n✗ pencil__smudge  this is all that is left: · N s\nfine\n>");
    screen.send("/quit\r");
    let (status, shown) = screen.end();
    assert_eq!(status.code(), Some(0));
    assert!(!shown.contains("base64"), "{shown}");

    let shown = output(&fixture, &["instance", "show", "main:default"]);
    assert!(shown.contains("← pencil__draw A line:\n"), "{shown}");
    assert!(shown.contains("[image/png line.png]") && !shown.contains("base64"), "{shown}");
}

#[test]
fn json_and_records_have_the_file_in_the_place_of_the_output() {
    let fixture = fixture();
    let run = fixture.run(&["--json", "--input", "draw"]);
    let turn: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!((&turn["response"], run.status.code()), (&"fine".into(), Some(0)), "{turn}");
    assert!(!turn.to_string().contains("base64"), "{turn}");
    let requests = fs::read_to_string(fixture.bundle().join("requests.jsonl")).unwrap();
    let request: serde_json::Value = serde_json::from_str(requests.lines().last().unwrap()).unwrap();
    let part = &request["messages"][2]["content"][0];
    assert_eq!((&part["type"], &part["output"]["type"]), (&"tool-result".into(), &"content".into()), "{request}");
    assert_eq!(part["output"]["value"][1]["url"], "data:image/png;base64,iVBORw0KGgo=");
}
