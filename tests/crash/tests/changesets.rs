//! Kills a process before and after each git that the extension `changesets` runs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use goondan_covers::covers;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Runs git, and kills its parent before or after the call with the number in `KILLED_AT`.
const GIT: &str = r#"#!/bin/sh
call=$(($(cat "$CALLS") + 1))
echo $call > "$CALLS"
[ "$call $KILLED" = "$KILLED_AT before" ] && kill -9 $PPID && exit 1
PATH=$REAL_PATH git "$@"
status=$?
[ "$call $KILLED" = "$KILLED_AT after" ] && kill -9 $PPID
exit $status
"#;

/// A repository, and a directory with a `git` that kills.
struct Fixture {
    root: TempDir,
}

impl Fixture {
    fn new() -> Self {
        let this = Self { root: TempDir::new().unwrap() };
        for directory in ["repository", "bin"] {
            fs::create_dir(this.path(directory)).unwrap();
        }
        fs::write(this.path("bin/git"), GIT).unwrap();
        fs::set_permissions(this.path("bin/git"), fs::Permissions::from_mode(0o755)).unwrap();
        this.git(&["init", "--quiet"]);
        this.commit("old", "old");
        this
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    fn git(&self, arguments: &[&str]) -> String {
        let output = Command::new("git").current_dir(self.path("repository")).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    /// Commits a file as a person does.
    fn commit(&self, file: &str, text: &str) {
        fs::write(self.path("repository").join(file), text).unwrap();
        self.git(&["add", "--all"]);
        self.git(&["-c", "user.name=me", "-c", "user.email=me@localhost", "commit", "--quiet", "-m", "by hand"]);
    }

    /// Makes one call in a process of its own, which is killed at the git with the number `at`.
    fn call(&self, tool: &str, args: &Value, at: u32, killed: &str) -> Output {
        self.command(tool, args, at, killed).output().unwrap()
    }

    fn command(&self, tool: &str, args: &Value, at: u32, killed: &str) -> Command {
        fs::write(self.path("calls"), "0").unwrap();
        let path = std::env::var("PATH").unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_goondan-crash"));
        child.arg("changing").arg(self.root.path()).arg(format!("changesets__{tool}")).arg(args.to_string());
        child.env("PATH", format!("{}:{path}", self.path("bin").display())).env("REAL_PATH", path);
        child.env("CALLS", self.path("calls")).env("KILLED_AT", at.to_string()).env("KILLED", killed);
        child
    }

    /// Makes one call in a process of its own, which is killed as soon as `seen` returns true. Returns whether it was.
    fn kill_when(&self, tool: &str, args: &Value, seen: impl Fn() -> bool) -> bool {
        let mut command = self.command(tool, args, 0, "never");
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        while !seen() && child.try_wait().unwrap().is_none() {}
        child.kill().unwrap();
        child.wait().unwrap().signal() == Some(9)
    }

    /// Returns the work trees that are there.
    fn work_trees(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path("store/extensions/changesets")).into_iter().flatten();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.is_dir() && path.extension().is_none()).collect()
    }

    /// Commits many files as a person does.
    fn commit_many(&self) {
        for number in 0..MANY {
            fs::write(self.path("repository").join(format!("file-{number:03}")), "theirs".repeat(1000)).unwrap();
        }
        self.commit("other", "meanwhile");
    }

    /// Makes one call that is not killed, and returns its result.
    fn result(&self, tool: &str, args: &Value) -> Value {
        let output = self.call(tool, args, 0, "never");
        let printed = String::from_utf8(output.stdout).unwrap();
        serde_json::from_str(&printed)
            .unwrap_or_else(|_| panic!("{tool}: {printed}{}", String::from_utf8_lossy(&output.stderr)))
    }

    /// Opens a changeset that changes a file, and returns what names it.
    fn open(&self) -> Value {
        let opened = self.result("open", &json!({}));
        fs::write(Path::new(opened["workdir"].as_str().unwrap()).join("old"), "new").unwrap();
        json!({ "changesetId": opened["changesetId"] })
    }

    fn open_changesets(&self) -> Vec<Value> {
        self.result("list", &json!({}))["changesets"].as_array().unwrap().clone()
    }

    /// Whether the change is committed. It is committed completely or not at all.
    fn is_changed(&self) -> bool {
        self.git(&["fsck", "--strict"]);
        assert_eq!(self.git(&["status", "--porcelain"]), "");
        let changed = self.git(&["log", "--format=%s", "--grep=mine"]);
        let text = fs::read_to_string(self.path("repository/old")).unwrap();
        match (changed.lines().count(), &*text) {
            (0, "old") => false,
            (1, "new") => true,
            other => panic!("{other:?}"),
        }
    }

    /// Whatever was done, nothing is left of the changesets.
    fn is_clean(&self) {
        assert_eq!(self.open_changesets(), [] as [Value; 0]);
        assert_eq!(self.git(&["worktree", "list"]).lines().count(), 1);
        assert_eq!(self.git(&["for-each-ref", "refs/goondan"]), "");
        let left = fs::read_dir(self.path("store/extensions/changesets")).unwrap();
        assert_eq!(left.map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>(), [""; 0]);
    }
}

/// Calls `kill` with each number of a git and both moments, until one is not reached. Prints how many there are.
fn at_each_git(name: &str, mut kill: impl FnMut(u32, &str) -> bool) {
    for at in 1.. {
        // Both, so that they are as many.
        let killed = ["before", "after"].map(|moment| kill(at, moment));
        if killed == [false, false] {
            assert!(at > 1);
            return eprintln!("{name}: {} kills", 2 * (at - 1));
        }
        assert_eq!(killed, [true, true], "git {at}");
    }
}

