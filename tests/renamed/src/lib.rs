//! Owns an extension in a crate that knows goondan by another name alone, and that allows nothing.
#![forbid(unsafe_code)]
#![deny(warnings, missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]

use agents::prelude::*;

/// What the tool is told.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Question {
    /// Who asks.
    pub name: String,
}

/// One of two that have the same name.
#[derive(Debug)]
pub struct Twin;

/// Has the name of another extension.
#[agents::extension(name = "twin", crate = agents)]
impl Twin {
    #[init]
    fn new(_api: ExtensionApi) -> Self {
        Self
    }

    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        next.run(ctx).await
    }

    /// Says who is asked.
    #[tool(effect = read)]
    async fn who(&self, question: Question, _ctx: &ToolContext<'_>) -> Result<String> {
        Ok(format!("the twin in the crate `renamed`, {}", question.name))
    }

    #[on("turn.*")]
    async fn on(&self, _event: &Event) -> Result<()> {
        Ok(())
    }

    #[cleanup]
    async fn close(&self) {}
}
