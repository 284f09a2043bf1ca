//! Conversations with one ready-made extension, whose tools a test calls.

use goondan::Value;
use goondan::event::RuntimeEvent;
use goondan::model::ScriptItem;
use goondan::testing::Chat;
use goondan::tool::Effect;

use crate::linkage::WithPlugin;

/// Opens a conversation with the extension `name` of the package of that name.
pub(crate) async fn open(name: &'static str, config: Value) -> Chat {
    let chat = Chat::builder().agent(|agent| agent.plugin(name, name, config));
    chat.script([ScriptItem::say("fine").repeat()]).start().await.unwrap()
}

/// Calls a tool, and returns its output.
pub(crate) async fn call(chat: &mut Chat, tool: &str, arguments: Value) -> Value {
    let result = chat.call(tool, arguments).await.unwrap();
    result.output().unwrap_or_else(|| panic!("{result:?}")).clone()
}

/// Calls a tool, and returns the code of its error, and the whole text that the model reads.
pub(crate) async fn refused(chat: &mut Chat, tool: &str, arguments: Value) -> (String, String) {
    let result = chat.call(tool, arguments).await.unwrap();
    let error = result.error().unwrap_or_else(|| panic!("{result:?}"));
    (error.code.clone().unwrap_or_default(), error.to_string())
}

/// Returns the tools, with their effects, and checks that each of them and of their arguments is described.
pub(crate) async fn effects(chat: &Chat) -> Vec<(String, Effect)> {
    let tools = chat.instance().tools().await.unwrap();
    for tool in tools.iter() {
        assert!(tool.description.as_ref().is_some_and(|text| !text.is_empty()), "{tool:?}");
        let parameters = tool.parameters.as_ref().and_then(|schema| schema["properties"].as_object());
        for (name, schema) in parameters.into_iter().flatten() {
            assert!(schema["description"].as_str().is_some_and(|text| !text.is_empty()), "{} {name}", tool.name);
        }
    }
    tools.iter().map(|tool| (tool.name.to_string(), tool.effect)).collect()
}

/// Calls a tool, and returns what a person reads of it: before, afterwards, and whether it failed.
pub(crate) async fn shown(chat: &mut Chat, tool: &str, arguments: Value) -> (String, String, bool) {
    chat.call(tool, arguments).await.unwrap();
    let newest = |name| chat.events(name).pop().unwrap().payload().unwrap();
    let (
        RuntimeEvent::ToolCalled { presentation: before, .. },
        RuntimeEvent::ToolCompleted { presentation: after, .. },
    ) = (newest("tool.called"), newest("tool.completed"))
    else {
        panic!("no call")
    };
    (before.to_string(), after.to_string(), after.outcome.unwrap().failed)
}
