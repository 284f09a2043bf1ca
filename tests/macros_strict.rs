//! Extensions in a crate that forbids unsafe code and denies every warning, pedantic ones included.
#![forbid(unsafe_code)]
#![deny(warnings, missing_docs, unreachable_pub, unused_qualifications, clippy::all, clippy::pedantic)]
#![deny(missing_debug_implementations, single_use_lifetimes, unnameable_types, let_underscore_drop)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::allow_attributes_without_reason)]

use goondan::prelude::*;

/// The config.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Config {
    /// The number of repetitions.
    pub times: u8,
}

/// The input of a tool.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Input {
    /// The text to search for.
    pub text: String,
}

/// The extension.
#[derive(Debug)]
pub struct Strict {
    times: u8,
}

/// Has a function of every role.
#[goondan::extension(name = "strict")]
impl Strict {
    #[init]
    fn new(api: ExtensionApi, config: Config) -> Result<Self> {
        if format!("{api:?}").is_empty() { Err(Error::msg("no handle")) } else { Ok(Self { times: config.times }) }
    }

    /// Runs the rest of the chain.
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

    /// Counts letters.
    #[tool(effect = read, timeout = "5s")]
    async fn count(&self, input: Input) -> Result<usize> {
        Ok(input.text.len())
    }

    #[tool]
    async fn nothing(&self, _ctx: &ToolContext<'_>, _api: &ExtensionApi) -> Result<()> {
        Ok(())
    }

    #[tool(blocking)]
    fn scan(&self, input: Input, _api: &ExtensionApi) -> Result<usize> {
        Ok(input.text.len())
    }

    #[on("turn.*")]
    async fn on(&self, _event: &Event) -> Result<()> {
        Ok(())
    }

    #[cleanup]
    async fn close(&self) {}
}

/// The same as a module.
#[goondan::extension(name = "strict-module", requires = ["workspace"])]
pub mod strict_module {
    use goondan::prelude::*;

    use super::{Config, Input};

    #[init]
    fn start(_api: ExtensionApi, config: Config) -> Result<()> {
        if config.times > 3 { Err(Error::msg("too often")) } else { Ok(()) }
    }

    #[middleware(turn)]
    async fn turn(ctx: &mut TurnContext<'_>, next: Next<'_, Turn>, _api: &ExtensionApi) -> Result<TurnResult> {
        next.run(ctx).await
    }

    #[tool]
    async fn count(input: Input) -> Result<usize> {
        Ok(input.text.len())
    }

    #[tool(blocking)]
    fn scan(input: Input) -> Result<usize> {
        Ok(input.text.len())
    }

    #[on("turn.*")]
    async fn on(_event: &Event) -> Result<()> {
        Ok(())
    }

    #[cleanup]
    async fn close() {}
}

#[goondan::extension(name = "strict-private-module")]
mod strict_private_module {
    #[cleanup]
    async fn close() {}
}

#[test]
fn extensions_compile_in_a_strict_crate() {
    let linked: Vec<_> = goondan::extension::linked().into_iter().map(|descriptor| descriptor.name).collect();
    assert_eq!(linked, ["strict", "strict-module", "strict-private-module"]);
}
