//! Turns that an extension starts: what the terminal and pipes show of them, and how long a run waits for them.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::Command;

use goondan_covers::covers;
use regex::Regex;
use serde_json::{Value, json};

use crate::screen::{BACKSPACE, Screen};
use crate::support::{Fixture, kill};

/// A bundle whose agent reminds itself when the model says so or, if `pipe`, when the test does.
fn fixture(pipe: bool) -> Fixture {
    let fixture = Fixture::new();
    let gate = fixture.gate();
    let (gate, config) =
        (gate.display(), if pipe { json!({ "path": fixture.root().join("pipe") }) } else { json!({}) });
    assert!(Command::new("mkfifo").arg(fixture.root().join("pipe")).status().unwrap().success());
    let reminder = format!(
        "kind: Extension\nmetadata: {{ name: reminder }}\nspec: {{ entry: 'linked:reminder', config: {config} }}\n---\n\
         apiVersion: goondan.ai/v1\nkind: Agent"
    );
    let bundle = fs::read_to_string(fixture.manifest()).unwrap();
    let bundle = bundle.replace("kind: Agent", &reminder);
    let bundle = bundle.replace("{ ref: Extension/gate }", "{ ref: Extension/gate }, { ref: Extension/reminder }");
    fs::write(fixture.manifest(), bundle).unwrap();
    let script = format!(
        "- {{ call: {{ tool: reminder__later, args: {{ text: the rent }} }}, when: ^remind, repeat: true }}\n\
         - {{ call: {{ tool: reminder__later, args: {{ text: again }} }}, when: ^again, repeat: true }}\n\
         - {{ call: {{ tool: reminder__later, args: {{ text: wait }} }}, when: ^later, repeat: true }}\n\
         - {{ call: {{ tool: reminder__later, args: {{ text: fail }} }}, when: ^break, repeat: true }}\n\
         - {{ call: {{ tool: gate__wait, args: {{ path: '{gate}' }} }}, when: ^wait, repeat: true }}\n\
         - {{ fail: {{ message: overloaded }}, when: ^fail, repeat: true }}\n\
         - {{ say: paid, when: ^the rent, repeat: true }}\n\
         - {{ say: fine, repeat: true }}\n"
    );
    fs::write(fixture.bundle().join("script.yaml"), script).unwrap();
    fixture
}

#[test]
#[covers("WAKE-01")]
fn a_turn_that_a_task_starts_is_shown_above_the_line_that_is_typed() {
    let fixture = fixture(true);
    let screen = Screen::start(&fixture, &[], &[]);
    screen.shows(">");
    screen.send("hell");
    screen.shows("> hell");
    fs::write(fixture.root().join("pipe"), "the rent\nof \x1b[31mthis month").unwrap();
    screen.shows("\nmain to itself: the rent\npaid\n> hell");
    // The line is still edited.
    screen.send(BACKSPACE);
    screen.send("lo\r");
    screen.shows("\nmain to itself: the rent\npaid\n> hello\nfine\n>");
    // One that was asked for in a turn comes after its answer.
    screen.send("remind\r");
    screen.shows("> remind\n✓ reminder__later  the rent · N s\nfine\nmain to itself: the rent\npaid\n>");
    screen.send("/quit\r");
    assert_eq!(screen.end().0.code(), Some(0));
    assert_eq!(fixture.stored().first().unwrap(), "the rent\nof \x1b[31mthis month");
}

#[test]
fn a_line_of_the_log_is_written_above_the_line_that_is_typed() {
    let fixture = fixture(true);
    let zone = ("TZ", "XYZ-5:45");
    let hour = || Command::new("date").arg("+%H").envs([zone]).output().unwrap().stdout;
    let before = hour();
    let screen = Screen::start(&fixture, &[], &[zone]);
    screen.shows(">");
    screen.send("hell");
    screen.shows("> hell");
    fs::write(fixture.root().join("pipe"), b"\xff").unwrap();
    let line = "ERROR goondan::extension: stream did not contain valid UTF-8 agent=main instance=default";
    screen.contains(&format!("{line} extension=reminder\n> hell"));
    screen.send("o\r");
    screen.shows("\n> hello\nfine\n>");
    screen.send("/quit\r");
    let (status, text) = screen.end();
    assert_eq!(status.code(), Some(0));
    let written = text.lines().find(|text| text.contains(line)).unwrap();
    let time = Regex::new(r"^(\d\d):\d\d:\d\d ERROR").unwrap().captures(written).unwrap();
    let hours = [before, hour()].map(|hour| String::from_utf8(hour).unwrap());
    assert!(hours.iter().any(|hour| hour.trim() == &time[1]), "{written}, {hours:?}");
}

