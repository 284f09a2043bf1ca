//! Everything that authors may use, the same in both linkages (LINK-01).

use goondan_abi::Library;
use goondan_core::{ErrorCode, MemoryStore, ScriptItem};
use goondan_covers::covers;
use serde_json::{Value, json};

use crate::support::{BOTH, Linkage, agent, library, loaded};

/// What two instances of the extension `everything` see of a turn with two tool calls, and what comes out of it.
async fn story(linkage: Linkage) -> (String, Value, Vec<String>) {
    let call = |id: &str, tool: &str| ScriptItem::call(tool, json!({ "word": id }));
    let script = [call("one", "everything__declared"), call("two", "everything__dynamic"), ScriptItem::say("done")];
    let everything = linkage.extension("everything");
    let agent = agent(script)
        .described("outer", everything, json!({ "tag": "A" }))
        .described("inner", everything, json!({ "tag": "B" }))
        .store(MemoryStore::new());
    let instance = agent.build().await.unwrap().instance("user:1").await.unwrap();
    let result = instance.run("hello").await.unwrap();
    let messages = instance.messages().await;
    let messages: Vec<_> = messages.iter().map(|message| format!("{} {}", message.role().as_str(), message.text())).collect();
    let calls = serde_json::to_value(result.tool_calls()).unwrap();
    instance.close().await.unwrap();
    (result.text().into_owned(), calls, messages)
}

#[tokio::test]
#[covers("LINK-01")]
async fn an_extension_acts_the_same_in_both_linkages() {
    let (linked, library) = (story(Linkage::Linked).await, story(Linkage::Library).await);
    assert_eq!(linked.0, "done and more and more");
    assert_eq!(linked.0, library.0);
    assert_eq!(linked.1.as_array().unwrap().len(), 2);
    assert_eq!(linked.2, library.2);
}
