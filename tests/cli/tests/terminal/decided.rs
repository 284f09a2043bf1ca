//! ASK-01: a person is asked about calls that wait, on the terminal.

use std::path::Path;

use goondan_covers::covers;
use pty_process::blocking::Command;
use tempfile::TempDir;

use crate::screen::{CTRL_C, CTRL_D, ENTER, Screen};
use crate::support::PROGRAM;

const QUESTION: &str = "\
  approval asks: Run bash__exec? It pays money.
  Always: calls with the same arguments.
  [y]es  [n]o, or say why not  [e]dit  [a]lways  (Ctrl-C: later)
>";

fn start(state: &Path) -> Screen {
    let bundle = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/approval");
    let command = Command::new(PROGRAM).args(["run", bundle, "--trust", "--state-root"]).arg(state);
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
    let screen = start(state.path());
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
    ends(screen);
}

/// Ctrl-C leaves the call waiting, and so does leaving; the next start asks again.
#[test]
#[covers("ASK-01")]
fn a_question_is_left_for_later() {
    let state = TempDir::new().unwrap();
    let screen = start(state.path());
    asked(&screen);
    screen.send(CTRL_C);
    screen.shows("it waits: /decide asks again, and so does the next start\n>");
    says(&screen, "something else");
    screen.shows("see: goondan explain E_INSTANCE_SUSPENDED\n>");
    says(&screen, "/decide");
    screen.shows(QUESTION);
    says(&screen, "/help");
    screen.shows("[y]es  [n]o, or say why not  [e]dit  [a]lways  (Ctrl-C: later)\n>");
    ends(screen);

    let screen = start(state.path());
    screen.shows(QUESTION);
    says(&screen, "e");
    screen.contains("> {\"command\":\"echo 49.00 EUR are paid back\"}");
    // The line is deleted back to the sum.
    screen.send(&crate::screen::BACKSPACE.repeat("49.00 EUR are paid back\"}".len()));
    says(&screen, "10.00 EUR are paid back\"}");
    screen.contains("The money is on its way.");
    assert!(screen.text().contains("10.00 EUR are paid back"), "{}", screen.text());
    ends(screen);
}

#[test]
#[covers("ASK-01")]
fn a_denied_call_is_not_asked_about() {
    let state = TempDir::new().unwrap();
    let screen = start(state.path());
    screen.contains("Ctrl-D leaves");
    says(&screen, "clean up");
    screen.contains("I will not do that.");
    assert!(!screen.text().contains("approval asks"), "{}", screen.text());
    ends(screen);
}
