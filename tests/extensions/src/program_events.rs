//! Extensions that talk to the program over the bus.

use goondan::prelude::*;
use tokio::sync::mpsc;

/// Lets each tool call wait until the program has allowed or refused it.
pub struct Approval {
    api: ExtensionApi,
}

/// What the program answers.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// The call that was asked about.
    pub call_id: String,
    /// Whether it may run.
    pub allowed: bool,
}

#[goondan::extension(name = "approval")]
impl Approval {
    #[init]
    fn new(api: ExtensionApi) -> Self {
        Self { api }
    }

    #[middleware(toolCall)]
    async fn ask(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        let (sender, mut answers) = mpsc::unbounded_channel();
        let forward =
            move |event: Event| std::future::ready(event.payload().and_then(|answer| Ok(sender.send(answer)?)));
        let _subscription = self.api.events().on("approval.answer", forward)?;
        self.api.events().emit("approval.question", (ctx.call_id(), ctx.args()));
        loop {
            let answer: Answer = answers.recv().await.ok_or_else(|| Error::msg("there is no program"))?;
            if answer.call_id == ctx.call_id().as_str() {
                return if answer.allowed { next.run(ctx).await } else { Err(Error::msg("not allowed")) };
            }
        }
    }

    /// Says how many events it emitted.
    #[tool]
    async fn tell(&self, input: Many) -> Result<u32> {
        for number in 0..input.events {
            self.api.events().emit("approval.number", (number,));
        }
        Ok(input.events)
    }

    /// Answers the program.
    #[on("approval.ping")]
    async fn pong(&self, event: &Event) -> Result<()> {
        self.api.events().emit("approval.pong", (event.payload::<u32>()? + 1,));
        Ok(())
    }
}

/// How many events to emit.
#[derive(Debug, Deserialize, JsonSchema)]
struct Many {
    events: u32,
}
