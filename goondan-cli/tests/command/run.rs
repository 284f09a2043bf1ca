//! `goondan run` with real processes, files and signals.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use goondan_covers::covers;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{RECORDED_MODEL, checkout, goondan, piped, printed, stderr, stdout};

/// A bundle and a state root in a temporary directory.
struct Fixture {
    root: TempDir,
}

const SCRIPT: &str = "- { say: fine, repeat: true }\n";

impl Fixture {
    /// Creates a bundle whose agent has a window of `max_messages` and whose model plays `script`.
    fn new(script: &str, max_messages: u32) -> Self {
        let fixture = Self { root: TempDir::new().unwrap() };
        fs::create_dir(fixture.bundle()).unwrap();
        let bundle = format!(
            r#"{RECORDED_MODEL}apiVersion: goondan.ai/v1
kind: Extension
metadata: {{ name: message-window }}
spec: {{ entry: "linked:message-window", config: {{ maxMessages: {max_messages} }} }}
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: {{ name: main }}
spec: {{ model: Model/main, extensions: [ {{ ref: Extension/message-window }} ] }}
---
apiVersion: goondan.ai/v1
kind: Swarm
metadata: {{ name: test-swarm }}
spec: {{ agents: [ {{ ref: Agent/main }} ], entryAgent: Agent/main }}
"#
        );
        fs::write(fixture.bundle().join("goondan.yaml"), bundle).unwrap();
        fs::write(fixture.bundle().join("script.yaml"), script).unwrap();
        fixture
    }

    fn bundle(&self) -> PathBuf {
        self.root.path().join("bundle")
    }

    fn state(&self) -> PathBuf {
        self.root.path().join("state")
    }

    fn record(&self) -> PathBuf {
        self.bundle().join("requests.jsonl")
    }

