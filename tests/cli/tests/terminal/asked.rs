//! ASK-04: questions of each kind on the terminal, asked within a call or while the turn waits.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::{fmt, fs};

use goondan::{Value, json};
use goondan_covers::covers;
use regex::Regex;
use tempfile::TempDir;

use crate::decided::{assert_in_no_file, bundle, ends, says, start, start_at};
use crate::goldens::same;
use crate::screen::{CTRL_D, ESC};
use crate::support::PROGRAM;

const SECRET: &str = "open-sesame-4711";

/// The lines that are typed at each kind of question, each behind a text that the screen has before that.
const ANSWERS: [(&str, &[(&str, &str)]); 8] = [
    ("confirm", &[("Shall the parcel go today?", "y")]),
    ("choose", &[("by a friend who", "9"), ("`9` is none of the answers", "2")]),
    ("several", &[("Wednesday", "1 3")]),
    ("text", &[("is written on the", "With love")]),
    ("secret", &[("code opens the", SECRET)]),
    ("address", &[("at shop.example.org", "y")]),
    (
        "form",
        &[("Where to?", "v"), ("City (", "Lisbon"), ("Floor (", ""), ("lift? (", "no"), ("Code of the door (", SECRET)],
    ),
    ("nested", &[("Which card?", "v"), ("JSON that fits", "{\"card\": {\"pin\": \"open-sesame-4711\"}}")]),
];

fn calls(tool: &str, kinds: &[&str]) -> Value {
    let call = |kind: &&str| json!({ "call": { "tool": tool, "args": { "kind": kind } } });
    kinds.iter().map(call).chain([json!({ "say": "All is asked." })]).collect()
}

/// Returns the text from the last `from` on.
fn last<'t>(text: &'t str, from: &str) -> &'t str {
    text.rfind(from).map_or("", |start| text[start..].trim_end())
}

#[test]
#[covers("ASK-04")]
fn each_kind_of_question_looks_like_this() {
    let kinds: Vec<_> = ANSWERS.iter().map(|(kind, _)| *kind).collect();
    let call = Regex::new("call-[0-9a-f]{16}").unwrap();
    for columns in [40, 100] {
        let mut shown = String::new();
        for tool in ["live__ask", "live__wait"] {
            let (bundle, state) = (bundle("live", &calls(tool, &kinds)), TempDir::new().unwrap());
            let screen = start_at(columns, bundle.path(), state.path());
            screen.contains("Ctrl-D");
            let mut typed = "ask me";
            says(&screen, typed);
            for (kind, lines) in ANSWERS {
                for (expected, answer) in lines {
                    // The line that was typed is the last one until the whole of the next question is drawn.
                    let is_drawn = |text: &str| is_asking(text) && !text.ends_with(&format!(" {typed}"));
                    screen
                        .until(|text| is_drawn(text) && last(text, &format!("? {tool}")).contains(expected), expected);
                    let text = screen.text();
                    let page = last(&text, &format!("? {tool}"));
                    shown.push_str(&format!("== {tool} {kind}\n{page}\n\n"));
                    typed = answer;
                    says(&screen, typed);
                }
            }
            screen.until(|text| text.contains("All is asked.") && text.ends_with('>'), "the end");
            shown.push_str(&format!("== {tool}, the end\n{}\n\n", last(&screen.text(), &format!("✓ {tool}"))));
            screen.send(CTRL_D);
            let raw = screen.raw_at_end();
            assert!(!raw.contains(SECRET), "{raw}");
            assert_in_no_file(state.path(), SECRET);
        }
        let shown = call.replace_all(&shown, "call-1");
        let path = format!("tests/terminal/screens/questions-{columns}.txt");
        same(&Path::new(env!("CARGO_MANIFEST_DIR")).join(path), &shown);
    }
}

/// Whether the screen waits for an answer: the last line is no longer the one for inputs to the running turn.
fn is_asking(text: &str) -> bool {
    let is_prompt = |line: &str| line.starts_with(['?', '>']) && !line.starts_with("> Enter steers");
    text.lines().next_back().is_some_and(is_prompt)
}

