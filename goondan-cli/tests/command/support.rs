//! What the tests share: the command and its output, the model of their bundles, and git.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// The document of a scripted model, before the other documents of a bundle.
pub(crate) const MODEL: &str = "apiVersion: goondan.ai/v1
kind: Model
metadata: { name: main }
spec: { provider: scripted, script: ./script.yaml }
---
";

/// As [`MODEL`]; the model records its requests.
pub(crate) const RECORDED_MODEL: &str = "apiVersion: goondan.ai/v1
kind: Model
metadata: { name: main }
spec: { provider: scripted, script: ./script.yaml, record: ./requests.jsonl }
---
";

/// Returns the command, without the variables that would change what a test expects.
pub(crate) fn goondan() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_goondan"));
    command.env_remove("RUST_LOG").env_remove("GOONDAN_STATE_ROOT").env_remove("GOONDAN_CASSETTES");
    command
}

/// Returns the root of the source tree.
pub(crate) fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Starts a command whose input and outputs are pipes.
pub(crate) fn piped(command: &mut Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Runs a command that succeeds, and returns what it prints.
#[track_caller]
pub(crate) fn printed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command on a terminal, where a person types a line. Returns what the terminal shows, and the exit code.
pub(crate) fn on_a_terminal(command: &Command, typed: &str) -> (String, Option<i32>) {
    let (mut terminal, pts) = pty_process::blocking::open().unwrap();
    terminal.resize(pty_process::Size::new(24, 200)).unwrap();
    let mut there = pty_process::blocking::Command::new(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        there = match value {
            Some(value) => there.env(name, value),
            None => there.env_remove(name),
        };
    }
    let mut child = there.current_dir(command.get_current_dir().unwrap()).spawn(pts).unwrap();
    terminal.write_all(typed.as_bytes()).unwrap();
    let mut output = Vec::new();
    // On some systems, reading fails when the other side is closed.
    _ = terminal.read_to_end(&mut output);
    (String::from_utf8_lossy(&output).into_owned(), child.wait().unwrap().code())
}

pub(crate) fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

pub(crate) fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

/// Runs git in a repository, and returns what it prints.
#[track_caller]
pub(crate) fn git(repository: &Path, arguments: &[&str]) -> String {
    printed(Command::new("git").current_dir(repository).args(arguments))
}

/// Makes a directory a repository with one commit.
pub(crate) fn init(directory: &Path) {
    git(directory, &["init", "--quiet", "--initial-branch=main"]);
    git(directory, &["add", "--all"]);
    commit(directory);
}

/// Commits what was added to a repository.
pub(crate) fn commit(repository: &Path) {
    git(repository, &["-c", "user.name=me", "-c", "user.email=me@localhost", "commit", "--quiet", "-m", "by hand"]);
}
