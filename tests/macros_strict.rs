//! An extension in a crate that allows nothing: no unsafe code, and no warning, however pedantic.
#![forbid(unsafe_code)]
#![deny(warnings, missing_docs, unreachable_pub, unused_qualifications, clippy::all, clippy::pedantic)]
#![deny(missing_debug_implementations, single_use_lifetimes, unnameable_types, let_underscore_drop)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::allow_attributes_without_reason)]

use goondan::prelude::*;

/// The config.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Config {
    /// How often.
    pub times: u8,
}

/// The extension.
#[derive(Debug)]
pub struct Strict {
    times: u8,
}

/// Asks for much and gives little.
#[goondan::extension(name = "strict")]
impl Strict {
    #[init]
    fn new(api: ExtensionApi, config: Config) -> Result<Self> {
        if format!("{api:?}").is_empty() { Err(Error::msg("nobody")) } else { Ok(Self { times: config.times }) }
    }

    /// Lets everything pass.
    ///
    /// # Errors
    /// Those of the inner layers.
    #[middleware(turn)]
    pub async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        next.run(ctx).await
    }

    #[middleware(step)]
    async fn step(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        ctx.metadata_mut().insert("times".to_owned(), self.times.into());
        next.run(ctx).await
    }

    #[middleware(toolCall)]
    async fn refuse(&self, _ctx: &mut ToolCallContext<'_>, _next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        Err(Error::msg("refused"))
    }
}

#[test]
fn strict_crate_holds_an_extension() {
    assert!(goondan::linked().iter().any(|descriptor| descriptor.name == "strict"));
}
