//! Waking a conversation.

use std::time::Duration;

use goondan::Instance;
use tokio::task::JoinHandle;

/// Sends the conversation an input every day, until the task is aborted.
pub fn wake_daily(instance: Instance) -> JoinHandle<()> {
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_secs(24 * 60 * 60)).await;
            instance.send("Is anything due today?");
        }
    })
}

/// Lets the model go on in a turn of its own.
#[goondan::extension(name = "follow-up")]
pub mod follow_up {
    use goondan::event::AgentDelegate;
    use goondan::prelude::*;

    #[derive(Debug, Deserialize, JsonSchema)]
    struct Task {
        /// What to do in the next turn.
        text: String,
    }

    /// Begins another turn of this conversation after this one.
    #[tool]
    async fn plan(task: Task, ctx: &ToolContext<'_>, api: &ExtensionApi) -> Result<()> {
        let delegate = AgentDelegate::new(ctx.agent_name().clone(), task.text);
        api.events().delegate(delegate);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use goondan::agent::BackgroundUpdate;
    use goondan::json;
    use goondan::model::ScriptItem;
    use goondan::testing::{Chat, time};

    use super::{follow_up, wake_daily};

    #[tokio::test]
    async fn a_day_later_the_conversation_has_another_turn() -> goondan::Result<()> {
        let chat = Chat::builder().start().await?;
        time::pause();
        let task = wake_daily(chat.instance().clone());
        while chat.requests().is_empty() {
            time::advance(Duration::from_secs(60 * 60)).await;
        }
        task.abort();
        assert_eq!(chat.transcript().await, ["user: Is anything due today?", "assistant: ok"]);
        Ok(())
    }

    #[tokio::test]
    async fn a_tool_begins_another_turn() -> goondan::Result<()> {
        let plan = ScriptItem::call("follow-up__plan", json!({ "text": "check the oven" }));
        let script = [plan, ScriptItem::say("later"), ScriptItem::say("it is hot")];
        let chat = Chat::with::<follow_up::Extension>(json!({})).script(script).start().await?;
        let mut turns = chat.agent().subscribe_turns();

        assert_eq!(chat.say("bake").await?.text(), "later");

        let Some(BackgroundUpdate::Ended(turn)) = turns.next().await else { panic!("a turn was planned") };
        assert_eq!(turn.outcome.as_ref().unwrap().text(), "it is hot");
        assert_eq!(chat.transcript().await[4..], ["user: check the oven", "assistant: it is hot"]);
        Ok(())
    }
}
