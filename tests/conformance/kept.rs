//! KEEP: what this version does not know of a stored conversation survives being read and written again.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use conformance_extensions::kept::Copying;
use goondan::model::ScriptItem;
use goondan::name::{AgentName, InstanceKey};
use goondan::store::{FileStore, InstanceId};
use goondan::{Value, json};
use goondan_covers::{both_linkages, covers};

use crate::linkage::Extended;
use crate::support::agent;

/// One message with each kind of part, output and source, and one of another role, as a later version or another implementation may write them.
fn messages() -> Vec<Value> {
    let call = json!({ "type": "tool-call", "toolCallId": "c1", "toolName": "a__b", "input": { "x": 1 } });
    let result =
        |output: Value| json!({ "type": "tool-result", "toolCallId": "c1", "toolName": "a__b", "output": output });
    let outputs = [
        json!({ "type": "text", "value": "done" }),
        json!({ "type": "json", "value": [1, null, { "b": 2.5 }] }),
        json!({ "type": "hologram", "value": [{ "type": "text", "text": "seen" }] }),
        json!("no object at all"),
    ];
    let contents = [
        (json!("plain"), json!({ "type": "user" })),
        (json!([{ "type": "text", "text": "a part" }]), json!({ "type": "system" })),
        (json!([call]), json!({ "type": "assistant", "stepId": "t-step-0" })),
        (
            json!([{ "type": "thought", "text": "hm", "rest": { "signature": "s" } }]),
            json!({ "type": "oracle", "of": 1 }),
        ),
    ];
    let results = outputs
        .map(|output| (json!([result(output)]), json!({ "type": "tool", "toolCallId": "c1", "toolName": "a__b" })));
    let notes = (json!("a note"), json!({ "type": "extension", "extensionName": "notes" }));
    let all = contents.into_iter().chain(results).chain([notes]).enumerate();
    all.map(|(index, (content, source))| {
        json!({
            "id": format!("m{index}"),
            "data": { "role": if index == 3 { "sibyl" } else { "assistant" }, "content": content },
            "metadata": {},
            "createdAt": "2026-11-22T12:00:00.000Z",
            "source": source,
        })
    })
    .collect()
}

/// Adds up to two unknown members to `value` and to each object inside of it.
fn add_unknown(value: &mut Value, random: &mut fastrand::Rng) {
    match value {
        Value::Object(members) => {
            members.values_mut().for_each(|value| add_unknown(value, random));
            for name in ["zz", "addedLater"].iter().take(random.usize(..3)) {
                members.insert((*name).to_owned(), arbitrary(random, 3));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| add_unknown(item, random)),
        _ => {}
    }
}

fn arbitrary(random: &mut fastrand::Rng, depth: u32) -> Value {
    match random.u8(..if depth == 0 { 5 } else { 7 }) {
        0 => Value::Null,
        1 => json!(random.bool()),
        2 => json!(random.i64(..)),
        3 => json!(random.f64() * 1e9),
        4 => json!((0..random.usize(..8)).map(|_| random.char(..)).collect::<String>()),
        5 => (0..random.usize(..4)).map(|_| arbitrary(random, depth - 1)).collect(),
        _ => (0..random.usize(..4)).map(|name| (name.to_string(), arbitrary(random, depth - 1))).collect(),
    }
}

fn lines(dir: &Path) -> Vec<Value> {
    let text = fs::read_to_string(dir.join("messages/base.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[both_linkages]
#[covers("KEEP-01")]
async fn unknown_members_in_every_place_survive_rewriting_export_import_and_repair() {
    for seed in 0..20 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut written = messages();
        written.iter_mut().for_each(|message| add_unknown(message, &mut random));

        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::open(dir.path()).unwrap();
        let id = |key: &str| InstanceId {
            agent: "assistant".parse::<AgentName>().unwrap(),
            key: key.parse::<InstanceKey>().unwrap(),
        };
        let at = |key: &str| store.instance_dir(&id(key));
        fs::create_dir_all(at("one").join("messages")).unwrap();
        let text: String = written.iter().map(|message| format!("{message}\n")).collect();
        fs::write(at("one").join("messages/base.jsonl"), text).unwrap();
        store.repair(&id("one")).unwrap();
        let metadata = json!({
            "status": "idle", "agentName": "assistant", "instanceKey": "one", "zz": [1],
            "createdAt": "2026-11-22T12:00:00.000Z", "updatedAt": "2026-11-22T12:00:00.000Z",
        });
        fs::write(at("one").join("metadata.json"), metadata.to_string()).unwrap();

        let agent = agent([ScriptItem::say("ok").repeat()]).with::<Copying>(json!({})).store(store.clone());
        let agent = agent.build().unwrap();
        agent.instance("one").await.unwrap().run("hello").await.unwrap();
        agent.close().await.unwrap();
        let rewritten = lines(&at("one"));
        // The source is the extension that has put a copy in the place of each.
        let changed = rewritten[..written.len()].iter().zip(&mut written);
        changed.for_each(|(changed, written)| written["source"] = changed["source"].clone());
        assert_eq!(rewritten[..written.len()], written, "seed {seed}");

        let mut export = Vec::new();
        store.export(&id("one"), &mut export).unwrap();
        store.import(Cursor::new(&export), Some(id("two"))).unwrap();
        assert_eq!(lines(&at("two")), rewritten, "seed {seed}");
        let metadata: Value = serde_json::from_slice(&fs::read(at("two").join("metadata.json")).unwrap()).unwrap();
        assert_eq!(metadata["zz"], json!([1]));

        let path = at("two").join("messages/base.jsonl");
        let damaged = format!("no message\n{}", fs::read_to_string(&path).unwrap());
        fs::write(&path, damaged).unwrap();
        store.repair(&id("two")).unwrap();
        assert_eq!(lines(&at("two")), rewritten, "seed {seed}");
    }
}
