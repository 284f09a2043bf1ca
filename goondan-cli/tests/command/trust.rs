//! What a person agrees to before a bundle runs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use goondan_covers::covers;
use tempfile::TempDir;

use crate::support::{MODEL, checkout, goondan, on_a_terminal, printed, stderr, stdout};

/// A bundle of a stranger, whose agent writes a file.
struct Stranger(TempDir);

impl Stranger {
    fn new() -> Self {
        let this = Self(TempDir::new().unwrap());
        fs::create_dir(this.path("bundle")).unwrap();
        let script = "[{ call: { tool: bash__exec, args: { command: 'echo > ran' } } }, { say: done }]";
        fs::write(this.path("bundle/script.yaml"), script).unwrap();
        this.configure("");
        this
    }

    /// Gives the shell more settings.
    fn configure(&self, more: &str) {
        let bundle = format!(
            "{MODEL}apiVersion: goondan.ai/v1
kind: Extension
metadata: {{ name: bash }}
spec: {{ entry: 'linked:bash', config: {{ cwd: . {more} }} }}
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: {{ name: main }}
spec: {{ model: Model/main, extensions: [ {{ ref: Extension/bash }} ] }}
"
        );
        fs::write(self.path("bundle/goondan.yaml"), bundle).unwrap();
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = goondan();
        command.current_dir(self.0.path()).env("GOONDAN_STATE_ROOT", self.path("state")).args(arguments);
        command
    }

    fn run(&self, more: &[&str]) -> Output {
        self.command(&["run", "bundle", "--input", "go"]).args(more).output().unwrap()
    }

    /// Returns whether the agent has run since the last question.
    fn ran(&self) -> bool {
        fs::remove_file(self.path("bundle/ran")).is_ok()
    }

    /// Asserts that a run is refused before anything has run, and returns what is asked about.
    #[track_caller]
    fn refused(&self, output: &Output) -> String {
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let text = stderr(output);
        assert!(text.contains("E_BUNDLE_TRUST") && text.contains("`goondan trust`"), "{text}");
        assert!(!self.ran());
        text.lines().filter(|line| line.starts_with("  ")).collect::<Vec<_>>().join("\n")
    }

    #[track_caller]
    fn runs(&self, more: &[&str]) {
        let output = self.run(more);
        assert!(output.status.success() && self.ran(), "{output:?}");
    }

    /// Runs the bundle on a terminal, where a person types a line.
    fn on_a_terminal(&self, typed: &str) -> (String, Option<i32>) {
        on_a_terminal(&self.command(&["run", "bundle", "--input", "go"]), typed)
    }
}

#[test]
#[covers("TRUST-01")]
fn without_a_terminal_a_bundle_that_acts_is_refused_until_it_is_agreed_to() {
    let stranger = Stranger::new();
    let asked = stranger.refused(&stranger.run(&[]));
    assert!(asked.contains("shell     bash  (extension bash of the agent main)"), "{asked}");
    stranger.refused(&stranger.run(&["--json"]));
    stranger.runs(&["--trust"]);
    stranger.refused(&stranger.run(&[]));

    // An agreement below another state root is none.
    printed(&mut stranger.command(&["trust", "bundle", "--allow-absolute-plugins", "--state-root", "other"]));
    printed(&mut stranger.command(&["trust", "--dir", ".", "--state-root", "other"]));
    stranger.refused(&stranger.run(&[]));
    for wrong in [&["trust"][..], &["trust", "bundle", "--dir", "."]] {
        assert_eq!(stranger.command(wrong).output().unwrap().status.code(), Some(2));
    }

    let page = printed(&mut stranger.command(&["trust", "bundle"]));
    assert!(page.contains("shell     bash") && page.contains("Agreed to run "), "{page}");
    stranger.runs(&[]);
    // By another path, too.
    std::os::unix::fs::symlink("bundle", stranger.path("link")).unwrap();
    let output = stranger.command(&["run", "link", "--input", "go"]).output().unwrap();
    assert!(output.status.success() && stranger.ran(), "{output:?}");
}

#[test]
#[covers("TRUST-01")]
fn commands_in_another_directory_are_asked_about_again() {
    let stranger = Stranger::new();
    printed(&mut stranger.command(&["trust", "bundle"]));
    let bundle = fs::read_to_string(stranger.path("bundle/goondan.yaml")).unwrap();
    fs::write(stranger.path("bundle/goondan.yaml"), bundle.replace("cwd: .", "cwd: ..")).unwrap();
    let asked = stranger.refused(&stranger.run(&[]));
    assert!(asked.contains("root      ..") && !asked.contains("shell"), "{asked}");
}

#[test]
#[covers("TRUST-01")]
fn a_list_that_has_grown_is_asked_about_again() {
    let stranger = Stranger::new();
    printed(&mut stranger.command(&["trust", "bundle"]));
    stranger.configure(", env: [GH_TOKEN]");
    let asked = stranger.refused(&stranger.run(&[]));
    assert!(asked.contains("variable  GH_TOKEN") && !asked.contains("shell"), "{asked}");
    printed(&mut stranger.command(&["trust", "bundle"]));
    stranger.runs(&[]);
    stranger.configure("");
    stranger.runs(&[]);
}

