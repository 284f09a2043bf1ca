//! ASK-01, ASK-02: calls that wait for a decision, on the command line.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Output, Stdio};

use goondan_covers::covers;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{self, checkout, piped, stderr, stdout};

fn goondan(state: &Path, arguments: &[&str]) -> Output {
    let mut command = support::goondan();
    command.current_dir(checkout()).args(arguments).arg("--state-root").arg(state).stdin(Stdio::null());
    command.env("USER", "ada").output().unwrap()
}

const RUN: [&str; 5] = ["run", "examples/approval", "--trust", "--input", "refund order 1183"];

/// Returns a state root with a conversation that waits, and the id of its call.
fn waiting() -> (TempDir, String) {
    let state = TempDir::new().unwrap();
    let output = goondan(state.path(), &RUN);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let listed = goondan(state.path(), &["instance", "decide", "clerk:default", "--json"]);
    let waits: Value = serde_json::from_str(stdout(&listed)).unwrap();
    let call = waits[0]["call"].as_str().unwrap().to_owned();
    (state, call)
}

fn decide(state: &Path, arguments: &[&str]) -> Output {
    let decide = ["instance", "decide", "clerk:default", "--bundle", "examples/approval", "--trust"];
    goondan(state, &[&decide, arguments].concat())
}

#[test]
#[covers("ASK-01")]
fn a_run_without_a_terminal_ends_with_what_waits() {
    let state = TempDir::new().unwrap();
    let output = goondan(state.path(), &RUN);
    assert_eq!((output.status.code(), stdout(&output)), (Some(3), ""));
    let page = stderr(&output);
    let expected = "? bash__exec  echo 49.00 EUR are paid back";
    assert!(page.contains(expected) && page.contains("approval asks: Run bash__exec? It pays money."), "{page}");

    let again = goondan(state.path(), &[&RUN[..], &["--json"]].concat());
    assert_eq!(again.status.code(), Some(1), "another input is refused: {again:?}");
    assert!(stdout(&again).contains("E_INSTANCE_SUSPENDED"));
    let other = goondan(state.path(), &[&RUN[..], &["--json", "--instance", "other"]].concat());
    assert_eq!(other.status.code(), Some(3));
    let end: Value = serde_json::from_str(stdout(&other)).unwrap();
    assert_eq!((&end["finishReason"], &end["response"]), (&Value::from("suspended"), &Value::Null));
    assert_eq!(end["waits"][0]["args"]["command"], "echo 49.00 EUR are paid back");
}