    fn instance(&self, directory: &str) -> PathBuf {
        self.state().join("workspaces/test-swarm/instances").join(directory)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = goondan();
        command.arg("run").arg(self.bundle()).arg("--state-root").arg(self.state()).args(arguments);
        command.stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs with `lines` on standard input.
    fn pipe(&self, arguments: &[&str], lines: &[u8]) -> Output {
        let mut child = piped(&mut self.command(arguments));
        child.stdin.take().unwrap().write_all(lines).unwrap();
        child.wait_with_output().unwrap()
    }

    /// Returns the stored conversation as `goondan instance show` prints it.
    fn show(&self) -> String {
        let arguments = ["instance", "show", "main:default", "--state-root"];
        printed(goondan().args(arguments).arg(self.state()))
    }

    /// Returns the requests to the model.
    fn requests(&self) -> Vec<Value> {
        json_lines(&self.record())
    }
}

fn json_lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn texts(request: &Value) -> Vec<&str> {
    let messages = request["messages"].as_array().unwrap();
    messages.iter().map(|message| message["content"].as_str().unwrap()).collect()
}

#[test]
fn the_next_run_continues_the_conversation() {
    let fixture = Fixture::new(SCRIPT, 40);
    let first = fixture.run(&["--instance", "user:1", "--input", "one"]);
    assert_eq!((first.status.code(), stdout(&first)), (Some(0), "fine\n"), "{}", stderr(&first));
    let second = fixture.run(&["--instance", "user:1", "--input", "two"]);
    assert_eq!(second.status.code(), Some(0));
    let other = fixture.run(&["--instance", "user:2", "--input", "three"]);
    assert_eq!(other.status.code(), Some(0));
    let requests = fixture.requests();
    assert_eq!(texts(&requests[0]), ["one"]);
    assert_eq!(texts(&requests[1]), ["one", "fine", "two"]);
    assert_eq!(texts(&requests[2]), ["three"], "another instance does not share the history");
    assert!(fixture.instance("main:user:1").join("messages/base.jsonl").is_file());
}

#[test]
#[covers("PATTERN-WINDOW-01", "PATTERN-WINDOW-02", "PATTERN-WINDOW-03", "POLICY-01", "POLICY-02")]
fn over_fifty_events_the_window_keeps_at_most_five_messages_and_the_input_is_the_newest() {
    let fixture = Fixture::new(SCRIPT, 5);
    let lines: String = (0..50).map(|number| format!("event {number}\n")).collect();
    let output = fixture.pipe(&[], lines.as_bytes());
    assert_eq!((output.status.code(), stdout(&output)), (Some(0), "fine\n".repeat(50).as_str()));
    let requests = fixture.requests();
    assert_eq!(requests.len(), 50);
    for (number, request) in requests.iter().enumerate() {
        let texts = texts(request);
        // A window that is full keeps half of its messages, so that not each request begins anew.
        assert!(texts.len() <= 5 && texts.len() >= 3.min(2 * number + 1), "{texts:?}");
        assert_eq!(texts.last().unwrap(), &format!("event {number}"));
    }
    assert!(json_lines(&fixture.instance("main:default").join("messages/base.jsonl")).len() <= 6);
}

#[test]
#[covers("POLICY-03", "POLICY-05")]
fn without_a_policy_the_history_grows() {
    let fixture = Fixture::new(SCRIPT, 5);
    let bundle = fs::read_to_string(fixture.bundle().join("goondan.yaml")).unwrap();
    let bundle = bundle.replace(", extensions: [ { ref: Extension/message-window } ]", "");
    fs::write(fixture.bundle().join("goondan.yaml"), bundle).unwrap();
    let lines: String = (0..30).map(|number| format!("event {number}\n")).collect();
    assert!(fixture.pipe(&[], lines.as_bytes()).status.success());
    let sizes: Vec<_> = fixture.requests().iter().map(|request| texts(request).len()).collect();
    assert_eq!(sizes, (0..30).map(|number| 2 * number + 1).collect::<Vec<_>>());
}

#[test]
fn kill_9_during_a_turn_loses_no_committed_turn_and_the_instance_opens() {
    let fixture = Fixture::new(SCRIPT, 40);
    for text in ["one", "two"] {
        assert!(fixture.run(&["--input", text]).status.success());
    }
    // The third turn writes its request to a pipe that is not read, so it blocks in the model call. The bundle is
    // checked before, which refuses a pipe: the input is more than its pipe holds, so it is being read when it is
    // written, and its line ends with it.
    fs::remove_file(fixture.record()).unwrap();
    let long = "three ".repeat(50_000);
    let mut child = fixture.command(&["--json"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(long.as_bytes()).unwrap();
    assert!(Command::new("mkfifo").arg(fixture.record()).status().unwrap().success());
    drop(input);
    let reader = File::open(fixture.record()).unwrap();
    child.kill().unwrap();
    let killed = child.wait_with_output().unwrap();
    assert_eq!((killed.status.code(), stdout(&killed)), (None, ""), "the turn was not answered");
    drop(reader);
    fs::remove_file(fixture.record()).unwrap();

    let output = fixture.run(&["--input", "four"]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(0), "fine\n"), "{}", stderr(&output));
    assert_eq!(texts(&fixture.requests()[0]), ["one", "fine", "two", "fine", long.trim_end_matches('\n'), "four"]);
    let base = json_lines(&fixture.instance("main:default").join("messages/base.jsonl"));
    let ids: BTreeSet<_> = base.iter().map(|message| message["id"].as_str().unwrap()).collect();
    assert_eq!((base.len(), ids.len()), (7, 7), "every message is stored once");
    let events = fs::read_to_string(fixture.instance("main:default").join("messages/events.jsonl")).unwrap();
    assert!(events.lines().last().unwrap().starts_with("{\"fold"), "no turn is open: {events}");
}

#[test]
fn different_instance_keys_never_share_a_directory_and_nothing_leaves_the_state_root() {
    let fixture = Fixture::new(SCRIPT, 40);
    let before = files_below(fixture.root.path());
    let keys = ["a/b", "a-b", "a%2Fb", "..", "../x", "A/b", "user:1"];
    for key in keys {
        let output = fixture.run(&["--instance", key, "--input", key]);
        assert!(output.status.success(), "{key}: {}", stderr(&output));
    }
    let instances: BTreeSet<_> =
        fs::read_dir(fixture.instance("")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(instances.len(), keys.len(), "{instances:?}");
    for request in fixture.requests() {
        assert_eq!(texts(&request).len(), 1, "no conversation was shared");
    }
    let outside: Vec<_> = files_below(fixture.root.path())
        .into_iter()
        .filter(|file| !before.contains(file) && !file.starts_with(fixture.state()) && *file != fixture.record())
        .collect();
    assert_eq!(outside, [] as [PathBuf; 0]);
}

fn files_below(fixture: &Path) -> BTreeSet<PathBuf> {
    let mut files = BTreeSet::new();
    for entry in fs::read_dir(fixture).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.append(&mut files_below(&path));
        } else {
            files.insert(path);
        }
    }
    files
}

#[test]
fn the_page_for_operators_lists_the_files_of_an_instance() {
    let fixture = Fixture::new(SCRIPT, 40);
    assert!(fixture.run(&["--input", "one"]).status.success());
    let instance = fixture.instance("main:default");
    let files = files_below(&instance);
    let files: BTreeSet<_> = files.iter().map(|file| file.strip_prefix(&instance).unwrap().to_str().unwrap()).collect();
    let page = fs::read_to_string(checkout().join("docs/operating.md")).unwrap();
    let table = page.split("<!-- files -->").nth(1).unwrap().split("<!-- end -->").next().unwrap();
    let listed = table.lines().filter_map(|row| row.strip_prefix("| `")?.split('`').next());
    assert_eq!(listed.collect::<BTreeSet<_>>(), files);
}

#[test]
fn json_contains_everything_about_a_turn() {
    let script = "- { call: { tool: no__tool, args: { a: 1 } }, when: call }\n- { say: called, when: E_TOOL }\n\
                  - { fail: { message: overloaded }, when: fail }\n";
    let fixture = Fixture::new(script, 40);
    let output = fixture.pipe(&["--json"], b"call\n\n  \nfail\n");
    assert_eq!(output.status.code(), Some(1), "one turn failed");
    let lines: Vec<Value> = stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2, "blank lines are not events");
    let [done, failed] = &lines[..] else { panic!("two lines") };
    assert!(done["turnId"].as_str().unwrap().starts_with("turn-"));
    assert_eq!(done["finishReason"], "text_response");
    assert_eq!((&done["response"], &done["steps"], &done["error"]), (&json!("called"), &json!(2), &Value::Null));
    let calls = done["toolCalls"].as_array().unwrap();
    assert_eq!((calls.len(), &calls[0]["name"], &calls[0]["status"]), (1, &json!("no__tool"), &json!("error")));
    assert_eq!((&failed["finishReason"], &failed["response"]), (&json!("error"), &Value::Null));
    assert_eq!((&failed["error"]["code"], &failed["error"]["message"]), (&json!("E_MODEL"), &json!("overloaded")));
    assert!(failed["turnId"].as_str().unwrap().starts_with("turn-"));
    assert!(stderr(&output).contains("E_MODEL: overloaded"), "{}", stderr(&output));
}

