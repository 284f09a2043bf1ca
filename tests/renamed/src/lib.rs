//! An extension in a crate that renames its dependency `goondan`, forbids unsafe code and denies warnings.
#![forbid(unsafe_code)]
#![deny(warnings, missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]

use agents::prelude::*;

/// The input of the tool.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Question {
    /// The name of the person who asks.
    pub name: String,
}

/// One of two extensions with the same name.
#[derive(Debug)]
pub struct Twin;

/// Has the same name as another extension.
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

    /// Returns which of the two twins answers.
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