/// Runs with `lines` on standard input. Returns the exit code, standard output and standard error.
fn pipe(fixture: &Fixture, arguments: &[&str], lines: &str) -> (Option<i32>, String, String) {
    let mut child = fixture.command(arguments).spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
#[covers("WAKE-01")]
fn a_run_on_a_pipe_prints_the_turns_that_it_has_started_before_it_ends() {
    let fixture = fixture(false);
    assert_eq!(
        pipe(&fixture, &[], "remind me\n"),
        (Some(0), "fine\npaid\n".to_owned(), "main to itself: the rent\n".to_owned())
    );
    let one = fixture.run(&["--input", "remind me"]);
    assert_eq!((one.status.code(), one.stdout.as_slice()), (Some(0), &b"fine\npaid\n"[..]));
    // A failed one counts like one that was asked for; the log has its error.
    let (code, out, err) = pipe(&fixture, &[], "break\n");
    assert_eq!((code, out.as_str()), (Some(1), "fine\n"));
    assert!(err.contains("main to itself: fail (failed with E_MODEL)") && err.contains("overloaded"), "{err}");
    // The turns of a loop end, and all of them are printed.
    let (code, out, err) = pipe(&fixture, &[], "again\n");
    assert_eq!((code, out.lines().count()), (Some(0), 1 + 32), "{out}\n{err}");
    assert!(err.contains("E_EVENT_LOOP"), "{err}");
}

#[test]
fn programs_can_tell_a_turn_in_the_background_from_an_answer() {
    let fixture = fixture(false);
    let schema = include_str!("../../../../docs/run-stream.schema.json");
    let schema = jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap();
    for (input, error) in [("remind me", Value::Null), ("break", json!("E_MODEL"))] {
        let run = fixture.run(&["--json", "--input", input]);
        let lines: Vec<Value> =
            run.stdout.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
        let [answer, background] = &lines[..] else { panic!("{lines:?}") };
        assert_eq!((&answer["response"], &answer["background"]), (&json!("fine"), &Value::Null));
        let place = &background["background"];
        assert_eq!((&place["agent"], &place["instance"]), (&json!("main"), &json!("default")));
        assert_eq!(place["source"], json!({ "kind": "agent", "name": "main" }));
        assert_eq!(background["error"]["code"], error, "{background}");

        let run = fixture.run(&["--json", "--stream", "--input", input]);
        let text = String::from_utf8(run.stdout).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(lines.iter().all(|line| schema.is_valid(line)), "{text}");
        let ends: Vec<_> = lines.iter().filter(|line| line["type"] == "turn").collect();
        assert_eq!((ends.len(), ends[1]["background"]["input"].is_string()), (2, true), "{text}");
    }
}

#[test]
fn a_run_waits_for_its_background_no_longer_than_the_grace_period() {
    let fixture = fixture(false);
    let (code, out, err) = pipe(&fixture, &["--grace", "0"], "later\n");
    assert_eq!((code, out.as_str()), (Some(1), "fine\n"));
    assert!(err.contains("leaving: turns in the background took longer than 0 s"), "{err}");
    // What the turn had done is kept, and the next run answers.
    assert_eq!(pipe(&fixture, &[], "hello\n").1, "fine\n");
}

#[test]
fn ctrl_c_ends_the_waiting_for_the_background() {
    let fixture = fixture(false);
    let mut child = fixture.command(&[]).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"later\n").unwrap();
    let gate = fixture.reached();
    kill("-INT", child.id());
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(said.any(|line| line.starts_with("turns in the background have ")));
    drop(gate);
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
