//! An answer that comes later.

/// Asks the agent `researcher`, and does not wait for its answer.
#[goondan::extension(name = "research")]
pub mod research {
    use std::time::Duration;

    use goondan::agent::AgentRequest;
    use goondan::prelude::*;

    #[derive(Debug, Deserialize, JsonSchema)]
    struct Question {
        /// What to find out.
        text: String,
    }

    /// Starts research, whose answer arrives later as a message.
    #[tool]
    async fn start(question: Question, ctx: &ToolContext<'_>) -> Result<String> {
        let request = AgentRequest::new("researcher").input(question.text).timeout(Duration::from_secs(600));
        let ticket = ctx.agents().request_later(request)?;
        Ok(format!("research {} has begun; go on without it", ticket.correlation_id))
    }
}

#[cfg(test)]
mod tests {
    use goondan::agent::LocalRouter;
    use goondan::model::{ScriptItem, ScriptedModel};
    use goondan::testing::Chat;
    use goondan::{Agent, json};

    use super::research;

    #[tokio::test]
    async fn the_answer_arrives_before_a_later_step() -> goondan::Result<()> {
        let router = LocalRouter::new();
        let researcher = ScriptedModel::new([ScriptItem::say("it is blue")]);
        let researcher = Agent::builder("researcher").model(researcher).build()?;
        router.add(&researcher);
        let call = ScriptItem::call("research__start", json!({ "text": "which colour?" }));
        let script = [call, ScriptItem::say("ok").repeat()];
        let chat = Chat::with::<research::Extension>(json!({})).agent(|agent| agent.router(router)).script(script);
        let chat = chat.start().await?;

        assert_eq!(chat.say("which colour is it?").await?.text(), "ok");

        let answer = "user: Answer of the agent `researcher`: it is blue".to_owned();
        while !chat.last_request().transcript().contains(&answer) {
            chat.say("is it there?").await?;
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}