/// The line that was being typed is there again when the question is answered, and a question that expires is gone.
#[test]
#[covers("ASK-04", "STEER-01")]
fn a_question_that_comes_while_something_is_typed_leaves_it() {
    let (bundle, state) =
        (bundle("live", &calls("live__ask", &["expires", "confirm", "confirm"])), TempDir::new().unwrap());
    let screen = start(bundle.path(), state.path());
    screen.contains("Ctrl-D leaves");
    says(&screen, "ask me");
    screen.contains("the question does not wait any more");
    screen.contains("Shall the parcel go today?");
    screen.send("not ");
    says(&screen, "on a Sunday");
    screen.contains("? not on a Sunday");
    screen.until(|text| text.matches("Shall the parcel go").count() == 2, "the next question");
    screen.send(ESC);
    screen.shows("cancelled\n>");
    ends(screen);
}

/// A bundle whose `boss` asks `worker`, whose tool asks the person.
fn boss_and_worker() -> TempDir {
    let worker = json!([
        { "call": { "tool": "ask__person", "args": { "question": "Which colour?" } } },
        { "say": "It is painted." },
    ]);
    let boss = json!([
        { "call": { "tool": "agents__request", "args": { "target": "worker", "input": "paint it" } } },
        { "say": "All is done." },
    ]);
    let bundle = bundle("ask", &worker);
    let path = bundle.path().join("goondan.yaml");
    let text = fs::read_to_string(&path).unwrap().replace("agents: [ {", "agents: [ { ref: Agent/boss }, {");
    let text = text.replace("entryAgent: Agent/guide", "entryAgent: Agent/boss").replace("guide", "worker");
    let boss_of = "---
apiVersion: goondan.ai/v1
kind: Model
metadata: { name: boss }
spec: { provider: scripted, script: ./boss.json }
---
apiVersion: goondan.ai/v1
kind: Extension
metadata: { name: agents }
spec: { entry: \"linked:agents\" }
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: { name: boss }
spec: { model: Model/boss, extensions: [ { ref: Extension/agents } ] }
";
    fs::write(path, text + boss_of).unwrap();
    fs::write(bundle.path().join("boss.json"), boss.to_string()).unwrap();
    bundle
}

/// The question of an agent that was asked is decided where its caller runs.
#[test]
#[covers("ASK-04")]
fn the_question_of_an_agent_that_was_asked_names_the_agents() {
    let (bundle, state) = (boss_and_worker(), TempDir::new().unwrap());
    let screen = start(bundle.path(), state.path());
    screen.contains("Ctrl-D leaves");
    says(&screen, "paint the door");
    screen.contains("boss → worker");
    screen.until(is_asking, "a question");
    assert!(screen.text().contains("Which colour?"), "{}", screen.text());
    screen.contains("\n  worker: waits for a decision ");
    says(&screen, "green");
    screen.shows("\nAll is done.\n>");
    ends(screen);
}

/// A program that talks to `goondan run --json`.
struct Program {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Program {
    fn start(bundle: &Path, state: &Path, options: &[&str]) -> Self {
        let mut command = Command::new(PROGRAM);
        command.args(["run", "--trust", "--json"]).args(options).arg("--state-root").arg(state).arg(bundle);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, stdin, stdout }
    }

    fn says(&mut self, line: impl fmt::Display) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Returns the next line that has this member.
    fn line_with(&mut self, member: &str) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.stdout.read_line(&mut line).unwrap() > 0, "no line with `{member}`");
            let line: Value = serde_json::from_str(&line).unwrap();
            if line.get("type").is_some() {
                let schema = include_str!("../../../../docs/run-stream.schema.json");
                let schema = jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap();
                assert!(schema.is_valid(&line), "{line}");
            }
            if line.get(member).is_some() {
                return line;
            }
        }
    }

    /// Closes the input, and returns the exit status and standard error.
    fn end(mut self) -> (Option<i32>, String) {
        self.stdin = None;
        let output = self.child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// Answers of a program come while the turn runs; other lines wait for its end.
#[test]
#[covers("ASK-04")]
fn a_program_answers_by_lines() {
    let script = json!([
        { "call": { "tool": "live__ask", "args": { "kind": "choose" } } },
        { "call": { "tool": "live__ask", "args": { "kind": "secret" } } },
        { "say": "one" },
        { "say": "two" },
    ]);
    let (bundle, state) = (bundle("live", &script), TempDir::new().unwrap());
    for options in [&[][..], &["--stream"]] {
        let mut program = Program::start(bundle.path(), TempDir::new().unwrap().path(), options);
        program.says("go");
        let asked = program.line_with("questions");
        assert_eq!((&asked["type"], &asked["tool"]), (&json!("asked"), &json!("live__ask")));
        assert_eq!((&asked["agents"], &asked["instance"]), (&json!(["guide"]), &json!("default")));
        let decide = |value: &str| json!({ "decide": { "id": asked["id"], "call": asked["call"], "value": value } });
        program.says("and then?");
        program.says(decide("by hand"));
        program.says(decide("Express"));
        assert_eq!(program.line_with("id"), json!({ "type": "gone", "id": asked["id"] }));
        let asked_next = program.line_with("questions");
        program.says(decide("Post"));
        program.says(json!({ "decide": { "call": asked_next["call"], "value": SECRET } }));
        assert_eq!(program.line_with("finishReason")["response"], "one");
        assert_eq!(program.line_with("finishReason")["response"], "two");
        let (status, errors) = program.end();
        assert_eq!(status, Some(1), "{errors}");
        let codes: Vec<_> = errors.lines().filter_map(|line| line.strip_prefix("error: ")?.split(':').next()).collect();
        assert_eq!(codes, ["E_DECISION_INVALID", "E_NOT_WAITING"], "{errors}");
        assert!(!errors.contains(SECRET), "{errors}");
        assert_in_no_file(state.path(), SECRET);
    }
}

/// Without anybody who can answer, the question has its default at once.
#[test]
#[covers("ASK-04")]
fn a_closed_input_answers_nothing() {
    let (bundle, state) = (bundle("live", &calls("live__ask", &["confirm"])), TempDir::new().unwrap());
    let mut program = Program::start(bundle.path(), state.path(), &[]);
    program.says("go");
    program.line_with("questions");
    program.stdin = None;
    assert_eq!(program.line_with("finishReason")["response"], "All is asked.");
    assert_eq!(program.end().0, Some(0));
    for options in [&["--input", "go"][..], &["--input", "go", "--unanswered", "reject"]] {
        let mut program = Program::start(bundle.path(), TempDir::new().unwrap().path(), options);
        assert_eq!(program.line_with("finishReason")["response"], "All is asked.");
        assert_eq!(program.end().0, Some(0));
    }
}

/// Killed while a question is open, the call runs and asks again.
#[test]
#[covers("ASK-04", "RESUME-01")]
fn a_killed_process_asks_again() {
    let script = json!([
        { "when": "ask me", "call": { "tool": "live__ask", "args": { "kind": "secret" } } },
        { "when": "characters", "say": "All is asked." },
    ]);
    let (bundle, state) = (bundle("live", &script), TempDir::new().unwrap());
    for kind in ["shown", "typed"] {
        let mut screen = start(bundle.path(), state.path());
        screen.contains("Ctrl-D leaves");
        says(&screen, if kind == "shown" { "ask me" } else { "/continue" });
        screen.contains("Which code opens the door?");
        if kind == "typed" {
            screen.send(SECRET);
            screen.shows(&format!("\n? {}", "*".repeat(SECRET.len())));
        }
        screen.child.kill().unwrap();
        screen.child.wait().unwrap();
    }
    let screen = start(bundle.path(), state.path());
    screen.contains("Ctrl-D leaves");
    says(&screen, "/continue");
    screen.contains("Which code opens the door?");
    says(&screen, SECRET);
    screen.shows("\nAll is asked.\n>");
    assert_in_no_file(state.path(), SECRET);
    ends(screen);
}
