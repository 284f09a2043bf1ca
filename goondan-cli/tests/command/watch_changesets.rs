//! `goondan run --watch` and the extension `changesets`: the step after a commit runs on the committed bundle.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use goondan_covers::covers;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{MODEL, commit, git, goondan, init};

/// The documents after the model.
const DOCUMENTS: &str = "apiVersion: goondan.ai/v1
kind: Extension
metadata: { name: changesets }
spec: { entry: 'linked:changesets' }
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: { name: main }
spec: { model: Model/main, extensions: [ { ref: Extension/changesets } ] }
";

const WAIT: &str = "---
apiVersion: goondan.ai/v1
kind: Extension
metadata: { name: wait }
spec: { entry: 'linked:wait' }
";

fn bundle() -> String {
    format!("{MODEL}{DOCUMENTS}")
}

/// A repository with a bundle, and a state root beside it. The script of its model is not part of the repository.
struct Fixture {
    root: TempDir,
}

impl Fixture {
    fn new() -> Self {
        let this = Self { root: TempDir::new().unwrap() };
        fs::create_dir(this.path("bundle")).unwrap();
        fs::write(this.path("bundle/goondan.yaml"), bundle()).unwrap();
        init(&this.path("bundle"));
        this
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    /// Runs a turn of which the model calls one tool and says `old`. Returns the result of the call, and the answer.
    fn turn(&self, call: &str, options: &[&str]) -> (Value, String) {
        let script = format!("- {{ call: {call} }}\n- {{ say: old }}\n");
        fs::write(self.path("bundle/script.yaml"), script).unwrap();
        let mut command = goondan();
        command.args(["run", "--trust"]).arg(self.path("bundle")).arg("--state-root").arg(self.path("state"));
        fs::write(self.path("input"), "go\n").unwrap();
        command.stdin(File::open(self.path("input")).unwrap());
        let output = command.args(options).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let messages = self.path("state/workspaces/main/instances/main:default/messages/base.jsonl");
        let messages = fs::read_to_string(messages).unwrap();
        let messages = messages.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let results = messages.filter(|message| message["data"]["role"] == "tool");
        let contents: Vec<_> = results.map(|message| message["data"]["content"][0].clone()).collect();
        let of_turn = contents.iter().rfind(|content| content["toolName"].as_str().unwrap().starts_with("changesets"));
        let result = of_turn.unwrap()["output"]["value"].clone();
        (result, String::from_utf8(output.stdout).unwrap().trim_end().to_owned())
    }

    /// Opens a changeset in which the agent has another script and another tool. Returns its id.
    fn open(&self) -> String {
        let (opened, _) = self.turn("{ tool: changesets__open, args: {} }", &[]);
        let tree = Path::new(opened["workdir"].as_str().unwrap());
        let changed =
            bundle().replace("./script.yaml", "./new.yaml").replace("[ {", "[ { ref: Extension/wait }, {") + WAIT;
        fs::write(tree.join("goondan.yaml"), changed).unwrap();
        let script = "- { call: { tool: wait__seconds, args: { seconds: 0 } } }\n- { say: new }\n";
        fs::write(tree.join("new.yaml"), script).unwrap();
        opened["changesetId"].as_str().unwrap().to_owned()
    }

    fn commit(&self, id: &str, options: &[&str]) -> (Value, String) {
        self.turn(&format!("{{ tool: changesets__commit, args: {{ changesetId: {id}, message: new }} }}"), options)
    }
}

#[test]
#[covers("LEGACY-CHANGESET-04", "LEGACY-LIVECONFIG-02")]
fn the_step_after_a_commit_has_the_new_model_and_tools() {
    let fixture = Fixture::new();
    let id = fixture.open();
    let (committed, answer) = fixture.commit(&id, &["--watch"]);
    assert_eq!((&committed["status"], &committed["effect"]), (&"ok".into(), &"nextStep".into()), "{committed}");
    assert_eq!(answer, "new");
}

#[test]
fn without_watch_a_commit_has_no_effect_before_the_next_run() {
    let fixture = Fixture::new();
    let id = fixture.open();
    let (committed, answer) = fixture.commit(&id, &[]);
    assert_eq!((&committed["status"], &committed["effect"]), (&"ok".into(), &"none".into()), "{committed}");
    assert_eq!(committed["noEffectBecause"], "the program does not reload its agents");
    assert_eq!(answer, "old");
}

#[test]
fn a_commit_that_breaks_the_bundle_says_so_and_the_turn_goes_on() {
    let fixture = Fixture::new();
    let (opened, _) = fixture.turn("{ tool: changesets__open, args: {} }", &[]);
    let tree = Path::new(opened["workdir"].as_str().unwrap());
    fs::write(tree.join("goondan.yaml"), bundle().replace("linked:changesets", "linked:changeset")).unwrap();
    let (committed, answer) = fixture.commit(opened["changesetId"].as_str().unwrap(), &["--watch"]);
    let why = committed["noEffectBecause"].as_str().unwrap();
    assert!(committed["effect"] == "none" && why.contains("changeset"), "{committed}");
    assert_eq!(answer, "old");
}

#[test]
#[covers("TREE-01")]
fn a_commit_that_adds_a_command_waits_for_a_person() {
    let fixture = Fixture::new();
    let (opened, _) = fixture.turn("{ tool: changesets__open, args: {} }", &[]);
    let tree = Path::new(opened["workdir"].as_str().unwrap());
    let started = fixture.path("started");
    let transport = format!("{{ type: stdio, command: [touch, {}] }}", started.display());
    let server = format!("{{ entry: 'linked:mcp', config: {{ transport: {transport} }} }}");
    let mcp = WAIT.replace("{ entry: 'linked:wait' }", &server).replace("name: wait", "name: mcp");
    let changed = bundle().replace("[ {", "[ { ref: Extension/mcp }, {") + &mcp;
    fs::write(tree.join("goondan.yaml"), changed).unwrap();
    let (committed, answer) = fixture.commit(opened["changesetId"].as_str().unwrap(), &["--watch"]);
    let why = committed["noEffectBecause"].as_str().unwrap();
    let added = format!("the changed bundle adds: command touch {}", started.display());
    assert!(committed["effect"] == "none" && why.contains(&added), "{committed}");
    assert_eq!(answer, "old");
    assert!(!started.exists());
}

#[test]
fn a_commit_of_files_that_are_not_of_the_bundle_reloads_nothing() {
    let fixture = Fixture::new();
    let (opened, _) = fixture.turn("{ tool: changesets__open, args: {} }", &[]);
    fs::write(Path::new(opened["workdir"].as_str().unwrap()).join("notes"), "").unwrap();
    let (committed, answer) = fixture.commit(opened["changesetId"].as_str().unwrap(), &["--watch"]);
    assert_eq!(committed["noEffectBecause"], "no file of the bundle has changed");
    assert_eq!(answer, "old");
}

/// An agent that waits in its step for the other one, which is reloaded meanwhile. Its name is the first.
const ARCHITECT: &str = "---
apiVersion: goondan.ai/v1
kind: Model
metadata: { name: architect }
spec: { provider: scripted, script: ./architect.yaml }
---
apiVersion: goondan.ai/v1
kind: Extension
metadata: { name: agents }
spec: { entry: 'linked:agents' }
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: { name: architect }
spec: { model: Model/architect, extensions: [ { ref: Extension/agents } ] }
---
apiVersion: goondan.ai/v1
kind: Swarm
metadata: { name: main }
spec: { agents: [ { ref: Agent/main }, { ref: Agent/architect } ], entryAgent: Agent/main }
";

#[test]
#[covers("LEGACY-CHANGESET-04")]
fn an_agent_whose_caller_waits_for_it_goes_on_with_the_committed_bundle() {
    let fixture = Fixture::new();
    fs::write(fixture.path("bundle/goondan.yaml"), bundle() + ARCHITECT).unwrap();
    let request = "- { call: { tool: agents__request, args: { target: main, input: go, timeoutMs: 60000 } } }\n";
    fs::write(fixture.path("bundle/architect.yaml"), format!("{request}- {{ say: asked }}\n")).unwrap();
    git(&fixture.path("bundle"), &["add", "goondan.yaml"]);
    commit(&fixture.path("bundle"));
    let (opened, _) = fixture.turn("{ tool: changesets__open, args: {} }", &["--agent", "main"]);
    let changed = (bundle() + ARCHITECT).replace("./script.yaml", "./new.yaml");
    let tree = Path::new(opened["workdir"].as_str().unwrap());
    fs::write(tree.join("goondan.yaml"), changed).unwrap();
    // The script of the other agent begins anew too, so that it asks again.
    fs::write(tree.join("new.yaml"), "- { say: new, repeat: true }\n").unwrap();
    let call = format!("{{ tool: changesets__commit, args: {{ changesetId: {} }} }}", opened["changesetId"]);
    let (committed, answer) = fixture.turn(&call, &["--agent", "architect", "--watch"]);
    assert_eq!((&committed["effect"], &*answer), (&"nextStep".into(), "asked"), "{committed}");
    let asked =
        fs::read_to_string(fixture.path("state/workspaces/main/instances/architect:default/messages/base.jsonl"));
    assert!(asked.unwrap().contains("\"new\""));
}