#[test]
#[covers("ASK-01", "ASK-02")]
fn what_waits_is_listed_shown_and_decided() {
    let (state, call) = waiting();
    let list = goondan(state.path(), &["instance", "list", "--suspended"]);
    assert!(stdout(&list).contains("clerk:default  suspended") && stdout(&list).contains("? bash__exec"), "{list:?}");
    let json = goondan(state.path(), &["instance", "list", "--suspended", "--json"]);
    assert!(stdout(&json).contains(r#""tool":"bash__exec""#), "{json:?}");
    let show = goondan(state.path(), &["instance", "show", "clerk:default"]);
    assert!(stdout(&show).contains("waits for a decision") && stdout(&show).contains(&call), "{show:?}");

    let other = decide(state.path(), &["call-x"]);
    assert_eq!(other.status.code(), Some(1));
    assert!(stderr(&other).contains(&format!("does not wait; {call} do")), "{other:?}");
    let invalid = decide(state.path(), &[&call, "--value", "7"]);
    assert!(stderr(&invalid).contains("E_DECISION_INVALID"), "{invalid:?}");
    let unread = decide(state.path(), &[&call, "--args", "{"]);
    assert_eq!(unread.status.code(), Some(2), "{unread:?}");

    let decided = decide(state.path(), &[&call]);
    assert_eq!((decided.status.code(), stdout(&decided)), (Some(0), "The money is on its way.\n"), "{decided:?}");
    let show = goondan(state.path(), &["instance", "show", "clerk:default", "--json"]);
    assert!(stdout(&show).contains(r#""id":"ada""#), "who decided is stored: {show:?}");
    assert_eq!(decide(state.path(), &[&call]).status.code(), Some(1));
    let none = goondan(state.path(), &["instance", "list", "--suspended"]);
    assert_eq!(stdout(&none), "No conversation waits for a decision.\n");
    let none = goondan(state.path(), &["instance", "decide", "clerk:default"]);
    assert_eq!(stdout(&none), "No call waits for a decision.\n");
}

#[test]
#[covers("ASK-01", "ASK-03")]
fn a_call_is_rejected_edited_or_approved_for_good() {
    let (state, call) = waiting();
    let rejected = decide(state.path(), &[&call, "--reject", "not to her"]);
    assert_eq!(stdout(&rejected), "I will not do that.\n", "{rejected:?}");
    let show = goondan(state.path(), &["instance", "show", "clerk:default"]);
    assert!(stdout(&show).contains("E_TOOL_REJECTED: not to her"), "{show:?}");

    let (state, call) = waiting();
    let edited = decide(state.path(), &[&call, "--args", r#"{"command": "echo 10.00 EUR are paid back"}"#]);
    assert_eq!(stdout(&edited), "The money is on its way.\n", "{edited:?}");
    let show = goondan(state.path(), &["instance", "show", "clerk:default"]);
    assert!(stdout(&show).contains("10.00 EUR are paid back"), "{show:?}");

    let (state, call) = waiting();
    assert_eq!(decide(state.path(), &[&call, "--always", "--question", "approval"]).status.code(), Some(0));
    let next = goondan(state.path(), &RUN);
    assert_eq!((next.status.code(), stdout(&next)), (Some(0), "The money is on its way.\n"), "nobody is asked");
}

#[test]
#[covers("ASK-01")]
fn lines_behind_a_question_are_refused() {
    let state = TempDir::new().unwrap();
    let mut command = support::goondan();
    command.current_dir(checkout()).args(["run", "examples/approval", "--trust", "--state-root"]).arg(state.path());
    let mut child = piped(&mut command);
    child.stdin.take().unwrap().write_all(b"refund order 1183\nand order 1184\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stdout(&output)), (Some(1), ""));
    assert!(stderr(&output).contains("E_INSTANCE_SUSPENDED"), "{output:?}");
}

/// A disk that becomes full at any write of a turn that is suspended: it ends with an error or waits, and nothing has run.
/// With space again it waits, and runs once.
#[test]
#[covers("ASK-01", "ASK-02")]
fn a_full_disk_lets_nothing_run() {
    const BUNDLE: &str = "
apiVersion: goondan.ai/v1
kind: Extension
metadata: { name: bash }
spec: { entry: \"linked:bash\" }
---
apiVersion: goondan.ai/v1
kind: Extension
metadata: { name: approval }
spec: { entry: \"linked:approval\" }
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: { name: clerk }
spec: { model: Model/main, extensions: [ { ref: Extension/bash }, { ref: Extension/approval } ] }
---
apiVersion: goondan.ai/v1
kind: Swarm
metadata: { name: clerk }
spec: { agents: [ { ref: Agent/clerk } ], entryAgent: Agent/clerk }
";
    let bundle = TempDir::new().unwrap();
    let paid = bundle.path().join("paid");
    let long = "x".repeat(4_000);
    let command = format!("echo paid >> {} # {long}", paid.display());
    let script = json!([
        { "when": "pay", "call": { "tool": "bash__exec", "args": { "command": command } }, "repeat": true },
        { "say": "done", "repeat": true },
    ]);
    fs::write(bundle.path().join("goondan.yaml"), format!("{}{BUNDLE}", support::MODEL)).unwrap();
    fs::write(bundle.path().join("script.yaml"), script.to_string()).unwrap();
    let (mut failed, mut waited) = (0, 0);
    // In blocks of 512 bytes.
    for blocks in (1..48).step_by(3) {
        let state = TempDir::new().unwrap();
        let run = |limits: &str| {
            let command = format!("{limits} exec \"$0\" run \"$1\" --trust --input pay --state-root \"$2\"");
            let mut sh = std::process::Command::new("sh");
            let program = support::goondan();
            sh.args(["-c", &command]).arg(program.get_program()).args([bundle.path(), state.path()]);
            sh.stdin(Stdio::null()).output().unwrap()
        };
        let output = run(&format!("trap '' XFSZ; ulimit -f {blocks};"));
        assert!(!paid.exists(), "{blocks}: {output:?}");
        match output.status.code() {
            Some(3) => waited += 1,
            code => {
                failed += 1;
                assert_eq!(code, Some(1), "{blocks}: {output:?}");
                assert!(stderr(&output).contains("E_STORE_IO"), "{blocks}: {output:?}");
                assert_eq!(run("").status.code(), Some(3), "{blocks}");
            }
        }
        let bundle = bundle.path().to_str().unwrap();
        let decide =
            |arguments: &[&str]| goondan(state.path(), &[&["instance", "decide", "clerk:default"], arguments].concat());
        let listed = decide(&["--json"]);
        let waits: Value = serde_json::from_str(stdout(&listed)).unwrap();
        let decided = decide(&[waits[0]["call"].as_str().unwrap(), "--bundle", bundle, "--trust"]);
        assert_eq!(stdout(&decided), "done\n", "{blocks}: {decided:?}");
        assert_eq!(fs::read_to_string(&paid).unwrap(), "paid\n", "{blocks}");
        fs::remove_file(&paid).unwrap();
    }
    assert!(failed > 2 && waited > 2, "{failed} failed, {waited} waited");
}

/// A program decides by lines of its input.
#[test]
#[covers("ASK-04", "ASK-01")]
fn a_line_decides() {
    let state = TempDir::new().unwrap();
    let mut command = support::goondan();
    command.current_dir(checkout()).args(["run", "examples/approval", "--trust", "--json", "--state-root"]);
    let mut child = piped(command.arg(state.path()));
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut input = child.stdin.take().unwrap();
    let mut next = |line: Value| -> Value {
        writeln!(input, "{}", line.as_str().map_or_else(|| line.to_string(), str::to_owned)).unwrap();
        serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap()
    };
    let end = next(json!("refund order 1183"));
    let call = &end["waits"][0]["call"];
    let end = next(json!({ "decide": { "call": "another" } }));
    assert_eq!(end["error"]["code"], "E_NOT_WAITING");
    let end = next(json!({ "decide": { "call": call, "reject": "not to her" } }));
    assert_eq!(end["response"], "I will not do that.");
    let end = next(json!("refund order 1183"));
    let call = &end["waits"][0]["call"];
    let args = json!({ "command": "echo 10.00 EUR are paid back" });
    let end = next(json!({ "decide": { "call": call, "value": { "always": true }, "args": args } }));
    assert_eq!(end["response"], "The money is on its way.");
    writeln!(input, r#"{{"decide": {{"cal": 7}}}}"#).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("line 6 of standard input is no decision"), "{output:?}");
    let show = goondan(state.path(), &["instance", "show", "clerk:default"]);
    assert!(stdout(&show).contains("10.00 EUR are paid back"), "{show:?}");
}

/// A bundle whose model asks the person, with this config of `ask` and this script.
fn guide(config: &str, script: &Value) -> TempDir {
    let bundle = TempDir::new().unwrap();
    let text = format!(
        "{}
apiVersion: goondan.ai/v1
kind: Extension
metadata: {{ name: ask }}
spec: {{ entry: \"linked:ask\", config: {config} }}
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: {{ name: guide }}
spec: {{ model: Model/main, extensions: [ {{ ref: Extension/ask }} ] }}
---
apiVersion: goondan.ai/v1
kind: Swarm
metadata: {{ name: guide }}
spec: {{ agents: [ {{ ref: Agent/guide }} ], entryAgent: Agent/guide }}
",
        support::MODEL
    );
    fs::write(bundle.path().join("goondan.yaml"), text).unwrap();
    fs::write(bundle.path().join("script.yaml"), script.to_string()).unwrap();
    bundle
}

/// Which tools ask is said before they run.
#[test]
#[covers("ASK-04")]
fn tools_that_ask_are_listed() {
    let list = support::printed(support::goondan().args(["plugin", "list"]));
    let line = list.lines().find(|line| line.contains("ask__person")).unwrap();
    assert!(line.ends_with("(asks a person)"), "{line}");
    let bundle = guide("{}", &json!([{ "say": "hi" }]));
    let check = support::printed(support::goondan().args(["check", "--capabilities"]).arg(bundle.path()));
    assert!(check.contains("tools that ask a person:\n  ask__person  (extension ask of the agent guide)\n"), "{check}");
}

/// An answer is given in words.
#[test]
#[covers("ASK-04")]
fn an_answer_is_given_in_words() {
    let (state, call) = waiting();
    let other = decide(state.path(), &[&call, "--answer", "/help"]);
    assert_eq!(other.status.code(), Some(2), "{other:?}");
    assert!(stderr(&other).contains("none that the question takes"), "{other:?}");
    let yes =
        decide(state.path(), &[&call, "--answer", "y", "--args", r#"{"command": "echo 10.00 EUR are paid back"}"#]);
    assert_eq!(stdout(&yes), "The money is on its way.\n", "{yes:?}");

    let (state, call) = waiting();
    let mut command = support::goondan();
    command.current_dir(checkout()).args(["instance", "decide", "clerk:default", &call, "--answer", "-", "--trust"]);
    let mut child = piped(command.args(["--bundle", "examples/approval", "--state-root"]).arg(state.path()));
    child.stdin.take().unwrap().write_all(b"not to her\n").unwrap();
    let no = child.wait_with_output().unwrap();
    assert_eq!(stdout(&no), "I will not do that.\n", "{no:?}");
    let show = goondan(state.path(), &["instance", "show", "clerk:default"]);
    assert!(stdout(&show).contains("E_TOOL_REJECTED: not to her"), "{show:?}");
}

/// Without a person, the question or the command line has the decision.
#[test]
#[covers("ASK-04")]
fn nobody_is_asked_in_a_pipe() {
    let state = TempDir::new().unwrap();
    let rejected = goondan(state.path(), &[&RUN[..], &["--unanswered", "reject"]].concat());
    assert_eq!((rejected.status.code(), stdout(&rejected)), (Some(0), "I will not do that.\n"), "{rejected:?}");
    let show = goondan(state.path(), &["instance", "show", "clerk:default"]);
    assert!(stdout(&show).contains("E_TOOL_REJECTED: there is no person to ask"), "{show:?}");
    let suspended = goondan(state.path(), &[&RUN[..], &["--unanswered", "suspend"]].concat());
    assert_eq!(suspended.status.code(), Some(3), "{suspended:?}");
    let rejected =
        goondan(state.path(), &[&RUN[..], &["--json", "--unanswered", "reject", "--instance", "b"]].concat());
    assert!(stdout(&rejected).contains(r#""response":"I will not do that.""#), "{rejected:?}");

    let call = json!({ "tool": "ask__person", "args": { "question": "a?" } });
    let script = json!([{ "when": "^go$", "call": call, "repeat": true }, { "say": "I go on.", "repeat": true }]);
    let bundle = guide("{ unanswered: reject }", &script);
    let run = goondan(state.path(), &["run", bundle.path().to_str().unwrap(), "--trust", "--input", "go"]);
    assert_eq!((run.status.code(), stdout(&run)), (Some(0), "I go on.\n"), "{run:?}");
    let run = goondan(
        state.path(),
        &["run", bundle.path().to_str().unwrap(), "--trust", "--input", "go", "--json", "--instance", "b"],
    );
    assert_eq!(run.status.code(), Some(3), "a program decides itself: {run:?}");
}