#[test]
#[covers("VALUE-01")]
fn json_has_the_value_that_the_bundle_expects() {
    let script = "- { say: warm, when: Lisbon }\n- { say: '{\"degrees\":21}', when: could not be used }\n\
                  - { say: cold, when: Oslo }\n- { say: colder, repeat: true }\n";
    let fixture = Fixture::new(script, 40);
    let file = fixture.bundle().join("goondan.yaml");
    let schema = "{ type: object, properties: { degrees: { type: integer } }, required: [degrees] }";
    let answer = format!("answer: {{ schema: {schema}, atMost: 1 }}, model:");
    fs::write(&file, fs::read_to_string(&file).unwrap().replace("spec: { model:", &format!("spec: {{ {answer}")))
        .unwrap();
    let output = fixture.pipe(&["--json"], b"Lisbon\nOslo\n");
    assert_eq!(output.status.code(), Some(1), "one turn failed");
    let lines: Vec<Value> = stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["value"], &lines[0]["steps"]), (&json!({ "degrees": 21 }), &json!(2)));
    assert_eq!(lines[0]["response"], "{\"degrees\":21}");
    assert_eq!((&lines[1]["error"]["code"], lines[1].get("value")), (&json!("E_ANSWER_SCHEMA"), None));
    let text = fixture.run(&["--input", "Lisbon"]);
    assert_eq!(stdout(&text), "{\"degrees\":21}\n", "{}", stderr(&text));
}

