//! Extensions that use every member of their handle.

use goondan::middleware::{Middleware, MiddlewareOptions};
use goondan::prelude::*;
use goondan::tool::ToolItem;
use goondan::{BoxFuture, json};

use crate::tools::Answer;

/// Uses all five members in `#[init]`, and logs at every level from a step.
pub struct Surfaces {
    api: ExtensionApi,
}

/// A layer around the turn that does nothing.
pub(crate) struct NoopMiddleware;

impl Middleware<Turn> for NoopMiddleware {
    fn handle<'a>(&'a self, ctx: &'a mut TurnContext<'_>, next: Next<'a, Turn>) -> BoxFuture<'a, Result<TurnResult>> {
        Box::pin(next.run(ctx))
    }
}

#[goondan::extension(name = "surfaces")]
impl Surfaces {
    #[init]
    fn new(api: ExtensionApi) -> Result<Self> {
        api.pipeline().register(Turn, NoopMiddleware, MiddlewareOptions::default())?;
        api.tools().register(ToolItem::new("surfaces__tool")?, Answer(json!(1)))?;
        assert_eq!(api.state().get::<u32>()?, None);
        api.events().on("turn.completed", |_: Event| async { Ok(()) })?.detach();
        api.events().emit("surfaces.ready", ());
        api.logger().with("answer", 42).info("ready");
        Ok(Self { api })
    }

    #[middleware(step)]
    async fn step(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let logger = self.api.logger().with("list", [1, 2]).with("name", "x");
        logger.debug("to debug");
        logger.info("to inform");
        logger.warn("to warn");
        logger.error("to complain");
        next.run(ctx).await
    }
}

/// Requires a capability that no host has by default.
pub struct Needy;

#[goondan::extension(name = "needy", requires = ["state", "quantum-link"])]
impl Needy {
    #[init]
    fn new() -> Self {
        Self
    }
}
