//! The goondan extension `{{name}}`: a tool that greets, and a middleware that says when it is enough.

use goondan::prelude::*;

/// The config of the extension, in a bundle below `spec.config`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// How many greetings a conversation may have.
    pub max_greetings: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { max_greetings: 3 }
    }
}

/// What the model says when it calls the tool; it reads these comments.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Greet {
    /// Who is greeted.
    name: String,
}

/// The extension: one value for each conversation.
#[derive(Debug)]
pub struct {{type}} {
    api: ExtensionApi,
    config: Config,
}

/// Greets people, a few times in each conversation.
#[goondan::extension(name = "{{name}}")]
impl {{type}} {
    #[init]
    fn new(api: ExtensionApi, config: Config) -> Self {
        Self { api, config }
    }

    /// Greets somebody by name.
    #[tool]
    async fn greet(&self, input: Greet) -> Result<String> {
        let state = self.api.state();
        state.update(|greetings: &mut u32| *greetings += 1)?;
        Ok(format!("Hello, {}!", input.name))
    }

    /// Runs around every model call: what is done before `next`, the model sees.
    #[middleware(step)]
    async fn limit(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let greetings: u32 = self.api.state().get()?.unwrap_or_default();
        if greetings >= self.config.max_greetings {
            let tools = ctx.tool_catalog_mut();
            tools.retain(|tool| tool.name != "{{name}}__greet");
        }
        next.run(ctx).await
    }
}
