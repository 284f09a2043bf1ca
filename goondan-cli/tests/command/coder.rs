//! `examples/coder` in a repository: a change is made in a changeset, survives `kill -9`, and becomes one commit.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use goondan_covers::covers;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{git, goondan, init};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/coder");

/// A copy of the sample in a repository with one commit, and a state root.
struct Repository {
    root: TempDir,
}

impl Repository {
    fn new() -> Self {
        let this = Self { root: TempDir::new().unwrap() };
        let copied = Command::new("cp").arg("-r").arg(format!("{EXAMPLE}/sample")).arg(this.path()).status().unwrap();
        assert!(copied.success());
        init(&this.path());
        this
    }

    fn path(&self) -> PathBuf {
        fs::canonicalize(self.root.path()).unwrap().join("sample")
    }

    fn state(&self) -> PathBuf {
        self.root.path().join("state")
    }

    /// Runs git, and returns what it prints.
    fn git(&self, arguments: &[&str]) -> String {
        git(&self.path(), arguments).trim_end().to_owned()
    }

    /// Returns the command as a shell starts it in the repository.
    fn command(&self) -> Command {
        let mut command = goondan();
        command.args(["run", "--trust", EXAMPLE, "--json", "--stream", "--state-root"]).arg(self.state());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).current_dir(self.path()).env("PWD", self.path());
        command
    }

    /// Runs one turn in a process of its own, and approves its calls in others. Returns its last line.
    fn turn(&self, input: &str) -> Value {
        let mut turn = end_of(self.command().args(["--input", input]));
        while turn["finishReason"] == "suspended" {
            turn = end_of(&mut self.approves(&turn));
        }
        turn
    }

    /// Returns the command that approves the call which a turn waits for.
    fn approves(&self, turn: &Value) -> Command {
        let call = turn["waits"][0]["call"].as_str().unwrap();
        let mut command = goondan();
        command.args(["instance", "decide", "coder:default", call, "--bundle", EXAMPLE, "--trust", "--json"]);
        command.arg("--state-root").arg(self.state()).stdin(Stdio::null()).stdout(Stdio::piped());
        command.current_dir(self.path()).env("PWD", self.path());
        command
    }

    /// Returns the open work trees, besides the checkout.
    fn work_trees(&self) -> Vec<PathBuf> {
        let listed = self.git(&["worktree", "list", "--porcelain"]);
        listed.lines().filter_map(|line| line.strip_prefix("worktree ")).skip(1).map(PathBuf::from).collect()
    }

    /// Returns the processes that run below the root.
    fn processes(&self) -> Vec<PathBuf> {
        let root = fs::canonicalize(self.root.path()).unwrap();
        let is_below = |process: &Path| fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(&root));
        let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok).map(|process| process.path());
        processes.filter(|process| is_below(process)).collect()
    }

    fn wait_for_processes(&self) {
        while !self.processes().is_empty() {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Checks that the repository has one commit more than at first, with the edit, and that nothing else is left.
    fn assert_committed(&self) {
        assert_eq!(self.git(&["log", "--format=%an: %s"]), "coder: Greet with an exclamation mark\nme: by hand");
        let changed = self.git(&["diff", "--unified=0", "HEAD~1"]);
        assert!(changed.ends_with("-echo \"Hello, $1\"\n+echo \"Hello, $1!\""), "{changed}");
        assert_eq!(self.git(&["diff", "--name-only", "HEAD~1"]), "greet.sh");
        assert_eq!(self.git(&["status", "--porcelain"]), "");
        self.git(&["fsck", "--strict"]);
        assert!(self.work_trees().is_empty(), "{:?}", self.work_trees());
        let changesets = self.state().join("workspaces/coder/extensions/changesets");
        assert_eq!(fs::read_dir(changesets).unwrap().count(), 0);
        assert_eq!(self.git(&["for-each-ref", "--format=%(refname)"]), "refs/heads/main");
        self.wait_for_processes();
    }
}

/// Runs a command that succeeds, or whose turn waits. Returns its last line.
fn end_of(command: &mut Command) -> Value {
    let output = command.output().unwrap();
    assert!([Some(0), Some(3)].contains(&output.status.code()), "{output:?}");
    serde_json::from_str(String::from_utf8(output.stdout).unwrap().lines().last().unwrap()).unwrap()
}

#[test]
#[covers("ASK-01")]
fn the_sample_is_repaired_as_the_page_says() {
    let repository = Repository::new();
    let turn = repository.turn("fix the greeting");
    assert_eq!(turn["response"], "Done: the greeting ends with an exclamation mark, and the tests pass.");
    let tools: Vec<_> = turn["toolCalls"].as_array().unwrap().iter().map(|call| call["name"].clone()).collect();
    let expected = ["changesets__open", "file-system__read", "file-system__edit", "bash__exec", "changesets__commit"];
    assert_eq!(tools, expected);
    repository.assert_committed();
}

#[test]
#[covers("CRASH-01")]
fn an_agent_that_is_killed_while_its_tests_run_goes_on_in_its_changeset_and_commits_once() {
    let repository = Repository::new();
    let gate = repository.root.path().join("gate");
    assert!(Command::new("mkfifo").arg(&gate).status().unwrap().success());
    // The tests wait for the gate as long as there is one.
    let tests = repository.path().join("test.sh");
    let waiting = format!("if [ -e '{0}' ]; then cat '{0}'; fi\n", gate.display());
    fs::write(&tests, waiting + &fs::read_to_string(&tests).unwrap()).unwrap();
    repository.git(&["add", "--all"]);
    repository.git(&["-c", "user.name=me", "-c", "user.email=me@localhost", "commit", "--amend", "-qm", "by hand"]);

    let waiting = end_of(repository.command().args(["--input", "fix the greeting"]));
    assert_eq!(waiting["waits"][0]["tool"], "bash__exec");
    assert!(repository.processes().is_empty(), "nothing runs while it waits");
    let mut process = repository.approves(&waiting).spawn().unwrap();
    let held = OpenOptions::new().write(true).open(&gate).unwrap();
    assert!(repository.processes().len() > 1, "the command and the tests run");
    process.kill().unwrap();
    process.wait().unwrap();
    repository.wait_for_processes();
    drop(held);
    let seen = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert_eq!(seen.count(), 0, "the turn has not ended");

    // The change is in the changeset alone.
    assert_eq!(repository.git(&["status", "--porcelain"]), "");
    assert_eq!(repository.git(&["log", "--format=%s"]), "by hand");
    let [tree] = &repository.work_trees()[..] else { panic!("{:?}", repository.work_trees()) };
    assert_eq!(fs::read_to_string(tree.join("greet.sh")).unwrap(), "echo \"Hello, $1!\"\n");

    fs::remove_file(&gate).unwrap();
    let turn = repository.turn("go on");
    assert_eq!(turn["response"], "Done: the greeting ends with an exclamation mark, and the tests pass.", "{turn}");
    repository.assert_committed();
}

#[test]
#[cfg(feature = "models")]
fn a_real_model_takes_one_line() {
    let bundle = fs::read_to_string(format!("{EXAMPLE}/goondan.yaml")).unwrap();
    let real = bundle.lines().find_map(|line| line.strip_prefix("#   spec: ")).unwrap();
    let page = fs::read_to_string(format!("{EXAMPLE}/README.md")).unwrap();
    assert!(page.contains(real), "the page shows another line than {real}");
    let copy = TempDir::new().unwrap();
    let changed = bundle.replace("{ provider: scripted, script: ./script.yaml }", real);
    assert_ne!(changed, bundle);
    fs::write(copy.path().join("goondan.yaml"), changed).unwrap();
    let output = goondan().arg("check").arg(copy.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
