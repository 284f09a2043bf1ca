//! `goondan changeset` with what a hostile agent has written, and the git of a person who has configured programs.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use goondan_covers::covers;
use goondan_libraries::Build;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{MODEL, goondan, stderr, stdout};

/// The documents after the model.
const BUNDLE: &str = "apiVersion: goondan.ai/v1
kind: Extension
metadata: { name: changesets }
spec: { entry: 'linked:changesets', config: { repository: ../repository } }
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: { name: main }
spec: { model: Model/main, extensions: [ { ref: Extension/changesets } ] }
";

/// A repository, an agent that opens changesets of it, and a home.
struct World {
    root: TempDir,
}

impl World {
    fn new() -> Self {
        let this = Self { root: TempDir::new().unwrap() };
        for directory in ["bundle", "home", "repository"] {
            fs::create_dir(this.path(directory)).unwrap();
        }
        fs::write(this.path("bundle/goondan.yaml"), format!("{MODEL}{BUNDLE}")).unwrap();
        let script = "- { call: { tool: changesets__open, args: { reason: to see } } }\n- { say: opened }\n";
        fs::write(this.path("bundle/script.yaml"), script).unwrap();
        this.program("trap", "echo \"$0 $*\" >> \"$(dirname \"$0\")/mark\"; cat");
        this.git(&["init", "--quiet", "--initial-branch=main"]);
        this.write("notes.txt", "a\n");
        this
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    /// Writes a shell script, and returns its path.
    fn program(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.path("repository").join(path), text).unwrap();
    }

    /// Configures the git of the person.
    fn configure(&self, settings: &[(&str, &str)]) {
        for (name, value) in settings {
            let arguments = ["config", "--file", "../home/.gitconfig", name, value];
            assert!(self.at_home(Command::new("git").args(arguments)).status.success());
        }
    }

    /// Runs a command in the repository as the person does.
    fn at_home(&self, command: &mut Command) -> Output {
        let home = self.path("home");
        command.env("HOME", &home).env("XDG_CONFIG_HOME", home.join(".config")).env("GIT_CONFIG_NOSYSTEM", "1");
        command.current_dir(self.path("repository")).output().unwrap()
    }

    fn git(&self, arguments: &[&str]) -> String {
        let output = self.at_home(Command::new("git").args(arguments));
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        stdout(&output).trim_end().to_owned()
    }

    fn commit(&self) {
        self.git(&["add", "--all"]);
        self.git(&["-c", "user.name=me", "-c", "user.email=me@localhost", "commit", "--quiet", "-m", "by hand"]);
    }

    fn goondan(&self, arguments: &[&str]) -> Output {
        let mut command = goondan();
        command.args(arguments).arg("--state-root").arg(self.path("state"));
        let trap = self.path("trap");
        for name in ["GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_EDITOR", "GIT_SSH_COMMAND", "GIT_ASKPASS"] {
            command.env(name, &trap);
        }
        self.at_home(&mut command)
    }

    /// Opens a changeset. Returns its id and its work tree.
    fn open(&self) -> (String, PathBuf) {
        let output = self.goondan(&["run", "--trust", self.path("bundle").to_str().unwrap(), "--input", "go"]);
        assert!(output.status.success(), "{output:?}");
        let listed = stdout(&self.goondan(&["changeset", "list"])).to_owned();
        let id = listed.split_whitespace().next().unwrap().to_owned();
        (id, PathBuf::from(listed.lines().nth(1).unwrap().trim()))
    }

    /// Lets the bundle load the extension from a library.
    fn load_extension(&self) {
        let library = Build::ready_made("changesets").run(env!("CARGO_TARGET_TMPDIR"));
        fs::copy(library, self.path(&format!("bundle/{DLL_PREFIX}changesets{DLL_SUFFIX}"))).unwrap();
        let bundle = BUNDLE.replace("linked:changesets", "./changesets#changesets");
        fs::write(self.path("bundle/goondan.yaml"), format!("{MODEL}{bundle}")).unwrap();
    }

