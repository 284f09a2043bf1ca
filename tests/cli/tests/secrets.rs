//! A key that comes from the environment appears in no output of goondan: not in errors, logs, events or recorded
//! requests.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::{fs, thread};

use goondan_covers::covers;
use goondan_libraries::Build;
use tempfile::TempDir;

/// Contains characters that logs, JSON and `{:?}` escape, and letters that occur in no time and no id.
const KEY: &str = "sk-plänted \"qwyx\"\n-key\\end";

/// Parts of [`KEY`] of which none may appear anywhere, however the key is escaped or cut.
const PARTS: [&str; 3] = ["sk-pl", "qwyx", "-key"];

const BUNDLE: &str = r#"
apiVersion: goondan.ai/v1
kind: Model
metadata: { name: main }
spec: { provider: scripted, script: ./script.yaml, record: ./requests.jsonl }
---
apiVersion: goondan.ai/v1
kind: Extension
metadata: { name: leaky }
spec:
  entry: ENTRY
  config: CONFIG
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: { name: main }
spec: { model: Model/main, extensions: [ { ref: Extension/leaky } ] }
"#;

const SCRIPT: &str = "\
- calls: [ { tool: leaky__fail }, { tool: leaky__fail_at_length }, { tool: leaky__panic } ]
- { say: done, repeat: true }
";

/// How the extension reaches the command.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Linkage {
    Linked,
    Loaded,
}

const BOTH: [Linkage; 2] = [Linkage::Linked, Linkage::Loaded];

fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| Build::new("goondan-cli-tests").no_default_features().run(env!("CARGO_TARGET_TMPDIR")))
}

/// A directory with a bundle, which the tests run in.
struct Fixture(TempDir);

impl Fixture {
    fn new(config: &str, script: &str) -> Self {
        Self::of(Linkage::Linked, config, script)
    }

    fn of(linkage: Linkage, config: &str, script: &str) -> Self {
        let fixture = Self(TempDir::new().unwrap());
        let entry = match linkage {
            Linkage::Linked => "\"linked:leaky\"",
            Linkage::Loaded => {
                symlink(library(), fixture.path(&format!("{DLL_PREFIX}leaky{DLL_SUFFIX}"))).unwrap();
                "./leaky"
            }
        };
        let bundle = BUNDLE.replace("CONFIG", config).replace("ENTRY", entry);
        fs::write(fixture.path("goondan.yaml"), bundle).unwrap();
        fs::write(fixture.path("script.yaml"), script).unwrap();
        fixture
    }

    fn leaking(leak: &str, script: &str) -> Self {
        Self::leaking_in(Linkage::Linked, leak, script)
    }

    fn leaking_in(linkage: Linkage, leak: &str, script: &str) -> Self {
        // A library that takes a `Secret` masks the key by itself; this one leaves it to the command.
        let typed = if linkage == Linkage::Linked { format!("typed: {FROM_ENV}, ") } else { String::new() };
        Self::of(linkage, &format!("{{ key: {FROM_ENV}, {typed}leak: {leak} }}"), script)
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.path().join(file)
    }

    fn goondan(&self, arguments: &[&str], key: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_goondan-under-test"));
        command.current_dir(self.0.path()).args(arguments).args(["--log-level", "trace"]);
        command.env("LEAKY_KEY", key).env("RUST_BACKTRACE", "0").output().unwrap()
    }

    fn run(&self, more: &[&str]) -> Output {
        let output =
            self.goondan(&[&["run", "--trust", "--input", "hello", "--state-root", "state"], more].concat(), KEY);
        self.assert_silent(&output);
        output
    }

    /// Asserts that no part of the key was printed or is in a file of the directory.
    #[track_caller]
    fn assert_silent(&self, output: &Output) {
        let mut texts = vec![("stdout".into(), output.stdout.clone()), ("stderr".into(), output.stderr.clone())];
        files(self.0.path(), &mut texts);
        for (source, bytes) in texts {
            let text = String::from_utf8(bytes).unwrap();
            for part in PARTS {
                assert!(!text.contains(part), "`{part}` in {}:\n{text}", Path::display(&source));
            }
        }
    }
}

