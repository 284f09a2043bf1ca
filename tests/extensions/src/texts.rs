//! An extension that looks for a word in everything that is read, or hides it.

use std::borrow::Cow;

use goondan::conversation::{FilePart, Part};
use goondan::prelude::*;
use goondan::{Error, Map, Value, json};

use crate::Log;

/// Finds or hides the word `secret`, as its config says.
pub struct Hiding {
    log: Log,
    mode: Mode,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct HidingConfig {
    log: Log,
    mode: Mode,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Mode {
    /// Logs the texts in the messages of each step.
    Messages,
    /// Logs the texts in the parts of these messages.
    Parts,
    /// Logs the texts in each result of a tool.
    Results,
    /// Hides the word in the messages.
    Hide,
    /// Hides the word in the results of tools.
    HideResults,
}

fn hidden(text: &str) -> Cow<'_, str> {
    text.replace("secret", "***").replace("4711", "***").into()
}

#[goondan::extension(name = "hiding")]
impl Hiding {
    #[init]
    fn new(HidingConfig { log, mode }: HidingConfig) -> Self {
        Self { log, mode }
    }

    #[middleware(step)]
    async fn messages(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        match self.mode {
            Mode::Messages => {
                ctx.conversation().iter().flat_map(|message| message.texts()).for_each(|text| self.see(&text))
            }
            Mode::Parts => {
                for message in ctx.conversation() {
                    message.content().parts().iter().flat_map(Part::texts).for_each(|text| self.see(&text));
                }
            }
            Mode::Hide => {
                let changed: Vec<_> =
                    ctx.conversation().iter().filter_map(|message| message.map_text(hidden)).collect();
                for message in changed {
                    ctx.emit(MessageEvent::replace(message.id().clone(), message));
                }
            }
            Mode::Results | Mode::HideResults => {}
        }
        next.run(ctx).await
    }

    #[middleware(toolCall)]
    async fn results(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        let mut result = next.run(ctx).await?;
        match self.mode {
            Mode::Results => result.texts().for_each(|text| self.see(&text)),
            Mode::HideResults => result.map_text(hidden),
            Mode::Messages | Mode::Parts | Mode::Hide => {}
        }
        Ok(result)
    }

    /// Answers with text.
    #[tool(effect = read)]
    async fn text(&self) -> Result<&'static str> {
        Ok("secret result")
    }

    /// Answers with JSON.
    #[tool(effect = read)]
    async fn json(&self, about: Map<String, Value>) -> Result<Value> {
        let _ = about;
        Ok(json!({ "secret member": ["secret item", 4711] }))
    }

    /// Answers with text and a file.
    #[tool(effect = read)]
    async fn content(&self) -> Result<ToolReply> {
        let file = FilePart::new("image/png", "https://example.org/secret-url").named("secret-name.png");
        Ok(ToolReply::text("secret caption").file(file))
    }

    /// Fails.
    #[tool(effect = read)]
    async fn fail(&self) -> Result<()> {
        Err(Error::msg("secret error").suggest("secret suggestion"))
    }

    /// Answers that it failed.
    #[tool(effect = read)]
    async fn refuse(&self) -> Result<ToolReply> {
        Ok(ToolReply::text("secret refusal").failed())
    }
}

impl Hiding {
    fn see(&self, text: &str) {
        if text.contains("secret") || text.contains("4711") {
            self.log.write(text);
        }
    }
}
