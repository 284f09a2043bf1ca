//! Makes two tools those that Anthropic defines: `bash__exec` of the extension `bash` is its bash, and a tool of this
//! extension its memory. Other models are offered both as functions.

mod memory;

use goondan::Value;
use goondan::extension::SharedState;
use goondan::prelude::*;
use goondan::tool::{ProviderTool, ToolReply};

use memory::{Command, Memory};

/// The extension.
#[derive(Debug)]
pub struct ProviderTools {
    memory: SharedState<Memory>,
}

/// Makes `bash__exec` and `provider-tools__memory` tools that Anthropic defines.
#[goondan::extension(name = "provider-tools")]
impl ProviderTools {
    #[init]
    fn new(ctx: InitContext) -> Result<Self> {
        Ok(Self { memory: ctx.shared_state()? })
    }

    /// Keeps files below `/memories`, which later conversations have too: lists and shows them, and creates, changes,
    /// moves and deletes them.
    #[tool(effect = once)]
    async fn memory(&self, command: Command) -> Result<ToolReply> {
        // What a command cannot do is for the model to read.
        let done = self.memory.update(|memory| memory.run(command))?;
        Ok(match done {
            Ok(text) => ToolReply::text(text),
            Err(problem) => ToolReply::text(problem).failed(),
        })
    }

    /// Says which tools of the step Anthropic defines.
    #[middleware(step)]
    async fn bind(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let defined = [
            ("bash__exec", ProviderTool::anthropic("bash_20250124", "bash")),
            ("provider-tools__memory", ProviderTool::anthropic("memory_20250818", "memory")),
        ];
        for (name, tool) in defined {
            if let Some(item) = ctx.tool_catalog_mut().get_mut(name) {
                *item = item.clone().provider_tool(tool);
            }
        }
        next.run(ctx).await
    }

    /// Takes the arguments of Anthropic's bash, and returns the output as its models expect it: as text.
    #[middleware(toolCall)]
    async fn translate(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        if ctx.tool_name() != "bash__exec" {
            return next.run(ctx).await;
        }
        if ctx.args_mut().shift_remove("restart").is_some() {
            // Each command begins with a new shell anyway.
            ctx.args_mut().insert("command".to_owned(), "echo 'The shell has begun again.'".into());
        }
        let mut result = next.run(ctx).await?;
        if let Some(ended) = result.output() {
            let text = |name: &str| ended[name].as_str().unwrap_or_default();
            let mut output = format!("{}{}", text("stdout"), text("stderr"));
            match (&ended["timedOut"], &ended["exitCode"]) {
                (Value::Bool(true), _) => output += "\nThe command ran for too long, and was ended.",
                (_, code) if *code != 0 => output += &format!("\nexit code: {code}"),
                _ => {}
            }
            result.set_output(output);
        }
        Ok(result)
    }
}
