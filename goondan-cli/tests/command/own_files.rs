//! An agent whose tools for files reach its own bundle cannot change what it is made of.

use std::fs;
use std::path::Path;

use goondan_covers::covers;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{MODEL, goondan};

/// The documents after the model. The server ends at once.
const DOCUMENTS: &str = "apiVersion: goondan.ai/v1
kind: Model
metadata: { name: real }
spec: { provider: openai-compatible, model: m, baseUrl: 'http://127.0.0.1:9' }
---
apiVersion: goondan.ai/v1
kind: Extension
metadata: { name: file-system }
spec: { entry: 'linked:file-system', config: { roots: [.] } }
---
apiVersion: goondan.ai/v1
kind: Extension
metadata: { name: server }
spec:
  entry: 'linked:mcp'
  config: { transport: { type: stdio, command: [sh, run.sh], cwd: server }, required: false, limits: { restarts: 0 } }
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: { name: main }
spec: { model: Model/main, extensions: [ { ref: Extension/file-system }, { ref: Extension/server } ] }
";

fn write(path: impl AsRef<Path>, content: &str) -> Value {
    let args = json!({ "path": path.as_ref(), "content": content });
    json!({ "call": { "tool": "file-system__write", "args": args } })
}

#[test]
#[covers("TREE-01")]
fn what_a_bundle_is_made_of_is_not_written() {
    let root = TempDir::new().unwrap();
    let bundle = root.path().join("bundle");
    fs::create_dir_all(bundle.join("server")).unwrap();
    fs::write(bundle.join("goondan.yaml"), format!("{MODEL}{DOCUMENTS}")).unwrap();
    fs::write(bundle.join("server/run.sh"), "exit 0\n").unwrap();
    let agent = "apiVersion: goondan.ai/v1\nkind: Swarm\n";
    let own = ["goondan.yaml", "goondan.yml", "script.yaml", "server/run.sh", "cassettes/real.jsonl"];
    let mut calls: Vec<_> = own.iter().map(|file| write(file, agent)).collect();
    calls.extend([write("more.yaml", agent), write(bundle.join("goondan.yaml"), agent)]);
    // Where conversations and changesets are stored.
    calls.extend(
        ["extensions/changesets/cs-1.json", "x", "../other/x"]
            .map(|file| write(Path::new("state/workspaces/main").join(file), agent)),
    );
    // What a person has agreed to.
    calls.extend(["bundles/x.json", "directories/x.json"].map(|file| write(Path::new("state/trust").join(file), "{}")));
    let refused = calls.len();
    calls.extend([write("server/notes.md", agent), write("more.yaml", "colour: green")]);
    let script = Value::from_iter(calls.into_iter().chain([json!({ "say": "done" })]));
    fs::write(bundle.join("script.yaml"), script.to_string()).unwrap();
    let before = ["goondan.yaml", "script.yaml", "server/run.sh"].map(|file| fs::read(bundle.join(file)).unwrap());

    // As it is typed in the directory of the bundle.
    let mut command = goondan();
    command.current_dir(&bundle).args(["run", "--trust", "--input", "go", "--state-root"]).arg("state");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let messages = bundle.join("state/workspaces/main/instances/main:default/messages/base.jsonl");
    let messages = fs::read_to_string(messages).unwrap();
    let results: Vec<_> = messages.lines().filter(|line| line.contains("\"tool-result\"")).collect();
    assert_eq!(results.len(), refused + 2);
    for (at, result) in results.iter().enumerate() {
        assert_eq!(result.contains("error E_FILE_PROTECTED: "), at < refused, "{result}");
    }
    assert_eq!(
        before,
        ["goondan.yaml", "script.yaml", "server/run.sh"].map(|file| fs::read(bundle.join(file)).unwrap())
    );
    assert!(!bundle.join("cassettes").exists() && !bundle.join("goondan.yml").exists());
}
