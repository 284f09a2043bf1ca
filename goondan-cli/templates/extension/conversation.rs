//! The extension in a conversation with a model that plays a script.

use goondan::testing::Chat;
use goondan::{ScriptItem, json};
use {{crate}}::{{type}};

#[tokio::test]
async fn greetings_are_answered_until_there_are_enough() -> goondan::Result<()> {
    let greet = ScriptItem::call("{{name}}__greet", json!({ "name": "Ada" }));
    let script = [greet.clone(), greet, ScriptItem::say("done")];
    let chat = Chat::with::<{{type}}>(json!({ "maxGreetings": 1 }))
        .script(script)
        .start()
        .await?;
    let turn = chat.say("greet Ada twice").await?;
    assert_eq!(turn.text(), "done");

    // Input, call, answer, call, answer, "done".
    let transcript = chat.transcript().await;
    assert_eq!(transcript[2], "tool: Hello, Ada!");
    let refused = &transcript[4];
    assert!(refused.contains("E_TOOL_NOT_IN_CATALOG"), "{refused}");
    Ok(())
}
