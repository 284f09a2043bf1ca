//! ASK-01: a person is asked about calls that wait, on the terminal.

use std::fs;
use std::path::Path;

use goondan::json;
use goondan_covers::covers;
use pty_process::blocking::Command;
use regex::Regex;
use tempfile::TempDir;

use crate::screen::{CTRL_C, CTRL_D, ENTER, Screen};
use crate::support::PROGRAM;

const QUESTION: &str = "\
  approval asks: Run bash__exec? It pays money.
  Always: calls with the same arguments.
  [y]es  [n]o, or say why not  [e]dit  [a]lways  (Ctrl-C: later)
>";

const BUNDLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/approval");

fn start(bundle: impl AsRef<Path>, state: &Path) -> Screen {
    let command = Command::new(PROGRAM).args(["run", "--trust", "--state-root"]).arg(state).arg(bundle.as_ref());
    let command = command.env_remove("GOONDAN_LOG").env_remove("NO_COLOR").env("TERM", "xterm-256color");
    Screen::run(command, state)
}

fn asked(screen: &Screen) {
    screen.contains("Ctrl-D leaves");
    screen.send("refund order 1183");
    screen.send(ENTER);
    screen.shows(QUESTION);
    assert!(screen.text().contains("? bash__exec  echo 49.00 EUR are paid back  ("), "{}", screen.text());
}

fn ends(screen: Screen) {
    screen.send(CTRL_D);
    assert_eq!(screen.end().0.code(), Some(0));
}

fn says(screen: &Screen, text: &str) {
    screen.send(text);
    screen.send(ENTER);
}

#[test]
#[covers("ASK-01")]
fn a_person_says_yes_no_or_always() {
    let state = TempDir::new().unwrap();
    let screen = start(BUNDLE, state.path());
    asked(&screen);
    says(&screen, "not to her");
    screen.shows("I will not do that.\n>");
    says(&screen, "refund order 1183");
    screen.shows(QUESTION);
    says(&screen, "y");
    screen.shows("The money is on its way.\n>");
    says(&screen, "refund order 1183");
    screen.shows(QUESTION);
    says(&screen, "a");
    let paid = "✓ bash__exec  echo 49.00 EUR are paid back · N s\n  49.00 EUR are paid back\n";
    let unasked = format!("{paid}The money is on its way.\n>");
    screen.shows(&format!("> a\n{unasked}"));
    says(&screen, "refund order 1183");
    screen.shows(&format!("> refund order 1183\n{unasked}"));
    says(&screen, "/rules");
    screen.contains("\n  otherwise allow\n  always 1: bash__exec {\"command\":\"echo 49.00 EUR are paid back\"}\n>");
    says(&screen, "/rules forget 1");
    screen.shows("> /rules forget 1\napproval: deny bash__*, /command *sudo *\n  ask bash__exec\n  otherwise allow\n>");
    says(&screen, "refund order 1183");
    screen.shows(QUESTION);
    ends(screen);
}

/// Ctrl-C leaves the call waiting, and so does leaving; the next start asks again.
#[test]
#[covers("ASK-01")]
fn a_question_is_left_for_later() {
    let state = TempDir::new().unwrap();
    let screen = start(BUNDLE, state.path());
    asked(&screen);
    screen.send(CTRL_C);
    screen.shows("it waits: /decide asks again, and so does the next start\n>");
    says(&screen, "something else");
    screen.shows("see: goondan explain E_INSTANCE_SUSPENDED\n>");
    says(&screen, "/decide");
    screen.shows(QUESTION);
    says(&screen, "/help");
    screen.contains("ask about the tool calls");
    screen.shows("[y]es  [n]o, or say why not  [e]dit  [a]lways  (Ctrl-C: later)\n>");
    ends(screen);

    let screen = start(BUNDLE, state.path());
    screen.shows(QUESTION);
    says(&screen, "e");
    screen.contains("> {\"command\":\"echo 49.00 EUR are paid back\"}");
    // The line is deleted back to the sum.
    screen.send(&crate::screen::BACKSPACE.repeat("49.00 EUR are paid back\"}".len()));
    says(&screen, "10.00 EUR are paid back\"}");
    screen.shows("\nThe money is on its way.\n>");
    assert!(screen.text().contains("10.00 EUR are paid back"), "{}", screen.text());
    ends(screen);
}

