//! An extension that prepares answers of steps and replies of tool calls.

use std::time::Duration;

use goondan::Value;
use goondan::conversation::{Content, FilePart, ToolCallPart};
use goondan::name::ExtensionName;
use goondan::prelude::*;

use crate::Log;
use crate::depth::nested;

/// Prepares what its config says, and logs what it sees.
pub struct Preparing {
    config: Config,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Config {
    log: Log,
    /// The answer of each step, as the content of a message; `null` prepares none.
    #[serde(default)]
    answers: Vec<Value>,
    /// The reply of each call.
    reply: Option<Reply>,
    /// Whether it prepares after `next`.
    #[serde(default)]
    late: bool,
    /// Whether it asks for another attempt when the first one has ended, and prepares nothing for that.
    #[serde(default)]
    retry: bool,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum Reply {
    Value(Value),
    /// A text and a file, of a tool that failed.
    Failed(String),
    Deep,
}

impl From<Reply> for ToolReply {
    fn from(reply: Reply) -> Self {
        match reply {
            Reply::Value(value) => value.into(),
            Reply::Failed(text) => {
                Self::text(text).file(FilePart::from_bytes("image/png", b"\x89PNG\r\n\x1a\n")).failed()
            }
            Reply::Deep => nested(100).into(),
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Input {
    /// What to do.
    text: String,
}

fn name(extension: Option<&ExtensionName>) -> &str {
    extension.map_or("nobody", |name| name.as_str())
}

#[goondan::extension(name = "preparing")]
impl Preparing {
    #[init]
    fn new(config: Config) -> Self {
        Self { config }
    }

    fn answer(&self, ctx: &mut StepContext<'_>) -> Result<()> {
        let index = ctx.step_index() as usize;
        match self.config.answers.get(index) {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) if text == "(deep)" => {
                let args = goondan::json!({ "text": nested(100) });
                ctx.answer_with(vec![ToolCallPart::new("1".into(), "preparing__act", args).into()]);
            }
            Some(answer) => ctx.answer_with(serde_json::from_value::<Content>(answer.clone())?),
        }
        Ok(())
    }

    #[middleware(step)]
    async fn step(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let own = ctx.extension_name().cloned();
        let own = name(own.as_ref());
        let again = ctx.metadata().contains_key("attempt");
        self.config.log.write(format!("{own}: step"));
        if !self.config.late && !again {
            self.answer(ctx)?;
        }
        let result = next.run(ctx).await?;
        if self.config.late {
            self.answer(ctx)?;
        }
        if self.config.retry && !again {
            return Err(Error::retry_after(Duration::ZERO, "again"));
        }
        let used = result.usage().map(|usage| usage.total_tokens);
        let by = name(result.prepared_by());
        let calls: Vec<_> = result.tool_results().iter().map(|call| name(call.prepared_by())).collect();
        self.config.log.write(format!("{own}: step prepared by {by}, calls {calls:?}, tokens {used:?}"));
        Ok(result)
    }

    #[middleware(toolCall)]
    async fn call(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        let own = ctx.extension_name().cloned();
        let own = name(own.as_ref());
        let again = ctx.metadata().contains_key("attempt");
        self.config.log.write(format!("{own}: call"));
        let prepare = |ctx: &mut ToolCallContext<'_>| {
            if let Some(reply) = self.config.reply.clone() {
                ctx.answer_with(reply);
            }
        };
        if !self.config.late && !again {
            prepare(ctx);
        }
        let result = next.run(ctx).await?;
        if self.config.late {
            prepare(ctx);
        }
        if self.config.retry && !again {
            return Err(Error::retry_after(Duration::ZERO, "again"));
        }
        let code = result.error().and_then(|error| error.code.as_deref()).unwrap_or("no error");
        self.config.log.write(format!("{own}: call prepared by {}, {code}", name(result.prepared_by())));
        Ok(result)
    }

    /// Acts on the world.
    #[tool(effect = once)]
    async fn act(&self, input: Input) -> Result<String> {
        self.config.log.write(format!("acted: {}", input.text));
        Ok(format!("did {}", input.text))
    }
}
