//! Runs the extension in conversations.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use goondan::json;
use goondan::model::ScriptItem;
use goondan::prelude::*;
use goondan::store::FileStore;
use goondan::testing::Chat;
use goondan::tool::ToolItem;
use notes::Notes;

struct Visitor(ExtensionApi);

/// Adds a note at the end of each turn.
#[goondan::extension(name = "visitor")]
impl Visitor {
    #[init]
    fn new(api: ExtensionApi) -> Self {
        Self(api)
    }

    #[middleware(turn)]
    async fn leave(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let result = next.run(ctx).await;
        self.0.events().emit("notes.leave", (json!({ "text": "I was here." }),));
        result
    }
}

/// The description of `notes__list` in each request to the model.
fn descriptions(chat: &Chat) -> Vec<String> {
    let list = |tools: Vec<ToolItem>| tools.into_iter().find(|tool| tool.name == "notes__list").unwrap();
    chat.requests().into_iter().map(|request| list(request.tools).description.unwrap()).collect()
}

#[tokio::test]
async fn added_notes_are_listed() {
    let script = [
        ScriptItem::call("notes__add", json!({ "text": "Buy milk.", "topic": "groceries" })),
        ScriptItem::call("notes__add", json!({ "text": "Call Ada." })),
        ScriptItem::call("notes__list", json!({ "topic": "groceries" })),
        ScriptItem::say("done"),
    ];
    let chat = Chat::with::<Notes>(json!({})).script(script).start().await.unwrap();
    chat.say("hello").await.unwrap();
    let mut answers = chat.transcript().await;
    answers.retain(|line| line.starts_with("tool: "));
    let listed = r#"tool: [{"text":"Buy milk.","topic":"groceries"}]"#;
    assert_eq!(answers, ["tool: noted; 1 in all", "tool: noted; 2 in all", listed]);
}

#[tokio::test]
async fn the_model_is_told_how_many_notes_there_are() {
    let mut chat = Chat::with::<Notes>(json!({})).start().await.unwrap();
    chat.call("notes__add", json!({ "text": "Buy milk." })).await.unwrap();
    assert_eq!(descriptions(&chat), [0, 1].map(|count| format!("Lists the notes, oldest first. There are {count}.")));
}

#[tokio::test]
async fn notes_of_other_extensions_are_stored() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("notes-of-other-extensions");
    let _ = std::fs::remove_dir_all(&directory);
    let open = async || {
        let store = FileStore::open(&directory).unwrap();
        let chat = Chat::with::<Notes>(json!({})).with::<Visitor>(json!({})).agent(|agent| agent.store(store));
        chat.start().await.unwrap()
    };
    let chat = open().await;
    chat.say("hello").await.unwrap();
    chat.close().await.unwrap();
    let mut chat = open().await;
    chat.call("notes__list", json!({})).await.unwrap();
    assert!(descriptions(&chat)[0].ends_with("There are 1."), "{:?}", descriptions(&chat));
    assert_eq!(chat.last_request().transcript().last().unwrap(), r#"tool: [{"text":"I was here."}]"#);
}