/// Of a long call, the first lines are shown, and all of it by a key. A key that the question does not take does nothing.
#[test]
#[covers("ASK-01", "ASK-03")]
fn a_long_call_is_shown_as_a_whole_by_a_key() {
    const BUNDLE: &str = "\
apiVersion: goondan.ai/v1
kind: Model
metadata: { name: main }
spec: { provider: scripted, script: ./script.json }
---
apiVersion: goondan.ai/v1
kind: Extension
metadata: { name: file-system }
spec: { entry: \"linked:file-system\", config: { roots: [work] } }
---
apiVersion: goondan.ai/v1
kind: Extension
metadata: { name: approval }
spec: { entry: \"linked:approval\", config: { always: never } }
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: { name: writer }
spec: { model: Model/main, extensions: [ { ref: Extension/file-system }, { ref: Extension/approval } ] }
---
apiVersion: goondan.ai/v1
kind: Swarm
metadata: { name: writer }
spec: { agents: [ { ref: Agent/writer } ], entryAgent: Agent/writer }
";
    let (bundle, state) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let lines: String = (1..=100).map(|line| format!("line {line}\n")).collect();
    let call = json!({ "tool": "file-system__write", "args": { "path": "a.txt", "content": lines } });
    let script = json!([{ "call": call }, { "say": "written" }]).to_string();
    fs::write(bundle.path().join("goondan.yaml"), BUNDLE).unwrap();
    fs::write(bundle.path().join("script.json"), script).unwrap();
    fs::create_dir(bundle.path().join("work")).unwrap();

    let screen = start(bundle.path(), state.path());
    screen.contains("Ctrl-D leaves");
    says(&screen, "write");
    screen.shows("[y]es  [n]o, or say why not  [e]dit  [d]etails  (Ctrl-C: later)\n>");
    let text = screen.text();
    assert!(text.contains("  +line 38\n  … 62 more lines\n  approval asks: Run file-system__write?\n"), "{text}");
    says(&screen, "a");
    screen.shows("> a\n  [y]es  [n]o, or say why not  [e]dit  [d]etails  (Ctrl-C: later)\n>");
    says(&screen, "d");
    screen.shows("  +line 99\n  +line 100\n  [y]es  [n]o, or say why not  [e]dit  [d]etails  (Ctrl-C: later)\n>");
    assert!(!bundle.path().join("work/a.txt").exists());
    says(&screen, "y");
    screen.shows("\nwritten\n>");
    assert_eq!(fs::read_to_string(bundle.path().join("work/a.txt")).unwrap(), lines);
    ends(screen);
}

/// The transcript in the README of the extension is what the terminal shows.
#[test]
#[covers("ASK-01")]
fn the_transcript_is_what_is_shown() {
    const README: &str = include_str!("../../../../plugins/approval/README.md");
    let transcript = README.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let state = TempDir::new().unwrap();
    let screen = start(BUNDLE, state.path());
    asked(&screen);
    says(&screen, "y");
    screen.shows("\nThe money is on its way.\n>");
    let text = screen.text();
    let text = &text[text.find("> refund").unwrap()..text.rfind("\n>").unwrap()];
    let text = Regex::new("call-[0-9a-f]+").unwrap().replace_all(text, "call-1");
    let from = text.find("? bash__exec").unwrap();
    assert_eq!(format!("> refund order 1183\n{}\n", &text[from..]), transcript);
    ends(screen);
}

#[test]
#[covers("ASK-01")]
fn a_denied_call_is_not_asked_about() {
    let state = TempDir::new().unwrap();
    let screen = start(BUNDLE, state.path());
    screen.contains("Ctrl-D leaves");
    says(&screen, "clean up");
    screen.shows("\nI will not do that.\n>");
    assert!(!screen.text().contains("approval asks"), "{}", screen.text());
    ends(screen);
}
