//! Approval of a call by an outside answer.

/// Runs calls of `shell__run` only if the program allows them.
#[goondan::extension(name = "approval", guard)]
pub mod ask_first {
    use goondan::prelude::*;
    use tokio::sync::mpsc;

    /// The payload of `approval.answer`.
    #[derive(Debug, Deserialize, Serialize)]
    pub struct Answer {
        pub call_id: String,
        pub allowed: bool,
    }

    #[middleware(toolCall, priority = -50)]
    async fn ask(
        ctx: &mut ToolCallContext<'_>,
        next: Next<'_, ToolCall>,
        api: &ExtensionApi,
    ) -> Result<ToolCallResult> {
        if ctx.tool_name() != "shell__run" {
            return next.run(ctx).await;
        }
        // The subscription comes before the question, so that no answer is missed.
        let (sender, mut answers) = mpsc::unbounded_channel();
        let forward = move |event: Event| {
            let forwarded = event.payload::<Answer>().and_then(|answer| Ok(sender.send(answer)?));
            std::future::ready(forwarded)
        };
        let _subscription = api.events().on("approval.answer", forward)?;
        api.events().emit("approval.question", (ctx.call_id(), ctx.tool_name(), ctx.args()));
        loop {
            match answers.recv().await {
                Some(answer) if answer.call_id != ctx.call_id().as_str() => {}
                Some(answer) if answer.allowed => return next.run(ctx).await,
                _ => return Err(Error::new("NOT_ALLOWED", "the user did not allow this call")),
            }
        }
    }
}

mod program {
    use goondan::agent::TurnUpdate;
    use goondan::event::Event;
    use goondan::middleware::TurnResult;
    use goondan::{Instance, Result};

    use super::ask_first::Answer;

    /// Runs one turn, and asks a person about each call that needs to be allowed.
    pub async fn run(instance: &Instance, input: &str, ask: impl Fn(&Event) -> bool) -> Result<TurnResult> {
        let questions = instance.events().subscribe("approval.question")?;
        let mut turn = instance.run_stream(input).with_events(questions);
        while let Some(update) = turn.next().await {
            if let TurnUpdate::Emitted(question) = update {
                let answer = Answer { call_id: question.payload()?, allowed: ask(&question) };
                instance.events().emit("approval.answer", (answer,)).await?;
            }
        }
        turn.finish().await
    }
}

#[cfg(test)]
mod tests {
    use goondan::json;
    use goondan::model::ScriptItem;
    use goondan::testing::Chat;

    use super::{ask_first, program};

    /// What must not run unasked.
    #[goondan::extension(name = "shell")]
    mod shell {
        use goondan::prelude::*;

        /// Runs a command.
        #[tool]
        async fn run() -> Result<&'static str> {
            Ok("it ran")
        }
    }

    async fn answered(allowed: bool) -> goondan::Result<String> {
        let script = [ScriptItem::call("shell__run", json!({})), ScriptItem::say("done")];
        let chat = Chat::with::<ask_first::Extension>(json!({})).with::<shell::Extension>(json!({}));
        let chat = chat.script(script).start().await?;
        program::run(chat.instance(), "clean up", |question| question.args()[1] == "shell__run" && allowed).await?;
        Ok(chat.last_request().transcript()[2].clone())
    }

    #[tokio::test]
    async fn the_call_waits_for_its_answer() -> goondan::Result<()> {
        assert_eq!(answered(true).await?, "tool: it ran");
        assert!(answered(false).await?.contains("the user did not allow this call"));
        Ok(())
    }
}
