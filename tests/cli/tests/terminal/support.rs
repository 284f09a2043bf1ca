//! The bundle, the gate and the processes that the tests share.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// The command `goondan` with the extensions of these tests.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_goondan-under-test");

const BUNDLE: &str = "
apiVersion: goondan.ai/v1
kind: Model
metadata: { name: main }
spec: { provider: scripted, script: ./script.yaml, record: ./requests.jsonl }
---
apiVersion: goondan.ai/v1
kind: Extension
metadata: { name: gate }
spec: { entry: 'linked:gate' }
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: { name: main }
spec: { model: Model/main, extensions: [ { ref: Extension/gate } ] }
---
apiVersion: goondan.ai/v1
kind: Swarm
metadata: { name: test }
spec: { agents: [ { ref: Agent/main } ], entryAgent: Agent/main }
";

/// A bundle, a state root and a gate in a temporary directory.
pub(crate) struct Fixture {
    root: TempDir,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let fixture = Self { root: TempDir::new().unwrap() };
        fs::create_dir(fixture.bundle()).unwrap();
        fs::write(fixture.manifest(), BUNDLE).unwrap();
        let gate = fixture.gate();
        let gate = gate.display();
        let script = format!(
            "- {{ call: {{ tool: gate__wait, args: {{ path: '{gate}' }} }}, when: ^wait, repeat: true }}\n\
             - {{ call: {{ tool: gate__stall, args: {{ path: '{gate}' }} }}, when: ^stall, repeat: true }}\n\
             - {{ call: {{ tool: gate__fail }}, when: ^fail, repeat: true }}\n\
             - {{ say: well, reasoning: \"hm, let me see\", pieces: 3, when: ^think, repeat: true }}\n\
             - {{ say: \"two\\nlines\", when: ^two, repeat: true }}\n\
             - {{ say: fine, repeat: true }}\n"
        );
        fs::write(fixture.bundle().join("script.yaml"), script).unwrap();
        assert!(Command::new("mkfifo").arg(fixture.gate()).status().unwrap().success());
        fixture
    }

    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn bundle(&self) -> PathBuf {
        self.root.path().join("bundle")
    }

    pub(crate) fn manifest(&self) -> PathBuf {
        self.bundle().join("goondan.yaml")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.root.path().join("state")
    }

    pub(crate) fn gate(&self) -> PathBuf {
        self.root.path().join("gate")
    }

    /// Waits until a tool has reached the gate. The tool goes on when the returned file is dropped.
    pub(crate) fn reached(&self) -> File {
        OpenOptions::new().write(true).open(self.gate()).unwrap()
    }

    pub(crate) fn arguments(&self) -> Vec<PathBuf> {
        vec!["run".into(), "--trust".into(), self.bundle(), "--state-root".into(), self.state()]
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(self.arguments()).args(arguments).env_remove("GOONDAN_LOG");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn messages(&self) -> PathBuf {
        self.state().join("workspaces/test/instances/main:default/messages")
    }

    /// The messages of the committed turns, each as its text or, for a tool, its output.
    pub(crate) fn stored(&self) -> Vec<String> {
        let events = fs::read_to_string(self.messages().join("events.jsonl")).unwrap();
        assert!(events.lines().last().unwrap().starts_with("{\"fold"), "no turn is open: {events}");
        json_lines(&self.messages().join("base.jsonl")).iter().map(text_of).collect()
    }
}

fn text_of(message: &Value) -> String {
    let content = &message["data"]["content"];
    let content = if content.is_null() { &message["content"] } else { content };
    content.as_str().map_or_else(|| content.to_string(), str::to_owned)
}

fn json_lines(path: &Path) -> Vec<Value> {
    fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Sends a signal to a process.
pub(crate) fn kill(signal: &str, process: u32) {
    assert!(Command::new("kill").arg(signal).arg(process.to_string()).status().unwrap().success());
}