/// Returns whether the process was killed.
fn is_killed(output: &Output) -> bool {
    let killed = output.status.signal() == Some(9);
    assert!(killed || output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    killed
}

/// How many files the work trees have in which a process is killed while it writes them.
const MANY: usize = 300;

#[test]
#[covers("LEGACY-CHANGESET-03", "CRASH-01")]
fn a_commit_that_is_killed_while_it_writes_merged_files_loses_nothing() {
    let mut kills = 0;
    for at in [0, 1, 60, 150, 240, MANY - 1] {
        let fixture = Fixture::new();
        let id = fixture.open();
        let tree = fixture.work_trees().remove(0);
        fixture.commit_many();
        let name = format!("file-{at:03}");
        kills += usize::from(fixture.kill_when("commit", &with_message(&id), || tree.join(&name).exists()));
        if !fixture.open_changesets().is_empty() {
            let ended = fixture.result("commit", &with_message(&id));
            assert_eq!(ended["status"], "ok", "{at}: {ended}");
        }
        assert!(fixture.is_changed());
        assert_eq!(fixture.git(&["show", "--format=", "--name-only", "HEAD"]), "old", "{at}");
        fixture.is_clean();
    }
    eprintln!("a commit that writes: {kills} kills");
}

#[test]
#[covers("LEGACY-CHANGESET-02", "CRASH-01")]
fn an_opening_that_is_killed_while_it_writes_files_cannot_be_committed() {
    let mut kills = 0;
    for at in [0, 1, 60, 150, 240, MANY - 1] {
        let fixture = Fixture::new();
        fixture.commit_many();
        let name = format!("file-{at:03}");
        let seen = || fixture.work_trees().iter().any(|tree| tree.join(&name).exists());
        kills += usize::from(fixture.kill_when("open", &json!({}), seen));
        let head = fixture.git(&["rev-parse", "HEAD"]);
        for open in fixture.open_changesets() {
            // Files that are missing are not deleted in the repository.
            let id = json!({ "changesetId": open["changesetId"] });
            fixture.call("commit", &with_message(&id), 0, "never");
            assert_eq!(fixture.git(&["rev-parse", "HEAD"]), head, "{at}");
            fixture.result("discard", &id);
        }
        fixture.is_clean();
    }
    eprintln!("an opening that writes: {kills} kills");
}

fn with_message(id: &Value) -> Value {
    json!({ "changesetId": id["changesetId"], "message": "mine" })
}

/// Kills a commit at each git, and then commits or discards the changeset: each after half of the kills, or both after
/// all if tests may take long.
fn kill_commits(name: &str, meanwhile: impl Fn(&Fixture)) {
    let ends: &[&[&str]] = match std::env::var_os("GOONDAN_RUNS") {
        Some(_) => &[&["commit"], &["discard"]],
        None => &[&["commit", "discard"]],
    };
    for ends in ends {
        at_each_git(&format!("{name}, then {}", ends.join(" or ")), |at, moment| {
            let number = at as usize + usize::from(moment == "after");
            let end = ends[number % ends.len()];
            let fixture = Fixture::new();
            let id = fixture.open();
            meanwhile(&fixture);
            let killed = is_killed(&fixture.call("commit", &with_message(&id), at, moment));
            let is_changed = fixture.is_changed();
            assert!(killed || is_changed);
            let open = fixture.open_changesets();
            assert!(open.len() == 1 || is_changed, "git {at}, {moment}: the changeset is lost");
            if !open.is_empty() {
                let ended = fixture.result(end, &with_message(&id));
                if end == "commit" {
                    assert_eq!(ended["status"], "ok", "git {at}, {moment}: {ended}");
                    assert_eq!(ended["newRef"], format!("git:{}", fixture.git(&["rev-parse", "HEAD"])));
                    assert_eq!(ended["summary"]["filesChanged"], json!(["old"]));
                }
            }
            assert_eq!(fixture.is_changed(), is_changed || end == "commit", "git {at}, {moment}");
            fixture.is_clean();
            killed
        });
    }
}

#[test]
#[covers("LEGACY-CHANGESET-03", "CRASH-01")]
fn a_commit_that_is_killed_at_any_git_can_be_repeated_or_discarded() {
    kill_commits("a commit", |_| ());
}

#[test]
#[covers("LEGACY-CHANGESET-03", "CRASH-01")]
fn a_commit_with_a_merge_that_is_killed_at_any_git_can_be_repeated_or_discarded() {
    kill_commits("a commit with a merge", |fixture| fixture.commit("other", "meanwhile"));
}

#[test]
#[covers("LEGACY-CHANGESET-02", "CRASH-01")]
fn an_opening_that_is_killed_at_any_git_leaves_what_can_be_discarded() {
    at_each_git("an opening", |at, moment| {
        let fixture = Fixture::new();
        let killed = is_killed(&fixture.call("open", &json!({}), at, moment));
        assert!(!fixture.is_changed());
        for open in fixture.open_changesets() {
            fixture.result("discard", &json!({ "changesetId": open["changesetId"] }));
        }
        fixture.is_clean();
        killed
    });
}

#[test]
#[covers("LEGACY-CHANGESET-02", "CRASH-01")]
fn a_discard_that_is_killed_at_any_git_can_be_repeated() {
    at_each_git("a discard", |at, moment| {
        let fixture = Fixture::new();
        let id = fixture.open();
        let killed = is_killed(&fixture.call("discard", &id, at, moment));
        assert!(!fixture.is_changed());
        if !fixture.open_changesets().is_empty() {
            fixture.result("discard", &id);
        }
        fixture.is_clean();
        killed
    });
}
