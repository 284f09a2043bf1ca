//! What a tool-call middleware knows of the call: the tool, and the working directory.

use std::fs;

use conformance_extensions::call_context::Curious;
use goondan::json;
use goondan::model::ScriptItem;
use goondan::store::FileStore;
use goondan_covers::both_linkages;

use crate::linkage::Extended;
use crate::support::{Log, agent};

#[both_linkages]
async fn a_tool_call_middleware_knows_the_tool_of_the_step_and_the_working_directory() {
    let (dir, log) = (tempfile::tempdir().unwrap(), Log::new());
    let call = |tool: &str| ScriptItem::call(tool, json!({}));
    let script = [call("curious__look"), call("curious__read"), call("curious__none"), ScriptItem::say("done")];
    let agent = agent(script).with::<Curious>(log.config()).store(FileStore::open(dir.path()).unwrap());
    let instance = agent.build().unwrap().instance("test").await.unwrap();
    instance.run("hello").await.unwrap();
    let source = r#"Some(Extension { name: "curious" })"#;
    assert_eq!(
        log.take(),
        [
            format!(r#"curious__look Some("Looks closely.") Read {source}"#),
            format!(r#"curious__read Some("Reads what the middleware wrote.") Once {source}"#),
            "no tool".to_owned(),
        ]
    );
    let messages = instance.messages().await.unwrap();
    assert_eq!(messages[4].text(), "from the middleware");
    assert!(messages[6].text().contains("E_TOOL_NOT_IN_CATALOG"), "{}", messages[6].text());
}

#[both_linkages]
async fn a_working_directory_that_cannot_be_made_is_an_error_of_the_layer() {
    let (dir, log) = (tempfile::tempdir().unwrap(), Log::new());
    let script = [ScriptItem::call("curious__look", json!({})), ScriptItem::say("done")];
    let agent = agent(script).with::<Curious>(log.config()).store(FileStore::open(dir.path()).unwrap());
    let instance = agent.build().unwrap().instance("test").await.unwrap();
    // A file is where the directory belongs.
    fs::write(dir.path().join("instances/assistant:test/workspace"), "").unwrap();
    instance.run("hello").await.unwrap();
    let result = instance.messages().await.unwrap()[2].text().into_owned();
    assert!(result.contains("E_STORE_IO") && result.contains("work directory"), "{result}");
}
