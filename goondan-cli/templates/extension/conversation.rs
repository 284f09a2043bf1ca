//! The extension in a conversation with a model that plays a script.

use goondan::{Agent, Map, Role, ScriptItem, ScriptedModel, json};
use {{crate}}::{{type}};

#[tokio::test]
async fn greetings_are_answered_until_there_are_enough() -> goondan::Result<()> {
    let args = Map::from_iter([("name".into(), "Ada".into())]);
    let greet = ScriptItem::call("{{name}}__greet", args);
    let script = [greet.clone(), greet, ScriptItem::say("done")];
    let agent = Agent::builder("test")
        .model(ScriptedModel::new(script))
        .extension::<{{type}}>(json!({ "maxGreetings": 1 }))
        .build()
        .await?;
    let conversation = agent.instance("user:42").await?;
    let turn = conversation.run("greet Ada twice").await?;
    assert_eq!(turn.text(), "done");

    let messages = conversation.messages().await;
    let answers: Vec<_> = messages
        .iter()
        .filter(|message| message.role() == Role::Tool)
        .map(|message| message.text())
        .collect();
    assert_eq!(answers[0], "Hello, Ada!");
    let refused = &answers[1];
    assert!(refused.contains("E_TOOL_NOT_IN_CATALOG"), "{refused}");
    Ok(())
}
