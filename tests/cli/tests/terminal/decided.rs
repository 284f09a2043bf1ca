//! ASK-01: a person is asked about calls that wait, on the terminal.

use std::fs;
use std::num::NonZero;
use std::path::Path;

use goondan::{Value, json};
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

pub(crate) fn start(bundle: impl AsRef<Path>, state: &Path) -> Screen {
    let command = Command::new(PROGRAM).args(["run", "--trust", "--state-root"]).arg(state).arg(bundle.as_ref());
    let command = command.env_remove("GOONDAN_LOG").env_remove("NO_COLOR").env("TERM", "xterm-256color");
    Screen::run(command, state)
}

/// Starts it on a terminal of this width.
pub(crate) fn start_at(columns: u16, bundle: &Path, state: &Path) -> Screen {
    let command = Command::new(PROGRAM).args(["run", "--trust", "--state-root"]).arg(state).arg(bundle);
    let command = command.env_remove("GOONDAN_LOG").env_remove("NO_COLOR").env("TERM", "xterm-256color");
    Screen::run_with_columns(command, state, NonZero::new(columns).unwrap())
}

fn asked(screen: &Screen) {
    screen.contains("Ctrl-D leaves");
    screen.send("refund order 1183");
    screen.send(ENTER);
    screen.shows(QUESTION);
    assert!(screen.text().contains("? bash__exec  echo 49.00 EUR are paid back  ("), "{}", screen.text());
}

pub(crate) fn ends(screen: Screen) {
    screen.send(CTRL_D);
    assert_eq!(screen.end().0.code(), Some(0));
}

