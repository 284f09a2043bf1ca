//! `goondan run --watch`: changes are applied between two turns or two steps of one, and no turn or state is lost.

use std::collections::BTreeSet;
use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command};
use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use goondan_covers::covers;
use goondan_libraries::Build;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{MODEL, goondan, piped};

/// A test that waits longer has failed.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Returns the library of the package `abi-fixture` as it is built: version 0.1.0, `build one`.
fn first() -> Vec<u8> {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    fs::read(BUILT.get_or_init(|| Build::new("abi-fixture").profile("dev").run(env!("CARGO_TARGET_TMPDIR")))).unwrap()
}

/// Returns the same library with another version and another text.
fn second() -> Vec<u8> {
    let mut bytes = first();
    replace(&mut bytes, br#""version":"0.1.0""#, br#""version":"0.1.1""#);
    replace(&mut bytes, b"the code of build one", b"the code of build two");
    bytes
}

fn replace(bytes: &mut [u8], old: &[u8], new: &[u8]) {
    let positions: Vec<_> = (0..bytes.len() - old.len()).filter(|at| bytes[*at..].starts_with(old)).collect();
    assert!(!positions.is_empty() && old.len() == new.len());
    for at in positions {
        bytes[at..at + new.len()].copy_from_slice(new);
    }
}

/// A bundle with the extension `counting` in a library, and a state root, in a temporary directory.
struct Fixture {
    root: TempDir,
}

impl Fixture {
    fn new() -> Self {
        let fixture = Self { root: TempDir::new().unwrap() };
        let bundle = "apiVersion: goondan.ai/v1
kind: Extension
metadata: { name: counting }
spec: { entry: ./plugins/it }
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: { name: main }
spec: { model: Model/main, extensions: [ { ref: Extension/counting } ] }
";
        for directory in ["plugins", "tmp"] {
            fs::create_dir(fixture.path(directory)).unwrap();
        }
        fs::write(fixture.path("goondan.yaml"), format!("{MODEL}{bundle}")).unwrap();
        fs::write(fixture.path("script.yaml"), "- { say: fine, repeat: true }\n").unwrap();
        fs::write(fixture.library(), first()).unwrap();
        fixture
    }

    fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.root.path().join(name)
    }

    fn library(&self) -> PathBuf {
        self.path(format!("plugins/{DLL_PREFIX}it{DLL_SUFFIX}"))
    }

    fn run(&self) -> Conversation {
        self.run_with(&self.path("tmp"))
    }

    fn run_with(&self, tmp: &Path) -> Conversation {
        let mut command = goondan();
        command
            .args(["run", "--trust"])
            .arg(self.root.path())
            .arg("--watch")
            .arg("--state-root")
            .arg(self.path("state"));
        command.env("TMPDIR", tmp);
        let mut child = piped(&mut command);
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (sender, status) = mpsc::channel();
        thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        Conversation { child, stdin, stdout, status, turns: 0 }
    }
}

/// A running `goondan run`.
struct Conversation {
    child: Child,
    stdin: ChildStdin,
    stdout: Lines<BufReader<ChildStdout>>,
    /// The lines of standard error.
    status: Receiver<String>,
    turns: usize,
}

impl Conversation {
    /// Runs one turn. Returns the text in the code that answered it.
    fn turn(&mut self) -> String {
        self.turns += 1;
        writeln!(self.stdin, "event {}", self.turns).unwrap();
        let answer = self.stdout.next().unwrap().unwrap();
        let (count, code) = answer.split_once(" by ").unwrap();
        assert_eq!(count, self.turns.to_string(), "the state is kept");
        code.to_owned()
    }

    /// Waits for a line of standard error that begins with `start`, and returns it.
    fn wait_for(&self, start: &str) -> String {
        self.line(start, |line| line.starts_with(start))
    }

    fn line(&self, what: &str, fits: impl Fn(&str) -> bool) -> String {
        loop {
            let line = self.status.recv_timeout(TIMEOUT).unwrap_or_else(|_| panic!("never printed: {what}"));
            if fits(&line) {
                return line;
            }
        }
    }

    fn end(mut self) {
        drop(self.stdin);
        assert!(self.child.wait().unwrap().success());
    }
}

