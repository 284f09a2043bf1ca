//! The files that an agent is made of, which no tool changes.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use goondan::agent::Instance;
use goondan::{Value, json};
use goondan_covers::{both_linkages, covers};
use tempfile::TempDir;

use crate::linkage;

/// A bundle whose agent has tools for its directory, in a repository.
struct Bundle {
    directory: TempDir,
}

/// The files of the bundle that are there.
const OWN: [&str; 5] =
    ["goondan.yaml", "script.jsonl", "team/swarm.yml", "tools/check.sh", "real/libraries/settings.sh"];

impl Bundle {
    fn new(config: &Value) -> Self {
        let this = Self { directory: TempDir::new().unwrap() };
        for directory in ["team", "tools", "real/libraries", "empty", "notes"] {
            fs::create_dir_all(this.path(directory)).unwrap();
        }
        let [files, changesets] = ["file-system", "changesets"].map(|name| linkage::entry(name, this.directory.path()));
        let documents = [
            json!({ "kind": "Model", "metadata": { "name": "main" },
                "spec": { "provider": "scripted", "script": "./script.jsonl" } }),
            json!({ "kind": "Extension", "metadata": { "name": "file-system" },
                "spec": { "entry": files, "config": config } }),
            // It reaches one of its files by a link.
            json!({ "kind": "Extension", "metadata": { "name": "changesets" }, "spec": { "entry": changesets,
                "config": { "check": ["sh", "tools/check.sh"], "setup": ["sh", "linked/libraries/settings.sh"] } } }),
            json!({ "kind": "Agent", "metadata": { "name": "main" },
                "spec": { "model": "Model/main", "policy": { "maxStepsPerTurn": 1000 }, "extensions":
                    [{ "ref": "Extension/file-system" }, { "ref": "Extension/changesets" }] } }),
        ];
        let swarm = json!({ "kind": "Swarm", "metadata": { "name": "team" },
            "spec": { "agents": [{ "ref": "Agent/main" }], "entryAgent": "Agent/main" } });
        let text = |document: &Value| format!("---\napiVersion: goondan.ai/v1\n{}\n", yaml(document));
        fs::write(this.path("goondan.yaml"), documents.iter().map(text).collect::<String>()).unwrap();
        fs::write(this.path("team/swarm.yml"), text(&swarm)).unwrap();
        for file in ["script.jsonl", "tools/check.sh", "real/libraries/settings.sh"] {
            fs::write(this.path(file), "[]").unwrap();
        }
        fs::write(this.path("notes/plain.yaml"), "colour: green\n").unwrap();
        for (link, target) in [("linked", "real"), ("soft", "goondan.yaml"), ("notes/team", "../team")] {
            symlink(target, this.path(link)).unwrap();
        }
        fs::hard_link(this.path("goondan.yaml"), this.path("hard")).unwrap();
        let commit = "git init -q && git add -A && git -c user.name=me -c user.email=me@localhost commit -qm 'by hand'";
        assert!(Command::new("sh").args(["-c", commit]).current_dir(this.path("")).status().unwrap().success());
        this
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Makes these calls in one turn. Returns for each the code of its error, or `ok`.
    async fn calls(&self, calls: &[(&str, Value)]) -> Vec<String> {
        let call = |(tool, arguments): &(&str, Value)| json!({ "call": { "tool": tool, "args": arguments } });
        let script: Vec<_> = calls.iter().map(call).chain([json!({ "say": "done" })]).collect();
        fs::write(self.path("script.jsonl"), Value::from(script).to_string()).unwrap();
        let agents = linkage::build(self.directory.path()).await;
        let instance = agents.get("main").unwrap().instance("one").await.unwrap();
        instance.run("go").await.unwrap();
        let results = results(&instance).await;
        instance.close().await.unwrap();
        results
    }

    fn contents(&self) -> BTreeMap<&'static str, String> {
        OWN.iter().map(|file| (*file, fs::read_to_string(self.path(file)).unwrap())).collect()
    }
}

/// Returns a document as a mapping of one line for each member: what every reader of YAML takes.
fn yaml(document: &Value) -> String {
    let members = document.as_object().unwrap();
    members.iter().map(|(key, value)| format!("{key}: {value}\n")).collect()
}

async fn results(instance: &Instance) -> Vec<String> {
    let messages = instance.messages().await.unwrap();
    let data = messages.iter().map(|message| serde_json::to_value(message.data()).unwrap());
    let results = data.filter(|data| data["role"] == "tool").map(|data| data["content"][0]["output"].clone());
    let outcome = |output: Value| {
        let text = output["value"].as_str().unwrap_or_default();
        text.strip_prefix("error ").and_then(|text| text.split(':').next()).unwrap_or("ok").to_owned()
    };
    results.map(outcome).collect()
}

fn write(path: &str) -> (&'static str, Value) {
    ("file-system__write", json!({ "path": path, "content": "new" }))
}

fn append(path: &str, content: &str) -> (&'static str, Value) {
    ("file-system__write", json!({ "path": path, "content": content, "append": true }))
}

fn delete(path: &str) -> (&'static str, Value) {
    ("file-system__delete", json!({ "path": path, "recursive": true }))
}