pub(crate) fn says(screen: &Screen, text: &str) {
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

/// Checks that the README has what the screen shows from the question on, behind the input.
fn assert_in_readme(screen: &Screen, input: &str, readme: &str) {
    let transcript = readme.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let text = screen.text();
    let text = &text[text.find("\n? ").unwrap()..text.rfind("\n>").unwrap()];
    let text = Regex::new("call-[0-9a-f]+").unwrap().replace_all(text, "call-1");
    assert_eq!(format!("> {input}{text}\n"), transcript);
}

/// The transcript in the README of the extension is what the terminal shows.
#[test]
#[covers("ASK-01")]
fn the_transcript_is_what_is_shown() {
    let state = TempDir::new().unwrap();
    let screen = start(BUNDLE, state.path());
    asked(&screen);
    says(&screen, "y");
    screen.shows("\nThe money is on its way.\n>");
    assert_in_readme(&screen, "refund order 1183", include_str!("../../../../plugins/approval/README.md"));
    ends(screen);
}

/// A bundle with an extension, and a model with this script.
pub(crate) fn bundle(extension: &str, script: &Value) -> TempDir {
    let bundle = TempDir::new().unwrap();
    let text = format!(
        "\
apiVersion: goondan.ai/v1
kind: Model
metadata: {{ name: main }}
spec: {{ provider: scripted, script: ./script.json }}
---
apiVersion: goondan.ai/v1
kind: Extension
metadata: {{ name: {extension} }}
spec: {{ entry: \"linked:{extension}\" }}
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: {{ name: guide }}
spec: {{ model: Model/main, extensions: [ {{ ref: Extension/{extension} }} ] }}
---
apiVersion: goondan.ai/v1
kind: Swarm
metadata: {{ name: guide }}
spec: {{ agents: [ {{ ref: Agent/guide }} ], entryAgent: Agent/guide }}
"
    );
    fs::write(bundle.path().join("goondan.yaml"), text).unwrap();
    fs::write(bundle.path().join("script.json"), script.to_string()).unwrap();
    bundle
}

/// The model asks the person, who chooses, writes, and declines.
#[test]
#[covers("ASK-04")]
fn the_model_asks_the_person() {
    let how = "How do you like to get around?";
    let ask = |args: Value| json!({ "tool": "ask__person", "args": args });
    let script = json!([
        { "when": "Lisbon", "call": ask(json!({ "question": how, "options": ["on foot", "by tram"] })) },
        { "when": "tram", "say": "By tram it is: take the 28 in the morning." },
        { "when": "porto", "call": ask(json!({ "question": how, "options": ["on foot", "by bike"], "several": true })) },
        { "when": "bike", "call": ask(json!({ "question": "For how long?" })) },
        { "when": "two days", "say": "Two days it is." },
        { "when": "braga", "call": ask(json!({ "question": "When?" })) },
        { "when": "E_TOOL_REJECTED", "say": "Then not." },
    ]);
    let (bundle, state) = (bundle("ask", &script), TempDir::new().unwrap());
    let screen = start(bundle.path(), state.path());
    screen.contains("Ctrl-D leaves");
    says(&screen, "plan a day in Lisbon");
    screen.shows("a number or its text  /no, or say why not  [e]dit  (Ctrl-C: later)\n>");
    says(&screen, "3");
    screen.shows("> 3\n`3` is none of the answers\n>");
    says(&screen, "2");
    screen.shows("\nBy tram it is: take the 28 in the morning.\n>");

    says(&screen, "and in porto");
    screen.shows("numbers, such as 1 3, or 0 for none  /no, or say why not  [e]dit  (Ctrl-C: later)\n>");
    says(&screen, "2 1");
    screen.shows("  ask asks: For how long?\n  a text  /no and why not  /edit  (Ctrl-C: later)\n>");
    says(&screen, "two days");
    screen.shows("\nTwo days it is.\n>");
    says(&screen, "and braga");
    screen.shows("/edit  (Ctrl-C: later)\n>");
    says(&screen, "/no I will stay home");
    screen.shows("\nThen not.\n>");
    ends(screen);

    let screen = start(bundle.path(), TempDir::new().unwrap().path());
    screen.contains("Ctrl-D leaves");
    says(&screen, "plan a day in Lisbon");
    screen.shows("(Ctrl-C: later)\n>");
    says(&screen, "2");
    screen.shows("\nBy tram it is: take the 28 in the morning.\n>");
    assert_in_readme(&screen, "plan a day in Lisbon", include_str!("../../../../plugins/ask/README.md"));
    ends(screen);
}

/// A page to open is shown with its host. A secret is shown as stars, and is on no screen and in no file.
#[test]
#[covers("ASK-04")]
fn a_secret_is_typed_unseen() {
    const CODE: &str = "open-sesame-4711";
    const PIN: &str = "12345678-91011";
    let script = json!([{ "call": { "tool": "locked__open", "args": {} } }, { "say": "It is open.", "repeat": true }]);
    let (bundle, state) = (bundle("locked", &script), TempDir::new().unwrap());
    let screen = start(bundle.path(), state.path());
    screen.contains("Ctrl-D leaves");
    says(&screen, "open it");
    screen.shows(
        "  locked asks: Sign in.\n  https://example.org@evil.example/?a=b\n  at evil.example\n  \
         [y]es, when it is done  [n]o, or say why not  [e]dit  (Ctrl-C: later)\n>",
    );
    says(&screen, "y");
    screen.shows(
        "locked asks: Which code does it show?\n  \
         a text, which is not shown  /no and why not  /edit  (Ctrl-C: later)\n>",
    );
    screen.send(CODE);
    screen.shows(&format!("\n> {}", "*".repeat(CODE.len())));
    screen.send(ENTER);
    screen.shows("locked asks: Who are you?\n  [v]alue  [n]o, or say why not  [e]dit  (Ctrl-C: later)\n>");
    says(&screen, "v");
    screen.shows("  name: as on the card (a text)\n>");
    says(&screen, "Ada");
    screen.shows("  age (a number)\n>");
    says(&screen, "many");
    screen.shows("`many` is no number\n>");
    says(&screen, "36");
    screen.shows("  pin (a text, which is not shown; it may be left out)\n>");
    says(&screen, PIN);
    screen.shows(" the code is ****** agent=guide instance=default extension=locked\n>");
    screen.send(crate::screen::UP);
    screen.shows("\n> 36");
    screen.send(&crate::screen::BACKSPACE.repeat(2));
    screen.shows("extension=locked\n>");
    screen.send(CTRL_D);
    let raw = screen.raw_at_end();
    for text in [CODE, PIN] {
        assert!(!raw.contains(text), "{raw}");
        assert_in_no_file(state.path(), text);
    }
}

pub(crate) fn assert_in_no_file(directory: &Path, text: &str) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            assert_in_no_file(&path, text);
        } else if let Ok(content) = fs::read(&path) {
            let content = String::from_utf8_lossy(&content);
            assert!(!content.contains(text), "{}: {content}", path.display());
        }
    }
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
