//! An extension that learns tools while it runs.

use goondan::prelude::*;
use goondan::tool::{Effect, ToolHandler, ToolItem};
use goondan::{BoxFuture, Value};

/// Registers tools when it is asked to, and those of its config in `#[init]`.
pub struct Learning {
    api: ExtensionApi,
    config: LearningConfig,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LearningConfig {
    tag: String,
    /// The parameters of lenient tools, by name.
    #[serde(default)]
    lenient: goondan::json::Map<String, Value>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Lesson {
    name: String,
    #[serde(default)]
    parameters: Option<Value>,
}

/// Answers with a tag.
struct Learnt(String);

impl ToolHandler for Learnt {
    fn call<'a>(&'a self, ctx: &'a ToolContext<'_>, _: Value) -> BoxFuture<'a, Result<ToolReply>> {
        Box::pin(async move { Ok(format!("{} by {}", ctx.tool_name(), self.0).into()) })
    }
}

#[goondan::extension(name = "learning")]
impl Learning {
    #[init]
    fn new(api: ExtensionApi, config: LearningConfig) -> Result<Self> {
        let learning = Self { api, config };
        for (name, parameters) in &learning.config.lenient {
            let item = learning.item(name)?.parameters(parameters.clone()).lenient();
            learning.api.tools().register(item, Learnt(learning.config.tag.clone()))?;
        }
        Ok(learning)
    }

    fn item(&self, name: &str) -> Result<ToolItem> {
        Ok(ToolItem::new(name)?.describe(self.config.tag.clone()).effect(Effect::Read))
    }

    /// Learns a tool.
    #[tool]
    async fn learn(&self, input: Lesson) -> Result<()> {
        let mut item = self.item(&input.name)?;
        item.parameters = input.parameters;
        let (api, tag) = (self.api.clone(), self.config.tag.clone());
        // From a task, as an extension does that hears from a server.
        tokio::spawn(async move { api.tools().register(item, Learnt(tag)) }).await?
    }

    /// Learns the tool that the turn asks for, in the step that uses it.
    #[middleware(step)]
    async fn learn_now(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let asked = ctx.input().input.as_deref().and_then(|text| text.strip_prefix("learn "));
        if let Some(item) = asked.map(|name| self.item(name)).transpose()? {
            self.api.tools().register(item.clone(), Learnt(self.config.tag.clone()))?;
            ctx.tool_catalog_mut().insert(item);
        }
        next.run(ctx).await
    }
}
