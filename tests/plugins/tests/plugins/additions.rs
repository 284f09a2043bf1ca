//! What a reload adds by the configs of the ready-made extensions.

use std::fs;

use goondan::bundle::Plugins;
use goondan::host::{Host, OpenError, Source};
use goondan::store::MemoryStore;
use goondan::{Value, json};
use goondan_covers::{both_linkages, covers};
use tempfile::TempDir;

use crate::linkage;

/// A bundle whose agent has one extension.
struct Bundle {
    directory: TempDir,
    entry: String,
}

impl Bundle {
    fn new(extension: &'static str) -> Self {
        let directory = TempDir::new().unwrap();
        fs::write(directory.path().join("script.jsonl"), "[]").unwrap();
        let file = linkage::entry(extension, directory.path());
        // A library can have several.
        let entry = if file.starts_with("linked:") { file } else { format!("{file}#{extension}") };
        Self { directory, entry }
    }

    /// Writes the documents. The agent has the extension if there is a config.
    fn write(&self, config: Option<&Value>) {
        let document = |kind: &str, spec: Value| {
            let document =
                json!({ "apiVersion": "goondan.ai/v1", "kind": kind, "metadata": { "name": "it" }, "spec": spec });
            document.to_string() + "\n---\n"
        };
        let mut text = document("Model", json!({ "provider": "scripted", "script": "./script.jsonl" }));
        let mut agent = json!({ "model": "Model/it" });
        if let Some(config) = config {
            text += &document("Extension", json!({ "entry": self.entry, "config": config }));
            agent["extensions"] = json!([{ "ref": "Extension/it" }]);
        }
        text += &document("Agent", agent);
        fs::write(self.directory.path().join("goondan.yaml"), text).unwrap();
    }

    async fn open(&self) -> Host {
        let source = Source::new(self.directory.path()).libraries(Plugins::new());
        source.read().unwrap().open(MemoryStore::new()).await.unwrap()
    }
}

/// Reloads, and returns what that adds.
async fn added(host: &Host) -> String {
    match host.reloader().reload(None).await {
        Ok(_) => String::new(),
        Err(OpenError::Adds(added)) => added.to_string(),
        Err(error) => panic!("{error}"),
    }
}

#[both_linkages]
#[covers("TREE-01")]
async fn settings_with_which_an_extension_acts_outside_are_additions() {
    let app = json!({ "flow": "client-credentials", "subject": "global", "clientId": "me",
        "tokenUrl": "https://a.b/token", "resource": "https://c.d/mcp" });
    let cases = [
        (
            "mcp",
            json!({ "transport": { "type": "stdio", "command": ["npx", "foo"], "env": { "A": "b" }, "cwd": "sub" } }),
            "command npx foo, root sub, variable A=b",
        ),
        ("mcp", json!({ "transport": { "type": "http", "endpoint": "https://a.b/mcp" } }), "host https://a.b"),
        ("http-fetch", json!({ "allowHosts": ["localhost"] }), "host localhost"),
        ("http-fetch", json!({ "auth": { "https://a.b": { "oauth": "a" } } }), "host https://a.b"),
        ("file-system", json!({ "roots": ["../x"] }), "root ../x"),
        ("file-system", json!({ "protect": [] }), "setting protect: []"),
        ("oauth", json!({ "apps": { "a": app } }), "host https://a.b, host https://c.d"),
        (
            "changesets",
            json!({ "check": ["sh", "-c", "a; b"], "setup": ["make"], "repository": ".." }),
            r#"command make, command sh -c "a; b", root .."#,
        ),
        (
            "message-compaction",
            json!({ "summary": { "instructions": { "valueFrom": { "env": "PATH", "secret": false } } } }),
            "reads PATH for summary.instructions",
        ),
        // Neither of these lets it do more.
        ("file-system", json!({ "protect": ["Makefile"], "workTrees": true }), ""),
        ("bash", json!({ "timeoutMs": 5 }), ""),
        ("mcp", json!({}), ""),
    ];
    for (extension, config, expected) in cases {
        let bundle = Bundle::new(extension);
        bundle.write(Some(&json!({})));
        let host = bundle.open().await;
        bundle.write(Some(&config));
        assert_eq!(added(&host).await, expected, "{extension} {config}");
        bundle.write(Some(&json!({})));
        assert_eq!(added(&host).await, "", "{extension} {config}");
    }
}

#[both_linkages]
#[covers("TREE-01")]
async fn an_extension_that_runs_or_reaches_anything_is_an_addition_itself() {
    for (extension, expected) in [
        ("bash", "shell bash"),
        ("skills", "shell skills"),
        ("http-fetch", "host any public one"),
        ("changesets", "root the repository"),
        ("message-window", ""),
        ("file-system", ""),
    ] {
        let bundle = Bundle::new(extension);
        let config = if extension == "message-window" { json!({ "maxMessages": 4 }) } else { json!({}) };
        bundle.write(None);
        let host = bundle.open().await;
        bundle.write(Some(&config));
        let library = format!("library lib{}.so", extension.replace('-', "_"));
        // The code of a new library is not run, so that its settings are not known.
        let expected = if bundle.entry.starts_with("linked:") { expected } else { &library };
        assert_eq!(added(&host).await, *expected, "{extension}");
        let mut reloader = host.reloader();
        if !expected.is_empty() {
            reloader.reload(None).await.unwrap_err();
        }
        reloader.accept().await.unwrap();
        assert_eq!(added(&host).await, "", "{extension}");
    }
}
