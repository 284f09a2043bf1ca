//! Extensions that choose a model, and extensions that hang.

use goondan::json;
use goondan::prelude::*;

use crate::log::{Log, LogConfig};

/// Chooses the model of its config, and its options.
pub struct Choosing {
    config: ChoosingConfig,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ChoosingConfig {
    model: String,
}

#[goondan::extension(name = "choosing")]
impl Choosing {
    #[init]
    fn new(config: ChoosingConfig) -> Self {
        Self { config }
    }

    #[middleware(step)]
    async fn choose(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        if ctx.metadata().get("deployment") == Some(&json!("test")) {
            ctx.set_model(self.config.model.as_str());
            ctx.model_options_mut().temperature = Some(0.0);
        }
        next.run(ctx).await
    }
}

/// Has a layer that never returns.
pub struct Stuck;

#[goondan::extension(name = "stuck")]
impl Stuck {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(turn)]
    async fn hang(&self, _: &mut TurnContext<'_>, _: Next<'_, Turn>) -> Result<TurnResult> {
        std::future::pending().await
    }
}

/// Has a tool that never returns.
pub struct Sleeping;

#[goondan::extension(name = "sleeping")]
impl Sleeping {
    #[init]
    fn new() -> Self {
        Self
    }

    /// Never returns.
    #[tool(timeout = "5s")]
    async fn sleep(&self) -> Result<()> {
        std::future::pending().await
    }
}

/// Sets options in its outer layer, changes them in its inner one, and logs what both know of the model call.
pub struct ModelSteering {
    log: Log,
}

#[goondan::extension(name = "model-steering")]
impl ModelSteering {
    #[init]
    fn new(config: LogConfig) -> Self {
        Self { log: config.log }
    }

    #[middleware(step, priority = 1)]
    async fn outer(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let (name, options) = (ctx.model_name().clone(), ctx.model_options().clone());
        self.log.write(format!("{name:?} {}", json!(options)));
        self.log.write(json!(ctx.model_info()).to_string());
        self.log.write(ctx.token_estimate().to_string());
        if ctx.step_index() == 0 {
            ctx.set_model("other");
            let options = ctx.model_options_mut();
            options.temperature = Some(0.5);
            options.stop.push("END".to_owned());
        }
        next.run(ctx).await
    }

    #[middleware(step, priority = 2)]
    async fn inner(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        self.log.write(format!("{:?} {}", ctx.model_name(), json!(ctx.model_options())));
        self.log.write(json!(ctx.model_info()).to_string());
        if ctx.model_options().temperature.is_some() {
            ctx.model_options_mut().temperature = Some(0.25);
            ctx.model_options_mut().provider.insert("topK".to_owned(), json!(4));
        }
        next.run(ctx).await
    }
}
