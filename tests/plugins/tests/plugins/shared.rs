//! LEGACY-SHARED: extensions of one conversation share values.

use goondan::model::ScriptItem;
use goondan::prelude::*;
use goondan::testing::Chat;
use goondan::{Value, json};
use goondan_covers::{both_linkages, covers};

use crate::linkage::WithPlugin;

fn counted(metadata: &goondan::Map<String, Value>) -> u64 {
    metadata["shared"]["writer.count"].as_u64().unwrap_or(0)
}

/// Counts turns, steps and tool calls in one value.
#[goondan::extension(name = "writer")]
pub(crate) mod writer {
    use super::*;

    #[middleware(turn)]
    async fn turn(ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let result = next.run(ctx).await;
        ctx.metadata_mut()["shared"]["writer.turns"] = json!(counted(ctx.metadata()) + 100);
        result
    }

    #[middleware(step)]
    async fn step(ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        ctx.metadata_mut()["shared"]["writer.count"] = json!(counted(ctx.metadata()) + 1);
        next.run(ctx).await
    }

    #[middleware(toolCall)]
    async fn call(ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        ctx.metadata_mut()["shared"]["writer.count"] = json!(counted(ctx.metadata()) + 10);
        next.run(ctx).await
    }
}

/// Tells what it reads, and writes by an event and in ways that are refused.
#[goondan::extension(name = "reader")]
mod reader {
    use super::*;

    #[middleware(step, priority = 10)]
    async fn step(ctx: &mut StepContext<'_>, next: Next<'_, Step>, api: &ExtensionApi) -> Result<StepResult> {
        let shared = ctx.metadata_mut()["shared"].as_object_mut().unwrap();
        api.events().emit("reader.saw", (shared.clone(),));
        shared.remove("reader.old");
        shared.insert("no name".to_owned(), json!(1));
        next.run(ctx).await
    }

    /// Sets a value.
    #[tool]
    async fn set(api: &ExtensionApi) -> Result<()> {
        for (key, value) in [("reader.set", json!([1])), ("reader.old", json!(1)), ("Reader.x", json!(1))] {
            api.events().emit("shared.set", (key, value));
        }
        Ok(())
    }
}

async fn chat() -> Chat {
    let chat = Chat::builder().with::<writer::Extension>(json!({})).with::<reader::Extension>(json!({}));
    let script = [ScriptItem::call("reader__set", json!({})), ScriptItem::say("fine").repeat()];
    chat.agent(|agent| agent.plugin("shared", "shared", json!({}))).script(script).start().await.unwrap()
}

#[both_linkages]
#[covers("LEGACY-SHARED-01", "LEGACY-SHARED-02", "LEGACY-SHARED-03", "LEGACY-SHARED-04")]
async fn what_one_extension_writes_others_read_at_once_and_after_a_restart() {
    let mut chat = chat().await;
    chat.say("go").await.unwrap();
    // One step, one call of a tool, another step.
    let saw =
        |chat: &Chat| -> Vec<Value> { chat.events("reader.saw").iter().map(|event| event.args()[0].clone()).collect() };
    let seen = saw(&chat);
    assert_eq!((&seen[0]["writer.count"], &seen[1]["writer.count"]), (&json!(1), &json!(12)), "{seen:?}");
    chat.restart().await.unwrap();
    chat.say("go on").await.unwrap();
    let seen = saw(&chat);
    assert_eq!(seen[2]["writer.count"], 13);
    assert_eq!(seen[2]["reader.set"], json!([1]), "an event sets a value");
    assert_eq!(seen[2]["writer.turns"], 112, "after `next`, the turn has what its steps have written");
    chat.say("go on").await.unwrap();
    let last = saw(&chat).pop().unwrap();
    assert_eq!(last.get("reader.old"), None, "it was removed");
    assert!(last.as_object().unwrap().keys().all(|key| key.starts_with("writer.") || key.starts_with("reader.")));
    let refused = chat.logs().into_iter().filter(|line| line.text.starts_with("a shared value was refused"));
    let keys: Vec<_> = refused.map(|line| line.fields["key"].clone()).collect();
    assert!(keys.contains(&json!("no name")) && keys.contains(&json!("Reader.x")), "{keys:?}");
}

#[both_linkages]
async fn what_an_event_sets_during_a_step_is_not_overwritten_by_the_step() {
    let chat = chat().await;
    chat.emit("shared.set", ("reader.set", 1)).await.unwrap();
    chat.emit("shared.set", ("nothing",)).await.unwrap();
    chat.say("go").await.unwrap();
    chat.emit("shared.set", ("reader.set", Value::Null)).await.unwrap();
    chat.say("go on").await.unwrap();
    let last = chat.events("reader.saw").pop().unwrap().args()[0].clone();
    assert_eq!((last.get("reader.set"), &last["writer.count"]), (None, &json!(13)));
}
