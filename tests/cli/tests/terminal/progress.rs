//! How far a tool call is: on the terminal, and in the stream for programs.

use std::fs;

use serde_json::{Value, json};

use crate::screen::Screen;
use crate::support::Fixture;

fn fixture() -> Fixture {
    let fixture = Fixture::new();
    let bundle = fs::read_to_string(fixture.manifest()).unwrap();
    fs::write(fixture.manifest(), bundle.replace("linked:gate", "linked:porter")).unwrap();
    let gate = fixture.gate();
    let call = format!("- call: {{ tool: porter__carry, args: {{ path: '{}' }} }}\n- say: fine\n", gate.display());
    fs::write(fixture.bundle().join("script.yaml"), call).unwrap();
    fixture
}

#[test]
fn the_line_of_a_call_says_how_far_it_is() {
    let fixture = fixture();
    let screen = Screen::start(&fixture, &[], &[]);
    screen.shows(">");
    screen.send("carry\r");
    screen.contains("porter__carry 33% boxes␛[31m N s");
    drop(fixture.reached());
    screen.shows("> carry\n✓ porter__carry  GATE · N s\nfine\n>");
    screen.send("/quit\r");
    assert_eq!(screen.end().0.code(), Some(0));
}

#[test]
fn a_stream_of_json_says_how_far_a_call_is() {
    let fixture = fixture();
    let run = fixture.command(&["--json", "--stream", "--input", "carry"]).spawn().unwrap();
    drop(fixture.reached());
    let output = run.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let schema = include_str!("../../../../docs/run-stream.schema.json");
    let schema = jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap();
    assert!(lines.iter().all(|line| schema.is_valid(line)), "{text}");
    let progress: Vec<_> = lines.iter().filter(|line| line["type"] == "progress").collect();
    let [progress] = progress[..] else { panic!("{text}") };
    let turn = lines.last().unwrap();
    let call = lines.iter().find(|line| line["type"] == "tool-call").unwrap();
    let expected = json!({
        "type": "progress", "turnId": turn["turnId"], "toolCallId": call["toolCallId"], "done": 1.0, "total": 3.0,
        "text": "boxes\u{1b}[31m\nof wood",
    });
    assert_eq!(*progress, expected);
    let turn_id = &turn["turnId"];
    let unknown =
        json!({ "type": "progress", "turnId": turn_id, "toolCallId": "a", "done": 1, "total": null, "text": "" });
    assert!(schema.is_valid(&unknown), "the total may be unknown");
    assert!(!schema.is_valid(&json!({ "type": "progress", "turnId": turn_id, "done": 1, "text": "" })));
}