#[test]
#[covers("CUT-01")]
fn an_answer_that_was_cut_off_is_told_as_cut() {
    let script = "- { raw: { text: Once upon, finishReason: length }, when: tell }\n\
                  - { raw: { finishReason: length }, reasoning: hm, when: think }\n\
                  - { raw: {}, when: nothing }\n- { raw: {}, when: could not be used }\n\
                  - { raw: {}, when: could not be used }\n";
    let fixture = Fixture::new(script, 40);
    let output = fixture.run(&["--input", "tell"]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(0), "Once upon\n"));
    assert!(stderr(&output).contains("cut off") && stderr(&output).contains("maxOutputTokens"), "{}", stderr(&output));

    let output = fixture.pipe(&["--json"], b"tell\nthink\nnothing\n");
    assert_eq!(output.status.code(), Some(1));
    let lines: Vec<Value> = stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [cut, thought, nothing] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!((&cut["finishReason"], &cut["response"]), (&json!("length"), &json!("Once upon")));
    for (failed, code) in [(thought, "E_MODEL_LENGTH"), (nothing, "E_MODEL_UNUSABLE")] {
        assert_eq!((&failed["error"]["code"], &failed["response"]), (&json!(code), &Value::Null), "{failed}");
    }

    let page = fixture.show();
    assert_eq!(page.matches(", cut off at the limit of tokens)").count(), 2, "{page}");
    assert!(page.contains("failed: E_MODEL_UNUSABLE") && !page.contains("gave no usable answer.\n"), "{page}");
}

#[test]
fn a_line_that_is_not_utf_8_is_reported_and_the_others_are_handled() {
    let fixture = Fixture::new(SCRIPT, 40);
    let output = fixture.pipe(&[], b"one\n\xff\xfe\nthree\r\nlast line without end");
    assert_eq!((output.status.code(), stdout(&output)), (Some(1), "fine\nfine\nfine\n"));
    assert!(stderr(&output).contains("line 2 of standard input is not UTF-8"), "{}", stderr(&output));
    assert_eq!(texts(&fixture.requests()[2])[2..], ["three", "fine", "last line without end"]);
}

#[test]
fn wrong_bundles_exit_with_2_and_name_the_position() {
    let fixture = Fixture::new(SCRIPT, 40);
    let manifest = fixture.bundle().join("goondan.yaml");
    let good = fs::read_to_string(&manifest).unwrap();
    for (from, to, expected) in [
        ("provider: scripted", "provider: scripted, provder: x", "goondan.yaml:4:"),
        ("linked:message-window", "linked:message-windw", "E_EXT_LOAD"),
        ("maxMessages: 40", "maxMessages: 0", "E_EXT_CONFIG"),
        ("maxMessages: 40", "maxMessages: many", "E_EXT_CONFIG"),
        ("./script.yaml", "./nothing.yaml", "E_CONFIG_ENTRY_NOT_FOUND"),
        ("entryAgent: Agent/main", "entryAgent: Agent/man", "E_CONFIG_REF_NOT_FOUND"),
    ] {
        fs::write(&manifest, good.replace(from, to)).unwrap();
        let output = fixture.run(&["--input", "one"]);
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""), "{to}");
        assert!(stderr(&output).contains(expected), "{to}: {}", stderr(&output));
    }
    assert!(!fixture.state().exists(), "nothing was created for an invalid bundle");
    fs::write(&manifest, good).unwrap();
    fs::write(fixture.bundle().join("script.yaml"), "- { say: a, call: { tool: b__c } }\n").unwrap();
    let output = fixture.run(&["--input", "one"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("exactly one of `say`"), "{}", stderr(&output));
}

#[test]
fn a_wrong_command_line_exits_with_2() {
    let fixture = Fixture::new(SCRIPT, 40);
    assert_eq!(fixture.run(&["--inptu", "one"]).status.code(), Some(2));
    assert_eq!(fixture.run(&["--agent", "missing", "--input", "one"]).status.code(), Some(2));
    assert_eq!(fixture.run(&["--instance", "", "--input", "one"]).status.code(), Some(2));
}