#[test]
#[covers("TRUST-01")]
fn a_directory_is_agreed_to_with_all_that_its_bundles_can_do() {
    let stranger = Stranger::new();
    printed(&mut stranger.command(&["trust", "--dir", "."]));
    stranger.runs(&[]);
    stranger.configure(", env: [GH_TOKEN]");
    stranger.runs(&[]);
    let other = Stranger::new();
    let output = stranger.command(&["run"]).arg(other.path("bundle")).args(["--input", "go"]).output().unwrap();
    other.refused(&output);
}

#[test]
#[covers("TRUST-01")]
fn on_a_terminal_a_person_is_asked_once() {
    let stranger = Stranger::new();
    let (page, code) = stranger.on_a_terminal("n\n");
    assert!(page.contains("shell     bash") && page.contains("Run it? [y/N]"), "{page}");
    assert_eq!((code, stranger.ran()), (Some(2), false), "{page}");
    let (page, code) = stranger.on_a_terminal("y\n");
    assert_eq!((code, stranger.ran()), (Some(0), true), "{page}");
    let (page, code) = stranger.on_a_terminal("");
    assert_eq!((code, stranger.ran(), page.contains("Run it?")), (Some(0), true, false), "{page}");
}

#[test]
#[covers("TRUST-01")]
fn an_agreement_that_another_user_could_have_written_does_not_count() {
    for directory in [false, true] {
        let stranger = Stranger::new();
        let arguments: &[&str] = if directory { &["trust", "--dir", "."] } else { &["trust", "bundle"] };
        printed(&mut stranger.command(arguments));
        let kind = stranger.path("state/trust").join(if directory { "directories" } else { "bundles" });
        let file = fs::read_dir(&kind).unwrap().next().unwrap().unwrap().path();
        assert_eq!(mode(&file), 0o600);
        stranger.runs(&[]);
        for (path, open, closed) in [(&file, 0o602, 0o600), (&kind, 0o770, 0o700)] {
            fs::set_permissions(path, fs::Permissions::from_mode(open)).unwrap();
            stranger.refused(&stranger.run(&[]));
            fs::set_permissions(path, fs::Permissions::from_mode(closed)).unwrap();
            stranger.runs(&[]);
        }
        // A link to what this user has written elsewhere.
        let moved = stranger.path("moved.json");
        fs::rename(&file, &moved).unwrap();
        std::os::unix::fs::symlink(&moved, &file).unwrap();
        stranger.refused(&stranger.run(&[]));
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
#[covers("TRUST-01")]
fn an_extension_that_reads_the_environment_is_asked_about() {
    let stranger = Stranger::new();
    let bundle = format!(
        "{MODEL}apiVersion: goondan.ai/v1
kind: Extension
metadata: {{ name: message-compaction }}
spec:
  entry: 'linked:message-compaction'
  config: {{ summary: {{ instructions: {{ valueFrom: {{ env: AWS_SECRET_KEY, secret: false }} }} }} }}
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: {{ name: main }}
spec: {{ model: Model/main, extensions: [ {{ ref: Extension/message-compaction }} ] }}
"
    );
    fs::write(stranger.path("bundle/goondan.yaml"), bundle).unwrap();
    let run = |more: &[&str]| {
        let mut command = stranger.command(&["run", "bundle", "--input", "go"]);
        command.env("AWS_SECRET_KEY", "hunter2").args(more).output().unwrap()
    };
    let asked = stranger.refused(&run(&[]));
    assert!(asked.contains("AWS_SECRET_KEY") && !asked.contains("hunter2"), "{asked}");
    fs::write(stranger.path("bundle/script.yaml"), "[{ say: done }]").unwrap();
    let output = run(&["--trust"]);
    assert!(output.status.success(), "{output:?}");
}

#[test]
#[covers("TRUST-01")]
fn extensions_that_are_only_listed_are_started_by_the_same_rule() {
    let stranger = Stranger::new();
    let output = stranger.command(&["plugin", "list", "--start", "bundle"]).output().unwrap();
    stranger.refused(&output);
    let page = printed(&mut stranger.command(&["plugin", "list", "--start", "--trust", "bundle"]));
    assert!(page.contains("bash__exec"), "{page}");
    printed(&mut stranger.command(&["plugin", "list", "bundle"]));
}

#[test]
#[covers("TRUST-01")]
fn a_bundle_that_only_asks_its_models_runs_at_once() {
    let state = TempDir::new().unwrap();
    let mut command = goondan();
    command.args(["run", "--input", "hello", "--state-root"]).arg(state.path());
    let output = command.arg(checkout().join("examples/quickstart")).output().unwrap();
    assert!(output.status.success() && !stdout(&output).is_empty(), "{output:?}");
    assert!(!Path::new(&state.path().join("trust")).exists());
}
