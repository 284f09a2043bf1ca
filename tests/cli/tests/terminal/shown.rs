//! SHOW-01: what extensions show, on a terminal and in pipes.

use std::fs;
use std::num::NonZero;

use serde_json::{Value, json};

use crate::screen::Screen;
use crate::support::Fixture;

fn fixture(tool: &str) -> Fixture {
    let fixture = Fixture::new();
    let bundle = fs::read_to_string(fixture.manifest()).unwrap();
    fs::write(fixture.manifest(), bundle.replace("linked:gate", "linked:teller")).unwrap();
    let (gate, script) = (fixture.gate(), fixture.bundle().join("script.yaml"));
    let call = format!("call: {{ tool: teller__{tool}, args: {{ path: '{}' }} }}", gate.display());
    fs::write(script, format!("- {{ {call}, when: ^go }}\n- {{ say: fine, repeat: true }}\n")).unwrap();
    fixture
}

const ABOVE: &str = "gate: two\n  lines\ngate\n  x.md\n  @@ -1 +1 @@\n  -old\n  +new\n";

#[test]
fn a_list_stays_in_its_place_while_it_changes() {
    for columns in [40, 80, 200] {
        let fixture = fixture("tell");
        let screen = Screen::start(&fixture, &[], &[]);
        screen.shows(">");
        screen.resize(NonZero::new(columns).unwrap());
        screen.send("go\r");
        let status = format!("gate: {}", "counts ".repeat(30));
        let status = status[..status.len().min(usize::from(columns) - 1)].trim_end();
        screen.contains(&format!("{ABOVE}gate: Work · 1 of 2\n  [x] read 漢字\n  [>] write\n{status}\n"));
        screen.contains(" teller__tell ");
        screen.send("typed");
        screen.contains("\n> typed");
        drop(fixture.reached());
        screen.shows("\nfine\ngate: Work · 2 of 2\n  [x] read 漢字\n  [x] write\n> typed");
        screen.contains(&format!("{ABOVE}✓ teller__tell  "));
        screen.send("\x03");
        screen.shows("> typed\n>");
        screen.send("/quit\r");
        assert_eq!(screen.end().0.code(), Some(0));
    }
}

#[test]
fn what_is_shown_between_turns_stands_above_the_line_that_is_typed() {
    let fixture = fixture("later");
    let screen = Screen::start(&fixture, &[], &[]);
    screen.shows(">");
    screen.send("go\r");
    screen.contains("\nfine\n");
    screen.shows(">");
    screen.send("half a li");
    screen.shows("> half a li");
    drop(fixture.reached());
    let shown = "gate: Work · 0 of 2\n  [>] read 漢字\n  [>] write\ngate: [x] read 漢字\ngate: the end\n";
    screen.shows(&format!("{shown}> half a li"));
    screen.send("ne\r");
    screen.shows("> half a line\nfine\n>");
    screen.send("/quit\r");
    assert_eq!(screen.end().0.code(), Some(0));
}

#[test]
fn without_a_cursor_that_moves_what_changed_is_printed() {
    let fixture = fixture("tell");
    let screen = Screen::start(&fixture, &[], &[("TERM", "dumb")]);
    screen.contains("leaves");
    screen.send("go\r");
    drop(fixture.reached());
    screen.contains("gate: Work · 0 of 2\n  [>] read 漢字\n  [>] write\ngate: [x] read 漢字\ngate: [x] write\n");
    screen.contains("fine\n");
    screen.send("/quit\r");
    screen.end();
}

#[test]
fn in_a_pipe_it_goes_to_standard_error_and_into_the_stream_for_programs() {
    let fixture = fixture("tell");
    let run = fixture.command(&["--input", "go"]).spawn().unwrap();
    drop(fixture.reached());
    let output = run.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "fine\n");
    let stderr = String::from_utf8(output.stderr).unwrap();
    let list = "gate: Work · 0 of 2\n  [>] read 漢字\n  [>] write\ngate: [x] read 漢字\ngate: [x] write\n";
    assert_eq!(stderr, format!("{ABOVE}{list}"));

    let run = fixture.command(&["--json", "--stream", "--input", "go", "--instance", "other"]).spawn().unwrap();
    drop(fixture.reached());
    let text = String::from_utf8(run.wait_with_output().unwrap().stdout).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let schema = include_str!("../../../../docs/run-stream.schema.json");
    let schema = jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap();
    assert!(lines.iter().all(|line| schema.is_valid(line)), "{text}");
    let shown: Vec<_> = lines.iter().filter(|line| line["type"] == "shown").collect();
    let turn_id = &lines.last().unwrap()["turnId"];
    let note = json!({ "type": "note", "text": "two\nlines" });
    assert_eq!(*shown[0], json!({ "type": "shown", "turnId": turn_id, "extension": "gate", "shown": note }));
    let types: Vec<_> = shown.iter().map(|line| line["shown"]["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["note", "difference", "list", "status", "list", "list"]);
}