    /// Lets the agent commit the only changeset. Returns what it is told.
    fn agent_commits(&self) -> Value {
        let script = "- { call: { tool: changesets__commit, args: { message: by the agent } } }\n- { say: done }\n";
        fs::write(self.path("bundle/script.yaml"), script).unwrap();
        let output = self.goondan(&["run", "--trust", self.path("bundle").to_str().unwrap(), "--input", "go"]);
        assert!(output.status.success(), "{output:?}");
        let messages = self.path("state/workspaces/main/instances/main:default/messages/base.jsonl");
        let messages = fs::read_to_string(messages).unwrap();
        let messages = messages.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let mut results = messages.filter(|message| message["data"]["role"] == "tool");
        results.next_back().unwrap()["data"]["content"][0]["output"]["value"].clone()
    }

    fn assert_untouched(&self) {
        let mark = self.path("mark");
        assert!(!mark.exists(), "{}", fs::read_to_string(mark).unwrap());
    }
}

#[test]
#[covers("TREE-01")]
fn a_hostile_change_is_shown_completely_and_starts_nothing() {
    let world = World::new();
    world.commit();
    let trap = world.path("trap");
    let programs = [
        "core.editor",
        "core.fsmonitor",
        "core.pager",
        "pager.diff-tree",
        "pager.cat-file",
        "diff.external",
        "diff.p.command",
        "diff.p.textconv",
        "filter.p.clean",
        "filter.p.smudge",
        "filter.p.process",
        "merge.p.driver",
        "gpg.program",
        "credential.helper",
        "interactive.diffFilter",
        "alias.diff-tree",
    ];
    world.configure(&programs.map(|name| (name, trap.to_str().unwrap())));
    world.configure(&[("diff.noprefix", "true"), ("core.attributesFile", "~/attributes")]);
    fs::write(world.path("home/attributes"), "* diff=p filter=p merge=p\n").unwrap();
    let (id, tree) = world.open();
    // A repository, as texts alone can make it.
    for (file, text) in [
        ("HEAD", "ref: refs/heads/main\n"),
        ("config", &format!("[core]\n\tfsmonitor = {0}\n[filter \"p\"]\n\tclean = {0}\n", trap.display())),
        ("refs/none", ""),
        ("objects/none", ""),
    ] {
        let path = tree.join("x/.git").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    fs::write(tree.join("x/.gitattributes"), "* filter=p\n").unwrap();
    let refused = world.goondan(&["changeset", "show", &id]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("E_CHANGESET_FILES") && stderr(&refused).contains("x/.git"), "{refused:?}");
    let refused = world.goondan(&["changeset", "commit", &id]);
    assert!(stderr(&refused).contains("E_CHANGESET_FILES") && stderr(&refused).contains("x/.git"), "{refused:?}");

    fs::remove_dir_all(tree.join("x/.git")).unwrap();
    fs::write(tree.join(".gitattributes"), "* -diff diff=p\n").unwrap();
    fs::write(tree.join("notes.txt"), "evil\x1b[2K\x1b[1A\rharmless \u{202e}live\n").unwrap();
    fs::write(tree.join("binary"), b"\0\x9b evil too\n").unwrap();
    let shown = world.goondan(&["changeset", "show", &id]);
    let text = stdout(&shown);
    for part in ["--- a/notes.txt", "\n-a\n+evil\u{241b}[2K", "\rharmless ".trim(), "evil too", "\n+* -diff"] {
        assert!(text.contains(part), "{part:?}: {text}");
    }
    assert!(!text.contains(['\x1b', '\r', '\u{202e}', '\0']), "{text:?}");
    world.assert_untouched();
    world.git(&["--paginate", "status"]);
    assert!(world.path("mark").exists(), "the programs are configured");
}

#[test]
#[covers("TREE-01")]
fn an_agent_chooses_no_filter_of_the_person() {
    let world = World::new();
    world.commit();
    let (id, tree) = world.open();
    let trap = world.path("trap");
    world.configure(&[("filter.p.clean", trap.to_str().unwrap()), ("filter.p.smudge", trap.to_str().unwrap())]);
    fs::write(tree.join(".gitattributes"), "* filter=p\n").unwrap();
    fs::write(tree.join("notes.txt"), "b\n").unwrap();
    let refused = world.goondan(&["changeset", "commit", &id]);
    for part in ["E_CHANGESET_FILTER", "`p`", ".gitattributes", &format!("git merge refs/goondan/{id}")] {
        assert!(stderr(&refused).contains(part), "{part}: {refused:?}");
    }
    world.assert_untouched();
    assert_eq!(world.git(&["rev-list", "--count", "main"]), "1");
    // Without filters, there is nothing to choose.
    fs::remove_file(world.path("home/.gitconfig")).unwrap();
    fs::write(tree.join(".gitattributes"), "*.txt text eol=crlf filter=p\n").unwrap();
    let committed = world.goondan(&["changeset", "commit", &id]);
    assert!(committed.status.success(), "{committed:?}");
    assert_eq!(fs::read_to_string(world.path("repository/notes.txt")).unwrap(), "b\r\n");
    assert_eq!(world.git(&["status", "--porcelain"]), "");
}

/// Reads a large file, and prints a pointer.
const CLEAN: &str = r#"t=$(mktemp); cat > $t
if grep -q '^version https://git-lfs' $t; then cat $t; exit; fi
h=$(sha256sum < $t | cut -d' ' -f1); cp $t "$(dirname "$0")/$h"
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %s\n' $h $(wc -c < $t)"#;
/// Reads a pointer, and prints the large file.
const SMUDGE: &str = r#"t=$(mktemp); cat > $t; h=$(sed -n 's/^oid sha256://p' $t)
if [ -n "$h" ]; then cat "$(dirname "$0")/$h"; else cat $t; fi"#;

/// A commit by the agent itself, with the home of a person who has configured filters and other programs.
fn commits_with_filters_of_the_person(is_loaded: bool) {
    let world = World::new();
    if is_loaded {
        world.load_extension();
    }
    let (clean, smudge) = (world.program("clean", CLEAN), world.program("smudge", SMUDGE));
    let trap = world.path("trap").to_str().unwrap().to_owned();
    world.configure(&[("filter.lfs.clean", &clean), ("filter.lfs.smudge", &smudge), ("filter.lfs.required", "true")]);
    world.write(".gitattributes", "*.bin filter=lfs -text\n");
    world.write("large.bin", "large content\n");
    world.commit();
    let programs = ["filter.p.clean", "filter.p.smudge", "filter.p.process", "core.fsmonitor", "diff.external"];
    world.configure(&programs.map(|name| (name, &*trap)));
    let (_, tree) = world.open();

    // The agent chooses a filter of the person, or passes a file through one.
    let attributes = fs::read_to_string(tree.join(".gitattributes")).unwrap();
    fs::write(tree.join(".gitattributes"), format!("{attributes}*.txt filter=p\n")).unwrap();
    fs::write(tree.join("notes.txt"), "b\n").unwrap();
    let refused = world.agent_commits();
    let files = |answer: &Value| answer["error"]["violatedFiles"].clone();
    assert_eq!((&refused["error"]["code"], files(&refused)), (&json!("E_CHANGESET_FILTER"), json!([".gitattributes"])));
    fs::write(tree.join(".gitattributes"), attributes).unwrap();
    fs::write(tree.join("new.bin"), "no pointer").unwrap();
    fs::copy(tree.join("large.bin"), tree.join("copy.bin")).unwrap();
    let refused = world.agent_commits();
    assert_eq!((&refused["error"]["code"], files(&refused)), (&json!("E_CHANGESET_FILTER"), json!(["new.bin"])));
    world.assert_untouched();

    // A pointer is what the filter of the person is for.
    fs::remove_file(tree.join("new.bin")).unwrap();
    let committed = world.agent_commits();
    assert_eq!(committed["status"], "ok", "{committed}");
    for file in ["copy.bin", "large.bin"] {
        assert_eq!(fs::read_to_string(world.path("repository").join(file)).unwrap(), "large content\n", "{file}");
    }
    assert_eq!(fs::read_to_string(world.path("repository/notes.txt")).unwrap(), "b\n");
    world.assert_untouched();
}

#[test]
#[covers("TREE-01")]
fn the_filters_of_the_person_run_for_an_agent_that_commits_by_a_linked_extension() {
    commits_with_filters_of_the_person(false);
}

#[test]
#[covers("TREE-01")]
fn the_filters_of_the_person_run_for_an_agent_that_commits_by_a_loaded_extension() {
    commits_with_filters_of_the_person(true);
}

/// Returns the files of a checkout.
fn files(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
            pending.extend(entries.filter(|path| !path.ends_with(".git")));
        } else {
            files.push((path.strip_prefix(directory).unwrap().to_owned(), fs::read(&path).unwrap()));
        }
    }
    files.sort();
    files
}

