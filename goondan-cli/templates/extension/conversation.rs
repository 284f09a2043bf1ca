//! Runs the extension in a conversation with a scripted model.

use goondan::testing::Chat;
use goondan::json;
use goondan::model::ScriptItem;
use {{crate}}::{{type}};

#[tokio::test]
async fn greetings_are_answered_until_the_limit_is_reached() -> goondan::Result<()> {
    let greet = ScriptItem::call("{{name}}__greet", json!({ "name": "Ada" }));
    let script = [greet.clone(), greet, ScriptItem::say("done")];
    let chat = Chat::with::<{{type}}>(json!({ "maxGreetings": 1 }))
        .script(script)
        .start()
        .await?;
    let turn = chat.say("greet Ada twice").await?;
    assert_eq!(turn.text(), "done");

    // The messages: input, tool call, its result, tool call, its result, "done".
    let transcript = chat.transcript().await;
    assert_eq!(transcript[2], "tool: Hello, Ada!");
    let rejected = &transcript[4];
    assert!(rejected.contains("E_TOOL_NOT_IN_CATALOG"), "{rejected}");
    Ok(())
}