/// The value of a config member that takes the key from the environment.
const FROM_ENV: &str = "{ valueFrom: { env: LEAKY_KEY } }";

fn files(directory: &Path, found: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if !path.is_symlink() {
            found.push((path.clone(), fs::read(&path).unwrap()));
        }
    }
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

/// Returns where the extension leaks, the exit code that follows, and what is shown. `panic` is the text of the panic
/// in `#[init]`.
fn leaks(panic: &'static str) -> [(&'static str, i32, &'static str); 8] {
    [
        ("nowhere", 0, "401 for ***"),
        ("initError", 1, "E_EXT_INIT"),
        ("initPanic", 1, panic),
        ("turn", 1, "turned away: ***"),
        ("step", 1, "refused: ***"),
        ("stepPanic", 1, "refused: \"***\""),
        ("cleanup", 0, "cannot sign off ***"),
        ("recovery", 0, "error no: ***: no: ***\\nsuggestion: no: ***"),
    ]
}

#[test]
fn failures_tell_no_key() {
    for (leak, code, message) in leaks("no service for Config { key: \"***\", typed: ") {
        for linkage in BOTH {
            for more in [&[][..], &["--json"], &["--log-format", "json"]] {
                let fixture = Fixture::leaking_in(linkage, leak, SCRIPT);
                let output = fixture.run(more);
                assert_eq!(output.status.code(), Some(code), "{linkage:?} {leak}: {output:?}");
                let record = fs::read_to_string(fixture.path("requests.jsonl")).unwrap_or_default();
                let shown = stderr(&output).replace("\\\"", "\"") + &record;
                assert!(shown.contains(message), "{linkage:?} {leak}: {shown}");
            }
        }
    }
}

/// A token that no config has: the extension makes it while it runs.
#[test]
fn failures_tell_no_token() {
    let reversed = serde_json::Value::from(KEY.chars().rev().collect::<String>());
    for (leak, code, message) in leaks("no service for Config { key: \"***\"") {
        for linkage in BOTH {
            let config = format!("{{ key: {reversed}, reversed: true, leak: {leak} }}");
            let fixture = Fixture::of(linkage, &config, SCRIPT);
            let output = fixture.run(&[]);
            assert_eq!(output.status.code(), Some(code), "{linkage:?} {leak}: {output:?}");
            let record = fs::read_to_string(fixture.path("requests.jsonl")).unwrap_or_default();
            let shown = stderr(&output).replace("\\\"", "\"") + &record;
            assert!(shown.contains(message), "{linkage:?} {leak}: {shown}");
        }
    }
}

#[test]
fn log_lines_and_events_are_masked_in_both_forms() {
    let forms: [&[&str]; 2] = [&[], &["--log-format", "json"]];
    for (linkage, more) in BOTH.into_iter().flat_map(|linkage| forms.map(|more| (linkage, more))) {
        let output = Fixture::leaking_in(linkage, "nowhere", SCRIPT).run(more);
        let quoted = if more.is_empty() { "the key is ***, or \"***\"" } else { "the key is ***, or \\\"***\\\"" };
        assert!(stderr(&output).contains(quoted), "{}", stderr(&output));
        assert!(stderr(&output).contains("heard "), "the handler of the event failed: {}", stderr(&output));
        for line in stderr(&output).lines().filter(|line| !more.is_empty() && line.starts_with('{')) {
            assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "{line}");
        }
    }
}

