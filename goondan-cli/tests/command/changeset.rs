//! `goondan changeset`: an agent proposes a change of its bundle, and a person commits it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::Command;

use goondan_covers::covers;
use tempfile::TempDir;

use crate::support::{MODEL, git, goondan, init, piped, printed};

/// The documents after the model.
const BUNDLE: &str = "apiVersion: goondan.ai/v1
kind: Extension
metadata: { name: live-config }
spec: { entry: 'linked:live-config', config: { allowed: [goondan.yaml] } }
---
apiVersion: goondan.ai/v1
kind: Extension
metadata: { name: wait }
spec: { entry: 'linked:wait' }
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: { name: main }
spec:
  model: Model/main
  extensions:
    - ref: Extension/live-config
";

const PATCH: &str = "
--- a/goondan.yaml
+++ b/goondan.yaml
@@ -20,3 +20,4 @@
   model: Model/main
   extensions:
     - ref: Extension/live-config
+    - ref: Extension/wait
";

/// A repository with a bundle, and a state root beside it.
struct Fixture {
    root: TempDir,
}

impl Fixture {
    fn new() -> Self {
        let this = Self { root: TempDir::new().unwrap() };
        fs::create_dir(this.path("bundle")).unwrap();
        fs::write(this.path("bundle/goondan.yaml"), format!("{MODEL}{BUNDLE}")).unwrap();
        let patch = serde_json::json!({ "patch": PATCH, "reason": "I want to wait" });
        let script = format!(
            "- {{ when: go, call: {{ tool: live-config__propose, args: {patch} }} }}\n\
             - {{ when: go, say: proposed }}\n\
             - {{ when: wait, call: {{ tool: wait__seconds, args: {{ seconds: 0 }} }} }}\n\
             - {{ when: wait, say: waited }}\n"
        );
        fs::write(this.path("bundle/script.yaml"), script).unwrap();
        fs::write(this.path("bundle/.gitignore"), "script.yaml\n").unwrap();
        init(&this.path("bundle"));
        this
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    fn git(&self, arguments: &[&str]) -> String {
        git(&self.path("bundle"), arguments)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = goondan();
        command.args(arguments).arg("--state-root").arg(self.path("state"));
        command
    }

    /// Runs `goondan changeset`, and returns what it prints.
    fn changeset(&self, arguments: &[&str]) -> String {
        printed(&mut self.command(&[&["changeset"], arguments].concat()))
    }
}

#[test]
#[covers("LEGACY-LIVECONFIG-01", "LEGACY-LIVECONFIG-02")]
fn a_proposal_that_a_person_commits_gives_the_agent_a_tool_while_it_runs() {
    let fixture = Fixture::new();
    let mut command = fixture.command(&["run", "--trust", fixture.path("bundle").to_str().unwrap(), "--watch"]);
    let mut child = piped(&mut command);
    let (mut input, mut answers) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()).lines());
    let mut status = BufReader::new(child.stderr.take().unwrap()).lines();
    writeln!(input, "go").unwrap();
    assert_eq!(answers.next().unwrap().unwrap(), "proposed");
    assert_eq!(fixture.git(&["status", "--porcelain"]), "", "nothing has changed");

    let listed = fixture.changeset(&["list"]);
    let id = listed.split_whitespace().next().unwrap();
    assert!(listed.starts_with(&format!("{id}  main/default: I want to wait\n")), "{listed}");
    let shown = fixture.changeset(&["show", id]);
    assert!(shown.contains("\n+    - ref: Extension/wait\n"), "{shown}");
    let committed = fixture.changeset(&["commit", id]);
    assert!(committed.starts_with("Committed as git:"), "{committed}");
    assert_eq!(fixture.git(&["log", "-1", "--format=%s"]), "I want to wait\n");
    assert_eq!(fixture.changeset(&["list"]), "No changeset is open.\n");

    let reloaded = status.by_ref().map(Result::unwrap).find(|line| line.starts_with("reloaded")).unwrap();
    assert!(reloaded.starts_with("reloaded: wait "), "{reloaded}");
    writeln!(input, "wait").unwrap();
    assert_eq!(answers.next().unwrap().unwrap(), "waited");
    drop(input);
    assert!(child.wait().unwrap().success());
    let messages = fixture.path("state/workspaces/main/instances/main:default/messages/base.jsonl");
    let messages = fs::read_to_string(messages).unwrap();
    assert!(messages.contains("wait__seconds") && !messages.contains("E_TOOL"), "{messages}");
}

#[test]
fn a_discarded_changeset_is_gone_and_an_unknown_one_is_named() {
    let fixture = Fixture::new();
    let mut command = fixture.command(&["run", "--trust", fixture.path("bundle").to_str().unwrap(), "--input", "go"]);
    assert!(command.output().unwrap().status.success());
    let listed = fixture.changeset(&["list"]);
    let id = listed.split_whitespace().next().unwrap();
    assert_eq!(fixture.changeset(&["discard", id]), format!("Discarded `{id}`.\n"));
    assert_eq!(fixture.changeset(&["list"]), "No changeset is open.\n");
    let output = fixture.command(&["changeset", "show", id]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains(&format!("there is no open changeset `{id}`")));
}

#[test]
fn a_commit_that_git_does_not_make_says_why() {
    let fixture = Fixture::new();
    let mut command = fixture.command(&["run", "--trust", fixture.path("bundle").to_str().unwrap(), "--input", "go"]);
    assert!(command.output().unwrap().status.success());
    let listed = fixture.changeset(&["list"]);
    let id = listed.split_whitespace().next().unwrap();
    fs::write(fixture.path("bundle/goondan.yaml"), format!("{MODEL}{BUNDLE}# mine\n")).unwrap();
    let output = fixture.command(&["changeset", "commit", id]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("E_CHANGESET_UNCOMMITTED"), "{said}");
    assert!(said.contains("goondan.yaml") && fixture.changeset(&["list"]).contains(id), "{said}");
}
