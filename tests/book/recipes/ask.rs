//! Asking another agent and merging its answer.

/// Tells the model what the agent `librarian` knows about the input.
#[goondan::extension(name = "ask-librarian")]
pub mod ask_librarian {
    use std::time::Duration;

    use goondan::agent::AgentRequest;
    use goondan::prelude::*;

    #[middleware(turn)]
    async fn ask(ctx: &mut TurnContext<'_>, next: Next<'_, Turn>, api: &ExtensionApi) -> Result<TurnResult> {
        let question = ctx.input().input.clone().unwrap_or_default();
        let request = AgentRequest::new("librarian").input(question).timeout(Duration::from_secs(60));
        let answer = ctx.agents().request(request).await;
        match answer {
            Ok(answer) => {
                let text = format!("The librarian says: {}", answer.response);
                ctx.emit(MessageEvent::append(Message::user(text)));
            }
            Err(error) => api.logger().warn(format!("the model answers without the librarian: {error}")),
        }
        next.run(ctx).await
    }
}

#[cfg(test)]
mod tests {
    use goondan::agent::LocalRouter;
    use goondan::model::{ScriptItem, ScriptedModel};
    use goondan::testing::Chat;
    use goondan::{Agent, json};

    use super::ask_librarian;

    #[tokio::test]
    async fn the_model_reads_what_the_other_agent_said() -> goondan::Result<()> {
        let router = LocalRouter::new();
        let librarian = ScriptedModel::new([ScriptItem::say("page 42")]);
        let librarian = Agent::builder("librarian").model(librarian).build()?;
        router.add(&librarian);
        let chat = Chat::with::<ask_librarian::Extension>(json!({})).agent(|agent| agent.router(router));
        let chat = chat.start().await?;

        chat.say("where is it?").await?;

        let expected = ["user: where is it?", "user: The librarian says: page 42"];
        assert_eq!(chat.last_request().transcript(), expected);
        Ok(())
    }

    #[tokio::test]
    async fn without_the_other_agent_the_model_answers_alone() -> goondan::Result<()> {
        let chat = Chat::with::<ask_librarian::Extension>(json!({})).start().await?;
        assert_eq!(chat.say("where is it?").await?.text(), "ok");
        assert!(chat.logs().iter().any(|line| line.text.contains("without the librarian")));
        Ok(())
    }
}