#[both_linkages]
#[covers("TREE-01")]
async fn the_files_of_the_bundle_are_not_changed() {
    let bundle = Bundle::new(&json!({ "roots": ["."] }));
    let absolute = |name: &str| bundle.path(name).display().to_string();
    let mut refused: Vec<_> = OWN.iter().flat_map(|file| [write(file), append(file, "new"), delete(file)]).collect();
    refused.extend(OWN.iter().map(|file| ("file-system__mkdir", json!({ "path": file, "recursive": true }))));
    let names = [
        "./team/../goondan.yaml",
        "nothing/../goondan.yaml",
        "GOONDAN.yaml",
        "goondan.yaml.",
        "soft",
        "hard",
        "notes/team/swarm.yml",
        "linked/libraries/settings.sh",
        // They do not exist, and would be read.
        "goondan.yml",
        "empty/../goondan.yml",
        "nothing/../goondan.yml",
    ];
    refused.extend(names.iter().flat_map(|name| [write(name), append(name, "new")]));
    refused.extend([write(&absolute("goondan.yaml")), delete(&absolute("team/swarm.yml"))]);
    refused.extend([("file-system__edit", json!({ "path": "goondan.yaml", "oldText": "main", "newText": "x" }))]);
    // What is around them, and links by which they are found.
    refused.extend(["team", "tools", "real", "real/libraries", "linked", "notes", "soft", "hard"].map(delete));
    let refused_codes = bundle.calls(&refused).await;
    let expected = bundle.contents();
    for (call, code) in refused.iter().zip(&refused_codes) {
        assert_eq!(code, "E_FILE_PROTECTED", "{call:?}");
    }
    assert_eq!(refused_codes.len(), refused.len());
    for tool in ["libfile_system.so", "libchangesets.so"] {
        if bundle.path(tool).exists() {
            assert_eq!(bundle.calls(&[write(tool), delete(tool)]).await, ["E_FILE_PROTECTED"; 2]);
        }
    }
    let mut now = bundle.contents();
    now.insert("script.jsonl", expected["script.jsonl"].clone());
    assert_eq!(now, expected);
}

#[both_linkages]
#[covers("TREE-01")]
async fn no_document_is_added_and_none_is_hidden() {
    let bundle = Bundle::new(&json!({ "roots": ["."] }));
    let document = |path: &str| {
        let content = "apiVersion: goondan.ai/v1\nkind: Agent\n";
        ("file-system__write", json!({ "path": path, "content": content }))
    };
    let refused = [
        document("new.yaml"),
        document("empty/deep/new.yml"),
        document("notes/plain.yaml"),
        ("file-system__edit", json!({ "path": "notes/plain.yaml", "oldText": "colour", "newText": "kind" })),
        write("team/goondan.yaml"),
        write("team/CACHEDIR.TAG"),
        ("file-system__mkdir", json!({ "path": "team/CACHEDIR.TAG" })),
        ("file-system__mkdir", json!({ "path": "team/goondan.yaml/deep" })),
        write("team/goondan.yml/deep"),
    ];
    assert_eq!(bundle.calls(&refused).await, ["E_FILE_PROTECTED"; 9]);
    // Nor in pieces.
    let pieces = [append("half.yaml", "k"), append("half.yaml", "ind"), append("half.yaml", "ind: Agent")];
    assert_eq!(bundle.calls(&pieces).await, ["ok", "E_FILE_PROTECTED", "E_FILE_PROTECTED"]);
    assert_eq!(fs::read_to_string(bundle.path("half.yaml")).unwrap(), "k");
    let others = [
        write("notes/plain.yaml"),
        append("notes/plain.yaml", "\nmore: true\n"),
        document("notes/example.txt"),
        write("empty/goondan.yaml"),
        write("src/main.rs"),
        delete("empty"),
        delete("src"),
    ];
    assert_eq!(bundle.calls(&others).await, ["ok"; 7]);
    assert_eq!(fs::read_to_string(bundle.path("notes/plain.yaml")).unwrap(), "new\nmore: true\n");
}

#[both_linkages]
#[covers("TREE-01")]
async fn in_a_work_tree_the_files_of_the_bundle_can_be_changed_because_a_commit_is_the_review() {
    let bundle = Bundle::new(&json!({ "roots": ["."], "workTrees": true }));
    let own = bundle.path("goondan.yaml");
    let calls = [
        ("changesets__open", json!({})),
        write("goondan.yaml"),
        write(own.to_str().unwrap()),
        write(".gitattributes"),
        ("changesets__discard", json!({})),
    ];
    assert_eq!(bundle.calls(&calls).await, ["ok", "ok", "E_FILE_PROTECTED", "E_FILE_PROTECTED", "ok"]);
}

#[both_linkages]
async fn the_config_can_protect_nothing() {
    let bundle = Bundle::new(&json!({ "roots": ["."], "protect": [] }));
    assert_eq!(bundle.calls(&[write("hard"), write("tools/check.sh"), delete("team")]).await, ["ok"; 3]);
    assert!(!bundle.path("team").exists());
    assert_eq!(fs::read_to_string(bundle.path("tools/check.sh")).unwrap(), "new");
}

#[both_linkages]
async fn a_bundle_of_one_file_has_no_other_documents() {
    let bundle = Bundle::new(&json!({ "roots": ["."] }));
    let script = json!([{ "call": { "tool": "file-system__write",
        "args": { "path": "deployment.yaml", "content": "kind: Deployment" } } }, { "say": "done" }]);
    fs::write(bundle.path("script.jsonl"), script.to_string()).unwrap();
    let agents = linkage::build(&bundle.path("goondan.yaml")).await;
    let instance = agents.get("main").unwrap().instance("one").await.unwrap();
    instance.run("go").await.unwrap();
    assert_eq!(results(&instance).await, ["ok"]);
}
