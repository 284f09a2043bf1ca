//! LINKS: a link that a tool puts where the store keeps its files leads nothing out of the state root.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use conformance_extensions::links::Planting;
use goondan::json;
use goondan::model::ScriptItem;
use goondan::name::{AgentName, InstanceKey};
use goondan::store::{FileStore, InstanceId};
use goondan_covers::{both_linkages, covers};

use crate::linkage::Extended;
use crate::support::agent;

/// Everything that the store reads or writes below a workspace.
const NAMES: [&str; 16] = [
    "instances",
    "instances/assistant:test",
    "instances/assistant:test/lock",
    "instances/assistant:test/metadata.json",
    "instances/assistant:test/metadata.json.tmp",
    "instances/assistant:test/messages",
    "instances/assistant:test/messages/base.jsonl",
    "instances/assistant:test/messages/base.jsonl.tmp",
    "instances/assistant:test/messages/events.jsonl",
    "instances/assistant:test/messages/events.jsonl.corrupt-1",
    "instances/assistant:test/messages/runtime-events.jsonl",
    "instances/assistant:test/messages/runtime-events.1.jsonl",
    "instances/assistant:test/extensions",
    "instances/assistant:test/extensions/planting.json",
    "instances/assistant:test/extensions/planting.json.tmp",
    "instances/assistant:test/workspace",
];

/// Returns the content of everything below a directory.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut contents = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            contents.insert(path.clone(), Vec::new());
            contents.extend(self::contents(&path));
        } else {
            contents.insert(path.clone(), fs::read(path).unwrap());
        }
    }
    contents
}

#[both_linkages]
#[covers("LINKS-01")]
async fn nothing_is_written_through_a_link_that_a_tool_plants() {
    for name in NAMES {
        for target in ["file", "directory", "missing"] {
            let (workspace, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            fs::write(outside.path().join("file"), "outside\n").unwrap();
            fs::create_dir(outside.path().join("directory")).unwrap();
            let before = contents(outside.path());
            let config = json!({ "at": workspace.path().join(name), "to": outside.path().join(target) });
            let store = FileStore::open(workspace.path()).unwrap();
            // The turns after the link was planted, in the open conversation and after it was opened again, may fail.
            for script in [
                vec![ScriptItem::say("hello"), ScriptItem::call("planting__plant", json!({})), ScriptItem::say("done")],
                vec![ScriptItem::say("again")],
            ] {
                let turns = script.len();
                let agent = agent(script).with::<Planting>(config.clone()).store(store.clone()).build().unwrap();
                if let Ok(instance) = agent.instance("test").await {
                    for _ in 0..turns {
                        _ = instance.run("go").await;
                    }
                    _ = instance.close().await;
                }
            }
            let id = InstanceId { agent: AgentName::new("assistant").unwrap(), key: InstanceKey::new("test").unwrap() };
            assert!(workspace.path().join(name).is_symlink() || name.contains("json"), "{name} was not planted");
            let mut export = Vec::new();
            _ = store.export(&id, &mut export);
            assert!(!String::from_utf8(export).unwrap().contains("outside"), "{name}");
            _ = (store.read(&id), store.inspect(&id), store.repair(&id), store.delete(&id));
            assert_eq!(contents(outside.path()), before, "{name}, a link to a {target}");
        }
    }
}
