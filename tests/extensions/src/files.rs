//! An extension that brings a file in each way that extensions have.

use goondan::conversation::{FilePart, Part};
use goondan::prelude::*;

/// Brings a file as its config says.
pub struct Bringing {
    config: BringingConfig,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct BringingConfig {
    /// The media type and the URL of a file called `it`.
    file: (String, String),
    how: How,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "lowercase")]
enum How {
    /// As the answer of its tool.
    Tool,
    /// As a prepared reply to the call.
    Reply,
    /// In place of what the tool answered.
    Output,
    /// In a message.
    Emit,
    /// In a message that replaces the newest one.
    Replace,
    /// In a message for the model alone.
    Project,
    /// As a prepared answer.
    Answer,
}

#[goondan::extension(name = "bringing")]
impl Bringing {
    #[init]
    fn new(config: BringingConfig) -> Self {
        Self { config }
    }

    fn file(&self) -> FilePart {
        let (media_type, url) = self.config.file.clone();
        FilePart::new(media_type, url).named("it")
    }

    /// Shows the file.
    #[tool(effect = read)]
    async fn show(&self) -> Result<ToolReply> {
        let text = ToolReply::text("look:");
        Ok(if self.config.how == How::Tool { text.file(self.file()) } else { text })
    }

    #[middleware(toolCall)]
    async fn call(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        let reply = || ToolReply::text("look:").file(self.file());
        if self.config.how == How::Reply {
            ctx.answer_with(reply());
        }
        let mut result = next.run(ctx).await?;
        if self.config.how == How::Output {
            result.set_output(reply());
        }
        Ok(result)
    }

    #[middleware(step)]
    async fn step(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let message = Message::user(vec![Part::from(self.file())]);
        match (self.config.how, ctx.conversation().iter().next_back().map(|newest| newest.to_id())) {
            (How::Emit, _) => ctx.emit(MessageEvent::append(message)),
            (How::Replace, Some(newest)) => ctx.emit(MessageEvent::replace(newest, message)),
            (How::Project, _) => ctx.project(MessageEvent::append(message)),
            (How::Answer, _) => ctx.answer_with(vec![Part::from(self.file())]),
            _ => {}
        }
        next.run(ctx).await
    }
}