#[test]
#[covers("LINK-05")]
fn a_library_that_is_replaced_during_two_hundred_turns_loses_no_turn_and_no_state() {
    let fixture = Fixture::new();
    let mut conversation = fixture.run();
    for _ in 0..50 {
        assert_eq!(conversation.turn(), "the code of build one");
    }
    // The file is overwritten in place, as `cp` does, while turns run.
    let path = fixture.library();
    let writer = thread::spawn(move || fs::write(path, second()).unwrap());
    let said = loop {
        match conversation.status.try_recv() {
            Ok(line) if line.starts_with("reloaded") => break line,
            _ => conversation.turn(),
        };
    };
    writer.join().unwrap();
    let digest = Command::new("sha256sum").arg(fixture.library()).output().unwrap().stdout;
    let build = std::str::from_utf8(&digest[..8]).unwrap();
    assert_eq!(said, format!("reloaded: counting 0.1.0 → 0.1.1 (build {build})"));
    while conversation.turns < 200 || conversation.turn() != "the code of build two" {
        conversation.turn();
    }
    let turns = conversation.turns;
    conversation.end();
    let base = fixture.path("state/workspaces/main/instances/main:default/messages/base.jsonl");
    let base = fs::read_to_string(base).unwrap();
    let inputs: Vec<_> = base
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|message| message["data"]["role"] == "user")
        .map(|message| message["data"]["content"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(inputs, (1..=turns).map(|number| format!("event {number}")).collect::<Vec<_>>());
    assert_eq!(fs::read_dir(fixture.path("tmp")).unwrap().count(), 0, "the copies are deleted");
}

#[test]
fn a_broken_library_is_reported_and_the_old_one_stays_in_use() {
    let fixture = Fixture::new();
    let mut conversation = fixture.run();
    assert_eq!(conversation.turn(), "the code of build one");
    let new = second();
    fs::write(fixture.library(), &new[..new.len() / 2]).unwrap();
    let why = conversation.line("why", |line| line.contains("error[E_EXT_LOAD]: "));
    assert!(why.contains("damaged or incomplete"), "{why}");
    assert_eq!(conversation.wait_for("not reloaded"), "not reloaded; the conversation goes on as it was");
    assert_eq!(conversation.turn(), "the code of build one");
    fs::write(fixture.library(), new).unwrap();
    conversation.wait_for("reloaded: counting 0.1.0 → 0.1.1 (build ");
    assert_eq!(conversation.turn(), "the code of build two");
    conversation.end();
}

#[test]
fn a_bundle_that_changes_is_read_again() {
    let fixture = Fixture::new();
    let mut conversation = fixture.run();
    conversation.turn();
    let bundle = fs::read_to_string(fixture.path("goondan.yaml")).unwrap();
    let with_window = bundle
        .replace("extensions: [ ", "extensions: [ { ref: Extension/message-window, config: { maxMessages: 4 } }, ")
        + "---
apiVersion: goondan.ai/v1
kind: Extension
metadata: { name: message-window }
spec: { entry: \"linked:message-window\" }
";
    fs::write(fixture.path("goondan.yaml"), with_window).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(conversation.wait_for("reloaded"), format!("reloaded: message-window {version} is new"));
    conversation.turn();
    fs::write(fixture.path("goondan.yaml"), bundle).unwrap();
    assert_eq!(conversation.wait_for("reloaded"), format!("reloaded: message-window {version} is gone"));
    conversation.turn();
    conversation.end();
}

#[test]
fn a_turn_that_runs_continues_on_the_changed_bundle() {
    let fixture = Fixture::new();
    let bundle = fs::read_to_string(fixture.path("goondan.yaml")).unwrap();
    let bundle = bundle
        .replace("extensions: [ ", "policy: { maxStepsPerTurn: 4000000000 }, extensions: [ { ref: Extension/wait }, ")
        + "---
apiVersion: goondan.ai/v1
kind: Extension
metadata: { name: wait }
spec: { entry: \"linked:wait\" }
";
    fs::write(fixture.path("goondan.yaml"), bundle).unwrap();
    let waits = "- { call: { tool: wait__seconds, args: { seconds: 0.05 } }, repeat: true }\n";
    fs::write(fixture.path("script.yaml"), waits).unwrap();
    let mut conversation = fixture.run();
    writeln!(conversation.stdin, "go").unwrap();
    let events = fixture.path("state/workspaces/main/instances/main:default/messages/events.jsonl");
    while !fs::read_to_string(&events).is_ok_and(|events| events.contains("wait__seconds")) {
        thread::yield_now();
    }
    fs::write(fixture.path("script.yaml"), "- { say: enough }\n").unwrap();
    // Only the new script ends the turn.
    assert_eq!(conversation.wait_for("reloaded"), "reloaded");
    assert_eq!(conversation.stdout.next().unwrap().unwrap(), "1 by the code of build one");
    conversation.end();
}

#[test]
#[covers("TREE-01")]
fn a_reload_that_adds_something_is_refused_without_a_terminal() {
    let fixture = Fixture::new();
    let mut conversation = fixture.run();
    conversation.turn();
    let bundle = fs::read_to_string(fixture.path("goondan.yaml")).unwrap();
    let with = |spec: &str| {
        let used = bundle.replace("extensions: [ ", "extensions: [ { ref: Extension/new }, ");
        format!("{used}---\napiVersion: goondan.ai/v1\nkind: Extension\nmetadata: {{ name: new }}\nspec: {spec}\n")
    };
    let model = "---
apiVersion: goondan.ai/v1
kind: Model
metadata: { name: other }
spec: { provider: openai-compatible, model: m, baseUrl: 'https://example.com/v1' }
";
    fs::copy(fixture.library(), fixture.path(format!("plugins/{DLL_PREFIX}other{DLL_SUFFIX}"))).unwrap();
    let marker = fixture.path("started");
    let touch = format!("[touch, {}]", marker.display());
    let cases = [
        (
            with(&format!("{{ entry: 'linked:mcp', config: {{ transport: {{ type: stdio, command: {touch} }} }} }}")),
            format!("command touch {}", marker.display()),
        ),
        (
            with("{ entry: 'linked:mcp', config: { transport: { type: http, endpoint: 'http://127.0.0.1:9/mcp' } } }"),
            "host http://127.0.0.1:9".to_owned(),
        ),
        (with("{ entry: 'linked:bash' }"), "shell bash".to_owned()),
        (with("{ entry: 'linked:file-system', config: { roots: [.] } }"), "root .".to_owned()),
        (with("{ entry: './plugins/other#counting' }"), format!("library plugins/{DLL_PREFIX}other{DLL_SUFFIX}")),
        (format!("{bundle}{model}"), "host https://example.com".to_owned()),
    ];
    for (changed, added) in cases {
        fs::write(fixture.path("goondan.yaml"), changed).unwrap();
        let error = conversation.wait_for("error: E_RELOAD_ADDS");
        assert_eq!(error, format!("error: E_RELOAD_ADDS: the changed bundle adds: {added}"));
        assert!(conversation.wait_for("not reloaded").ends_with("the conversation goes on as it was"));
        assert_eq!(conversation.turn(), "the code of build one");
    }
    assert!(!marker.exists(), "nothing was started");
    fs::write(fixture.path("goondan.yaml"), &bundle).unwrap();
    assert_eq!(conversation.wait_for("reloaded"), "reloaded");
    // The same library as another build, and less, are no additions.
    fs::write(fixture.library(), second()).unwrap();
    conversation.wait_for("reloaded: counting 0.1.0 → 0.1.1 (build ");
    assert_eq!(conversation.turn(), "the code of build two");
    conversation.end();
}

fn names(directory: &Path) -> BTreeSet<OsString> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect()
}

#[test]
fn the_copies_of_a_killed_process_are_deleted_by_the_next_one_that_loads_a_library() {
    let (one, other) = (Fixture::new(), Fixture::new());
    let tmp = one.path("tmp");
    let mut alive = one.run_with(&tmp);
    alive.turn();
    let of_alive = names(&tmp);
    let mut killed = other.run_with(&tmp);
    killed.turn();
    killed.child.kill().unwrap();
    killed.child.wait().unwrap();
    let left = names(&tmp);
    assert!(left.len() == 2 && left.is_superset(&of_alive), "{left:?}");
    let mut next = other.run_with(&tmp);
    next.turns = killed.turns;
    next.turn();
    let now = names(&tmp);
    assert!(now.len() == 2 && now.is_superset(&of_alive) && now != left, "{left:?}, then {now:?}");
    next.end();
    assert_eq!(names(&tmp), of_alive);
    alive.turn();
    alive.end();
    assert!(names(&tmp).is_empty());
}
