//! The whole authoring API behaves the same in both linkages (LINK-01).

use std::path::Path;

use goondan::store::FileStore;
use goondan_core::ExtensionDescriptor;
use goondan_runtime::ScriptItem;
use serde_json::json;

use crate::support::{Linkage, agent};

/// The observable outcome of a conversation with two tool calls and two extensions `everything`, one around the
/// other.
#[derive(Debug, PartialEq)]
pub(crate) struct Story {
    text: String,
    tool_calls: usize,
    messages: Vec<String>,
    /// The states of the extensions: lists of what they observed. Sorted, because the order of events varies.
    notes: [Vec<String>; 2],
}

pub(crate) async fn story(everything: &'static ExtensionDescriptor) -> Story {
    let directory = tempfile::tempdir().unwrap();
    let call = |word: &str, tool: &str| ScriptItem::call(tool, json!({ "word": word }));
    let script = [call("one", "everything__declared"), call("two", "everything__dynamic"), ScriptItem::say("done")];
    let agent = agent(script)
        .described_extension("outer", everything, json!({ "tag": "A" }))
        .described_extension("inner", everything, json!({ "tag": "B" }))
        .store(FileStore::open(directory.path()).unwrap());
    let instance = agent.build().unwrap().instance("user:1").await.unwrap();
    let result = instance.run("hello").await.unwrap();
    let messages = instance.messages().await.unwrap();
    let same = |text: String| {
        // The ids of calls are random.
        let calls = result.tool_calls().iter().enumerate();
        calls.fold(text, |text, (index, call)| text.replace(call.id.as_str(), &format!("call-{index}")))
    };
    let messages =
        messages.iter().map(|message| same(format!("{} {}", message.role().as_str(), message.text()))).collect();
    instance.close().await.unwrap();
    let notes = ["outer", "inner"].map(|name| {
        let mut notes: Vec<_> = state(directory.path(), name).into_iter().map(same).collect();
        notes.sort();
        notes
    });
    Story { text: result.text().into_owned(), tool_calls: result.tool_calls().len(), messages, notes }
}

/// Returns the stored state of the extension `name`, in whatever subdirectory of `directory`.
fn state(directory: &Path, name: &str) -> Vec<String> {
    let name = format!("{name}.json");
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.ends_with(&name) {
                return serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
            }
        }
    }
    panic!("there is no state of {name}");
}

/// Returns the story of the linked extension.
pub(crate) async fn linked() -> Story {
    story(Linkage::Linked.extension("everything")).await
}

#[tokio::test]
async fn an_extension_acts_the_same_in_both_linkages() {
    let (linked, library) = (linked().await, story(Linkage::Library.extension("everything")).await);
    assert_eq!(linked.text, "done and more and more");
    assert!(linked.notes.iter().all(|notes| notes.len() > 8), "{linked:#?}");
    assert_eq!(library, linked);
}
