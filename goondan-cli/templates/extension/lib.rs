//! The goondan extension `{{name}}`: a tool that greets people, and a middleware that limits how often.

use goondan::prelude::*;

/// The config of the extension: `spec.config` in a bundle.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// The number of greetings that a conversation may have.
    pub max_greetings: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { max_greetings: 3 }
    }
}

/// The arguments of the tool `greet`. The model reads these comments in the schema of the tool.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Greet {
    /// The name of the person to greet.
    name: String,
}

/// The extension. Each conversation creates its own value.
#[derive(Debug)]
pub struct {{type}} {
    api: ExtensionApi,
    config: Config,
}

/// Greets people, a limited number of times in each conversation.
#[goondan::extension(name = "{{name}}")]
impl {{type}} {
    #[init]
    fn new(api: ExtensionApi, config: Config) -> Self {
        Self { api, config }
    }

    /// Greets a person by name.
    #[tool]
    async fn greet(&self, input: Greet) -> Result<String> {
        let state = self.api.state();
        // Stored with the turn, and available again when the conversation is continued.
        state.update(|greetings: &mut u32| *greetings += 1)?;
        Ok(format!("Hello, {}!", input.name))
    }

    /// Wraps every step. Before `next`, which calls the model, it hides the tool at the limit.
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