#[test]
#[covers("TREE-01")]
fn a_person_with_large_files_line_ends_and_a_submodule_gets_what_git_makes() {
    let world = World::new();
    let (clean, smudge) = (world.program("clean", CLEAN), world.program("smudge", SMUDGE));
    world.configure(&[("filter.lfs.clean", &clean), ("filter.lfs.smudge", &smudge), ("filter.lfs.required", "true")]);
    world.configure(&[("core.autocrlf", "true"), ("protocol.file.allow", "always")]);
    let sub = "git init -q ../sub && cd ../sub && echo inside > file && git add -A && \
               git -c user.name=me -c user.email=me@localhost commit -qm sub";
    assert!(world.at_home(Command::new("sh").args(["-c", sub])).status.success());
    world.git(&["submodule", "--quiet", "add", world.path("sub").to_str().unwrap(), "sub"]);
    world.write(".gitattributes", "*.bin filter=lfs -text\n");
    world.write("large.bin", "large\r\ncontent\n");
    world.write("run.cmd", "a\r\n");
    world.commit();
    let copy = Command::new("cp").args(["-r", "repository", "plain"]).current_dir(world.root.path()).status();
    assert!(copy.unwrap().success());

    let (id, tree) = world.open();
    assert!(fs::read_to_string(tree.join("large.bin")).unwrap().starts_with("version https://git-lfs"));
    assert_eq!(fs::read_to_string(tree.join("run.cmd")).unwrap(), "a\n");
    let status = world.at_home(Command::new("git").arg("-C").arg(&tree).args(["status", "--porcelain"]));
    assert_eq!(stdout(&status), "");
    fs::rename(tree.join("large.bin"), tree.join("moved.bin")).unwrap();
    fs::write(tree.join("run.cmd"), "a\nb\n").unwrap();
    fs::write(tree.join("new.bin"), "not a pointer").unwrap();
    let shown = world.goondan(&["changeset", "show", &id]);
    assert!(!stdout(&shown).contains("large\u{240d}") && !stdout(&shown).contains("sub"), "{shown:?}");
    let refused = world.goondan(&["changeset", "commit", &id]);
    assert!(stderr(&refused).contains("E_CHANGESET_FILTER") && stderr(&refused).contains(": new.bin"), "{refused:?}");
    fs::remove_file(tree.join("new.bin")).unwrap();
    let committed = world.goondan(&["changeset", "commit", &id]);
    assert!(committed.status.success(), "{committed:?}");

    // The same by hand.
    let by_hand = "cd ../plain && git mv large.bin moved.bin && printf 'a\\r\\nb\\r\\n' > run.cmd && git add run.cmd && \
                   git -c user.name=me -c user.email=me@localhost commit -qm 'by hand' && git rev-parse HEAD^{tree}";
    let by_hand = world.at_home(Command::new("sh").args(["-c", by_hand]));
    assert_eq!(world.git(&["rev-parse", "HEAD^{tree}"]), stdout(&by_hand).trim(), "{by_hand:?}");
    assert_eq!(files(&world.path("repository")), files(&world.path("plain")));
    assert_eq!(world.git(&["status", "--porcelain"]), "");
    world.git(&["fsck", "--strict"]);
}
