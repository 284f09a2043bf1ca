//! `goondan run --watch`: what changes takes effect between two turns, and nothing is lost.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use goondan_covers::covers;
use goondan_libraries::Build;
use serde_json::Value;
use tempfile::TempDir;

/// A test that waits longer has failed.
const PATIENCE: Duration = Duration::from_secs(120);

/// The library of the fixture as it is built: version 0.1.0, `build one`.
fn first() -> Vec<u8> {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    fs::read(BUILT.get_or_init(|| Build::new("abi-fixture").profile("dev").run(env!("CARGO_TARGET_TMPDIR")))).unwrap()
}

/// The same with another version and another text in it.
fn second() -> Vec<u8> {
    let mut bytes = first();
    put(&mut bytes, br#""version":"0.1.0""#, br#""version":"0.1.1""#);
    put(&mut bytes, b"the code of build one", b"the code of build two");
    bytes
}

fn put(bytes: &mut [u8], old: &[u8], new: &[u8]) {
    let places: Vec<_> = (0..bytes.len() - old.len()).filter(|place| bytes[*place..].starts_with(old)).collect();
    assert!(!places.is_empty() && old.len() == new.len());
    for place in places {
        bytes[place..place + new.len()].copy_from_slice(new);
    }
}

/// A bundle with the extension `counting` in a library, and the conversation that is held with it.
struct Place {
    root: TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { root: TempDir::new().unwrap() };
        let bundle = "apiVersion: goondan.ai/v1
kind: Model
metadata: { name: main }
spec: { provider: scripted, script: ./script.yaml }
---
apiVersion: goondan.ai/v1
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
            fs::create_dir(place.path(directory)).unwrap();
        }
        fs::write(place.path("goondan.yaml"), bundle).unwrap();
        fs::write(place.path("script.yaml"), "- { say: fine, repeat: true }\n").unwrap();
        fs::write(place.library(), first()).unwrap();
        place
    }

    fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.root.path().join(name)
    }

    fn library(&self) -> PathBuf {
        self.path(format!("plugins/{DLL_PREFIX}it{DLL_SUFFIX}"))
    }

    fn run(&self) -> Talk {
        self.run_with(&self.path("tmp"))
    }

    fn run_with(&self, tmp: &Path) -> Talk {
        let mut command = Command::new(env!("CARGO_BIN_EXE_goondan"));
        command.arg("run").arg(self.root.path()).arg("--watch").arg("--state-root").arg(self.path("state"));
        command.env("TMPDIR", tmp).env_remove("RUST_LOG");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (told, tell) = mpsc::channel();
        thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| told.send(line)));
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        Talk { child, stdin, stdout, tell, turns: 0 }
    }
}

struct Talk {
    child: Child,
    stdin: ChildStdin,
    stdout: Lines<BufReader<ChildStdout>>,
    /// The lines of standard error.
    tell: Receiver<String>,
    turns: usize,
}

impl Talk {
    /// One turn; gives the code that answered it.
    fn turn(&mut self) -> String {
        self.turns += 1;
        writeln!(self.stdin, "event {}", self.turns).unwrap();
        let answer = self.stdout.next().unwrap().unwrap();
        let (count, code) = answer.split_once(" by ").unwrap();
        assert_eq!(count, self.turns.to_string(), "the state goes on");
        code.to_owned()
    }

    /// The next line of standard error that begins with `start`.
    fn told(&self, start: &str) -> String {
        self.line(start, |line| line.starts_with(start))
    }

    fn line(&self, what: &str, fits: impl Fn(&str) -> bool) -> String {
        loop {
            let line = self.tell.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("never said: {what}"));
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
    let place = Place::new();
    let mut talk = place.run();
    for _ in 0..50 {
        assert_eq!(talk.turn(), "the code of build one");
    }
    // The very file is written, as `cp` does, while turns go on.
    let path = place.library();
    let writer = thread::spawn(move || fs::write(path, second()).unwrap());
    let said = loop {
        match talk.tell.try_recv() {
            Ok(line) if line.starts_with("reloaded") => break line,
            _ => talk.turn(),
        };
    };
    writer.join().unwrap();
    assert_eq!(said, "reloaded: counting 0.1.0 → 0.1.1");
    while talk.turns < 200 || talk.turn() != "the code of build two" {
        talk.turn();
    }
    let turns = talk.turns;
    talk.end();
    let base = place.path("state/workspaces/main/instances/main:default/messages/base.jsonl");
    let base = fs::read_to_string(base).unwrap();
    let inputs: Vec<_> = base
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|message| message["data"]["role"] == "user")
        .map(|message| message["data"]["content"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(inputs, (1..=turns).map(|number| format!("event {number}")).collect::<Vec<_>>());
    assert_eq!(fs::read_dir(place.path("tmp")).unwrap().count(), 0, "the copies are gone");
}

#[test]
fn a_broken_library_leaves_the_old_one_working_and_says_why() {
    let place = Place::new();
    let mut talk = place.run();
    assert_eq!(talk.turn(), "the code of build one");
    let new = second();
    fs::write(place.library(), &new[..new.len() / 2]).unwrap();
    let why = talk.line("why", |line| line.contains("error[E_EXT_LOAD]: "));
    assert!(why.contains("damaged or incomplete"), "{why}");
    assert_eq!(talk.told("not reloaded"), "not reloaded; the conversation goes on as it was");
    assert_eq!(talk.turn(), "the code of build one");
    fs::write(place.library(), new).unwrap();
    assert_eq!(talk.told("reloaded"), "reloaded: counting 0.1.0 → 0.1.1");
    assert_eq!(talk.turn(), "the code of build two");
    talk.end();
}

#[test]
fn a_bundle_that_changes_is_read_again() {
    let place = Place::new();
    let mut talk = place.run();
    talk.turn();
    let bundle = fs::read_to_string(place.path("goondan.yaml")).unwrap();
    let with_window = bundle
        .replace("extensions: [ ", "extensions: [ { ref: Extension/message-window, config: { maxMessages: 4 } }, ")
        + "---
apiVersion: goondan.ai/v1
kind: Extension
metadata: { name: message-window }
spec: { entry: \"linked:message-window\" }
";
    fs::write(place.path("goondan.yaml"), with_window).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(talk.told("reloaded"), format!("reloaded: message-window {version} is new"));
    talk.turn();
    fs::write(place.path("goondan.yaml"), bundle).unwrap();
    assert_eq!(talk.told("reloaded"), format!("reloaded: message-window {version} is gone"));
    talk.turn();
    talk.end();
}

fn names(directory: &Path) -> BTreeSet<OsString> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect()
}

#[test]
fn the_copies_of_a_killed_process_go_when_another_one_loads_a_library_and_those_of_a_living_one_stay() {
    let (one, other) = (Place::new(), Place::new());
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
