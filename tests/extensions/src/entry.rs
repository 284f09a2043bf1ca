//! Extensions that register, and extensions that fail to.

use goondan::json;
use goondan::prelude::*;

use crate::LogConfig;
use crate::surface::NoopMiddleware;
use crate::tools::Answer;

/// Registers slowly, and logs when it starts and ends.
pub struct Slow;

#[goondan::extension(name = "slow")]
impl Slow {
    #[init]
    async fn new(config: LogConfig) -> Result<Self> {
        config.log.write("slow starts");
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
        config.log.write("slow ends");
        Ok(Self)
    }

    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let mut result = next.run(ctx).await?;
        result.set_text("slow was there");
        Ok(result)
    }
}

/// Registers at once.
pub struct Quick;

#[goondan::extension(name = "quick")]
impl Quick {
    #[init]
    fn new(config: LogConfig) -> Self {
        config.log.write("quick");
        Self
    }
}

/// Fails to register.
pub struct Failing;

#[goondan::extension(name = "failing")]
impl Failing {
    #[init]
    fn new() -> Result<Self> {
        let port: u16 = "not a number".parse()?;
        Err(Error::msg(format!("port {port}")))
    }
}

/// Takes a config with members of several types.
pub struct Configured;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape matters")]
struct Config {
    max_items: u8,
    #[serde(default)]
    names: Vec<String>,
}

#[goondan::extension(name = "configured")]
impl Configured {
    #[init]
    fn new(_config: Config) -> Self {
        Self
    }
}

/// Registers a layer after `#[init]`, when only tools can be registered.
pub struct Late {
    api: ExtensionApi,
}

#[goondan::extension(name = "late")]
impl Late {
    #[init]
    fn new(api: ExtensionApi) -> Self {
        Self { api }
    }

    #[middleware(turn)]
    async fn register(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        self.api.pipeline().register(Turn, NoopMiddleware, goondan::middleware::MiddlewareOptions::default())?;
        next.run(ctx).await
    }
}

/// Fails to register in the way that its config names.
pub struct Declining;

/// The config of [`Declining`].
#[derive(Debug, Deserialize, JsonSchema)]
pub struct DecliningConfig {
    refuse: Refusal,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum Refusal {
    Error,
    ToolName,
    Schema,
}

#[goondan::extension(name = "declining")]
impl Declining {
    #[init]
    fn new(api: ExtensionApi, config: DecliningConfig) -> Result<Self> {
        match config.refuse {
            Refusal::Error => Err(Error::new("NO_DB", "the database is missing").suggest("start the database")),
            Refusal::ToolName => {
                api.tools().register(goondan::tool::ToolItem::new("no name")?, Answer(json!(1)))?;
                Ok(Self)
            }
            Refusal::Schema => {
                let item = goondan::tool::ToolItem::new("declining__echo")?.parameters(json!({ "type": "string" }));
                api.tools().register(item, Answer(json!(1)))?;
                Ok(Self)
            }
        }
    }
}