#[test]
fn values_that_do_not_fit_are_not_told() {
    let fixture = Fixture::leaking("nowhere", SCRIPT);
    let long = KEY.repeat(20);
    for command in [
        &["run", "--trust", "--input", "x", "--state-root", "state"][..],
        &["order", "--trust"],
        &["order", "--trust", "--json"],
    ] {
        let output = fixture.goondan(command, &long);
        fixture.assert_silent(&output);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(stderr(&output).contains("E_EXT_CONFIG"), "{output:?}");
    }
    // `check` does not read the variable: a member that may be any text fits, one that may be no text at all does not.
    let fixture = Fixture::new(&format!("{{ key: {FROM_ENV}, leak: {FROM_ENV} }}"), SCRIPT);
    assert_eq!(fixture.goondan(&["check"], KEY).status.code(), Some(0));
    let output = fixture.run(&[]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let fixture = Fixture::new(&format!("{{ key: [ {FROM_ENV} ], leak: nowhere }}"), SCRIPT);
    let output = fixture.goondan(&["check"], KEY);
    fixture.assert_silent(&output);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn what_tools_answer_is_data_and_only_records_of_it_are_masked() {
    let fixture = Fixture::leaking("nowhere", "- call: { tool: leaky__tell }\n- say: done\n");
    let output = fixture.goondan(&["run", "--trust", "--input", "hello", "--state-root", "state"], KEY);
    assert!(output.status.success(), "{output:?}");
    assert!(!stderr(&output).contains("qwyx"), "{}", stderr(&output));
    let record = fs::read_to_string(fixture.path("requests.jsonl")).unwrap();
    assert!(record.contains("\"***\"") && !record.contains("qwyx"), "{record}");
    let base =
        fs::read_to_string(fixture.path("state/workspaces/main/instances/main:default/messages/base.jsonl")).unwrap();
    assert!(base.contains("qwyx"), "{base}");
}

/// Sends a request to a server, and returns all of the answer.
fn ask(address: &str, method: &str, path: &str, token: &str, body: &str) -> String {
    let mut connection = TcpStream::connect(address).unwrap();
    let head =
        format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\nconnection: close");
    write!(connection, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).unwrap();
    String::from_utf8(answer).unwrap()
}

/// Neither what a tool tells and a layer fails with, nor a token, is in an answer of a server or in its log.
#[test]
#[covers("SERVE-03", "MASK-01")]
fn a_server_tells_no_key_and_no_token() {
    const TOKEN: &str = "sesame-of-ada";
    const DIGEST: &str = "7bbc060fdf0d8b40dd0bda290e5067525a06373ed4589198717d20624438df61";
    for (leak, shown) in [("nowhere", "***"), ("turn", "turned away: ***"), ("step", "refused: ***")] {
        let fixture = Fixture::leaking(
            leak,
            "- { call: { tool: leaky__tell }, when: hello, repeat: true }\n- { say: done, repeat: true }\n",
        );
        fs::write(fixture.path("tokens"), format!("ada: {DIGEST}\n")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_goondan-under-test"));
        command.current_dir(fixture.0.path()).args(["serve", "--trust", "--listen", "127.0.0.1:0"]);
        command.args(["--token-file", "tokens", "--state-root", "state", "--log-level", "trace"]);
        let mut server = command.env("LEAKY_KEY", KEY).stderr(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(server.stderr.take().unwrap());
        let (mut logged, mut line) = (String::new(), String::new());
        let address = loop {
            line.clear();
            assert_ne!(log.read_line(&mut line).unwrap(), 0, "the server has ended: {logged}");
            logged.push_str(&line);
            if let Some(address) = line.trim().strip_prefix("listening on http://") {
                break address.to_owned();
            }
        };
        // The rest of the log, so that the server does not wait for its reader.
        let rest = thread::spawn(move || {
            let mut rest = String::new();
            log.read_to_string(&mut rest).unwrap();
            rest
        });
        let at = "/v1/agents/main/instances/ada:1";
        let chat = r#"{"id":"2","messages":[{"id":"m","role":"user","parts":[{"type":"text","text":"hello"}]}]}"#;
        let run = r#"{"threadId":"3","runId":"r","messages":[{"role":"user","content":"hello"}]}"#;
        let turn = ask(&address, "POST", &format!("{at}/turns"), TOKEN, r#"{"input":"hello"}"#);
        let place = turn.lines().find_map(|line| line.strip_prefix("location: ")).unwrap().trim().to_owned();
        let get = |path: &str| ask(&address, "GET", path, TOKEN, "");
        let answers = [
            ask(&address, "POST", "/v1/agents/main/ui", TOKEN, chat),
            ask(&address, "POST", "/v1/agents/main/ag-ui", TOKEN, run),
            get(&place),
            get(&format!("{place}/events")),
            get(&format!("{at}/messages")),
            get(&format!("{at}/decisions")),
            get(at),
            get("/v1/agents/main/instances"),
            get("/openapi.json"),
            ask(&address, "GET", at, "sesame-of-nobody", ""),
            turn,
        ];
        assert!(Command::new("kill").args(["-TERM", &server.id().to_string()]).status().unwrap().success());
        assert!(server.wait().unwrap().success());
        logged += &rest.join().unwrap();
        assert!(answers[10].contains(shown), "{leak}: {}", answers[10]);
        for text in answers.iter().chain([&logged]) {
            for part in PARTS.into_iter().chain(["sesame"]) {
                assert!(!text.contains(part), "{leak}: `{part}` in\n{text}");
            }
        }
    }
}

#[test]
fn missing_variables_are_a_hint_to_check_and_a_fault_to_run() {
    let fixture = Fixture::leaking("nowhere", SCRIPT);
    let fault = "goondan.yaml:12:18: error[E_CONFIG_VALUE_NOT_FOUND]: `spec.config.key` takes its value from the variable `LEAKY_KEY`, which is empty";
    let check = fixture.goondan(&["check"], "");
    assert_eq!(check.status.code(), Some(0), "{check:?}");
    let hints = String::from_utf8(check.stdout).unwrap();
    assert!(hints.contains("goondan.yaml:12:18: hint: `spec.config.key`"), "{hints}");
    for command in [&["run", "--trust", "--input", "x"][..], &["order", "--trust"]] {
        let output = fixture.goondan(command, "");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(stderr(&output).contains(fault) && stderr(&output).ends_with("2 faults\n"), "{}", stderr(&output));
    }
    let output = fixture.goondan(&["run", "--trust", "--input", "x", "--json"], "");
    let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((object["faults"].as_array().unwrap().len(), &object["faults"][0]["line"]), (2, &12.into()), "{object}");
}

#[test]
fn a_panic_in_a_library_is_told_once_by_the_log_with_its_place() {
    let output = Fixture::leaking_in(Linkage::Loaded, "stepPanic", SCRIPT).run(&[]);
    let reports: Vec<_> =
        stderr(&output).lines().filter(|line| line.contains("an extension panicked: refused: ")).collect();
    let [line] = reports.as_slice() else { panic!("{}", stderr(&output)) };
    assert!(line.contains("ERROR") && line.contains("tests/cli/src/lib.rs:"), "{line}");
    // The panic hook of `std`, which the command replaces, prints these.
    assert!(!stderr(&output).contains("' panicked at "), "{}", stderr(&output));
    assert!(!stderr(&output).contains("note: run with `RUST_BACKTRACE"), "{}", stderr(&output));
}

#[test]
fn an_extension_that_cannot_be_initialized_is_reported_once() {
    for linkage in BOTH {
        let output = Fixture::leaking_in(linkage, "initError", SCRIPT).run(&[]);
        let lines = stderr(&output).lines().filter(|line| line.contains("could not be initialized"));
        // The log has it too, but only for those who ask for details.
        let (details, reports): (Vec<_>, Vec<_>) = lines.partition(|line| line.contains(" DEBUG "));
        assert_eq!((details.len(), reports.len()), (1, 1), "{}", stderr(&output));
        assert!(reports[0].starts_with("error: E_EXT_INIT: "), "{}", stderr(&output));
    }
}
