//! The third extension of `docs/writing-extensions.md`.

use goondan::conversation::Timestamp;
use goondan::middleware::{StepDraft, ToolCallStatus};
use goondan::prelude::*;

pub struct Helpful {
    api: ExtensionApi,
}

#[goondan::extension(name = "helpful")]
impl Helpful {
    #[init]
    fn new(api: ExtensionApi) -> Self {
        Self { api }
    }

    /// Changes what the model sees in this step, and logs what it did.
    #[middleware(step)]
    async fn look(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        ctx.tool_catalog_mut().retain(|tool| tool.name != "shell__run");
        if ctx.step_index() == 0 {
            ctx.emit(MessageEvent::append(Message::system("Answer in one sentence.")));
        }
        let result = next.run(ctx).await?;
        self.api.logger().with("calls", result.tool_calls().len()).debug("a step is done");
        Ok(result)
    }

    /// Ends the turn normally when the step fails.
    #[middleware(step, priority = -100)]
    async fn survive(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        match next.catch(ctx).await {
            Ok(result) => Ok(result),
            Err(failure) => Ok(failure.recover(ctx, StepDraft::stop())),
        }
    }

    /// Changes the text that the caller receives.
    #[middleware(turn)]
    async fn sign(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let mut result = next.run(ctx).await?;
        let signed = format!("{} (an assistant)", result.text());
        result.set_text(signed);
        Ok(result)
    }

    /// Changes the arguments of a tool call, and the output that the model reads.
    #[middleware(toolCall)]
    async fn soften(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        ctx.args_mut().insert("language".to_owned(), "en".into());
        let mut result = next.run(ctx).await?;
        if result.status() == ToolCallStatus::Error {
            result.set_output("nothing found");
        }
        Ok(result)
    }

    /// Tells the model the time, and answers the shortest question itself.
    #[middleware(step)]
    async fn help(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        ctx.project(MessageEvent::append(Message::system(format!("It is {}.", Timestamp::now()))));
        if ctx.input().input.as_deref() == Some("?") {
            ctx.answer_with("Ask me about tea.");
        }
        next.run(ctx).await
    }

    /// Masks the number of a card.
    #[middleware(step)]
    async fn guard(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        for id in ctx.joined_inputs() {
            let mut messages = ctx.conversation().iter();
            let text = messages.find(|message| message.id() == id.as_str()).map(|joined| joined.text().into_owned());
            if let Some(text) = text.filter(|text| text.contains("4242 4242")) {
                let masked = Message::user(text.replace("4242 4242", "**** ****")).with_id(id.clone());
                ctx.emit(MessageEvent::replace(id, masked));
            }
        }
        next.run(ctx).await
    }

    /// Counts the turns that completed.
    #[on("turn.completed")]
    async fn count(&self, _event: &Event) -> Result<()> {
        self.api.state().update(|turns: &mut u64| *turns += 1)
    }

    /// Runs before the extension is dropped.
    #[cleanup]
    async fn close(&self) {
        self.api.logger().info("good bye");
    }
}

#[cfg(test)]
mod tests {
    use goondan::json;
    use goondan::model::ScriptItem;
    use goondan::testing::Chat;

    use super::Helpful;

    #[tokio::test]
    async fn the_answer_is_signed_and_the_instruction_is_there() -> goondan::Result<()> {
        let script = [ScriptItem::call("no__such", json!({})), ScriptItem::say("hello")];
        let chat = Chat::with::<Helpful>(json!({})).script(script).start().await?;
        let turn = chat.say("hi").await?;
        assert_eq!(turn.text(), "hello (an assistant)");
        let transcript = chat.transcript().await;
        assert!(transcript.contains(&"system: Answer in one sentence.".to_owned()), "{transcript:?}");
        assert!(transcript.contains(&"tool: nothing found".to_owned()), "{transcript:?}");
        assert!(chat.last_request().transcript().last().unwrap().starts_with("system: It is 2"));
        assert!(!transcript.iter().any(|line| line.starts_with("system: It is")), "{transcript:?}");
        let requests = chat.requests().len();
        assert_eq!(chat.say("?").await?.text(), "Ask me about tea. (an assistant)");
        assert_eq!(chat.requests().len(), requests);
        Ok(())
    }
}