#[test]
fn closing_standard_output_ends_the_run_without_an_error() {
    let fixture = Fixture::new(SCRIPT, 40);
    let mut child =
        fixture.command(&[]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    child.stdin.take().unwrap().write_all(b"one\ntwo\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""));
}

#[test]
fn fsync_is_set_by_the_swarm_or_the_command_line() {
    let fixture = Fixture::new(SCRIPT, 40);
    for level in ["turn", "always", "never"] {
        let output = fixture.run(&["--fsync", level, "--input", level]);
        assert_eq!((output.status.code(), stdout(&output)), (Some(0), "fine\n"), "{}", stderr(&output));
    }
    let requests = fixture.requests();
    assert_eq!(texts(&requests[2]), ["turn", "fine", "always", "fine", "never"], "each run continued the last one");
    let output = fixture.run(&["--fsync", "sometimes", "--input", "x"]);
    assert_eq!(output.status.code(), Some(2));
    for part in ["sometimes", "--fsync", "turn, always, never"] {
        assert!(stderr(&output).contains(part), "{part}: {}", stderr(&output));
    }
    let manifest = fixture.bundle().join("goondan.yaml");
    let bundle = fs::read_to_string(&manifest).unwrap();
    let with = |level| bundle.replace("entryAgent: Agent/main", &format!("entryAgent: Agent/main, fsync: {level}"));
    fs::write(&manifest, with("always")).unwrap();
    assert_eq!(fixture.run(&["--input", "x"]).status.code(), Some(0));
    fs::write(&manifest, with("sometimes")).unwrap();
    let output = fixture.run(&["--fsync", "never", "--input", "x"]);
    assert_eq!(output.status.code(), Some(2));
    let fault = "`spec.fsync` must be `turn`, `always` or `never`, but is `sometimes`";
    assert!(stderr(&output).contains(fault), "{}", stderr(&output));
    assert_eq!(fixture.requests().len(), 4, "a rejected bundle calls no model");
}

#[test]
fn closing_standard_error_is_not_a_failure() {
    let fixture = Fixture::new("- { say: fine, when: hello, repeat: true }\n", 40);
    // Log lines and the error of a turn cannot be written; then a turn is answered.
    let (reader, closed) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = fixture.command(&["--log-level", "trace"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(closed).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"unknown\nhello\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stdout(&output)), (Some(1), "fine\n"));
}

#[test]
fn an_empty_input_is_refused_before_anything_is_written() {
    for input in ["", " \t\n"] {
        let fixture = Fixture::new(SCRIPT, 4);
        let output = fixture.run(&["--input", input]);
        assert_eq!(output.status.code(), Some(2));
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains("E_USAGE: the text of `--input` is empty") && error.contains("help: "), "{error}");
        assert!(!fixture.state().exists());
    }
}

#[test]
fn a_stream_of_json_follows_its_schema() {
    let script = "- { call: { tool: no__tool, args: { a: 1 } }, reasoning: hm, pieces: 2 }\n\
                  - { raw: { text: fine, usage: { promptTokens: 7, completionTokens: 2, totalTokens: 9 } } }\n";
    let fixture = Fixture::new(script, 100);
    let output = fixture.run(&["--json", "--stream", "--input", "hello"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let schema: Value = serde_json::from_str(include_str!("../../../docs/run-stream.schema.json")).unwrap();
    assert_eq!(schema["version"], goondan::wire::VERSION);
    let schema = jsonschema::validator_for(&schema).unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in &lines {
        assert!(schema.is_valid(line), "{line}");
        assert!(!schema.is_valid(&json!({ "type": line["type"] })), "{line}");
    }
    let types: Vec<_> =
        lines.iter().map(|line| line["type"].as_str().unwrap()).filter(|kind| *kind != "event").collect();
    let expected = ["reasoning", "reasoning", "tool-call", "arguments", "arguments", "text", "turn"];
    assert_eq!(types, expected);
    let end = lines.last().unwrap();
    assert_eq!((&end["response"], &end["usage"]["totalTokens"]), (&json!("fine"), &json!(9)));
    assert!(lines.iter().all(|line| line["type"] == "event" || line["turnId"] == end["turnId"]));
}

#[test]
fn a_stream_says_how_long_the_model_waits_before_it_is_asked_again() {
    // Nothing listens there any more.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let fixture = Fixture::new(SCRIPT, 100);
    let manifest = fixture.bundle().join("goondan.yaml");
    let bundle = fs::read_to_string(&manifest).unwrap();
    let spec = format!(
        "spec: {{ provider: openai-compatible, model: m, baseUrl: 'http://{address}', retries: {{ max: 2 }} }}"
    );
    let scripted = "spec: { provider: scripted, script: ./script.yaml, record: ./requests.jsonl }";
    fs::write(&manifest, bundle.replace(scripted, &spec)).unwrap();
    let output = fixture.run(&["--json", "--stream", "--input", "hello"]);
    let schema = include_str!("../../../docs/run-stream.schema.json");
    let schema = jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    lines.iter().for_each(|line| assert!(schema.is_valid(line), "{line}"));
    let restart = lines.iter().find(|line| line["type"] == "restart").unwrap();
    let event = lines.iter().find(|line| line["event"]["type"] == "model.retried").unwrap();
    assert_eq!((&restart["wait"], &restart["reason"]), (&event["event"]["wait"], &event["event"]["reason"]));
    assert!((250..=500).contains(&restart["wait"].as_u64().unwrap()), "{restart}");
    assert_eq!(lines.last().unwrap()["error"]["code"], "E_MODEL_NETWORK");
}

#[test]
fn files_go_with_the_input() {
    let fixture = Fixture::new(SCRIPT, 100);
    let path = |name: &str| fixture.bundle().join(name);
    fs::write(path("dot.png"), b"\x89PNG\r\n\x1a\n").unwrap();
    fs::write(path("photo.png"), b"\xff\xd8\xff\xe0").unwrap();
    fs::write(path("empty"), "").unwrap();
    fs::write(path("table.csv"), b"f\xfcr").unwrap();
    fs::write(path("notes"), "some text").unwrap();
    let large = File::create(path("large.bin")).unwrap();
    large.set_len(6 << 20).unwrap();
    let run = |names: &[&str]| {
        let mut command = fixture.command(&["--input", "what is this?"]);
        names.iter().for_each(|name| _ = command.arg("--file").arg(path(name)));
        command.output().unwrap()
    };
    let bad = [
        ("no-such-file", "no-such-file"),
        ("large.bin", "more than 5 MB"),
        ("photo.png", "the file `photo.png` of the type image/png cannot be used: its content is image/jpeg"),
        ("empty", "it is empty"),
        ("table.csv", "not UTF-8"),
    ];
    for (name, problem) in bad {
        let output = run(&["dot.png", name]);
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && message.contains("E_INPUT_FILE") && message.contains(problem), "{message}");
    }
    assert!(!fixture.state().exists(), "nothing was stored");

    assert!(run(&["dot.png", "notes"]).status.success());
    let requests = fs::read_to_string(fixture.record()).unwrap();
    let request: Value = serde_json::from_str(requests.lines().next().unwrap()).unwrap();
    let content = json!([
        { "type": "text", "text": "what is this?" },
        { "type": "file", "mediaType": "image/png", "url": "data:image/png;base64,iVBORw0KGgo=", "name": "dot.png" },
        { "type": "file", "mediaType": "text/plain", "url": "data:text/plain;base64,c29tZSB0ZXh0", "name": "notes" },
    ]);
    assert_eq!(request["messages"][0]["content"], content);
}

#[test]
fn a_stream_whose_reader_leaves_ends_after_the_turn_without_an_error() {
    let fixture = Fixture::new("- { say: one two three, pieces: 3, repeat: true }\n", 100);
    let mut child = fixture.command(&["--json", "--stream", "--input", "hello"]);
    let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
    let base = fs::read_to_string(fixture.instance("main:default").join("messages/base.jsonl")).unwrap();
    assert_eq!(base.lines().count(), 2, "the turn is stored: {base}");
}
